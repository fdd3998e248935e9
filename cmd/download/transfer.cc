#include "cmd/download/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/descriptor_limit.h"
#include "cmd/download/content_hash.h"
#include "cmd/download/disk.h"
#include "cmd/download/range_fetch.h"

namespace tgi::download {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookAgain{200};  // at files of other processes
// More connections help where the network is what is slow. Where it is not, as between machines of
// one rack, they only take turns on the processor: the others join in while two are slower than
// this.
constexpr size_t kFirstConnections = 2;
constexpr milliseconds kFirstLook{100};
constexpr double kFastBytesPerS = 400e6;
constexpr int64_t kMaxSpanChunks = 16;  // 64 MiB by one request

// Owns the works; hands spans to workers, and works, in the order they were begun, to the checker.
// All threads.
class Queue {
 public:
  Queue(std::vector<TransferItem> items, Observer& observer, int num_connections)
      : observer_(observer), num_connections_(num_connections) {
    for (size_t i = 0; i < items.size(); ++i) pending_.push_back({i, std::move(items[i])});
  }

  struct Job {
    FileWork* work = nullptr;  // null: nothing is left to fetch
    Span span;
  };

  // `connection` counts from 0.
  Job next_job(size_t connection, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (stop.stop_requested()) return {};
      for (const auto& work : works_) {
        if (work->part.num_chunks() > 1 && !may_join(connection)) continue;
        if (const auto span = work->take(span_chunks(*work))) return {work.get(), *span};
      }
      if (begin_one()) continue;
      if (pending_.empty() && num_done_ == works_.size()) return {};
      changed_.wait_for(lock, kLookAgain);
    }
  }

  // The next file to check; null when all are done or it was stopped.
  FileWork* next_to_check(size_t index, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return index < works_.size() || pending_.empty(); });
    return index < works_.size() && !stop.stop_requested() ? works_[index].get() : nullptr;
  }

  void wait_until(std::stop_token stop, const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    while (!condition() && !stop.stop_requested()) changed_.wait_for(lock, kLookAgain);
  }

  void done(FileWork& work) {
    {
      const std::lock_guard lock(mutex_);
      ++num_done_;
    }
    observer_.on_done(work.index, false);
    changed_.notify_all();
  }

  // Something changed in a file, which has a lock of its own. This one's lock is taken too, so that
  // nobody who has just looked sleeps through it.
  void wake() {
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

  void chunk_came() {
    ++num_chunks_came_;
    wake();
  }

 private:
  struct Pending {
    size_t index;
    TransferItem item;
    bool told = false;  // that others have it
  };

  bool may_join(size_t connection) const {
    if (connection < kFirstConnections) return true;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
    const double bytes = static_cast<double>(num_chunks_came_) * static_cast<double>(kChunkBytes);
    return passed >= kFirstLook && bytes < kFastBytesPerS * passed.count();
  }

  // Spans large enough to be worth a request, small enough that all connections end together.
  int64_t span_chunks(const FileWork& work) const {
    return std::clamp<int64_t>(work.part.num_chunks() / (4 * num_connections_), 1, kMaxSpanChunks);
  }

  // Begins the first file that no other process has. False when there is none.
  bool begin_one() {
    for (size_t i = 0; i < pending_.size(); ++i) {
      Pending& next = pending_[i];
      std::optional<FileLock> lock = FileLock::try_lock(next.item.lock);
      if (!lock) {
        if (!std::exchange(next.told, true)) observer_.on_wait_for_others(next.index);
        continue;
      }
      Pending taken = std::move(next);
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
      if (exists(taken.item.target)) {  // another process has brought it meanwhile
        observer_.on_done(taken.index, true);
      } else {
        works_.push_back(
            std::make_unique<FileWork>(taken.index, std::move(taken.item), std::move(*lock)));
        observer_.on_begin(taken.index, works_.back()->part.num_complete_bytes());
      }
      changed_.notify_all();
      return true;
    }
    return false;
  }

  Observer& observer_;
  const int num_connections_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Pending> pending_;
  std::vector<std::unique_ptr<FileWork>> works_;  // grows only
  size_t num_done_ = 0;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<int64_t> num_chunks_came_ = 0;
};

// Reads back what has come, in order, and gives a file its name when its hash is right.
class Checker {
 public:
  Checker(Queue& queue, Observer& observer, std::stop_token stop)
      : queue_(queue),
        observer_(observer),
        stop_(stop),
        buffer_(static_cast<size_t>(kChunkBytes)) {}

  void run() {
    for (size_t i = 0; FileWork* work = queue_.next_to_check(i, stop_); ++i) check(*work);
  }

 private:
  void check(FileWork& work) {
    ContentHash hash(work.item.file);
    std::string got;
    bool all_sums = false;
    for (;;) {
      const FileWork::Look before = work.look();
      hash.restart();
      if (!hash_all(work, hash, all_sums)) return;
      got = hash.finish();
      const bool right = got == hash.expected();
      if (right && work.close(before.num_replaced)) break;
      if (right) continue;  // a chunk was replaced while it was hashed
      // First what can be told without the network: whether the disk has what came.
      if (!std::exchange(all_sums, true)) continue;
      if (!look_again(work, hash, got, before)) return;
    }
    work.part.publish(work.item.target);
    work.unlock();
    queue_.done(work);
  }

  // Waits for each chunk. False when it was stopped.
  bool hash_all(FileWork& work, ContentHash& hash, bool all_sums) {
    for (int64_t chunk = 0; chunk < work.part.num_chunks();) {
      queue_.wait_until(stop_, [&] { return work.part.is_complete(chunk); });
      if (stop_.stop_requested()) return false;
      if (hash_chunk(work, chunk, hash, all_sums)) ++chunk;
    }
    return true;
  }

  // False when the disk has not what came: the chunk is fetched again. Looked at for what an
  // earlier run left, which a power cut may have taken, and for all once the hash was wrong. In a
  // second look, when chunks are replaced meanwhile, only the hash of the whole tells.
  bool hash_chunk(FileWork& work, int64_t chunk, ContentHash& hash, bool all_sums) {
    if (work.is_second_look() || (work.part.is_new(chunk) && !all_sums)) {
      hash.add(work.part.view(chunk).bytes());
      work.part.begin_sync(chunk);
      return true;
    }
    const auto bytes = std::span(buffer_).first(static_cast<size_t>(work.part.bytes_of(chunk)));
    work.part.read(bytes, work.part.begin_of(chunk));
    ChunkSum sum;
    sum.add(bytes);
    if (sum.value() == work.part.sum_of(chunk)) {
      hash.add(bytes);
      return true;
    }
    observer_.on_note(fmt::format("{}: bytes {} to {} are not on the disk as they came; again",
                                  work.item.file.path, work.part.begin_of(chunk),
                                  work.part.begin_of(chunk) + work.part.bytes_of(chunk) - 1));
    observer_.on_bytes(work.index, -work.part.bytes_of(chunk));
    work.part.forget(chunk);
    queue_.wake();
    return false;
  }

  // The hash was wrong. True when it is worth hashing again: something was replaced.
  bool look_again(FileWork& work,
                  const ContentHash& hash,
                  const std::string& got,
                  const FileWork::Look& before) {
    if (work.begin_second_look()) {
      observer_.on_note(
          fmt::format("{}: its {} is {}, expected {}; each part is fetched again and "
                      "compared",
                      work.item.file.path, hash.name(), got, hash.expected()));
      queue_.wake();
    } else if (before.all && work.look().num_replaced == before.num_replaced) {
      work.part.remove();
      throw Error(
          Code::kUnavailable,
          fmt::format("{}: the server has other bytes than its list says, twice: expected {} "
                      "{}, got {}; the file was removed. Try again later or tell the owner "
                      "of the model",
                      work.item.file.path, hash.name(), hash.expected(), got));
    }
    // The first part that differs may be the only one: that is found out at once. Later ones wait
    // until all were compared.
    const bool first_try = before.num_replaced == 0;
    queue_.wait_until(stop_, [&] {
      const FileWork::Look now = work.look();
      return now.all || (first_try && now.num_replaced > 0);
    });
    return !stop_.stop_requested();
  }

  Queue& queue_;
  Observer& observer_;
  const std::stop_token stop_;
  std::vector<std::byte> buffer_;
};

}  // namespace

void transfer(const Source& source,
              std::vector<TransferItem> items,
              const TransferSettings& settings,
              Observer& observer,
              std::stop_token stop) {
  raise_descriptor_limit();
  Queue queue(std::move(items), observer, settings.num_connections);
  std::stop_source inner;
  const std::stop_callback on_stop(stop, [&] {
    inner.request_stop();
    queue.wake();
  });
  std::mutex mutex;
  std::exception_ptr first;  // guarded by mutex
  const auto guarded = [&](auto&& body) {
    try {
      body();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
      inner.request_stop();
      queue.wake();
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.emplace_back(
        [&] { guarded([&] { Checker(queue, observer, inner.get_token()).run(); }); });
    for (int i = 0; i < settings.num_connections; ++i) {
      threads.emplace_back([&, i] {
        guarded([&] {
          HttpClient client(settings.http);
          const FetchContext context{
              .source = source, .client = client, .observer = observer, .on_chunk = [&] {
                queue.wake();
              }};
          for (;;) {
            const Queue::Job job = queue.next_job(static_cast<size_t>(i), inner.get_token());
            if (job.work == nullptr) return;
            fetch_span(*job.work, job.span, context, inner.get_token());
          }
        });
      });
    }
  }
  if (stop.stop_requested()) throw Error(Code::kCancelled, "the download was stopped");
  if (first) std::rethrow_exception(first);
}

}  // namespace tgi::download
