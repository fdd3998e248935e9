// The numbers of a tensor of the plan as blocks of its type, a piece at a time.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "engine/quantize/gguf/file_plan.h"

namespace tgi {

// How much an error in each column counts, by the matrix: what was seen of its inputs.
using ColumnImportance = std::map<const TensorEntry*, std::vector<float>>;

struct TensorEncoder {
  const SourceModel& source;
  int num_threads = 1;

  // Calls `write` with the blocks of each source of the tensor in turn. Throws what reading the
  // source throws; kInvalidArgument naming the tensor for a number that is not finite.
  void encode(const GgufTensorPlan& tensor,
              const GgmlType& type,
              const ColumnImportance& importance,
              const std::function<void(std::span<const std::byte>)>& write) const;
};

}  // namespace tgi
