// See adapter_loader.h.
#include "engine/runtime/adapter_loader.h"

#include <exception>
#include <utility>

namespace tgi {

AdapterLoader::AdapterLoader(WorkerGroup& workers, OnMade on_made)
    : workers_(workers),
      on_made_(std::move(on_made)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

AdapterLoader::~AdapterLoader() {
  thread_.request_stop();
}

void AdapterLoader::load(std::shared_ptr<const HostAdapter> adapter) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(std::move(adapter));
  }
  wake_.notify_one();
}

void AdapterLoader::run(const std::stop_token& stop) {
  while (true) {
    std::shared_ptr<const HostAdapter> host;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return !wanted_.empty(); })) return;
      host = std::move(wanted_.front());
      wanted_.pop_front();
    }
    MadeAdapter made;
    try {
      made.adapter =
          made_of_intact(*host->files, [&] { return workers_.make_adapter(host->parts); });
    } catch (const std::exception& error) {
      made.error =
          std::make_unique<Error>(Code::kAdapter, "adapter " + host->name + ": " + error.what());
    }
    on_made_(*host, std::move(made));
  }
}

}  // namespace tgi
