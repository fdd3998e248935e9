#include "engine/weights/scratch.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

namespace tgi {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kMaxKeptBytes = size_t{512} << 20;
constexpr size_t kMaxWaste = 4;  // a block may be so many times as large as what is asked for

struct Block {
  void* data = nullptr;
  size_t bytes = 0;
};

struct Pool {
  std::mutex mutex;
  std::vector<Block> free;
  std::vector<Block> taken;
  size_t kept_bytes = 0;
};

Pool& pool() {
  static Pool* const kPool = new Pool;  // outlives all that give back
  return *kPool;
}

}  // namespace

void* take_scratch(size_t bytes) {
  const size_t size = (std::max<size_t>(bytes, 1) + kPageBytes - 1) / kPageBytes * kPageBytes;
  Pool& all = pool();
  const std::lock_guard lock(all.mutex);
  all.taken.reserve(all.taken.size() + 1);
  all.free.reserve(all.free.size() + all.taken.size() + 1);  // giving back must not fail
  auto best = all.free.end();
  for (auto it = all.free.begin(); it != all.free.end(); ++it) {
    const bool fits = it->bytes >= size && it->bytes / kMaxWaste <= size;
    if (fits && (best == all.free.end() || it->bytes < best->bytes)) best = it;
  }
  if (best != all.free.end()) {
    const Block block = *best;
    all.kept_bytes -= block.bytes;
    *best = all.free.back();
    all.free.pop_back();
    all.taken.push_back(block);
    return block.data;
  }
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  all.taken.push_back({data, size});
  return data;
}

void give_scratch(void* data, size_t /*bytes*/) noexcept {
  Pool& all = pool();
  const std::lock_guard lock(all.mutex);
  const auto at = std::find_if(all.taken.begin(), all.taken.end(),
                               [&](const Block& block) { return block.data == data; });
  const Block block = *at;
  *at = all.taken.back();
  all.taken.pop_back();
  if (all.kept_bytes + block.bytes > kMaxKeptBytes) {
    ::munmap(block.data, block.bytes);
    return;
  }
  all.kept_bytes += block.bytes;
  all.free.push_back(block);
}

void release_scratch() noexcept {
  Pool& all = pool();
  const std::lock_guard lock(all.mutex);
  for (const Block& block : all.free) ::munmap(block.data, block.bytes);
  all.free.clear();
  all.kept_bytes = 0;
}

}  // namespace tgi
