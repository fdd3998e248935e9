#include "cmd/download/torch/torch_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/json.h"

namespace tgi::download {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndex = "pytorch_model.bin.index.json";
constexpr std::string_view kSingle = "pytorch_model.bin";
constexpr std::string_view kAdapter = "adapter_model.bin";

// What transformers' Trainer and other tools leave beside a model.
constexpr std::array<std::string_view, 6> kOfTraining = {"training",  "args",      "arguments",
                                                         "optimizer", "scheduler", "rng_state"};
constexpr std::array<std::string_view, 6> kCopiedEndings = {".json",  ".txt", ".model",
                                                            ".jinja", ".md",  ".tiktoken"};

bool is_copied(const std::string& name) {
  if (name.ends_with(".index.json")) return false;
  if (name.starts_with("LICENSE") || name.starts_with("NOTICE")) return true;
  return std::ranges::any_of(kCopiedEndings,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

Json parse_file(const FileSource& files, const std::string& name, std::string_view text) {
  try {
    return parse_json(text);
  } catch (const Error& error) {
    throw error.in(files.describe(name));
  }
}

void read_index(TorchFolder& out, const FileSource& files) {
  const std::string name(kIndex);
  const std::string where = files.describe(name);
  const Json json = parse_file(files, name, *files.find_text(name));
  const Json map = JsonReader(json, where).object("weight_map").json();
  for (const auto& [tensor, file] : map.items()) {
    const std::string shard = file.is_string() ? file.get<std::string>() : "";
    if (shard.empty() || shard.find('/') != std::string::npos || shard == "..") {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: weight_map.{}: expected the name of a file beside it, got {}",
                              where, tensor, file.dump()));
    }
    out.index[tensor] = shard;
    if (std::ranges::find(out.files, shard) == out.files.end()) out.files.push_back(shard);
  }
  std::ranges::sort(out.files);
}

// Without the word, the families of transformers whose default it is share the tensors in the file.
bool config_ties_head(const FileSource& files) {
  const auto text = files.find_text("config.json");
  if (!text) return true;
  const Json json = parse_file(files, "config.json", *text);
  return JsonReader(json, files.describe("config.json")).boolean_or("tie_word_embeddings", true);
}

}  // namespace

bool is_torch_weights(const std::string& name) {
  if (!name.ends_with(".bin")) return false;
  return std::ranges::none_of(
      kOfTraining, [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

bool is_module_folder(std::string_view name) {
  const size_t digits = name.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && name[digits] == '_';
}

TorchFolder find_torch_files(const std::string& folder) {
  TorchFolder out{.folder = folder};
  const std::unique_ptr<FileSource> files = open_folder(folder);
  std::vector<std::string> candidates;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    std::error_code error;
    if (is_module_folder(name) && entry.is_directory(error)) out.modules.push_back(name);
    if (!entry.is_regular_file(error)) continue;  // links are followed
    if (is_torch_weights(name)) candidates.push_back(name);
    if (is_copied(name)) out.others.push_back(name);
  }
  std::ranges::sort(candidates);
  std::ranges::sort(out.others);
  std::ranges::sort(out.modules);
  const bool is_adapter = files->find("adapter_config.json") && !files->find("config.json");
  if (is_adapter && std::ranges::find(candidates, kAdapter) != candidates.end()) {
    out.files = {std::string(kAdapter)};
    out.converted_name = "adapter_model.safetensors";
    return out;  // what it saved of a head is its own
  }
  if (files->find(std::string(kIndex))) {
    read_index(out, *files);
  } else if (std::ranges::find(candidates, kSingle) != candidates.end()) {
    out.files = {std::string(kSingle)};
  } else {
    out.files = candidates;
  }
  if (out.files.empty()) {
    throw Error(Code::kNotFound,
                fmt::format("folder {}: no torch checkpoint in it; expected {}, {} or other *.bin",
                            folder, kSingle, kIndex));
  }
  out.ties_head = config_ties_head(*files);
  return out;
}

}  // namespace tgi::download
