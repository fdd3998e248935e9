// Who uses a loaded model: it is taken away to make room only when nobody does. The count lives
// longer than the model, and a use does not keep the model alive, so that the engine's own thread
// may hold one. Safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace tgi::daemon {

class ModelUse;

class UseCount : public std::enable_shared_from_this<UseCount> {
 public:
  using Clock = std::chrono::steady_clock;

  // `on_unused` is called when the last use ends, by whoever ends it; it must be quick and may not
  // throw. (optional)
  explicit UseCount(std::function<void()> on_unused) : on_unused_(std::move(on_unused)) {}

  [[nodiscard]] ModelUse begin();

  int64_t num() const {
    const std::lock_guard lock(mutex_);
    return num_;
  }
  // When a use began or ended last; before the first when the count was made.
  Clock::time_point last_used() const {
    const std::lock_guard lock(mutex_);
    return last_used_;
  }

 private:
  friend class ModelUse;
  void add(int64_t count);

  const std::function<void()> on_unused_;
  mutable std::mutex mutex_;
  int64_t num_ = 0;  // guarded by mutex_, as all below
  Clock::time_point last_used_ = Clock::now();
};

// One use, until it is dropped.
class ModelUse {
 public:
  ModelUse() = default;
  ModelUse(ModelUse&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  ModelUse& operator=(ModelUse&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ModelUse(const ModelUse&) = delete;
  ModelUse& operator=(const ModelUse&) = delete;
  ~ModelUse() {
    if (count_ != nullptr) count_->add(-1);
  }

 private:
  friend class UseCount;
  explicit ModelUse(std::shared_ptr<UseCount> count) : count_(std::move(count)) { count_->add(1); }

  std::shared_ptr<UseCount> count_;
};

inline ModelUse UseCount::begin() {
  return ModelUse(shared_from_this());
}

inline void UseCount::add(int64_t count) {
  bool is_unused = false;
  {
    const std::lock_guard lock(mutex_);
    num_ += count;
    last_used_ = Clock::now();
    is_unused = num_ == 0;
  }
  if (is_unused && on_unused_) on_unused_();
}

}  // namespace tgi::daemon
