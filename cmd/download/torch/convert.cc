#include "cmd/download/torch/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <span>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/files/new_folder.h"
#include "cmd/download/torch/torch_file.h"
#include "cmd/download/torch/torch_folder.h"

namespace tgi::download {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{4} << 20;

// Views of one storage may overlap, but a short file must not ask for any amount of disk.
constexpr int64_t kMaxGrowth = 8;

// The output heads that config.json's tie_word_embeddings is about.
constexpr std::array<std::string_view, 2> kHeads = {"lm_head.weight", "embed_out.weight"};

bool is_head(const std::string& name) {
  return std::ranges::any_of(kHeads, [&](std::string_view head) {
    return name == head || name.ends_with(fmt::format(".{}", head));
  });
}

class Converter {
 public:
  Converter(const std::string& folder, const ConvertOptions& options)
      : found_(find_torch_files(folder)), options_(options), files_(open_folder(folder)) {}

  ConvertedModel convert(const std::string& out_folder) {
    return made_of_intact(*files_, [&] {
      read();
      return write(out_folder);
    });
  }

 private:
  void read() {
    for (const std::string& file : found_.files) read_file(file);
    check_index();
    drop_tied();
    plan();
  }

  ConvertedModel write(const std::string& out_folder) {
    NewFolder out(out_folder);
    out.require_space(total_bytes_ + (int64_t{1} << 20));
    for (const std::string& name : found_.others) copy(name, out);
    for (const std::string& name : found_.modules) write_module(name, out);
    size_t next = 0;
    for (const ShardPlan::Shard& shard : plan_.shards) {
      SafetensorsWriter writer(out.file(shard.file), shard.entries);
      for (size_t i = 0; i < shard.entries.size(); ++i) write_tensor(tensors_[next++], writer);
      writer.finish();
      out_.files.push_back(shard.file);
    }
    if (plan_.shards.size() > 1) {
      write_text(out.file("model.safetensors.index.json"), plan_.index_json().dump(2) + "\n");
    }
    report(true);
    files_->check_intact();
    out.commit();  // another process's conversion of the same model is as good
    out_.folder = fs::absolute(out_folder).string();
    return std::move(out_);
  }

  void read_file(const std::string& file) {
    const std::string where = files_->describe(file);
    const auto bytes = files_->find(file);
    if (!bytes) {
      throw Error(Code::kNotFound,
                  fmt::format("{}: is not there, but the index names it; is the download complete?",
                              where));
    }
    for (TorchTensor& tensor : read_torch(*bytes, where)) {
      if (!names_.insert(tensor.name).second) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("{}: tensor {} is in another file too", where, tensor.name));
      }
      tensors_.push_back(std::move(tensor));
    }
    source_bytes_ += static_cast<int64_t>(bytes->size());
  }

  void check_index() const {
    for (const auto& [tensor, file] : found_.index) {
      if (names_.contains(tensor)) continue;
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: tensor {} is not in it, but the index says so",
                              files_->describe(file), tensor));
    }
  }

  // The head goes where the embedding, or whatever else it is tied to, has the same numbers.
  void drop_tied() {
    if (!found_.ties_head) return;
    std::vector<TorchTensor> kept;
    for (const TorchTensor& tensor : tensors_) {
      const bool is_tied =
          is_head(tensor.name) && std::ranges::any_of(tensors_, [&](const TorchTensor& other) {
            return !is_head(other.name) && other.is_same_view(tensor);
          });
      if (is_tied) {
        out_.dropped.push_back(tensor.name);
      } else {
        kept.push_back(tensor);
      }
    }
    tensors_ = std::move(kept);
  }

  void plan() {
    if (tensors_.empty()) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("folder {}: no tensors in its checkpoint", found_.folder));
    }
    std::vector<TensorHeader> headers;
    for (const TorchTensor& tensor : tensors_) {
      headers.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
      total_bytes_ += tensor.num_bytes();
      if (total_bytes_ > kMaxGrowth * source_bytes_) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("folder {}: its tensors are more than {} times as large as its "
                                "files, because they overlap",
                                found_.folder, kMaxGrowth));
      }
    }
    plan_ = plan_shards(std::move(headers), options_.max_shard_bytes);
    if (plan_.shards.size() == 1) plan_.shards.front().file = found_.converted_name;
    out_.bytes = total_bytes_;
    out_.num_tensors = static_cast<int64_t>(tensors_.size());
  }

  void write_tensor(const TorchTensor& tensor, SafetensorsWriter& writer) {
    const auto size = static_cast<size_t>(tensor.num_bytes());
    if (size == 0) return;
    if (!tensor.is_contiguous()) {
      write_strided(tensor, writer);
    } else {
      auto left =
          tensor.storage.subspan(static_cast<size_t>(tensor.offset * tensor.element_bytes), size);
      while (!left.empty()) {
        const size_t piece = std::min(left.size(), kPieceBytes);
        append(left.first(piece), writer);
        left = left.subspan(piece);
      }
    }
    files_->release(tensor.storage);
  }

  // Row-major order over a view of any strides.
  void write_strided(const TorchTensor& tensor, SafetensorsWriter& writer) {
    const auto element = static_cast<size_t>(tensor.element_bytes);
    std::vector<std::byte> piece;
    piece.reserve(kPieceBytes);
    std::vector<int64_t> index(tensor.shape.size(), 0);
    int64_t at = tensor.offset;
    for (int64_t left = tensor.num_elements(); left > 0; --left) {
      const auto bytes = tensor.storage.subspan(static_cast<size_t>(at) * element, element);
      piece.insert(piece.end(), bytes.begin(), bytes.end());
      if (piece.size() + element > kPieceBytes) {
        append(piece, writer);
        piece.clear();
      }
      for (size_t dim = index.size(); dim-- > 0;) {
        at += tensor.strides[dim];
        if (++index[dim] < tensor.shape[dim]) break;
        at -= tensor.shape[dim] * tensor.strides[dim];
        index[dim] = 0;
      }
    }
    if (!piece.empty()) append(piece, writer);
  }

  void append(std::span<const std::byte> bytes, SafetensorsWriter& writer) {
    writer.append(bytes);
    done_bytes_ += static_cast<int64_t>(bytes.size());
    report(false);
  }

  void report(bool now) {
    constexpr std::chrono::milliseconds kEvery{200};
    const auto time = std::chrono::steady_clock::now();
    if (!options_.on_progress || (!now && time - reported_at_ < kEvery)) return;
    reported_at_ = time;
    options_.on_progress({.done_bytes = done_bytes_, .total_bytes = total_bytes_});
  }

  void copy(const std::string& name, const NewFolder& out) const {
    const std::string_view text = files_->require_text(name);
    write_text(out.file(name), text);
  }

  // A module's weights are converted where they are torch's only.
  void write_module(const std::string& name, const NewFolder& out) const {
    const std::string from = found_.folder + "/" + name;
    const std::string to = out.file(name);
    const bool has_safetensors = fs::exists(from + "/model.safetensors");
    if (!has_safetensors && fs::exists(from + "/pytorch_model.bin")) {
      convert_torch_checkpoint(from, to, {});
      return;
    }
    fs::create_directory(to);
    for (const std::string_view file : {"config.json", "model.safetensors"}) {
      const std::string path = fmt::format("{}/{}", from, file);
      if (fs::exists(path)) fs::copy_file(path, fmt::format("{}/{}", to, file));
    }
  }

  static void write_text(const std::string& path, std::string_view text) {
    std::ofstream file(path, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.flush();
    if (!file) {
      throw Error(Code::kOutOfMemory,
                  fmt::format("{}: can't be written: {}", path, std::strerror(errno)));
    }
  }

  TorchFolder found_;
  const ConvertOptions& options_;
  std::unique_ptr<FileSource> files_;
  std::vector<TorchTensor> tensors_;
  std::set<std::string> names_;
  int64_t source_bytes_ = 0;
  ShardPlan plan_;
  int64_t total_bytes_ = 0;
  int64_t done_bytes_ = 0;
  std::chrono::steady_clock::time_point reported_at_{};
  ConvertedModel out_;
};

}  // namespace

ConvertedModel convert_torch_checkpoint(const std::string& folder,
                                        const std::string& out_folder,
                                        const ConvertOptions& options) {
  return Converter(folder, options).convert(out_folder);
}

}  // namespace tgi::download
