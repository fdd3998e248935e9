// What tgi remembers on this machine: models that were installed, jobs and how far they are,
// benchmarks. One SQLite file that any number of processes use at once. It is an index: the models
// themselves lie in their folders and stay usable without it.
//
// A Store belongs to one thread; open as many as you like. Times are seconds since 1970, UTC; 0:
// never. Every method throws kInvalidArgument when the file turns out to be damaged, kOutOfMemory
// when the disk is full, kOverloaded when another process keeps it locked for 10 s.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/store/database.h"

namespace tgi {

struct InstalledFile {
  std::string name{};  // relative to the model's folder
  int64_t bytes = 0;
  std::string hash{};  // "sha256:...", "git:..." or "" where nobody told it
};

struct InstalledModel {
  std::string name{};      // as the user names it: "org/name", "org/name@revision"
  std::string source{};    // where it came from: the hub's address, a URL, a folder
  std::string revision{};  // as asked for: "main"; "" where the source has none
  std::string commit{};    // what the revision was then; "" likewise
  std::string format{};    // "safetensors", "safetensors from bin", "gptq", ...
  std::string path{};      // the folder to load, absolute
  int64_t bytes = 0;       // of all files
  std::vector<InstalledFile> files{};
  int64_t installed_at = 0;  // 0: now
  int64_t last_used_at = 0;
};

struct JobRecord {
  int64_t id = 0;
  std::string kind{};     // "download", "quantize", ...
  std::string subject{};  // what it is about: a model's name
  std::string state{};  // "running", "done", "failed", "cancelled"; "interrupted": its process died
  std::string phase{};  // what it does just now, in words
  int64_t done = 0;     // of total, in whatever the job counts; total 0: unknown
  int64_t total = 0;
  std::string message{};  // how it ended
  int64_t started_at = 0;
  int64_t finished_at = 0;
  int64_t owner_pid = 0;
};

struct BenchmarkRecord {
  int64_t id = 0;           // given by the store
  int64_t measured_at = 0;  // 0: now
  std::string kind{};       // "engine": batch by batch; "serving": under load
  std::string model{};
  std::string backend{};
  std::string isa{};
  std::string dtype{};
  Json settings = Json::object();
  Json result = Json::object();
  std::string version{};  // of tgi
};

struct BenchmarkFilter {  // "": any
  std::string kind{};
  std::string model{};
};

// $TGI_STORE, else state_dir()/store.db.
std::string default_store_path();

class Store {
 public:
  // Creates the file and its folder, or brings an older file up. Where that can't be written, what
  // is there can be read (nothing, where nothing is), on a disk that is full too. Throws
  // kInvalidArgument when the file is damaged, no database or another program's, and kUnsupported
  // when a newer tgi wrote it: it is left as it is, and the message says what to do.
  static Store open(const std::string& path = default_store_path());

  // Nothing can be written: put, add, begin, update, end and remove throw kInvalidArgument, or
  // kOutOfMemory where the disk was full when it was opened.
  bool is_read_only() const { return read_only_ != ReadOnly::kNo; }
  // Why: what was to be kept is lost, which is worth a word.
  bool is_disk_full() const { return read_only_ == ReadOnly::kDiskFull; }
  const std::string& path() const { return database_.path(); }

  // Replaces the model of that name, if there is one; its time of last use stays.
  void put_model(const InstalledModel& model);
  std::vector<InstalledModel> models() const;  // by name
  std::optional<InstalledModel> find_model(std::string_view name) const;
  // It was used just now. Not worth a failure: a read-only store and one that does not know the
  // model stay as they are.
  void touch_model(std::string_view name);
  bool remove_model(std::string_view name);  // false: there is none

  // A job of this process. Every update is a write to the disk: a few a second at most.
  int64_t begin_job(std::string_view kind, std::string_view subject, int64_t total);
  void update_job(int64_t id, std::string_view phase, int64_t done, int64_t total);
  void end_job(int64_t id, std::string_view state, std::string_view message);
  // Newest first. The last kMaxJobs are kept.
  std::vector<JobRecord> jobs(int64_t limit) const;
  static constexpr int64_t kMaxJobs = 1000;

  void add_benchmark(const BenchmarkRecord& benchmark);
  std::vector<BenchmarkRecord> benchmarks(const BenchmarkFilter& filter, int64_t limit) const;

 private:
  enum class ReadOnly { kNo, kNoRight, kDiskFull };

  Store(Database database, ReadOnly read_only);
  static Store open_to_read(const std::string& path, ReadOnly why);
  static Store open_to_write(const std::string& path);
  void require_writable() const;

  Database database_;
  ReadOnly read_only_;
};

}  // namespace tgi
