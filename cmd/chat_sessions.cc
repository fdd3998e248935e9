#include "cmd/chat_sessions.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/files/paths.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

// The newest first.
std::vector<fs::path> find_sessions() {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(chat_sessions_dir(), error)) {
    std::error_code gone;
    const auto time = entry.last_write_time(gone);
    if (!gone && entry.path().extension() == ".json") found.emplace_back(time, entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> out;
  for (auto& [time, path] : found) out.push_back(std::move(path));
  return out;
}

}  // namespace

std::string chat_sessions_dir() {
  return state_dir() + "/chats";
}

std::string new_chat_session() {
  return fmt::format("{}/{:%Y-%m-%d-%H%M%S}-{}.json", chat_sessions_dir(),
                     fmt::localtime(std::time(nullptr)), ::getpid());
}

std::optional<std::string> newest_chat_session() {
  const std::vector<fs::path> found = find_sessions();
  if (found.empty()) return std::nullopt;
  return found.front().string();
}

void prune_chat_sessions(size_t num_kept) {
  const std::vector<fs::path> found = find_sessions();
  for (size_t i = num_kept; i < found.size(); ++i) {
    std::error_code error;
    fs::remove(found[i], error);
  }
}

}  // namespace tgi
