#include "engine/weights/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "engine/weights/ggml/gguf_checkpoint.h"
#include "engine/weights/safetensors.h"

namespace tgi {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

class SafetensorsCheckpoint final : public Checkpoint {
 public:
  explicit SafetensorsCheckpoint(const FileSource& files) : files_(files) {}

  // Throws when a tensor of this file was already in another one.
  void add_file(const std::string& file) {
    const std::string label = files_.describe(file);
    for (SafetensorsEntry& entry : parse_safetensors(files_.require(file), label)) {
      Record record{.tensor = {.name = entry.name,
                               .dtype_name = entry.dtype->name,
                               .dtype = entry.dtype->native,
                               .shape = std::move(entry.shape),
                               .file = label},
                    .bytes = entry.bytes};
      const auto [it, inserted] = records_.emplace(entry.name, std::move(record));
      if (!inserted) {
        throw Error(Code::kInvalidArgument, fmt::format("tensor {} is both in {} and in {}",
                                                        entry.name, it->second.tensor.file, label));
      }
    }
  }

  const StoredTensor* find(std::string_view name) const override {
    const auto it = records_.find(name);
    return it == records_.end() ? nullptr : &it->second.tensor;
  }

  std::vector<std::string_view> names() const override {
    std::vector<std::string_view> out;
    for (const auto& [name, record] : records_) out.emplace_back(name);
    return out;
  }

  std::span<const std::byte> bytes(const StoredTensor& tensor) const override {
    return records_.find(tensor.name)->second.bytes;
  }

  void release(const StoredTensor& tensor) const override { files_.release(bytes(tensor)); }

 private:
  struct Record {
    StoredTensor tensor;
    std::span<const std::byte> bytes;
  };

  const FileSource& files_;
  std::map<std::string, Record, std::less<>> records_;
};

// A shard is a file beside the index: a name that leads elsewhere is refused, whatever it leads to.
void check_shard_name(const std::string& tensor, const std::string& shard) {
  const bool plain = !shard.empty() && shard != "." && shard != ".." &&
                     shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!plain) {
    throw Error(Code::kInvalidArgument,
                fmt::format("weight_map.{}: {} is not the plain name of a file beside the index",
                            tensor, Json(shard).dump()));
  }
}

std::map<std::string, std::string> read_weight_map(std::string_view text) {
  const Json index = parse_json(text);
  const JsonReader weight_map = JsonReader(index, "").object("weight_map");
  std::map<std::string, std::string> out;
  for (const auto& [tensor, shard] : weight_map.json().items()) {
    if (!shard.is_string()) {
      throw Error(Code::kInvalidArgument, fmt::format("weight_map.{}: expected a string, got {}",
                                                      tensor, shard.type_name()));
    }
    check_shard_name(tensor, shard.get<std::string>());
    out.emplace(tensor, shard.get<std::string>());
  }
  if (out.empty()) throw Error(Code::kInvalidArgument, "weight_map: names no tensor");
  return out;
}

std::unique_ptr<Checkpoint> open_sharded(const FileSource& files, std::string_view index_text) {
  const std::string index_label = files.describe(kIndexFile);
  std::map<std::string, std::string> weight_map;
  try {
    weight_map = read_weight_map(index_text);
  } catch (const Error& error) {
    throw error.in(index_label);
  }
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : weight_map) shards.insert(shard);

  auto checkpoint = std::make_unique<SafetensorsCheckpoint>(files);
  for (const std::string& shard : shards) {
    if (!files.find(shard)) {
      throw Error(
          Code::kNotFound,
          fmt::format("{}: names the shard {}, which is not there; is the download complete?",
                      index_label, files.describe(shard)));
    }
    checkpoint->add_file(shard);
  }
  for (const auto& [tensor, shard] : weight_map) {
    const StoredTensor* stored = checkpoint->find(tensor);
    if (stored == nullptr || stored->file != files.describe(shard)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: says that {} holds tensor {}, but {}", index_label, shard,
                              tensor, stored == nullptr ? "it does not" : stored->file + " does"));
    }
  }
  return checkpoint;
}

// What to do about weights that are there, but not in the files that are read. Some publishers put
// their own form of a model beside the one of Hugging Face, or in place of it.
std::string advice_about_others(const FileSource& files) {
  static constexpr std::array<std::string_view, 7> kEndings = {
      ".safetensors", ".pth", ".pt", ".h5", ".msgpack", ".onnx", ".npz"};
  std::vector<std::string> others;
  for (const std::string& name : files.names()) {
    if (name.starts_with("pytorch_model") && name.find(".bin") != std::string::npos) {
      std::string folder = files.describe("");
      while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
      return fmt::format(
          "; there is a torch checkpoint: `tgi load {}` converts it to safetensors, once", folder);
    }
    const bool is_other = std::ranges::any_of(
        kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
    if (is_other) others.push_back(name);
  }
  if (others.empty()) return "";
  constexpr size_t kMostShown = 4;
  const size_t shown = std::min(others.size(), kMostShown);
  return fmt::format(
      "; weights are read by these names alone, and the folder has {}{}: give one "
      "that holds the model as transformers saves it",
      fmt::join(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      others.size() > shown ? fmt::format(" and {} more", others.size() - shown) : "");
}

std::string without_prefix(std::string_view name, std::string_view prefix) {
  return std::string(name.substr(prefix.size()));
}

// "ln.weight" -> "ln.gamma", "ln.bias" -> "ln.beta": how TensorFlow-era checkpoints call them.
std::optional<std::string> tensorflow_name(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kEndings = {
      {{".weight", ".gamma"}, {".bias", ".beta"}}};
  for (const auto& [today, then] : kEndings) {
    if (name.ends_with(today)) {
      return std::string(name.substr(0, name.size() - today.size())).append(then);
    }
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Checkpoint> open_safetensors(const FileSource& files, const std::string& name) {
  auto checkpoint = std::make_unique<SafetensorsCheckpoint>(files);
  checkpoint->add_file(name);
  return checkpoint;
}

std::unique_ptr<Checkpoint> open_checkpoint(const FileSource& files) {
  if (files.find(kSingleFile)) return open_safetensors(files, kSingleFile);
  if (files.find(kGgufIndexFile)) return open_gguf_checkpoint(files);
  if (const auto index = files.find_text(kIndexFile)) return open_sharded(files, *index);
  throw Error(Code::kNotFound,
              fmt::format("{}: no such file, and no {} either{}", files.describe(kSingleFile),
                          kIndexFile, advice_about_others(files)));
}

const StoredTensor* find_by_any_name(const Checkpoint& checkpoint,
                                     std::string_view name,
                                     std::string_view prefix) {
  std::vector<std::string> candidates = {std::string(name)};
  if (!prefix.empty()) {
    candidates.push_back(name.starts_with(prefix) ? without_prefix(name, prefix)
                                                  : std::string(prefix).append(name));
    const size_t dot = name.find('.');
    if (!name.starts_with(prefix) && dot != std::string_view::npos) {
      candidates.push_back(std::string(name).insert(dot + 1, prefix));
      candidates.push_back(std::string("model.").append(prefix).append(name));
    }
  }
  for (const std::string& candidate : candidates) {
    if (const StoredTensor* found = checkpoint.find(candidate)) return found;
    const auto old_name = tensorflow_name(candidate);
    if (!old_name) continue;
    if (const StoredTensor* found = checkpoint.find(*old_name)) return found;
  }
  return nullptr;
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace tgi
