#include "base/files/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files/partial_name.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_file(const std::string& path, int reason) {
  const bool is_full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  throw Error(is_full ? Code::kOutOfMemory : Code::kInvalidArgument,
              fmt::format("{}: {}", path, std::strerror(reason)));
}

// The file's name is on the disk only when its folder is.
void sync_folder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) fail_file(path, errno);
}

}  // namespace

NewFile::NewFile(const std::string& path) : final_(fs::absolute(path).lexically_normal()) {
  partial_ = partial_pattern(final_);
  file_.reset(::mkostemp(partial_.data(), O_CLOEXEC));
  if (!file_) {
    const int reason = errno;
    partial_.clear();
    fail_file(fs::path(final_).parent_path().string(), reason);
  }
  (void)::fchmod(file_.get(), 0644);  // mkostemp's are for its user only
}

NewFile::~NewFile() {
  if (!partial_.empty()) (void)::unlink(partial_.c_str());
}

void NewFile::require_space(int64_t bytes) const {
  require_disk_space(partial_, final_, bytes);
}

void NewFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_file(final_, errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void NewFile::finish_writing() {
  if (::fsync(file_.get()) != 0) fail_file(final_, errno);
  // A file system may tell only now that there was no room.
  if (::close(file_.release()) != 0) fail_file(final_, errno);
}

void NewFile::commit_over() {
  finish_writing();
  if (::rename(partial_.c_str(), final_.c_str()) != 0) fail_file(final_, errno);
  partial_.clear();
  sync_folder(fs::path(final_).parent_path().string());
}

bool NewFile::commit() {
  finish_writing();
  if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, final_.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) return false;
    // File systems without that call have links at least, or neither.
    if (errno != EINVAL && errno != ENOSYS) fail_file(final_, errno);
    if (::link(partial_.c_str(), final_.c_str()) != 0) {
      if (errno == EEXIST) return false;
      fail_file(final_, errno);
    }
    (void)::unlink(partial_.c_str());
  }
  partial_.clear();
  sync_folder(fs::path(final_).parent_path().string());
  return true;
}

}  // namespace tgi
