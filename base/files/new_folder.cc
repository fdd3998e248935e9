#include "base/files/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files/partial_name.h"
#include "base/unique_fd.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_folder(const std::string& path, int reason) {
  const Code code =
      reason == ENOSPC || reason == EDQUOT ? Code::kOutOfMemory : Code::kInvalidArgument;
  throw Error(code, fmt::format("folder {}: {}", path, std::strerror(reason)));
}

void sync(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) fail_folder(path, errno);
}

}  // namespace

NewFolder::NewFolder(const std::string& path) : final_(fs::absolute(path).lexically_normal()) {
  if (final_.ends_with('/')) final_.pop_back();
  partial_ = partial_pattern(final_);
  if (::mkdtemp(partial_.data()) == nullptr) {
    const int reason = errno;
    partial_.clear();
    fail_folder(fs::path(final_).parent_path().string(), reason);
  }
  std::error_code error;
  fs::permissions(partial_, fs::perms(0755), error);  // mkdtemp's are for its user only
}

NewFolder::~NewFolder() {
  std::error_code error;
  if (!partial_.empty()) fs::remove_all(partial_, error);
}

void NewFolder::require_space(int64_t bytes) const {
  require_disk_space(partial_, "folder " + final_, bytes);
}

bool NewFolder::commit() {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(partial_)) {
    sync(entry.path().string());
  }
  sync(partial_);
  // An empty folder may be replaced, one with something in it stays.
  if (::rename(partial_.c_str(), final_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST) return false;
    fail_folder(final_, errno);
  }
  partial_.clear();
  sync(fs::path(final_).parent_path().string());
  return true;
}

}  // namespace tgi
