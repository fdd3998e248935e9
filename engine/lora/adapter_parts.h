// An adapter as a device takes it: what one rank of tensor parallelism adds to its linears.
//
// B's rows are cut, and put in order, as the rows of the weight are, A's columns as its columns:
// where a weight is cut by columns, each rank computes A of its part of the input, and the sum over
// ranks that the linear ends with makes a whole of it. So are gains, which are the same for all
// parts of a sum; offsets are added by one rank where the linear is cut by columns.
#pragma once

#include <vector>

#include "engine/lora/adapter_files.h"
#include "engine/model/model_weights.h"
#include "engine/tensor/low_rank.h"

namespace tgi {

// Views of the adapter's bytes: it must outlive them. Of `options`, rank and world_size count.
// Throws kInvalidArgument when the model can't be dealt out to so many ranks. REQUIRES: the adapter
// was opened for this model.
std::vector<LowRankPart> adapter_parts(const AdapterFiles& adapter,
                                       const LoadedConfig& model,
                                       const LoadWeightsOptions& options);

}  // namespace tgi
