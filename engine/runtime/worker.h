// Who executes a batch: a rank (device, weights, forward pass), and the group of ranks as the
// engine sees it. Belongs to the engine thread; a group of several ranks hands the batch to their
// threads.
#pragma once

#include <memory>

#include "engine/device/backend.h"
#include "engine/device/communicator.h"
#include "engine/model/model_weights.h"
#include "engine/model/transformer.h"

namespace tgi {

// Submit and wait are apart so that the next step can be built while one runs.
class WorkerGroup {
 public:
  virtual ~WorkerGroup() = default;

  // How many steps may be submitted before the first is waited for.
  virtual int max_steps_in_flight() const = 0;

  // Throws kDeviceLost: then nothing more can be run.
  virtual Ticket submit(const Batch& batch) = 0;
  virtual const StepResult& wait(Ticket ticket) = 0;  // valid until the next call
};

// One rank on its own.
class Worker final : public WorkerGroup {
 public:
  // Takes over device and weights; makes the activations. The device's KV cache and slot table are
  // there already.
  Worker(const ModelConfig& config,
         std::unique_ptr<Device> device,
         ModelWeights weights,
         int32_t max_batch_tokens)
      : device_(std::move(device)),
        weights_(std::move(weights)),
        transformer_(config, weights_, *device_, communicator_, max_batch_tokens) {}

  int max_steps_in_flight() const override { return device_->info().num_steps_in_flight; }
  Ticket submit(const Batch& batch) override { return device_->submit(batch, transformer_); }
  const StepResult& wait(Ticket ticket) override { return device_->wait(ticket); }

  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_;
  ModelWeights weights_;
  NullCommunicator communicator_;
  Transformer transformer_;
};

}  // namespace tgi
