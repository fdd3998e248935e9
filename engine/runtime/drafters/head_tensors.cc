#include "engine/runtime/drafters/head_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/first_names.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

constexpr size_t kMostNamed = 8;  // tensors in a message

const StoredTensor& stored(const Checkpoint& checkpoint, const std::string& name) {
  const StoredTensor* const tensor = checkpoint.find(name);
  TGI_CHECK(tensor != nullptr && tensor->dtype);
  return *tensor;
}

void add_complaint(std::vector<std::string>& all,
                   const std::string& what,
                   const std::vector<std::string>& names) {
  if (names.empty()) return;
  all.push_back(fmt::format("{}: {}", what, first_names(names, kMostNamed)));
}

}  // namespace

void check_drafted_size(const JsonReader& config,
                        const std::string& file,
                        std::string_view field,
                        int64_t of_model) {
  const std::optional<int64_t> size = config.optional_integer(field);
  if (!size || *size == of_model) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: {} is {}, but the model that it is to draft for has {}: it was made "
                          "for another model",
                          file, field, *size, of_model));
}

void check_head_tensors(const Checkpoint& checkpoint,
                        const std::vector<HeadTensor>& wanted,
                        const std::string& owner) {
  std::vector<std::string> missing;
  std::vector<std::string> misshapen;
  std::vector<std::string> unused;
  for (const HeadTensor& each : wanted) {
    const StoredTensor* const tensor = checkpoint.find(each.name);
    if (tensor == nullptr) {
      missing.push_back(each.name);
    } else if (tensor->shape != each.shape) {
      misshapen.push_back(fmt::format("{}: expected {}, got {}", each.name, shape_text(each.shape),
                                      shape_text(tensor->shape)));
    } else if (!tensor->dtype) {
      throw Error(Code::kUnsupported, fmt::format("{}: {}: elements of the type {} are not "
                                                  "supported; use f32, f16 or bf16",
                                                  owner, each.name, tensor->dtype_name));
    }
  }
  for (const std::string_view name : checkpoint.names()) {
    const auto is_it = [&](const HeadTensor& each) { return each.name == name; };
    if (std::ranges::none_of(wanted, is_it)) unused.emplace_back(name);
  }
  std::vector<std::string> complaints;
  add_complaint(complaints, "missing tensors", missing);
  add_complaint(complaints, "tensors of another shape (was it made for another model?)", misshapen);
  add_complaint(complaints, "tensors that nothing reads", unused);
  if (complaints.empty()) return;
  throw Error(Code::kInvalidArgument, fmt::format("{}: {}", owner, fmt::join(complaints, "; ")));
}

int64_t head_tensor_bytes(const Device& device,
                          const std::vector<HeadTensor>& tensors,
                          DType dtype) {
  int64_t out = 0;
  for (const HeadTensor& tensor : tensors) {
    out += tensor.shape.size() == 2
               ? device.matrix_bytes("dense", dtype, tensor.shape[0], tensor.shape[1])
               : tensor.shape[0] * int64_t{sizeof(float)};
  }
  return out;
}

std::unique_ptr<Matrix> load_head_matrix(const Checkpoint& checkpoint,
                                         const std::string& name,
                                         Device& device,
                                         DType dtype) {
  const StoredTensor& tensor = stored(checkpoint, name);
  const std::span<const std::byte> bytes = checkpoint.bytes(tensor);
  const HostWeight weight{.name = name,
                          .format = "dense",
                          .rows = tensor.shape[0],
                          .cols = tensor.shape[1],
                          .parts = {{.role = "weight",
                                     .data = bytes.data(),
                                     .dtype = *tensor.dtype,
                                     .rows = tensor.shape[0],
                                     .cols = tensor.shape[1],
                                     .row_stride = tensor.shape[1]}}};
  auto out = device.make_matrix(std::span(&weight, 1), dtype);
  checkpoint.release(tensor);
  return out;
}

DeviceVector load_head_vector(const Checkpoint& checkpoint,
                              const std::string& name,
                              Device& device) {
  const StoredTensor& tensor = stored(checkpoint, name);
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  read_elements(checkpoint.bytes(tensor).data(), *tensor.dtype, values);
  checkpoint.release(tensor);
  DeviceVector out;
  const size_t size = values.size() * sizeof(float);
  out.buffer = device.allocate(size, name);
  device.copy_to_device(out.buffer.data(), values.data(), size);
  const auto length = static_cast<int64_t>(values.size());
  out.view = {.data = out.buffer.data(), .rows = 1, .cols = length, .stride = length};
  return out;
}

}  // namespace tgi
