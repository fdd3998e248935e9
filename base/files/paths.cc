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

std::string home_dir() {
  return env_or("HOME", fmt::format("/tmp/tgi-{}", ::getuid()));
}

}  // namespace

std::string own_socket_path() {
  const std::string chosen = env_or("TGI_SOCKET", "");
  if (!chosen.empty()) return chosen;
  const std::string runtime = env_or("XDG_RUNTIME_DIR", "");
  if (!runtime.empty()) return runtime + "/tgi/tgid.sock";
  return fmt::format("/tmp/tgi-{}/tgid.sock", ::getuid());
}

std::string default_socket_path() {
  std::string own = own_socket_path();
  std::error_code error;
  if (!env_or("TGI_SOCKET", "").empty() || std::filesystem::exists(own, error)) return own;
  return ::access(kSystemSocketPath, W_OK) == 0 ? kSystemSocketPath : own;
}

std::string state_dir() {
  return env_or("XDG_STATE_HOME", home_dir() + "/.local/state") + "/tgi";
}

std::string config_path() {
  const std::string chosen = env_or("TGI_CONFIG", "");
  if (!chosen.empty()) return chosen;
  return env_or("XDG_CONFIG_HOME", home_dir() + "/.config") + "/tgi/config.toml";
}

std::string cache_dir() {
  return env_or("XDG_CACHE_HOME", home_dir() + "/.cache") + "/tgi";
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
