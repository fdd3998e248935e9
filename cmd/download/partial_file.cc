#include "cmd/download/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "cmd/download/disk.h"

namespace tgi::download {
namespace {

constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;  // odd, its bits spread: the golden ratio
constexpr std::string_view kMagic = "tgi-journal 1";

std::string journal_of(const std::string& path) {
  return path + ".journal";
}

std::string header_line(int64_t size, const std::string& identity) {
  return fmt::format("{} {} {} {}\n", kMagic, size, kChunkBytes, identity);
}

int64_t chunks_in(int64_t size) {
  return (size + kChunkBytes - 1) / kChunkBytes;
}

int64_t chunk_size(int64_t chunk, int64_t size) {
  return std::min(kChunkBytes, size - chunk * kChunkBytes);
}

// One "INDEX SUM" without its newline; false when it is none.
bool parse_line(const std::string& line, int64_t& chunk, uint64_t& sum) {
  std::istringstream fields(line);
  std::string rest;
  return static_cast<bool>(fields >> chunk >> std::hex >> sum) && !(fields >> rest);
}

}  // namespace

void ChunkSum::add_block(const std::byte* block) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    uint64_t word = 0;
    std::memcpy(&word, block + lane * sizeof word, sizeof word);
    lanes_[lane] = (lanes_[lane] ^ word) * kFactor;
  }
}

void ChunkSum::add(std::span<const std::byte> bytes) {
  num_bytes_ += bytes.size();
  if (num_tail_ > 0) {
    const size_t room = std::min(kBlockBytes - num_tail_, bytes.size());
    std::memcpy(tail_ + num_tail_, bytes.data(), room);
    num_tail_ += room;
    bytes = bytes.subspan(room);
    if (num_tail_ < kBlockBytes) return;
    add_block(tail_);
    num_tail_ = 0;
  }
  while (bytes.size() >= kBlockBytes) {
    add_block(bytes.data());
    bytes = bytes.subspan(kBlockBytes);
  }
  if (!bytes.empty()) std::memcpy(tail_, bytes.data(), bytes.size());
  num_tail_ = bytes.size();
}

uint64_t ChunkSum::value() const {
  ChunkSum last = *this;
  if (num_tail_ > 0) {
    std::memset(last.tail_ + num_tail_, 0, kBlockBytes - num_tail_);
    last.add_block(last.tail_);
  }
  uint64_t out = num_bytes_;
  for (const uint64_t lane : last.lanes_) {
    out = (out ^ lane ^ (lane >> 29)) * kFactor;
    out ^= out >> 32;
  }
  return out;
}

ChunkView::ChunkView(int fd, int64_t offset, size_t size, const std::string& path) : size_(size) {
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, offset);
  if (data == MAP_FAILED) throw disk_error("read", path, errno);
  data_ = static_cast<const std::byte*>(data);
}

ChunkView::~ChunkView() {
  ::munmap(const_cast<std::byte*>(data_), size_);
}

PartialFile::PartialFile(std::string path, int64_t size, std::string identity)
    : path_(std::move(path)),
      size_(size),
      identity_(std::move(identity)),
      sums_(static_cast<size_t>(chunks_in(size))) {
  make_folders(std::filesystem::path(path_).parent_path().string());
  const bool goes_on = read_journal();
  file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file_) throw disk_error("write", path_, errno);
  if (!goes_on && ::ftruncate(file_.get(), 0) != 0) throw disk_error("write", path_, errno);
  if (::ftruncate(file_.get(), size_) != 0) throw disk_error("write", path_, errno);
  if (!goes_on) begin_journal();
}

bool PartialFile::read_journal() {
  const std::string name = journal_of(path_);
  if (size_of(path_) != size_) return false;
  const std::string text = read_whole(name);
  const std::string header = header_line(size_, identity_);
  if (!text.starts_with(header)) return false;
  size_t at = header.size();
  for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    int64_t chunk = 0;
    uint64_t sum = 0;
    if (!parse_line(text.substr(at, end - at), chunk, sum)) break;
    if (chunk < 0 || chunk >= num_chunks()) break;
    sums_[static_cast<size_t>(chunk)] = {.value = sum, .complete = true, .is_new = false};
  }
  journal_.reset(::open(name.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!journal_) throw disk_error("write", name, errno);
  // What follows the last whole line was torn: cut it off, or the next line would be torn too.
  if (::ftruncate(journal_.get(), static_cast<off_t>(at)) != 0) {
    throw disk_error("write", name, errno);
  }
  return true;
}

void PartialFile::begin_journal() {
  const std::string name = journal_of(path_);
  journal_.reset(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (!journal_) throw disk_error("write", name, errno);
  append(header_line(size_, identity_));
}

void PartialFile::append(const std::string& line) {
  const ssize_t written = ::write(journal_.get(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) {
    throw disk_error("write", journal_of(path_), written < 0 ? errno : ENOSPC);
  }
}

int64_t PartialFile::bytes_of(int64_t chunk) const {
  return chunk_size(chunk, size_);
}

bool PartialFile::is_complete(int64_t chunk) const {
  const std::lock_guard lock(mutex_);
  return sums_[static_cast<size_t>(chunk)].complete;
}

int64_t PartialFile::num_complete_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (int64_t chunk = 0; chunk < num_chunks(); ++chunk) {
    if (sums_[static_cast<size_t>(chunk)].complete) bytes += bytes_of(chunk);
  }
  return bytes;
}

void PartialFile::write(std::span<const std::byte> bytes, int64_t offset) {
  // The kernel lets one write into a file at a time and keeps the others spinning: here they sleep.
  const std::lock_guard lock(write_mutex_);
  write_at(file_.get(), bytes, offset, path_);
}

void PartialFile::read(std::span<std::byte> bytes, int64_t offset) const {
  read_at(file_.get(), bytes, offset, path_);
}

ChunkView PartialFile::view(int64_t chunk) const {
  return {file_.get(), begin_of(chunk), static_cast<size_t>(bytes_of(chunk)), path_};
}

bool PartialFile::is_new(int64_t chunk) const {
  const std::lock_guard lock(mutex_);
  return sums_[static_cast<size_t>(chunk)].is_new;
}

void PartialFile::begin_sync(int64_t chunk) const {
  // No matter if a file system can't: publish() waits for all of it.
  (void)!::sync_file_range(file_.get(), begin_of(chunk), bytes_of(chunk), SYNC_FILE_RANGE_WRITE);
}

void PartialFile::complete(int64_t chunk, uint64_t sum) {
  const std::lock_guard lock(mutex_);
  append(fmt::format("{} {:016x}\n", chunk, sum));
  sums_[static_cast<size_t>(chunk)] = {.value = sum, .complete = true, .is_new = true};
}

uint64_t PartialFile::sum_of(int64_t chunk) const {
  const std::lock_guard lock(mutex_);
  return sums_[static_cast<size_t>(chunk)].value;
}

// Nothing is written: the journal's later line about a chunk goes before an earlier one, and a
// chunk that is wrong on the disk is found wrong again by its sum.
void PartialFile::forget(int64_t chunk) {
  const std::lock_guard lock(mutex_);
  sums_[static_cast<size_t>(chunk)].complete = false;
}

void PartialFile::publish(const std::string& target) {
  if (::fdatasync(file_.get()) != 0) throw disk_error("write", path_, errno);
  if (::rename(path_.c_str(), target.c_str()) != 0) throw disk_error("write", target, errno);
  ::unlink(journal_of(path_).c_str());
}

void PartialFile::remove() {
  ::unlink(path_.c_str());
  ::unlink(journal_of(path_).c_str());
}

int64_t PartialFile::kept_bytes(const std::string& path) {
  const std::string text = read_whole(journal_of(path));
  std::istringstream lines(text);
  std::string header;
  std::getline(lines, header);
  int64_t size = 0;
  if (!header.starts_with(kMagic)) return 0;
  std::istringstream(header.substr(kMagic.size())) >> size;
  if (size <= 0 || size_of(path) != size) return 0;
  std::vector<bool> complete(static_cast<size_t>(chunks_in(size)));
  int64_t bytes = 0;
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    int64_t chunk = 0;
    uint64_t sum = 0;
    if (!parse_line(line, chunk, sum) || chunk < 0 ||
        chunk >= static_cast<int64_t>(complete.size()) || complete[static_cast<size_t>(chunk)]) {
      continue;
    }
    complete[static_cast<size_t>(chunk)] = true;
    bytes += chunk_size(chunk, size);
  }
  return bytes;
}

}  // namespace tgi::download
