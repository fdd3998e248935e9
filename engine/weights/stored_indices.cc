#include "engine/weights/stored_indices.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace tgi {
namespace {

constexpr std::string_view kLong = "I64";
constexpr std::string_view kShort = "I32";

template <typename T>
std::vector<int32_t> read_all(const Checkpoint& checkpoint,
                              const StoredTensor& tensor,
                              int64_t count) {
  std::vector<int32_t> out(static_cast<size_t>(tensor.num_elements()));
  const std::byte* from = checkpoint.bytes(tensor).data();
  for (size_t i = 0; i < out.size(); ++i, from += sizeof(T)) {
    T value{};
    std::memcpy(&value, from, sizeof value);
    if (value < 0 || value >= count) {
      const int64_t cols = tensor.shape.back();
      throw Error(Code::kInvalidArgument,
                  fmt::format("tensor {}: row {}, column {} is {}, expected 0 to {}; is the "
                              "checkpoint damaged?",
                              tensor.name, static_cast<int64_t>(i) / cols,
                              static_cast<int64_t>(i) % cols, value, count - 1));
    }
    out[i] = static_cast<int32_t>(value);
  }
  checkpoint.release(tensor);
  return out;
}

}  // namespace

void check_stored_indices(const StoredTensor& tensor,
                          std::span<const int64_t> expected,
                          WeightProblems& problems) {
  check_stored_shape(tensor, expected, problems);
  if (tensor.dtype_name != kLong && tensor.dtype_name != kShort) {
    problems.unsupported.push_back(fmt::format("{}: element type {}, expected {} or {}",
                                               tensor.name, tensor.dtype_name, kLong, kShort));
  }
}

std::vector<int32_t> read_indices(const Checkpoint& checkpoint,
                                  const StoredTensor& tensor,
                                  int64_t count) {
  return tensor.dtype_name == kLong ? read_all<int64_t>(checkpoint, tensor, count)
                                    : read_all<int32_t>(checkpoint, tensor, count);
}

}  // namespace tgi
