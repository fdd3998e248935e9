#include "base/files/paths.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace tgi {
namespace {

std::string env_or(const char* name, std::string fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : std::move(fallback);
}

std::string temporary_home() {
  return fmt::format("{}/tgi-{}", env_or("TMPDIR", "/tmp"), ::getuid());
}

// One of the folders of the XDG base directory specification, by which a path that is not absolute
// is to be ignored; "": it is not set.
std::string xdg_folder(const char* variable) {
  std::string folder = env_or(variable, "");
  return folder.starts_with('/') ? folder : std::string();
}

// Whether this user can make files in the folder, or make it.
bool can_be_written(const std::string& folder) {
  std::error_code error;
  const std::string there = nearest_folder(folder);
  return std::filesystem::is_directory(there, error) && ::access(there.c_str(), W_OK | X_OK) == 0;
}

// Below the home where that is there, else below the temporary one. A home that is not there is not
// made: it would be of the wrong user, or in the way of a volume.
std::string below_home(const std::string& folder) {
  const std::string home = env_or("HOME", "");
  std::error_code error;
  const bool is_there = !home.empty() && std::filesystem::is_directory(home, error);
  return is_there && can_be_written(home + folder) ? home + folder : temporary_home() + folder;
}

// A file of a home that is somebody else's, as after `su` or `sudo -E`: it is none of ours.
bool is_closed_to_us(const std::string& home, const std::string& file) {
  if (::access(file.c_str(), R_OK) == 0 || errno != EACCES) return false;
  struct stat status {};
  return ::stat(home.c_str(), &status) != 0 || status.st_uid != ::geteuid();
}

// In /tmp anybody may have made the folder before.
void require_own_temporary_home() {
  struct stat status {};
  const std::string folder = temporary_home();
  if (::lstat(folder.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode) && status.st_uid == ::getuid() &&
      (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
    return;
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("folder {}: expected one that only user {} may write to; remove it, or "
                          "set HOME, XDG_STATE_HOME and XDG_CACHE_HOME to folders of yours",
                          folder, ::getuid()));
}

}  // namespace

std::string nearest_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path there = folder;
  while (there.has_relative_path() && !fs::exists(there, error)) there = there.parent_path();
  return there.string();
}

std::optional<std::string> temporary_home_notice() {
  const std::string temporary = temporary_home();
  if (!state_dir().starts_with(temporary + "/")) return std::nullopt;
  const std::string home = env_or("HOME", "");
  std::error_code error;
  const std::string why = home.empty() ? "HOME is not set"
                          : std::filesystem::is_directory(home, error)
                              ? fmt::format("HOME {} can't be written", home)
                              : fmt::format("HOME {} is not there", home);
  return fmt::format(
      "{}: what is kept goes to {}, until that is cleaned; XDG_STATE_HOME chooses "
      "another folder",
      why, temporary);
}

std::string own_socket_path() {
  const std::string chosen = env_or("TGI_SOCKET", "");
  if (!chosen.empty()) return chosen;
  const std::string runtime = xdg_folder("XDG_RUNTIME_DIR");
  if (!runtime.empty() && can_be_written(runtime + "/tgi")) return runtime + "/tgi/tgid.sock";
  return fmt::format("/tmp/tgi-{}/tgid.sock", ::getuid());  // whatever $TMPDIR: all have to agree
}

std::string default_socket_path() {
  std::string own = own_socket_path();
  std::error_code error;
  if (!env_or("TGI_SOCKET", "").empty() || std::filesystem::exists(own, error)) return own;
  return ::access(kSystemSocketPath, W_OK) == 0 ? kSystemSocketPath : own;
}

std::string state_dir() {
  const std::string chosen = xdg_folder("XDG_STATE_HOME");
  return chosen.empty() ? below_home("/.local/state/tgi") : chosen + "/tgi";
}

std::string config_path() {
  const std::string chosen = env_or("TGI_CONFIG", "");
  if (!chosen.empty()) return chosen;
  const std::string file = "/.config/tgi/config.toml";
  const std::string home = env_or("HOME", temporary_home());
  const std::string folder = xdg_folder("XDG_CONFIG_HOME");
  if (!folder.empty()) return folder + "/tgi/config.toml";
  return is_closed_to_us(home, home + file) ? temporary_home() + file : home + file;
}

std::string cache_dir() {
  const std::string chosen = xdg_folder("XDG_CACHE_HOME");
  return chosen.empty() ? below_home("/.cache/tgi") : chosen + "/tgi";
}

std::string executable_dir() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : path.parent_path().string();
}

std::string plugin_path(const std::string& name) {
  const std::string file = "/libtgi-" + name + ".so";
  const std::string chosen = env_or("TGI_PLUGIN_DIR", "");
  if (!chosen.empty()) return chosen + file;
  const std::string beside = executable_dir() + file;
  std::error_code error;
  if (std::filesystem::exists(beside, error)) return beside;
  return executable_dir() + "/../lib/tgi" + file;
}

void make_private_dir(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string temporary = temporary_home();
  if (path == temporary) {
    require_own_temporary_home();
  } else if (path.starts_with(temporary + "/")) {
    make_private_dir(temporary);
  }
  const fs::path parent = fs::path(path).parent_path();
  std::error_code trouble;
  if (!parent.empty()) fs::create_directories(parent, trouble);
  if (trouble && !fs::is_directory(parent, error)) {
    fs::path missing = parent;  // the topmost: the others could not be there
    while (missing.has_relative_path() && !fs::exists(missing.parent_path(), error)) {
      missing = missing.parent_path();
    }
    throw Error(Code::kInvalidArgument, fmt::format("folder {}: can't make {}: {}", path,
                                                    missing.string(), trouble.message()));
  }
  if (::mkdir(path.c_str(), 0700) == 0) return;
  const int reason = errno;
  if (reason == EEXIST && fs::is_directory(path, error)) return;
  throw Error(Code::kInvalidArgument, fmt::format("folder {}: {}", path, std::strerror(reason)));
}

void make_state_dir() {
  try {
    make_private_dir(state_dir());
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}; {}", error.what(), kStateAdvice));
  }
}

}  // namespace tgi
