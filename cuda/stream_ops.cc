// CudaDevice: the ops of engine/device/stream_ops.h.
#include "cuda/cuda_device.h"
#include "cuda/kernels/streams.h"

namespace tgi::cuda {

void CudaDevice::predict_streams(const PredictStreamsArgs& args) {
  launch_predict_streams(stream_.get(), args);
}

void CudaDevice::correct_streams(const CorrectStreamsArgs& args) {
  launch_correct_streams(stream_.get(), args);
}

void CudaDevice::collapse_streams(const CollapseStreamsArgs& args) {
  launch_collapse_streams(stream_.get(), args);
}

void CudaDevice::expand_streams(const ExpandStreamsArgs& args) {
  launch_expand_streams(stream_.get(), args);
}

void CudaDevice::match_rms(const MatchRmsArgs& args) {
  launch_match_rms(stream_.get(), args);
}

void CudaDevice::statistical_top_k(const StatisticalTopKArgs& args) {
  launch_statistical_top_k(stream_.get(), args);
}

}  // namespace tgi::cuda
