// A matrix with its optional bias, and what adapters add to it: the only place that calls
// Device::matmul and Device::add_low_rank, or what they are for experts and heads.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/backend.h"

namespace tgi {

// A vector in device memory, f32; empty when the checkpoint has none.
struct DeviceVector {
  Buffer buffer;
  Tensor view;  // (1, length), or so many rows as its use says

  const Tensor* get() const { return buffer ? &view : nullptr; }
};

// Indices in device memory; empty when the checkpoint has none.
struct DeviceIndices {
  Buffer buffer;  // (rows, as many as its use says), int32
  int32_t rows = 0;

  const int32_t* get() const { return static_cast<const int32_t*>(buffer.data()); }
};

struct Linear {
  std::shared_ptr<Matrix> weight;  // of several layers, where the checkpoint has one for them
  DeviceVector bias;
  int32_t site = -1;  // where adapters find it (site_of); -1: there are none

  void apply(Device& device, const Tensor& x, const Tensor& out) const {
    apply_to(device, x, out, false);
  }
  // x: a row for each that gather_output_rows gives.
  void apply_to_output_rows(Device& device, const Tensor& x, const Tensor& out) const {
    apply_to(device, x, out, true);
  }

 private:
  void apply_to(Device& device, const Tensor& x, const Tensor& out, bool of_output_rows) const {
    device.matmul({.x = x, .w = weight.get(), .bias = bias.get(), .out = out});
    if (site < 0) return;
    device.add_low_rank({.site = site, .x = x, .out = out, .of_output_rows = of_output_rows});
  }
};

// One for each head of a layer that this rank has, and as an op takes them; empty where there are
// none.
struct HeadMatrices {
  std::vector<std::unique_ptr<Matrix>> each;
  std::vector<const Matrix*> views;
  int32_t first_site = -1;  // of the first head; -1: there are no adapters

  // Steps from one head's columns to the next one's.
  void apply(
      Device& device, int64_t x_step, const Tensor& x, int64_t out_step, const Tensor& out) const {
    device.head_matmul(
        {.heads = views, .x_step = x_step, .out_step = out_step, .x = x, .out = out});
    if (first_site < 0) return;
    device.add_low_rank_to_heads({.first_site = first_site,
                                  .num_heads = static_cast<int32_t>(views.size()),
                                  .x_step = x_step,
                                  .out_step = out_step,
                                  .x_cols = views.front()->cols,
                                  .out_cols = views.front()->rows,
                                  .x = x,
                                  .out = out});
  }
};

// One for each expert of a layer, and as an op takes them; empty where there are none.
struct ExpertLinears {
  std::vector<Linear> each;
  std::vector<ExpertWeight> views;
  int32_t first_site = -1;  // of the first expert (expert_site); -1: there are no adapters

  void apply(Device& device, bool x_is_routed, const Tensor& x, const Tensor& out) const {
    device.expert_matmul({.experts = views, .x_is_routed = x_is_routed, .x = x, .out = out});
    if (first_site < 0) return;
    device.add_low_rank_to_experts(
        {.first_site = first_site, .x_is_routed = x_is_routed, .x = x, .out = out});
  }
};

}  // namespace tgi
