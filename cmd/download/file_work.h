// One file while it is downloaded: which parts are taken, which are there, where its bytes are.
// Used by the workers and the checker of a transfer at once; every member function locks for
// itself.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmd/download/file_lock.h"
#include "cmd/download/partial_file.h"
#include "cmd/download/source.h"

namespace tgi::download {

struct TransferItem {
  RemoteFile file;
  std::string target;   // where the whole file goes
  std::string partial;  // where its parts are meanwhile
  std::string lock;
};

// Chunks first .. end - 1, to be fetched by one request.
struct Span {
  int64_t first = 0;
  int64_t end = 0;
  bool second_look = false;  // compare with what is on the disk, replace what differs
};

class FileWork {
 public:
  FileWork(size_t index, TransferItem item, FileLock lock);
  ~FileWork();  // a part without a single chunk goes
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

  const size_t index;
  const TransferItem item;
  PartialFile part;

  // The first chunks that nobody has or fetches, at most `max_chunks`. A file without ranges is
  // given out as a whole.
  std::optional<Span> take(int64_t max_chunks);
  // The chunks from `first` on were not fetched after all.
  void give_back(Span span, int64_t first);

  // A chunk came as the server has it. In a second look: whether it differed and was replaced.
  void arrived(int64_t chunk, uint64_t sum);
  bool looked_again(int64_t chunk, uint64_t sum, std::span<const std::byte> bytes);

  // --- for the checker
  // The hash of the whole was wrong: every chunk is to be fetched once more and compared. False
  // when that was done before.
  bool begin_second_look();
  bool is_second_look() const;
  struct Look {
    bool all = false;          // every chunk was compared
    int64_t num_replaced = 0;  // so far
  };
  Look look() const;
  // Nothing is given out any more. False when chunks were replaced since `num_replaced` were: they
  // are to be hashed again.
  bool close(int64_t num_replaced);
  bool is_closed() const;
  // The file is in its place: others may go on.
  void unlock();

  // --- where it is
  // The server sends no ranges: from now on one stream from the beginning. The bytes that have to
  // come again.
  int64_t set_no_ranges();
  bool has_ranges() const;
  std::string location() const;  // empty: ask the source
  void set_location(std::string url);
  void drop_location(const std::string& url);  // unless somebody has found another one
  // Throws kUnavailable when another answer of the same origin had another ETag.
  void check_etag(const HttpReply& reply);

  std::mutex resolving;  // held by the one who asks where the file is
  bool located = false;  // somebody asked; guarded by resolving

 private:
  mutable std::mutex mutex_;
  std::optional<FileLock> lock_;
  std::vector<bool> taken_;
  std::vector<bool> looked_;  // empty: no second look
  int64_t num_to_look_ = 0;
  int64_t num_replaced_ = 0;
  bool closed_ = false;
  bool ranges_ = true;
  std::string location_;
  std::string etag_;
  std::string etag_origin_;
};

}  // namespace tgi::download
