#include "base/files/file_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "base/files/regular_file.h"

namespace tgi {
namespace {

// Up to this size a copy costs little and nothing can happen to it any more; texts are parsed from
// one. Larger ones are weights.
constexpr size_t kMaxCopiedBytes = size_t{32} << 20;

// Whether something has this name. A link that leads nowhere does not count as a file that is not
// there: what it led to is a part of the model that a download or a copy left out, and to go on
// without it (a chat template, the tokens that end an answer) would be another model.
bool is_there(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::status(path, error))) return true;
  const std::filesystem::path target = std::filesystem::read_symlink(path, error);
  if (error) return false;  // no link
  throw Error(Code::kNotFound,
              fmt::format("{}: a link to {}, which leads to no file; is the download, or the copy "
                          "of it, complete?",
                          path, target.string()));
}

// A file of a folder, for reading.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) {
    const RegularFile file = open_regular_file(path);
    if (file.size > kMaxCopiedBytes) {
      mapped_.emplace(file, path);
    } else {
      copy_ = read_to_end(file, path);
    }
  }

  std::span<const std::byte> bytes() const {
    return mapped_ ? mapped_->bytes() : std::as_bytes(std::span(copy_));
  }
  void check_intact() const {
    if (mapped_) mapped_->check_intact();
  }
  void release(std::span<const std::byte> bytes) const {
    const std::byte* const begin = this->bytes().data();
    const bool is_ours = bytes.data() >= begin && bytes.data() < begin + this->bytes().size();
    if (mapped_ && is_ours) mapped_->release(bytes);
  }

 private:
  std::string copy_;
  std::optional<MappedFile> mapped_;
};

class FolderSource final : public FileSource {
 public:
  explicit FolderSource(std::string folder) : folder_(std::move(folder)) {}

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    if (const auto it = files_.find(name); it != files_.end()) return it->second.bytes();
    if (!is_there(describe(name))) return std::nullopt;
    return files_.try_emplace(name, describe(name)).first->second.bytes();
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
      if (entry.is_regular_file(error)) out.push_back(entry.path().filename().string());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  std::string describe(const std::string& name) const override { return folder_ + "/" + name; }

  void release(std::span<const std::byte> bytes) const override {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, file] : files_) file.release(bytes);
  }

  void check_intact() const override {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, file] : files_) file.check_intact();
  }

 private:
  const std::string folder_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, OpenFile> files_;  // guarded by mutex_
};

class EmbeddedSource final : public FileSource {
 public:
  EmbeddedSource(std::string label, std::vector<EmbeddedFile> files)
      : label_(std::move(label)), files_(std::move(files)) {}

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    for (const EmbeddedFile& file : files_) {
      if (file.name == name) return file.bytes;
    }
    return std::nullopt;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const EmbeddedFile& file : files_) out.emplace_back(file.name);
    std::sort(out.begin(), out.end());
    return out;
  }

  std::string describe(const std::string& name) const override { return label_ + "/" + name; }

 private:
  const std::string label_;
  const std::vector<EmbeddedFile> files_;
};

}  // namespace

void FileSource::release(std::span<const std::byte> /*bytes*/) const {}

std::optional<std::string_view> FileSource::find_text(const std::string& name) const {
  const auto bytes = find(name);
  if (!bytes) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

std::span<const std::byte> FileSource::require(const std::string& name) const {
  const auto bytes = find(name);
  if (!bytes) throw Error(Code::kNotFound, fmt::format("{}: no such file", describe(name)));
  return *bytes;
}

std::string_view FileSource::require_text(const std::string& name) const {
  const auto bytes = require(name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::unique_ptr<FileSource> open_folder(const std::string& folder) {
  std::error_code error;
  const auto status = std::filesystem::status(folder, error);
  if (!std::filesystem::exists(status)) {
    throw Error(
        Code::kNotFound,
        fmt::format("model {}: {}; give the path of a Hugging Face folder that holds config.json",
                    folder, error ? error.message() : "no such folder"));
  }
  if (!std::filesystem::is_directory(status)) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("model {}: not a folder; give the folder that holds config.json", folder));
  }
  return std::make_unique<FolderSource>(folder);
}

std::unique_ptr<FileSource> open_embedded(std::string label, std::vector<EmbeddedFile> files) {
  return std::make_unique<EmbeddedSource>(std::move(label), std::move(files));
}

}  // namespace tgi
