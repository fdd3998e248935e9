// Brings adapters to the device beside the steps, on a thread of its own, one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "engine/runtime/worker.h"
#include "engine/sched/host_adapter.h"

namespace tgi {

// One of the two is set.
struct MadeAdapter {
  std::unique_ptr<Adapter> adapter;
  std::unique_ptr<Error> error;
};

class AdapterLoader {
 public:
  // `made` is called on the loader's thread. Both outlive it.
  using OnMade = std::function<void(const HostAdapter& host, MadeAdapter made)>;
  AdapterLoader(WorkerGroup& workers, OnMade on_made);
  ~AdapterLoader();

  // From any thread.
  void load(std::shared_ptr<const HostAdapter> adapter);

 private:
  void run(const std::stop_token& stop);

  WorkerGroup& workers_;
  const OnMade on_made_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::shared_ptr<const HostAdapter>> wanted_;  // guarded by mutex_
  std::jthread thread_;                                    // last
};

}  // namespace tgi
