#include "cmd/merge_lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/files/regular_file.h"
#include "base/json.h"
#include "cmd/download/content_hash.h"
#include "ipc/protocol.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "adapter_config.json";
constexpr size_t kStateDigits = 24;

// "ORG--NAME" of a snapshot in the hub's cache, else the folder's own name.
std::string name_of(const fs::path& folder) {
  static constexpr std::string_view kPrefix = "models--";
  for (const fs::path& part : folder) {
    const std::string text = part.string();
    if (text.starts_with(kPrefix)) return text.substr(kPrefix.size());
  }
  return folder.filename().string();
}

// Another one whenever a file of the folder may be.
std::string state_of(const std::string& folder) {
  std::vector<std::string> lines;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    lines.push_back(fmt::format("{} {} {}\n", entry.path().filename().string(), entry.file_size(),
                                entry.last_write_time().time_since_epoch().count()));
  }
  std::ranges::sort(lines);
  std::string out = fs::weakly_canonical(folder).string() + "\n";
  for (const std::string& line : lines) out += line;
  return out;
}

}  // namespace

bool is_lora_folder(const std::string& folder) {
  return fs::is_regular_file(fs::path(folder) / kConfigFile);
}

download::FetchRequest base_request(const download::FetchRequest& request,
                                    const std::string& adapter) {
  const std::string file = fmt::format("{}/{}", adapter, kConfigFile);
  const Json json = parse_json(read_regular_file(file));
  const JsonReader config(json, "");
  download::FetchRequest out = request;
  out.model = config.string_or("base_model_name_or_path", "");
  out.revision = config.string_or("revision", "");
  out.rules = {};
  if (out.model.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: base_model_name_or_path: missing; which model was the adapter "
                            "made for? Write its name there",
                            file));
  }
  return out;
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
