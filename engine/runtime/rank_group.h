// All ranks of a model as one: every rank runs every batch, on its own thread, and draws the next
// tokens by itself from the same logits. Draws depend on seed and position alone, so no token has
// to be sent around; that they agree is checked in every step.
//
// What this costs: embedding and head are held whole by every rank and their logits are computed
// by every rank (Split::kNone), where they could be cut by vocabulary and gathered.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/runtime/rank_threads.h"
#include "engine/runtime/worker.h"

namespace tgi {

class RankGroup final : public WorkerGroup {
 public:
  // One worker for each rank, in their order, used and dropped on its thread.
  RankGroup(std::unique_ptr<RankThreads> threads,
            std::vector<std::unique_ptr<WorkerGroup>> workers);
  ~RankGroup() override;

  int max_steps_in_flight() const override { return max_steps_in_flight_; }

  // Returns when every rank has handed the batch to its device: then it may be reused. What a
  // device does after that (CUDA runs the step, the CPU has done so) is waited for in wait. A rank
  // that throws ends the step of all, and the group.
  Ticket submit(const Batch& batch) override;
  void sample(Ticket ticket, const TokenMasks& masks) override;
  const StepResult& wait(Ticket ticket) override;
  bool prepare_step() override;
  int64_t adapter_bytes(const AdapterParts& parts) const override;
  std::unique_ptr<Adapter> make_adapter(const AdapterParts& parts) override;
  void set_adapter(int32_t place, const Adapter* adapter) override;
  std::vector<int32_t> prepared_rows() const override { return workers_.front()->prepared_rows(); }

 private:
  template <typename Task>
  void run(Task&& task);
  Ticket& ticket_of(Ticket ticket, int rank);
  std::string find_disagreement() const;  // of the results; "" where there is none

  const std::unique_ptr<RankThreads> threads_;
  std::vector<std::unique_ptr<WorkerGroup>> workers_;
  const int max_steps_in_flight_;

  Ticket last_submitted_ = 0;
  std::vector<Ticket> tickets_;             // (max_steps_in_flight, num_ranks): of the devices
  std::vector<const StepResult*> results_;  // (num_ranks) of the step waited for last
  std::unique_ptr<Error> failure_;
};

}  // namespace tgi
