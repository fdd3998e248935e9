#include "cmd/merge_lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/adapter_path.h"
#include "base/files/paths.h"
#include "base/files/regular_file.h"
#include "base/json.h"
#include "cmd/download/content_hash.h"
#include "ipc/model_facts.h"
#include "ipc/protocol.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "adapter_config.json";
constexpr size_t kStateDigits = 24;

// "ORG--NAME" of a snapshot in the hub's cache, else the own name of the folder or file.
std::string name_of(const fs::path& folder) {
  static constexpr std::string_view kPrefix = "models--";
  for (const fs::path& part : folder) {
    const std::string text = part.string();
    if (text.starts_with(kPrefix)) return text.substr(kPrefix.size());
  }
  return (fs::is_directory(folder) ? folder.filename() : folder.stem()).string();
}

// Another one whenever the file, or one of the folder, may be.
std::string state_of(const std::string& folder) {
  std::vector<std::string> lines;
  const auto add = [&](const fs::directory_entry& entry) {
    if (!entry.is_regular_file()) return;
    lines.push_back(fmt::format("{} {} {}\n", entry.path().filename().string(), entry.file_size(),
                                entry.last_write_time().time_since_epoch().count()));
  };
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) add(entry);
  } else {
    add(fs::directory_entry(folder));
  }
  std::ranges::sort(lines);
  std::string out = fs::weakly_canonical(folder).string() + "\n";
  for (const std::string& line : lines) out += line;
  return out;
}

LoraBase base_in_config(const std::string& file) {
  const Json json = parse_json(read_regular_file(file));
  const JsonReader config(json, "");
  LoraBase out{.model = config.string_or("base_model_name_or_path", ""),
               .revision = config.string_or("revision", "")};
  if (out.model.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: base_model_name_or_path: missing; which model was the adapter "
                            "made for? Write its name there",
                            file));
  }
  return out;
}

}  // namespace

std::optional<LoraBase> base_of_lora(Session& session, const std::string& path) {
  const fs::path file = fs::path(path) / kConfigFile;
  if (is_peft_folder(path)) return base_in_config(file.string());
  if (fs::exists(file) || !may_hold_adapter(path)) return std::nullopt;
  session.prepare({.wait_for_model = false, .accept_failed = true});
  const ipc::InspectParams params{.model = fs::absolute(path).string()};
  const ipc::OrderedJson result = session.client().call(ipc::kInspect, ipc::to_json(params));
  if (!result.contains("adapter")) return std::nullopt;
  const ipc::AdapterFolder facts = ipc::adapter_folder_from_json(result);
  if (facts.base_model.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: general.base_model.0: missing; which model was the adapter made "
                            "for? Convert it anew with the base at hand",
                            path));
  }
  return LoraBase{.model = facts.base_model, .revision = facts.revision};
}

std::string merge_lora(Session& session, const std::string& adapter, const std::string& base) {
  const std::string from = fs::absolute(adapter).string();
  const std::string model = fs::absolute(base).string();
  const std::string state = download::sha256_of(state_of(from) + state_of(model));
  const std::string folder =
      fmt::format("{}/merged/{}/{}", cache_dir(), name_of(fs::path(from).lexically_normal()),
                  state.substr(0, kStateDigits));
  if (fs::exists(fs::path(folder) / "config.json")) return folder;
  fs::create_directories(fs::path(folder).parent_path());
  session.prepare({.wait_for_model = false, .accept_failed = true});
  const ipc::MergeParams params{.model = model, .adapter = from, .output = folder};
  session.client().call(ipc::kMerge, ipc::to_json(params));
  return folder;
}

}  // namespace tgi
