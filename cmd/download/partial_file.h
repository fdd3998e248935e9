// A file that is being downloaded: its bytes in PATH, and beside it PATH.journal, which says which
// chunks are complete and what each summed up to, so that a download goes on where it was after
// kill -9 at any byte, and after a power cut too: a chunk that the journal has but the disk lost is
// found by its sum.
//
// The journal is text: one line about the file, then one line a chunk, in the order they were
// completed. A last line without its end is not counted.
//
//   tgi-journal 1 SIZE CHUNK_BYTES IDENTITY
//   INDEX SUM
//
// Threads: all may call everything; a chunk belongs to the one who took it until it is completed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace tgi::download {

inline constexpr int64_t kChunkBytes = int64_t{4} << 20;

// The sum of a chunk, fed in pieces. It finds what was lost or torn; it is no defence against
// anybody: that is the hash of the whole file.
class ChunkSum {
 public:
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  void add_block(const std::byte* block);

  static constexpr size_t kLanes = 4;
  static constexpr size_t kBlockBytes = kLanes * sizeof(uint64_t);
  uint64_t lanes_[kLanes] = {1, 2, 3, 4};
  std::byte tail_[kBlockBytes] = {};
  size_t num_tail_ = 0;
  uint64_t num_bytes_ = 0;
};

// The bytes of a chunk in memory, without copying them. Only of chunks that have just been written:
// a disk that can't read its bytes any more is an error of read(), but the end of the process here.
class ChunkView {
 public:
  ChunkView(int fd, int64_t offset, size_t size, const std::string& path);
  ~ChunkView();
  ChunkView(const ChunkView&) = delete;
  ChunkView& operator=(const ChunkView&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  const size_t size_;
};

class PartialFile {
 public:
  // Opens what is there of `identity` (which must hold what makes the content the same: its hash,
  // or its address and ETag), else begins anew. REQUIRES: the lock of the blob is held. Throws
  // disk_error.
  PartialFile(std::string path, int64_t size, std::string identity);

  int64_t size() const { return size_; }
  int64_t num_chunks() const { return static_cast<int64_t>(sums_.size()); }
  int64_t begin_of(int64_t chunk) const { return chunk * kChunkBytes; }
  int64_t bytes_of(int64_t chunk) const;
  const std::string& path() const { return path_; }

  bool is_complete(int64_t chunk) const;
  int64_t num_complete_bytes() const;

  void write(std::span<const std::byte> bytes, int64_t offset);
  void read(std::span<std::byte> bytes, int64_t offset) const;
  ChunkView view(int64_t chunk) const;
  // Whether the chunk came in this run and not in one before.
  bool is_new(int64_t chunk) const;
  // Asks the disk to begin with it, so that publish() has less to wait for.
  void begin_sync(int64_t chunk) const;

  // The chunk is written and sums up to `sum`. Written to the journal.
  void complete(int64_t chunk, uint64_t sum);
  // The sum a complete chunk had when it came.
  uint64_t sum_of(int64_t chunk) const;
  // The chunk has to be fetched again.
  void forget(int64_t chunk);

  // Everything is there and right: becomes `target`, safe against a power cut. The journal goes.
  void publish(const std::string& target);
  // Both files go.
  void remove();

  // Bytes that a journal beside `path` counts, for planning; 0 when there is none.
  static int64_t kept_bytes(const std::string& path);

 private:
  struct Sum {
    uint64_t value = 0;
    bool complete = false;
    bool is_new = false;
  };

  bool read_journal();
  void begin_journal();
  void append(const std::string& line);

  const std::string path_;
  const int64_t size_;
  const std::string identity_;
  UniqueFd file_;
  UniqueFd journal_;
  std::mutex write_mutex_;
  mutable std::mutex mutex_;
  std::vector<Sum> sums_;  // guarded by mutex_
};

}  // namespace tgi::download
