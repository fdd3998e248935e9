#include "cmd/download/file_choice.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <span>
#include <string_view>

#include "base/error.h"
#include "cmd/download/gguf_choice.h"
#include "cmd/download/torch/torch_folder.h"

namespace tgi::download {
namespace {

constexpr int64_t kLargestAside = int64_t{512} << 20;  // of a file that is no weights

bool has_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

bool ends_with_any(std::string_view text, std::span<const std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return text.ends_with(end); });
}

bool is_nested(std::string_view path) {
  return path.find('/') != std::string_view::npos;
}

// Of a module of sentence-transformers: "1_Pooling/config.json".
bool is_of_module(std::string_view path) {
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos || path.empty()) return false;
  const std::string_view folder = path.substr(0, slash);
  const std::string_view name = path.substr(slash + 1);
  return is_module_folder(folder) &&
         std::ranges::find(kModuleFiles, name) != std::end(kModuleFiles);
}

bool is_of_training(std::string_view path) {
  constexpr auto kParts =
      std::to_array<std::string_view>({"arguments", "args", "training", "optimizer", "scheduler",
                                       "rng_state", "trainer_state", "tfevents", "scaler."});
  return has_any(path, kParts);
}

// Weights in another layout than transformers', beside the same ones in its own.
bool is_other_layout(std::string_view path) {
  return path.starts_with("consolidated");
}

bool is_aside(const RemoteFile& file) {
  constexpr auto kEnds = std::to_array<std::string_view>(
      {".json", ".txt", ".model", ".jinja", ".tiktoken", ".jsonl", ".yaml", ".spm"});
  const std::string& path = file.path;
  if (is_of_module(path)) return true;
  if (is_nested(path) || is_of_training(path) || file.size > kLargestAside) return false;
  // An index goes with the weights it is of.
  if (path.ends_with(".index.json")) return path.starts_with("model.safetensors");
  if (path == "params.json") return false;  // of the other layout
  return ends_with_any(path, kEnds) || path == "README.md" || path.starts_with("LICENSE") ||
         path.starts_with("LICENCE") || path.starts_with("NOTICE");
}

bool matches(const std::string& glob, const std::string& path) {
  const std::string pattern = glob.ends_with('/') ? glob + "*" : glob;
  return ::fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
}

bool matches_any(const std::vector<std::string>& globs, const std::string& path) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return matches(glob, path); });
}

// "12 .gguf, 1 .md": what a model has, for the error.
std::string summary(const std::vector<RemoteFile>& files) {
  std::map<std::string, int> counts;
  for (const RemoteFile& file : files) {
    const size_t slash = file.path.rfind('/');
    const size_t dot = file.path.rfind('.');
    const bool has_end = dot != std::string::npos && (slash == std::string::npos || dot > slash);
    ++counts[has_end ? file.path.substr(dot) : file.path];
  }
  std::string out;
  for (const auto& [end, count] : counts) {
    if (out.size() > 200) return out + ", ...";
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, end);
  }
  return out.empty() ? "no files" : out;
}

std::vector<RemoteFile> by_default(const std::vector<RemoteFile>& files) {
  const auto some = [&](auto&& is_wanted) {
    return std::any_of(files.begin(), files.end(), is_wanted);
  };
  const auto is_main = [](const RemoteFile& file) {
    return is_safetensors(file.path) && !is_other_layout(file.path);
  };
  const bool has_main = some(is_main);
  const bool has_safetensors = some([](const RemoteFile& f) { return is_safetensors(f.path); });
  const bool has_bin = some(
      [](const RemoteFile& f) { return is_torch_checkpoint(f.path) && f.path.ends_with(".bin"); });
  const bool has_pytorch = some([](const RemoteFile& f) {
    return is_torch_checkpoint(f.path) && f.path.starts_with("pytorch_model");
  });
  std::vector<RemoteFile> out;
  bool any_weights = false;
  for (const RemoteFile& file : files) {
    bool wanted = is_aside(file);
    if (has_safetensors) {
      if (is_safetensors(file.path)) {
        wanted = !has_main || is_main(file);
        any_weights = any_weights || wanted;
      }
    } else if (is_torch_checkpoint(file.path)) {
      wanted = has_pytorch ? file.path.starts_with("pytorch_model")
                           : !has_bin || file.path.ends_with(".bin");
      any_weights = any_weights || wanted;
    } else if (file.path == "pytorch_model.bin.index.json") {
      wanted = true;
    }
    // A module's torch weights stand in only where it has no others.
    if (is_nested(file.path) && file.path.ends_with("/pytorch_model.bin")) {
      const std::string same = file.path.substr(0, file.path.rfind('/') + 1) + "model.safetensors";
      wanted = wanted && !some([&](const RemoteFile& other) { return other.path == same; });
    }
    if (wanted) out.push_back(file);
  }
  if (!any_weights && !gguf_models(files).empty()) return choose_gguf(files, "").files;
  if (!any_weights) {
    throw Error(
        Code::kNotFound,
        fmt::format("no weights were found: neither .safetensors nor .bin at the top of the "
                    "repository, nor .gguf; it has {}; --include GLOB downloads what it matches",
                    summary(files)));
  }
  return out;
}

}  // namespace

bool is_safetensors(const std::string& path) {
  return path.ends_with(".safetensors") && !is_nested(path) && !is_of_training(path);
}

bool is_torch_checkpoint(const std::string& path) {
  constexpr auto kEnds = std::to_array<std::string_view>({".bin", ".pt", ".pth"});
  constexpr auto kOthers =
      std::to_array<std::string_view>({"openvino", "onnx", "tokenizer", "vocab", "spiece"});
  return ends_with_any(path, kEnds) && !is_nested(path) && !is_of_training(path) &&
         !is_other_layout(path) && !has_any(path, kOthers);
}

std::vector<RemoteFile> choose_files(const std::vector<RemoteFile>& files,
                                     const ChoiceRules& rules) {
  std::vector<RemoteFile> out = files;
  if (!rules.gguf.empty()) {
    out = choose_gguf(files, rules.gguf).files;
  } else if (rules.include.empty()) {
    out = by_default(files);
  } else {
    std::erase_if(out, [&](const RemoteFile& f) { return !matches_any(rules.include, f.path); });
  }
  std::erase_if(out, [&](const RemoteFile& f) { return matches_any(rules.exclude, f.path); });
  if (out.empty()) {
    throw Error(Code::kNotFound,
                fmt::format("--include and --exclude leave no file of {}; the model "
                            "has {}",
                            files.size(), summary(files)));
  }
  return out;
}

bool is_of_gguf(const std::vector<RemoteFile>& chosen, const ChoiceRules& rules) {
  return rules.include.empty() && !chosen.empty() &&
         std::ranges::all_of(chosen, [](const RemoteFile& file) { return is_gguf(file.path); });
}

const std::vector<std::string>& optional_names() {
  static const std::vector<std::string> kNames = {"added_tokens.json",
                                                  "adapter_config.json",
                                                  "chat_template.jinja",
                                                  "chat_template.json",
                                                  "generation_config.json",
                                                  "merges.txt",
                                                  "model.safetensors",
                                                  "model.safetensors.index.json",
                                                  "pytorch_model.bin",
                                                  "pytorch_model.bin.index.json",
                                                  "qwen.tiktoken",
                                                  "special_tokens_map.json",
                                                  "tekken.json",
                                                  "tiktoken.model",
                                                  "tokenizer.json",
                                                  "tokenizer.model",
                                                  "tokenizer_config.json",
                                                  "vocab.json",
                                                  "vocab.txt"};
  return kNames;
}

}  // namespace tgi::download
