// Tells the store which models are brought to this machine, while that goes on and afterwards.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "base/store/stored_job.h"
#include "cmd/download/fetch_model.h"

namespace tgi::download {

// The model as the user asked for it, used just now. Folders of the user's own and parts of models
// (--include, --exclude) are passed over. Returns what is wrong with the store, or "": a model is
// there and can be used whether the store knows it or not.
std::string record_install(const FetchRequest& request, const FetchedModel& model);

// A job in the store for a fetch that takes longer than a second, or that the network
// ends, for `tgi doctor`. Belongs to one thread.
class FetchJob {
 public:
  explicit FetchJob(std::string model) : model_(std::move(model)) {}

  void tick(int64_t done_bytes, int64_t total_bytes);
  void end(const std::exception_ptr& error);

 private:
  const std::string model_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::unique_ptr<StoredJob> job_;
};

}  // namespace tgi::download
