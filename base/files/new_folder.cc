#include "base/files/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/decimal_size.h"
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
  const fs::path parent = fs::path(final_).parent_path();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) fail_folder(parent.string(), error.value());
  const std::string prefix = partial_prefix(final_);
  remove_partial_leftovers(parent, prefix);
  partial_ = (parent / fmt::format("{}{}-XXXXXX", prefix, ::getpid())).string();
  if (::mkdtemp(partial_.data()) == nullptr) fail_folder(parent.string(), errno);
  fs::permissions(partial_, fs::perms(0755), error);  // mkdtemp's are for its user only
}

NewFolder::~NewFolder() {
  std::error_code error;
  if (!partial_.empty()) fs::remove_all(partial_, error);
}

void NewFolder::require_space(int64_t bytes) const {
  struct statvfs facts {};
  if (::statvfs(partial_.c_str(), &facts) != 0) fail_folder(partial_, errno);
  const auto free_bytes =
      static_cast<int64_t>(facts.f_bavail) * static_cast<int64_t>(facts.f_frsize);
  if (free_bytes >= bytes) return;
  throw Error(Code::kOutOfMemory,
              fmt::format("folder {}: needs {}, but the disk has {} free", final_,
                          decimal_size(bytes), decimal_size(free_bytes)));
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
