#include "cmd/download/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/decimal_size.h"
#include "base/files/regular_file.h"
#include "base/unique_fd.h"

namespace tgi::download {

namespace fs = std::filesystem;

Error disk_error(std::string_view what, const std::string& path, int reason) {
  const std::string said = fmt::format("can't {} {}: {}", what, path, std::strerror(reason));
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {Code::kOutOfMemory, said};
    case EROFS:
    case EACCES:
    case EPERM:
      return {Code::kInvalidArgument,
              said +
                  "; give a folder that can be written with --cache-dir, HF_HUB_CACHE or "
                  "HF_HOME"};
    case ENOENT:
      return {Code::kNotFound, said};
    default:
      return {Code::kInvalidArgument, said};
  }
}

void make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error && !std::filesystem::is_directory(path)) {
    throw disk_error("make the folder", path, error.value());
  }
}

void write_at(int fd, std::span<const std::byte> bytes, int64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw disk_error("write", path, written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
}

void read_at(int fd, std::span<std::byte> bytes, int64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw disk_error("read", path, got < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

void write_whole(const std::string& path, std::string_view text, const std::string& temporary) {
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) throw disk_error("write", path, errno);
  write_at(fd.get(), std::as_bytes(std::span(text)), 0, path);
  fd.reset();
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    throw disk_error("write", path, reason);
  }
}

std::string read_whole(const std::string& path) {
  return exists(path) ? read_regular_file(path) : "";
}

int64_t free_bytes(const std::string& path) {
  for (std::filesystem::path at = std::filesystem::absolute(path);; at = at.parent_path()) {
    struct statvfs about {};
    if (::statvfs(at.c_str(), &about) == 0) {
      return static_cast<int64_t>(about.f_bavail) * static_cast<int64_t>(about.f_frsize);
    }
    if (at == at.parent_path()) return -1;
  }
}

std::vector<FileBelow> files_below(const std::string& folder, int max_depth) {
  std::vector<FileBelow> out;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it.depth() >= max_depth) it.disable_recursion_pending();
    const int64_t bytes = size_of(it->path().string());
    if (bytes >= 0) {
      out.push_back({.name = it->path().lexically_relative(folder).string(), .bytes = bytes});
    }
  }
  std::ranges::sort(out, {}, &FileBelow::name);
  return out;
}

std::string first_line_of(const std::string& path) {
  std::string line;
  try {
    const std::string text = read_regular_file(path);
    line = text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return "";
  }
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
    line.pop_back();
  }
  return line;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || fs::equivalent(a, b, error);
}

bool exists(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0;
}

int64_t size_of(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) ? about.st_size : -1;
}

std::string format_size(int64_t bytes) {
  return decimal_size(bytes);
}

}  // namespace tgi::download
