#include "cmd/models/hub_scan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "base/unique_fd.h"
#include "cmd/download/disk.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelPrefix = "models--";

// "models--org--name" -> "org/name"
std::string repo_of_folder(const std::string& folder) {
  if (!folder.starts_with(kModelPrefix)) return folder;
  std::string out = folder.substr(kModelPrefix.size());
  if (const size_t at = out.find("--"); at != std::string::npos) out.replace(at, 2, "/");
  return out;
}

// Paths below `folder` of what is no folder itself; links are not followed.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code unreadable;
    const bool is_folder = it->is_directory(unreadable) && !it->is_symlink(unreadable);
    if (!is_folder) out.push_back(it->path());
  }
  return out;
}

std::map<std::string, std::vector<std::string>> refs_by_commit(const fs::path& repo) {
  std::map<std::string, std::vector<std::string>> out;
  for (const fs::path& path : files_below(repo / "refs")) {
    out[download::first_line_of(path.string())].push_back(
        path.lexically_relative(repo / "refs").string());
  }
  for (auto& [commit, refs] : out) std::ranges::sort(refs);
  return out;
}

HubFile read_file(const fs::path& snapshot, const fs::path& path) {
  HubFile out{.name = path.lexically_relative(snapshot).string(), .target = {}};
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  if (error || !fs::is_regular_file(target, error)) return out;
  out.target = target.string();
  out.bytes = static_cast<int64_t>(fs::file_size(target, error));
  return out;
}

HubSnapshot read_snapshot(const fs::path& repo, const fs::path& path) {
  HubSnapshot out;
  out.repo_folder = repo.string();
  out.repo = repo_of_folder(repo.filename().string());
  out.commit = path.filename().string();
  out.path = path.string();
  std::set<std::string> targets;
  for (const fs::path& file : files_below(path)) {
    out.files.push_back(read_file(path, file));
    const std::string& target = out.files.back().target;
    if (target.empty() || !targets.insert(target).second) continue;
    out.bytes += out.files.back().bytes;
    struct stat facts {};
    if (::stat(target.c_str(), &facts) == 0) {
      out.last_used_at = std::max(out.last_used_at, int64_t{facts.st_atime});
    }
  }
  std::ranges::sort(out.files, {}, &HubFile::name);
  return out;
}

void scan_repo(const fs::path& repo, std::vector<HubSnapshot>& out) {
  const auto refs = refs_by_commit(repo);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(repo / "snapshots", error)) {
    std::error_code unreadable;
    if (!entry.is_directory(unreadable) || entry.is_symlink(unreadable)) continue;
    HubSnapshot snapshot = read_snapshot(repo, entry.path());
    if (const auto it = refs.find(snapshot.commit); it != refs.end()) snapshot.refs = it->second;
    out.push_back(std::move(snapshot));
  }
}

[[noreturn]] void fail_remove(const fs::path& path, const std::error_code& error) {
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: can't be removed: {}", path.string(), error.message()));
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);  // of links removes the link
  if (error) fail_remove(path, error);
}

// Who downloads a blob holds its lock.
void refuse_if_downloading(const fs::path& locks) {
  for (const fs::path& path : files_below(locks)) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) continue;
    throw Error(Code::kOverloaded,
                fmt::format("another process is downloading this model (it holds {}); try again "
                            "when it has finished",
                            path.string()));
  }
}

int64_t bytes_of(const fs::path& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) ? facts.st_size : 0;
}

// What the snapshot uses of its repo's folder and no other one does.
std::set<fs::path> own_blobs(const HubSnapshot& snapshot, const std::vector<HubSnapshot>& others) {
  std::error_code error;
  const fs::path blobs = fs::canonical(fs::path(snapshot.repo_folder) / "blobs", error);
  std::set<fs::path> out;
  for (const HubFile& file : snapshot.files) {
    const fs::path target = file.target;
    if (!error && target.parent_path() == blobs) out.insert(target);
  }
  for (const HubSnapshot& other : others) {
    for (const HubFile& file : other.files) out.erase(file.target);
  }
  return out;
}

// The repo's other snapshots.
std::vector<HubSnapshot> others_of(const HubSnapshot& snapshot) {
  std::vector<HubSnapshot> out;
  scan_repo(snapshot.repo_folder, out);
  std::erase_if(out, [&](const HubSnapshot& other) { return other.commit == snapshot.commit; });
  return out;
}

// Returns the bytes that this freed.
int64_t remove_own_blobs(const HubSnapshot& snapshot, const std::vector<HubSnapshot>& others) {
  int64_t freed = 0;
  for (const fs::path& blob : own_blobs(snapshot, others)) {
    freed += bytes_of(blob);
    remove_tree(blob);
  }
  return freed;
}

}  // namespace

std::string HubSnapshot::name() const {
  if (std::ranges::find(refs, "main") != refs.end()) return repo;
  return fmt::format("{}@{}", repo, refs.empty() ? commit : refs.front());
}

bool HubSnapshot::has_gaps() const {
  return std::ranges::any_of(files, [](const HubFile& file) { return file.target.empty(); });
}

std::vector<HubSnapshot> scan_hub_cache(const std::string& cache_dir) {
  std::vector<HubSnapshot> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache_dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || name.starts_with("datasets--") || name.starts_with("spaces--")) {
      continue;
    }
    scan_repo(entry.path(), out);
  }
  std::ranges::sort(out, {}, [](const HubSnapshot& s) { return s.name(); });
  return out;
}

int64_t remove_hub_snapshot(const HubSnapshot& snapshot) {
  const fs::path repo = snapshot.repo_folder;
  const fs::path locks = repo.parent_path() / ".locks" / repo.filename();
  refuse_if_downloading(locks);
  const std::vector<HubSnapshot> others = others_of(snapshot);
  int64_t freed = 0;
  if (others.empty()) {
    for (const fs::path& path : files_below(repo)) freed += bytes_of(path);
    remove_tree(repo / "refs");  // first: from now on nobody finds it
    remove_tree(repo);
    remove_tree(locks);
    return freed;
  }
  for (const std::string& ref : snapshot.refs) remove_tree(repo / "refs" / ref);
  for (const fs::path& path : files_below(snapshot.path)) freed += bytes_of(path);
  remove_tree(snapshot.path);
  remove_tree(repo / ".no_exist" / snapshot.commit);
  remove_tree(repo / "trees" / (snapshot.commit + ".json"));
  return freed + remove_own_blobs(snapshot, others);
}

int64_t remove_hub_files(const HubSnapshot& snapshot, const std::vector<std::string>& names) {
  const fs::path repo = snapshot.repo_folder;
  refuse_if_downloading(repo.parent_path() / ".locks" / repo.filename());
  const auto is_named = [&](const HubFile& file) {
    return std::ranges::find(names, file.name) != names.end();
  };
  HubSnapshot gone = snapshot;
  std::erase_if(gone.files, std::not_fn(is_named));
  HubSnapshot kept = snapshot;
  std::erase_if(kept.files, is_named);
  std::vector<HubSnapshot> others = others_of(snapshot);
  others.push_back(std::move(kept));
  int64_t freed = 0;
  for (const HubFile& file : gone.files) {
    freed += bytes_of(fs::path(snapshot.path) / file.name);
    remove_tree(fs::path(snapshot.path) / file.name);
  }
  return freed + remove_own_blobs(gone, others);
}

}  // namespace tgi
