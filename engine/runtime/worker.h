// Who executes a batch, as the engine sees it, and one rank of that: device, weights, forward pass.
// The group of all ranks is RankGroup.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/communicator.h"
#include "engine/model/kv_plan.h"
#include "engine/model/model_weights.h"
#include "engine/model/transformer.h"

namespace tgi {

// What an adapter adds, of each rank.
using AdapterParts = std::vector<std::vector<LowRankPart>>;

// Submit and wait are apart so that the next step can be built while one runs; sample is apart from
// both because what may be drawn can depend on what the step before has drawn.
class WorkerGroup {
 public:
  virtual ~WorkerGroup() = default;

  // How many steps may be submitted before the first is waited for.
  virtual int max_steps_in_flight() const = 0;

  // As Device's. Throw kDeviceLost: then nothing more can be run.
  virtual Ticket submit(const Batch& batch) = 0;
  virtual void sample(Ticket ticket, const TokenMasks& masks) = 0;
  virtual const StepResult& wait(Ticket ticket) = 0;  // valid until the next call

  // Gets one more size of step ready, between steps; false when none is left. Throws kDeviceLost.
  // (optional)
  virtual bool prepare_step() { return false; }
  virtual std::vector<int32_t> prepared_rows() const { return {}; }

  // --- adapters (optional): as Device's. The first two from any thread, beside steps.
  // Of the rank that needs most.
  virtual int64_t adapter_bytes(const AdapterParts& /*parts*/) const { return 0; }
  virtual std::unique_ptr<Adapter> make_adapter(const AdapterParts& /*parts*/) { return nullptr; }
  virtual void set_adapter(int32_t /*place*/, const Adapter* /*adapter*/) {}

  // Another rank has failed: a step that waits for it ends with kDeviceLost. From any thread.
  // (optional: does nothing by default, where there are no others)
  virtual void abort(int /*failed_rank*/, const std::string& /*reason*/) {}
};

// A whole step whose rows are not masked.
inline const StepResult& run_step(WorkerGroup& workers, const Batch& batch) {
  const Ticket ticket = workers.submit(batch);
  workers.sample(ticket, {});
  return workers.wait(ticket);
}

// One rank. Used by one thread at a time: its rank's.
class Worker final : public WorkerGroup {
 public:
  // Takes over device and weights; makes the activations. The device's KV cache and slot table are
  // there already.
  Worker(const ModelConfig& config,
         std::unique_ptr<Device> device,
         ModelWeights weights,
         std::unique_ptr<Communicator> communicator,
         const KvPlan& kv_plan,
         int32_t max_batch_tokens)
      : device_(std::move(device)),
        weights_(std::move(weights)),
        communicator_(std::move(communicator)),
        transformer_(config, weights_, *device_, *communicator_, kv_plan, max_batch_tokens) {}

  // Before the first step; as Transformer's.
  void report_hidden() { transformer_.report_hidden(); }
  void report_rows(ReportedRows rows) { transformer_.report_rows(std::move(rows)); }
  // The rows of the vocabulary; lives as long as the worker.
  const Matrix& lm_head() const { return weights_.lm_head(); }
  const Matrix& token_embedding() const { return *weights_.token_embedding; }
  const Tensor* lm_head_bias() const { return weights_.lm_head_bias.get(); }  // null: none

  int max_steps_in_flight() const override { return device_->info().num_steps_in_flight; }
  Ticket submit(const Batch& batch) override { return device_->submit(batch, transformer_); }
  void sample(Ticket ticket, const TokenMasks& masks) override { device_->sample(ticket, masks); }
  const StepResult& wait(Ticket ticket) override { return device_->wait(ticket); }
  bool prepare_step() override { return device_->prepare_step(transformer_); }
  std::vector<int32_t> prepared_rows() const override { return device_->prepared_rows(); }
  int64_t adapter_bytes(const AdapterParts& parts) const override {
    return device_->adapter_bytes(of_this_rank(parts), weights_.dtype);
  }
  std::unique_ptr<Adapter> make_adapter(const AdapterParts& parts) override {
    return device_->make_adapter(of_this_rank(parts), weights_.dtype);
  }
  void set_adapter(int32_t place, const Adapter* adapter) override {
    device_->set_adapter(place, adapter);
  }
  void abort(int failed_rank, const std::string& reason) override {
    communicator_->abort(failed_rank, reason);
  }

 private:
  const std::vector<LowRankPart>& of_this_rank(const AdapterParts& parts) const {
    return parts[static_cast<size_t>(communicator_->rank())];
  }

  std::unique_ptr<Device> device_;
  ModelWeights weights_;
  std::unique_ptr<Communicator> communicator_;
  Transformer transformer_;
};

}  // namespace tgi
