// The tensors of heads that draft: which there must be, and their way to a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/device/backend.h"
#include "engine/model/linear.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

struct HeadTensor {
  std::string name;
  std::vector<int64_t> shape;  // (rows, cols) of a matrix, (length) of a vector
};

// Where config.json says a size that must be the model's. Throws kInvalidArgument with both.
void check_drafted_size(const JsonReader& config,
                        const std::string& file,
                        std::string_view field,
                        int64_t of_model);

// Throws kInvalidArgument naming all that are missing, of another shape or not wanted; kUnsupported
// for a type of elements that can't be computed with. `owner` is what they are of, for messages.
void check_head_tensors(const Checkpoint& checkpoint,
                        const std::vector<HeadTensor>& wanted,
                        const std::string& owner);

// Bytes on such a device; matrices are held in `dtype`, vectors in f32.
int64_t head_tensor_bytes(const Device& device,
                          const std::vector<HeadTensor>& tensors,
                          DType dtype);

// REQUIRES: they were checked.
std::unique_ptr<Matrix> load_head_matrix(const Checkpoint& checkpoint,
                                         const std::string& name,
                                         Device& device,
                                         DType dtype);
DeviceVector load_head_vector(const Checkpoint& checkpoint,
                              const std::string& name,
                              Device& device);

}  // namespace tgi
