#include "engine/gguf/gguf_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "base/files/split_name.h"
#include "engine/gguf/architectures.h"
#include "engine/gguf/metadata_text.h"
#include "engine/gguf/model_reader.h"
#include "engine/gguf/tokenizer_files.h"
#include "engine/gguf/usual_spelling.h"
#include "engine/gguf/vector_files.h"
#include "engine/weights/ggml/gguf_checkpoint.h"

namespace tgi {
namespace {

using gguf::ModelReader;

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

class GgufSource final : public FileSource {
 public:
  explicit GgufSource(const std::string& path) : path_(path) {
    open_parts();
    try {
      const GgufFile first = parse_gguf(parts_.front().file.bytes(), parts_.front().path);
      read_model(first);
    } catch (const Error&) {
      check_intact();  // a file cut short while it was read looks like anything
      throw;
    }
  }

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    if (const auto it = texts_.find(name); it != texts_.end()) {
      return std::as_bytes(std::span(it->second));
    }
    for (const Part& part : parts_) {
      if (part.name == name) return part.file.bytes();
    }
    return std::nullopt;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const Part& part : parts_) out.push_back(part.name);
    for (const auto& [name, text] : texts_) out.push_back(name);
    std::ranges::sort(out);
    return out;
  }

  std::string describe(const std::string& name) const override {
    for (const Part& part : parts_) {
      if (part.name == name) return part.path;
    }
    return name.empty() ? path_ : fmt::format("{} (as {})", path_, name);
  }

  void release(std::span<const std::byte> bytes) const override {
    for (const Part& part : parts_) {
      const auto all = part.file.bytes();
      const bool is_of_part = bytes.data() >= all.data() && bytes.data() < all.data() + all.size();
      if (is_of_part) part.file.release(bytes);
    }
  }

  void check_intact() const override {
    for (const Part& part : parts_) part.file.check_intact();
  }

 private:
  struct Part {
    std::string path;
    std::string name;
    MappedFile file;
  };

  void open_parts() {
    const auto add = [this](const std::string& path) {
      parts_.push_back({path, base_name(path), MappedFile(path)});
    };
    for (const std::string& part : all_parts(path_)) add(part);
  }

  void read_model(const GgufFile& first) {
    try {
      check_type(first.metadata);
      check_split(first.metadata);
      std::vector<GgufTensor> tensors = first.tensors;
      for (size_t i = 1; i < parts_.size(); ++i) {
        const GgufFile part = parse_gguf(parts_[i].file.bytes(), parts_[i].path);
        tensors.insert(tensors.end(), part.tensors.begin(), part.tensors.end());
      }
      if (tensors.empty()) {
        throw Error(Code::kInvalidArgument, "the file has no tensors: a vocabulary, not a model");
      }
      const gguf::UsualSpelling file(first.metadata, tensors);
      const gguf::GgufArchitecture& architecture = find_architecture(file.metadata());
      ModelReader model(file.metadata(), file.tensors());
      architecture.read(model);
      texts_.merge(gguf::vector_files(model));
      model.check_all_read();
      write_texts(model, file);
      texts_.merge(gguf::tokenizer_files(file.metadata()));
      texts_[gguf::kMetadataTextFile] = gguf::metadata_text(first.metadata);
    } catch (const Error& error) {
      throw error.in(path_);
    }
  }

  static void check_type(const GgufMetadata& metadata) {
    if (metadata.find_text("general.architecture").value_or("") == "clip") {
      throw Error(Code::kInvalidArgument,
                  "general.architecture: the file is the part of a model that sees images or hears "
                  "(mmproj), which is not supported; load the model's own file, for text");
    }
    const std::string_view type = metadata.find_text("general.type").value_or("model");
    if (type == "model") return;
    if (!is_adapter(metadata)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("general.type: the file is no model but of kind \"{}\"", type));
    }
    throw Error(Code::kInvalidArgument,
                "general.type: the file is an adapter and no model; load its base model, and name "
                "the file as an adapter of it");
  }

  void check_split(const GgufMetadata& metadata) const {
    const auto count = metadata.find_integer("split.count").value_or(0);
    if (count <= 1 || count == static_cast<int64_t>(parts_.size())) return;
    throw Error(Code::kInvalidArgument,
                fmt::format("this is one of {} files that belong together; give it a name that "
                            "ends in -00001-of-{:05}.gguf, and the others theirs beside it",
                            count, count));
  }

  static const gguf::GgufArchitecture& find_architecture(const GgufMetadata& metadata) {
    const std::string_view name = metadata.text("general.architecture");
    std::string known;
    for (const gguf::GgufArchitecture& one : gguf::gguf_architectures()) {
      if (one.name == name) return one;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
    }
    throw Error(
        Code::kUnsupported,
        fmt::format("general.architecture: '{}' is not supported; known are {}", name, known));
  }

  void write_texts(const ModelReader& model, const gguf::UsualSpelling& file) {
    gguf::TensorIndex made = model.make_index();
    for (Json& tensor : made.index["tensors"]) {
      for (const char* member : {"tensor", "turn"}) {
        if (!tensor.contains(member)) continue;
        tensor[member] = file.stored_name(tensor.at(member).get<std::string>());
      }
    }
    for (const Part& part : parts_) made.index["files"].push_back(part.name);
    Json config = model.config;
    config["quantization_config"] = {{"quant_method", "gguf"}, {"types", std::move(made.types)}};
    texts_["config.json"] = config.dump();
    texts_[kGgufIndexFile] = made.index.dump();
  }

  const std::string path_;
  std::vector<Part> parts_;
  std::map<std::string, std::string> texts_;
};

}  // namespace

std::unique_ptr<FileSource> open_gguf(const std::string& path) {
  return std::make_unique<GgufSource>(path);
}

}  // namespace tgi
