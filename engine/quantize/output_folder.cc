#include "engine/quantize/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

Error system_error(const std::string& what, int reason) {
  const Code code = reason == ENOENT                       ? Code::kNotFound
                    : reason == ENOSPC || reason == EDQUOT ? Code::kOutOfMemory
                                                           : Code::kInvalidArgument;
  return {code, fmt::format("{}: {}", what, std::strerror(reason))};
}

UniqueFd open_folder_fd(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool is_empty_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) && fs::is_empty(path, error);
}

}  // namespace

OutputFolder::OutputFolder(const std::string& path)
    : path_(fs::absolute(path).lexically_normal().string()) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  std::error_code error;
  if (fs::exists(fs::symlink_status(path_, error)) && !is_empty_folder(path_)) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: is there already; give a folder that is not, or remove it first", path_));
  }
  remove_leftovers();
  partial_ = fmt::format("{}.partial-{}", path_, ::getpid());
  if (::mkdir(partial_.c_str(), 0777) != 0) throw system_error(partial_, errno);
  lock_ = open_folder_fd(partial_);
  if (!lock_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw system_error(partial_, errno);
  }
}

OutputFolder::~OutputFolder() {
  std::error_code error;
  if (!partial_.empty()) fs::remove_all(partial_, error);
}

// A partial folder whose lock is free belongs to nobody.
void OutputFolder::remove_leftovers() const {
  const fs::path target(path_);
  const std::string prefix = target.filename().string() + ".partial-";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(target.parent_path(), error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const UniqueFd fd = open_folder_fd(entry.path().string());
    if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), error);
  }
}

void OutputFolder::require_space(int64_t size_bytes) const {
  struct statvfs space {};
  if (::statvfs(partial_.c_str(), &space) != 0) throw system_error(partial_, errno);
  const auto free_bytes = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  if (free_bytes >= static_cast<double>(size_bytes)) return;
  throw Error(
      Code::kOutOfMemory,
      fmt::format("{}: needs {:.1f} MiB, the disk has {:.1f} MiB free; make room or give a "
                  "folder on another disk",
                  path_, static_cast<double>(size_bytes) / (1 << 20), free_bytes / (1 << 20)));
}

std::string OutputFolder::file(std::string_view name) const {
  return fmt::format("{}/{}", partial_, name);
}

void OutputFolder::write(std::string_view name, std::string_view text) const {
  const std::string path = file(name);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) throw system_error(path, errno);
  while (!text.empty()) {
    const ssize_t count = ::write(fd.get(), text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      throw system_error(path, errno);
    }
  }
  if (::fsync(fd.get()) != 0) throw system_error(path, errno);
}

void OutputFolder::commit() {
  (void)::fsync(lock_.get());
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) throw system_error(path_, errno);
  partial_.clear();
  const UniqueFd parent = open_folder_fd(fs::path(path_).parent_path().string());
  if (parent) (void)::fsync(parent.get());
}

}  // namespace tgi
