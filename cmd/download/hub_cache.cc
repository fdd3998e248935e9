#include "cmd/download/hub_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <limits>

#include "base/json.h"
#include "cmd/download/disk.h"
#include "cmd/download/hub_names.h"

namespace tgi::download {
namespace {

namespace fs = std::filesystem;

constexpr int kTreeFormat = 1;
constexpr std::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file marks a cache of downloaded models, so that backup programs can leave it out.\n"
    "# See https://bford.info/cachedir/\n";

void make_parent(const std::string& path) {
  make_folders(fs::path(path).parent_path().string());
}

}  // namespace

HubCache::HubCache(std::string cache_dir, std::string folder)
    : cache_dir_(std::move(cache_dir)),
      name_(std::move(folder)),
      folder_(cache_dir_ + "/" + name_) {}

std::string HubCache::folder_name(const std::string& repo) {
  std::string out = "models--";
  for (const char c : repo) out += c == '/' ? std::string("--") : std::string(1, c);
  return out;
}

std::string HubCache::blob(const std::string& hash) const {
  return fmt::format("{}/blobs/{}", folder_, hash);
}
std::string HubCache::partial(const std::string& hash) const {
  return fmt::format("{}/blobs/{}.tgi.incomplete", folder_, hash);
}
std::string HubCache::lock(const std::string& hash) const {
  return fmt::format("{}/.locks/{}/{}.lock", cache_dir_, name_, hash);
}
std::string HubCache::snapshot(const std::string& commit) const {
  return fmt::format("{}/snapshots/{}", folder_, commit);
}

std::string HubCache::temporary() const {
  static std::atomic<int> num_made = 0;
  const std::string path =
      fmt::format("{}/.locks/{}/{}.{}.tmp", cache_dir_, name_, ::getpid(), num_made++);
  make_parent(path);
  ::unlink(path.c_str());  // of a process that was killed and had this number
  return path;
}

void HubCache::write(const std::string& path, std::string_view text) const {
  make_parent(path);
  write_whole(path, text, temporary());
}

std::optional<std::string> HubCache::commit_of(const std::string& revision) const {
  if (is_commit(revision)) return revision;
  std::string commit = read_whole(fmt::format("{}/refs/{}", folder_, revision));
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

void HubCache::set_ref(const std::string& revision, const std::string& commit) const {
  if (revision == commit || commit_of(revision) == commit) return;
  write(fmt::format("{}/refs/{}", folder_, revision), commit);
}

std::optional<std::vector<RemoteFile>> HubCache::read_tree(const std::string& commit) const {
  const std::string path = fmt::format("{}/trees/{}.json", folder_, commit);
  try {
    const std::string text = read_whole(path);
    if (text.empty()) return std::nullopt;
    const Json json = parse_json(text);
    const JsonReader reader(json, path);
    if (reader.integer("format_version") != kTreeFormat) return std::nullopt;
    std::vector<RemoteFile> files;
    for (const auto& [name, about] : reader.object("files").json().items()) {
      check_file_name(name);
      const JsonReader entry(about, name);
      RemoteFile file;
      file.path = name;
      file.sha256 = entry.string_or("lfs_sha256", "");
      file.blob_id = entry.string("blob_id");
      if (file.sha256.empty()) file.git_sha1 = file.blob_id;
      file.blob = file.sha256.empty() ? file.git_sha1 : file.sha256;
      file.size = entry.integer_or("lfs_size", entry.integer("size"));
      file.xet_hash = entry.string_or("xet_hash", "");
      files.push_back(std::move(file));
    }
    return files;
  } catch (const Error&) {
    return std::nullopt;  // as huggingface_hub: what can't be read is fetched again
  }
}

void HubCache::write_tree(const std::string& commit, const std::vector<RemoteFile>& files) const {
  Json entries = Json::object();
  for (const RemoteFile& file : files) {
    Json entry = {{"size", file.size}, {"blob_id", file.blob_id}};
    if (!file.sha256.empty()) {
      entry["lfs_sha256"] = file.sha256;
      entry["lfs_size"] = file.size;
    }
    if (!file.xet_hash.empty()) entry["xet_hash"] = file.xet_hash;
    entries[file.path] = std::move(entry);
  }
  write(fmt::format("{}/trees/{}.json", folder_, commit),
        Json{{"format_version", kTreeFormat}, {"files", entries}}.dump(1));
}

void HubCache::link(const std::string& commit, const RemoteFile& file) const {
  check_file_name(file.path);
  const std::string path = fmt::format("{}/{}", snapshot(commit), file.path);
  std::string target = "../../";
  for (const char c : file.path) target += c == '/' ? "../" : "";
  target += "blobs/" + file.blob;
  std::error_code error;
  if (fs::read_symlink(path, error).string() == target) return;
  make_parent(path);
  if (::symlink(target.c_str(), path.c_str()) == 0) return;
  if (errno != EEXIST) throw disk_error("link", path, errno);
  // Another one is there: replaced in one step, so that no reader finds the name gone.
  const std::string beside = temporary();
  if (::symlink(target.c_str(), beside.c_str()) != 0 ||
      ::rename(beside.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(beside.c_str());
    throw disk_error("link", path, reason);
  }
}

void HubCache::mark_absent(const std::string& commit, const std::string& path) const {
  const std::string mark = fmt::format("{}/.no_exist/{}/{}", folder_, commit, path);
  if (!exists(mark)) write(mark, "");
}

void HubCache::prepare() const {
  make_folders(folder_ + "/blobs");
  const std::string tag = cache_dir_ + "/CACHEDIR.TAG";
  if (!exists(tag)) write(tag, kCacheTag);
  if (::access((folder_ + "/blobs").c_str(), W_OK) != 0) {
    throw disk_error("write", folder_ + "/blobs", errno);
  }
}

}  // namespace tgi::download
