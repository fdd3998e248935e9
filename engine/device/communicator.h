// Reductions between the ranks of a tensor-parallel group. Stream-ordered like the ops of a Device:
// called by every rank in the same order from within Forward::run. A rank that fails or does not
// come within the deadline ends the step of all with kDeviceLost, naming it.
#pragma once

#include <string>

#include "engine/tensor/tensor.h"

namespace tgi {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual void all_reduce_sum(const Tensor& tensor) = 0;  // in place; dense rows

  // `failed_rank` will not come any more: a reduction that waits for it, now or later, ends with
  // kDeviceLost saying so. Called once per communicator of the group, from any thread. (optional:
  // by default they wait for their deadline)
  virtual void abort(int /*failed_rank*/, const std::string& /*reason*/) {}
};

// One rank: nothing to do, so that no caller asks how many there are.
class NullCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  void all_reduce_sum(const Tensor& /*tensor*/) override {}
};

}  // namespace tgi
