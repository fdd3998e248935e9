// Kernels of hidden states in several streams and of rows beside their statistics. Launches only.
// Definitions: engine/device/stream_ops.h. Sums are f32 in an order that depends on the width
// alone.
#pragma once

#include <cuda_runtime.h>

#include "engine/device/stream_ops.h"

namespace tgi::cuda {

void launch_predict_streams(cudaStream_t stream, const PredictStreamsArgs& args);
void launch_correct_streams(cudaStream_t stream, const CorrectStreamsArgs& args);
void launch_collapse_streams(cudaStream_t stream, const CollapseStreamsArgs& args);
void launch_expand_streams(cudaStream_t stream, const ExpandStreamsArgs& args);
void launch_match_rms(cudaStream_t stream, const MatchRmsArgs& args);
void launch_statistical_top_k(cudaStream_t stream, const StatisticalTopKArgs& args);

}  // namespace tgi::cuda
