#include "cmd/download/fetch_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "base/ascii.h"
#include "base/files/paths.h"
#include "cmd/download/content_hash.h"
#include "cmd/download/disk.h"
#include "cmd/download/folder_source.h"
#include "cmd/download/gguf_choice.h"
#include "cmd/download/https_source.h"
#include "cmd/download/hub_cache.h"
#include "cmd/download/hub_names.h"
#include "cmd/download/hub_source.h"
#include "cmd/download/s3_source.h"
#include "ipc/protocol.h"

namespace tgi::download {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSpareBytes = int64_t{64} << 20;  // of the disk, for what others write meanwhile

bool is_address(const std::string& model) {
  return model.starts_with("https://") || model.starts_with("http://");
}
bool is_bucket(const std::string& model) {
  return model.starts_with("s3://");
}

// "https--host.org--path--0123abcd": readable, and another for each address.
std::string folder_of_address(const std::string& address) {
  std::string out;
  for (const char c : address.substr(0, address.find("://")) + "--" +
                          address.substr(std::min(address.find("://") + 3, address.size()))) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-';
    out += plain ? std::string(1, c) : c == '/' ? std::string("--") : std::string("_");
  }
  return out.substr(0, 150) + "--" + sha256_of(address).substr(0, 8);
}

// What a name stands for: its source, its place in a cache.
struct Target {
  std::string kind;
  std::string name;
  std::string revision;
  std::unique_ptr<Source> source;  // null for a folder
  HubCache cache;
  ChoiceRules rules;
};

// "HOST/FOLDER" and "FILE.gguf" of an address of a file.
struct FileAddress {
  std::string folder;
  std::string file;
};

std::optional<FileAddress> gguf_of_address(const std::string& address) {
  const size_t slash = address.rfind('/');
  if (!is_gguf(address) || slash <= address.find("://") + 2) return std::nullopt;
  return FileAddress{.folder = address.substr(0, slash),
                     .file = percent_decode(address.substr(slash + 1))};
}

ChoiceRules rules_of_file(const FetchRequest& request, const std::string& file) {
  ChoiceRules rules = request.rules;
  if (!file.empty() && !rules.include.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} and --include both choose files; give one of them", request.model));
  }
  rules.gguf = file;
  return rules;
}

Target target_of(const FetchRequest& request) {
  std::string model = request.model;
  if (is_address(model) || is_bucket(model)) {
    while (model.ends_with('/') && !model.ends_with("://")) model.pop_back();
    const auto gguf = gguf_of_address(model);
    const std::string folder = gguf ? gguf->folder : model;
    const std::string file = gguf ? gguf->file : "";
    std::unique_ptr<Source> source =
        is_bucket(model) ? open_s3(folder, request.variables) : open_https(folder, file);
    const std::string name = source->describe() + (gguf ? "/" + file : "");
    const std::string base =
        request.cache_dir.empty() ? tgi::cache_dir() + "/sources" : request.cache_dir;
    return {.kind = is_bucket(model) ? "s3" : "https",
            .name = name,
            .revision = "main",
            .source = std::move(source),
            .cache = HubCache(base, folder_of_address(model)),
            .rules = rules_of_file(request, file)};
  }
  HubName name = require_hub_name(model);
  if (!request.revision.empty()) {
    if (model.find('@') != std::string::npos && name.revision != request.revision) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{} and --revision {} name two revisions; give one of them", model,
                              request.revision));
    }
    check_revision(request.revision);
    name.revision = request.revision;
  }
  const std::string base =
      request.cache_dir.empty() ? request.settings.cache_dir : request.cache_dir;
  return {.kind = "hub",
          .name = name.repo,
          .revision = name.revision,
          .source = open_hub(name, request.settings),
          .cache = HubCache(base, HubCache::folder_name(name.repo)),
          .rules = rules_of_file(request, name.file)};
}

// `listed`: all files of the commit that are known.
FetchedModel describe(const Target& target,
                      const std::string& commit,
                      const std::vector<RemoteFile>& listed,
                      std::vector<RemoteFile> files) {
  FetchedModel model{
      .path = fs::absolute(target.cache.snapshot(commit)).lexically_normal().string(),
      .source = target.kind,
      .name = target.name,
      .commit = commit,
      .files = std::move(files),
      .bytes = 0};
  for (const RemoteFile& file : model.files) model.bytes += file.size;
  if (is_of_gguf(model.files, target.rules)) {
    model.path += "/" + model.files.front().path;
    if (target.kind == "hub") {
      model.name += ":" + choose_gguf(listed, model.files.front().path).tag;
    }
  }
  return model;
}

bool is_in_snapshot(const HubCache& cache, const std::string& commit, const RemoteFile& file) {
  return size_of(fmt::format("{}/{}", cache.snapshot(commit), file.path)) == file.size;
}

// What of `listed` is here.
std::vector<RemoteFile> here_of(const Target& target,
                                const std::string& commit,
                                const std::vector<RemoteFile>& listed) {
  std::vector<RemoteFile> out;
  std::ranges::copy_if(listed, std::back_inserter(out), [&](const RemoteFile& file) {
    return is_in_snapshot(target.cache, commit, file);
  });
  return out;
}

// The files of a snapshot, by what its folder has.
std::vector<RemoteFile> files_of_snapshot(const std::string& folder) {
  std::vector<RemoteFile> out;
  for (FileBelow& below : files_below(folder)) {
    RemoteFile file;
    file.path = std::move(below.name);
    file.size = below.bytes;
    out.push_back(std::move(file));
  }
  return out;
}

// The GGUF model of `here` that was asked for. A name alone may mean any that is here.
std::optional<FetchedModel> find_gguf(const Target& target,
                                      const std::string& commit,
                                      const std::vector<RemoteFile>& listed,
                                      const std::vector<RemoteFile>& here) {
  try {
    return describe(target, commit, listed, choose_gguf(here, target.rules.gguf).files);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<FetchedModel> find_whole(const Target& target) {
  const ChoiceRules& rules = target.rules;
  const auto commit = target.cache.commit_of(target.revision);
  if (!commit || !exists(target.cache.snapshot(*commit))) return std::nullopt;
  if (const auto tree = target.cache.read_tree(*commit)) {
    std::vector<RemoteFile> files;
    try {
      files = choose_files(*tree, rules);
    } catch (const Error&) {
      return std::nullopt;  // that commit has nothing that was asked for
    }
    const std::vector<RemoteFile> here = here_of(target, *commit, files);
    if (here.size() == files.size()) return describe(target, *commit, *tree, std::move(files));
    const bool may_be_another = is_of_gguf(files, rules) && rules.gguf.empty();
    if (!may_be_another) return std::nullopt;
    return find_gguf(target, *commit, *tree, here_of(target, *commit, *tree));
  }
  // The snapshot comes from an older huggingface_hub, which keeps no list of files.
  const std::vector<RemoteFile> here = files_of_snapshot(target.cache.snapshot(*commit));
  if (!rules.gguf.empty()) return find_gguf(target, *commit, here, here);
  if (!missing_of(target.cache.snapshot(*commit)).empty()) {
    return rules.include.empty() ? find_gguf(target, *commit, here, here) : std::nullopt;
  }
  return describe(target, *commit, {}, {});
}

// The disk must hold what is still to come.
void check_space(const HubCache& cache, const std::vector<TransferItem>& items) {
  int64_t to_come = 0;
  for (const TransferItem& item : items) {
    to_come += item.file.size - PartialFile::kept_bytes(item.partial);
  }
  const int64_t free = free_bytes(cache.folder());
  if (free < 0 || to_come == 0 || to_come + std::min(kSpareBytes, to_come) <= free) return;
  throw Error(
      Code::kOutOfMemory,
      fmt::format("{} are still to be downloaded to {}, where {} are free; make room or give "
                  "another folder with --cache-dir or HF_HUB_CACHE",
                  format_size(to_come), cache.folder(), format_size(free)));
}

// For one who was stopped or whose disk is full: what the next run finds.
std::string what_is_kept(const std::vector<TransferItem>& items,
                         const std::vector<RemoteFile>& files) {
  int64_t total = 0;
  for (const RemoteFile& file : files) total += file.size;
  int64_t missing = 0;
  for (const TransferItem& item : items) {
    if (!exists(item.target)) missing += item.file.size - PartialFile::kept_bytes(item.partial);
  }
  return fmt::format("{} of {} are kept, the same command goes on from there",
                     format_size(total - missing), format_size(total));
}

HttpSettings http_settings(const HubSettings& settings) {
  return {.user_agent = fmt::format("tgi/{}", ipc::kVersion),
          .connect_timeout_s = settings.stall_timeout_s,
          .stall_timeout_s = settings.stall_timeout_s,
          .ca_file = settings.ca_file};
}

// Brings what the cache lacks of `files`.
void bring(const Target& target,
           const FetchRequest& request,
           const std::vector<RemoteFile>& files,
           const std::string& commit,
           FetchObserver& observer,
           std::stop_token stop) {
  std::vector<TransferItem> items;
  std::vector<size_t> file_of_item;
  std::set<std::string> blobs;
  for (size_t i = 0; i < files.size(); ++i) {
    const RemoteFile& file = files[i];
    const std::string blob = target.cache.blob(file.blob);
    // Where links are not possible huggingface_hub keeps the content in the snapshot.
    const bool there = size_of(blob) == file.size || is_in_snapshot(target.cache, commit, file);
    if (there || !blobs.insert(file.blob).second) {
      observer.on_done(i, !there);
      continue;
    }
    if (exists(blob)) ::unlink(blob.c_str());  // cut short by a crash
    items.push_back({.file = file,
                     .target = blob,
                     .partial = target.cache.partial(file.blob),
                     .lock = target.cache.lock(file.blob)});
    file_of_item.push_back(i);
  }
  check_space(target.cache, items);

  // The transfer counts its own files.
  class Renumbered final : public Observer {
   public:
    Renumbered(FetchObserver& observer, const std::vector<size_t>& numbers)
        : observer_(observer), numbers_(numbers) {}
    void on_begin(size_t file, int64_t kept) override { observer_.on_begin(numbers_[file], kept); }
    void on_bytes(size_t file, int64_t bytes) override {
      observer_.on_bytes(numbers_[file], bytes);
    }
    void on_done(size_t file, bool others) override { observer_.on_done(numbers_[file], others); }
    void on_wait_for_others(size_t file) override { observer_.on_wait_for_others(numbers_[file]); }
    void on_note(const std::string& text) override { observer_.on_note(text); }

   private:
    FetchObserver& observer_;
    const std::vector<size_t>& numbers_;
  } renumbered(observer, file_of_item);
  try {
    transfer(*target.source, items, {.http = http_settings(request.settings)}, renumbered, stop);
  } catch (const Error& error) {
    if (error.code() != Code::kCancelled && error.code() != Code::kOutOfMemory) throw;
    throw Error(error.code(), fmt::format("{}; {}", error.what(), what_is_kept(items, files)));
  }
}

// Not where nobody would look for it: gigabytes in /tmp.
void require_home(const FetchRequest& request, const Target& target) {
  if (!request.cache_dir.empty() || request.settings.no_home.empty()) return;
  throw Error(Code::kInvalidArgument, fmt::format("{}: {}", target.name, request.settings.no_home));
}

// A branch that moved while the list was asked for does no harm: the list is of one commit.
FetchedModel fetch_remote(const FetchRequest& request,
                          const Target& target,
                          FetchObserver& observer,
                          std::stop_token stop) {
  HttpClient client(http_settings(request.settings));
  std::optional<FetchedModel> cached = find_whole(target);
  if (!cached) require_home(request, target);  // before the network is asked
  const auto tell = [&](const std::string& trouble, double seconds) {
    if (cached) throw NetworkError(trouble);  // who has it all need not be patient
    observer.on_note(fmt::format("{}; trying again in {:.1f} s", trouble, seconds));
  };
  Listing listing;
  try {
    listing = target.source->list(client, stop, tell);
  } catch (const Error& error) {
    const bool may_use_cache =
        error.code() == Code::kUnavailable || error.code() == Code::kOverloaded;
    if (!cached || !may_use_cache) throw;
    observer.on_note(fmt::format("{}; using what was downloaded before (commit {})", error.what(),
                                 cached->commit));
    return std::move(*cached);
  }
  const std::vector<RemoteFile> files = choose_files(listing.files, target.rules);
  FetchedModel model = describe(target, listing.commit, listing.files, files);
  observer.on_plan(target.source->describe(), files);
  const bool whole = std::all_of(files.begin(), files.end(), [&](const RemoteFile& file) {
    return is_in_snapshot(target.cache, listing.commit, file);
  });
  const auto record = [&] {
    target.cache.write_tree(listing.commit, listing.files);
    target.cache.set_ref(target.revision, listing.commit);
  };
  if (whole) {
    for (size_t i = 0; i < files.size(); ++i) observer.on_done(i, false);
    try {
      record();
    } catch (const Error&) {
      // A read-only cache that has everything serves as well as another.
    }
    return model;
  }
  require_home(request, target);
  target.cache.prepare();
  bring(target, request, files, listing.commit, observer, stop);
  // Only now, when all is there, does the snapshot get its files: nobody finds half a model.
  for (const RemoteFile& file : files) target.cache.link(listing.commit, file);
  for (const std::string& name : optional_names()) {
    const bool listed = std::any_of(listing.files.begin(), listing.files.end(),
                                    [&](const RemoteFile& file) { return file.path == name; });
    if (!listed) target.cache.mark_absent(listing.commit, name);
  }
  record();
  return model;
}

FetchedModel local_folder(const std::string& folder) {
  const FolderReport report = check_folder(folder);
  return {.path = report.path,
          .source = "folder",
          .name = folder,
          .commit = "",
          .files = {},
          .bytes = report.bytes};
}

}  // namespace

bool is_remote(const std::string& model) {
  if (model == "demo" || model.empty()) return false;
  if (is_address(model) || is_bucket(model)) return true;
  std::error_code error;
  if (fs::is_directory(model, error) || is_gguf_file(model)) return false;
  return parse_hub_name(name_of_hub_address(model, "")).has_value();
}

bool is_gguf_file(const std::string& model) {
  std::error_code error;
  return fs::is_regular_file(model, error);
}

void refuse_missing_gguf(const std::string& model) {
  const std::string name = ascii_lower(model.substr(0, model.find('@')));
  const bool is_path = is_gguf(name) && !is_address(model) && !is_bucket(model) &&
                       name_of_hub_address(model, "") == model &&
                       model.find(':') == std::string::npos;
  std::error_code error;
  if (!is_path || fs::exists(model, error)) return;
  throw Error(Code::kNotFound, fmt::format("{}: there is no such file", model));
}

std::optional<FetchedModel> find_model(const FetchRequest& request) {
  return find_whole(target_of(request));
}

void check_access(const FetchRequest& request, std::stop_token stop) {
  if (request.offline || request.settings.offline) return;
  const Target target = target_of(request);
  HttpClient client(http_settings(request.settings));
  const auto give_up = [](const std::string& trouble, double /*seconds*/) {
    throw NetworkError(trouble);
  };
  try {
    (void)target.source->list(client, std::move(stop), give_up);
  } catch (const Error& error) {
    if (error.code() != Code::kUnavailable && error.code() != Code::kOverloaded) throw;
  }
}

FetchedModel fetch_model(const FetchRequest& request,
                         FetchObserver& observer,
                         std::stop_token stop) {
  std::error_code error;
  if (fs::is_directory(request.model, error)) return local_folder(request.model);
  refuse_missing_gguf(request.model);
  const Target target = target_of(request);
  if (!request.offline && !request.settings.offline) {
    return fetch_remote(request, target, observer, stop);
  }
  std::optional<FetchedModel> cached = find_whole(target);
  if (!cached) {
    throw Error(Code::kNotFound,
                fmt::format("{} (revision {}) is missing or incomplete in {}, and nothing is "
                            "downloaded {}; run `tgi download-weights {}` with a network",
                            target.name, target.revision, target.cache.cache_dir(),
                            request.offline ? "with --offline" : "while HF_HUB_OFFLINE is set",
                            request.model));
  }
  return std::move(*cached);
}

}  // namespace tgi::download
