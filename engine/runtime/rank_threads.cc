#include "engine/runtime/rank_threads.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "base/error.h"
#include "base/spin.h"

namespace tgi {
namespace {

Error as_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known;
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "no memory left"};
  } catch (const std::exception& other) {
    return {Code::kInternal, other.what()};
  } catch (...) {
    return {Code::kInternal, "unknown exception"};
  }
}

}  // namespace

RankThreads::RankThreads(int num_ranks) {
  TGI_CHECK(num_ranks >= 1);
  for (int rank = 1; rank < num_ranks; ++rank) {
    threads_.emplace_back([this, rank] { work(rank); });
  }
}

RankThreads::~RankThreads() {
  stop_.store(true);
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RankThreads::run_all(Function function, void* context) {
  function_ = function;
  context_ = context;
  failed_.store(false);
  num_ended_.store(0, std::memory_order_relaxed);
  round_.fetch_add(1);
  round_.notify_all();
  run_one(0);
  const auto num_others = static_cast<uint32_t>(threads_.size());
  const auto all_ended = [&] { return num_ended_.load(std::memory_order_acquire) == num_others; };
  if (!spin_until(all_ended)) {
    for (uint32_t ended = num_ended_.load(std::memory_order_acquire); ended != num_others;
         ended = num_ended_.load(std::memory_order_acquire)) {
      num_ended_.wait(ended, std::memory_order_acquire);
    }
  }
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

void RankThreads::run_one(int rank) {
  try {
    function_(context_, rank);
  } catch (...) {
    take_failure(rank, std::current_exception());
  }
}

void RankThreads::take_failure(int rank, const std::exception_ptr& error) {
  const Error known = as_error(error);
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load()) return;
    const bool is_alone = threads_.empty();
    error_ = std::make_exception_ptr(is_alone ? known : known.in(fmt::format("rank {}", rank)));
    failed_.store(true);
  }
  if (on_failure_) on_failure_(rank, known.what());
}

void RankThreads::work(int rank) {
  uint32_t seen = 0;
  while (true) {
    if (!spin_until([&] { return round_.load(std::memory_order_acquire) != seen; })) {
      round_.wait(seen, std::memory_order_acquire);
    }
    if (round_.load(std::memory_order_acquire) == seen) continue;
    ++seen;  // a run ends only when every rank has: none is missed
    if (stop_.load()) return;
    run_one(rank);
    num_ended_.fetch_add(1, std::memory_order_acq_rel);
    num_ended_.notify_one();
  }
}

}  // namespace tgi
