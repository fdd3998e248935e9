// What lies in a cache of the Hugging Face Hub's layout, whoever wrote it, and how a part of it is
// removed so that nothing else is missed. Layout: models--ORG--NAME/{refs,blobs,snapshots/COMMIT},
// where a snapshot is a folder of links to blobs, which several snapshots may share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tgi {

struct HubFile {
  std::string name;    // relative to the snapshot
  std::string target;  // the file that holds the bytes: a blob, or itself; "" when that is gone
  int64_t bytes = 0;
};

struct HubSnapshot {
  std::string repo_folder;        // ".../models--ORG--NAME"
  std::string repo;               // "ORG/NAME"; of a folder that is named otherwise its name
  std::string commit;             // the name of its folder
  std::vector<std::string> refs;  // branches and tags that were at this commit, sorted
  std::string path;               // of the snapshot
  std::vector<HubFile> files;     // sorted by name
  int64_t bytes = 0;              // each blob once
  int64_t last_used_at = 0;       // as the file system tells: roughly

  // "ORG/NAME" for main, "ORG/NAME@REF" for another ref, else "ORG/NAME@COMMIT".
  std::string name() const;
  // Some file is gone: a download that was broken off, or is under way.
  bool has_gaps() const;
};

// Nothing where there is no such folder. Entries that can't be read are passed over.
std::vector<HubSnapshot> scan_hub_cache(const std::string& cache_dir);

// Removes the snapshot, the refs that lead to it, and the blobs that no other snapshot of its repo
// links to; with the last snapshot all of the repo's folder. Returns the bytes that this freed.
// Never touches a file outside of the repo's folder (and its locks), wherever links lead. Throws
// kOverloaded when another process is downloading one of the files, kInvalidArgument with the
// system's reason when something can't be removed.
int64_t remove_hub_snapshot(const HubSnapshot& snapshot);

// The same for some files of it, `names` relative to it; the others stay.
int64_t remove_hub_files(const HubSnapshot& snapshot, const std::vector<std::string>& names);

}  // namespace tgi
