#include "base/file_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/unique_fd.h"

namespace tgi {
namespace {

[[noreturn]] void fail_system(const std::string& path, int reason) {
  const Code code = reason == ENOENT ? Code::kNotFound : Code::kInvalidArgument;
  throw Error(code, fmt::format("{}: {}", path, std::strerror(reason)));
}

class FolderSource final : public FileSource {
 public:
  explicit FolderSource(std::string folder) : folder_(std::move(folder)) {}

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    if (const auto it = files_.find(name); it != files_.end()) return it->second.bytes();
    std::error_code error;
    if (!std::filesystem::exists(describe(name), error)) return std::nullopt;
    return files_.emplace(name, MappedFile(describe(name))).first->second.bytes();
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
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
    const auto end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }

 private:
  const std::string folder_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, MappedFile> files_;  // guarded by mutex_
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

MappedFile::MappedFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) fail_system(path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_system(path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: not a regular file", path));
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) fail_system(path, errno);
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

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
