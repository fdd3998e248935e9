// The devices under test. A plugin joins by a line in device_cases(); all tests then run on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/backend.h"

namespace tgi {

struct DeviceCase {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
  // Devices of one group promise each other the same bits, and that those of a row depend on
  // nothing else. Empty: it promises neither.
  std::string bit_group;
  // What it can hold; the tests leave the rest out. Empty: everything.
  std::function<bool(const MatrixStorage&)> holds_matrix{};
  std::function<bool(DType cache, int32_t head_dim)> holds_cache{};
  std::function<bool(DType cache)> holds_latents{};  // of latent attention

  bool takes_encoders = true;
  bool is_slow = false;  // the tests leave out what differs in nothing but size

  bool can_hold(const MatrixStorage& storage) const {
    return !holds_matrix || holds_matrix(storage);
  }
  bool can_cache_latents(DType cache) const { return !holds_latents || holds_latents(cache); }
  bool can_cache(DType cache, int32_t head_dim) const {
    return !holds_cache || holds_cache(cache, head_dim);
  }
};

// The CPU device with every instruction set of this machine, with the best on one, two and three
// threads (under sanitizers on one and three); the CUDA device on an emulated GPU, as it is and
// deterministic.
std::vector<DeviceCase> device_cases();

}  // namespace tgi
