// One model's folder in the cache that huggingface_hub and tgi share (layout of huggingface_hub
// 2.4.0; older ones have the same but for "trees"):
//
//   models--ORG--NAME/refs/REVISION            the commit a branch or tag was at
//                     blobs/HASH               contents: sha256 of LFS files, git's sha1 of others
//                     snapshots/COMMIT/FILE    relative links to blobs
//                     trees/COMMIT.json        all files of the commit with sizes and hashes
//                     .no_exist/COMMIT/FILE    empty: known not to be there
//   .locks/models--ORG--NAME/HASH.lock         who downloads that blob
//                           PID.N.tmp          what becomes a ref, a tree or a link in one step
//
// Parts of a blob are in blobs/HASH.tgi.incomplete with its journal beside it. The name is our own:
// huggingface_hub before 1.0 appends to HASH.incomplete, and one with holes would mislead it; newer
// ones use a name of one process each and do not resume.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/download/source.h"

namespace tgi::download {

class HubCache {
 public:
  // `folder` as "models--ORG--NAME". Nothing is made or read yet.
  HubCache(std::string cache_dir, std::string folder);

  static std::string folder_name(const std::string& repo);

  std::string blob(const std::string& hash) const;
  std::string partial(const std::string& hash) const;
  std::string lock(const std::string& hash) const;
  std::string snapshot(const std::string& commit) const;
  const std::string& folder() const { return folder_; }
  const std::string& cache_dir() const { return cache_dir_; }

  // The commit of a revision as far as is known here: itself, or of refs.
  std::optional<std::string> commit_of(const std::string& revision) const;
  // Throws disk_error, as all that write do.
  void set_ref(const std::string& revision, const std::string& commit) const;

  // Nothing when there is none that can be understood.
  std::optional<std::vector<RemoteFile>> read_tree(const std::string& commit) const;
  void write_tree(const std::string& commit, const std::vector<RemoteFile>& files) const;

  // snapshots/COMMIT/PATH -> ../../blobs/HASH. One that is right stays.
  void link(const std::string& commit, const RemoteFile& file) const;
  void mark_absent(const std::string& commit, const std::string& path) const;

  // Makes the folders and CACHEDIR.TAG. Throws disk_error when the cache is read-only.
  void prepare() const;

 private:
  // Not beside what it becomes, where huggingface_hub would take a killed process' for a ref or for
  // a file of the model. Another one at each call.
  std::string temporary() const;
  void write(const std::string& path, std::string_view text) const;

  const std::string cache_dir_;
  const std::string name_;
  const std::string folder_;
};

}  // namespace tgi::download
