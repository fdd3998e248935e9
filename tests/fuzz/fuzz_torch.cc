// Any bytes as a torch checkpoint: read or refused with a typed error, and every tensor that comes
// out lies within the input. A first byte 0 takes the rest as a pickle alone, so that its
// operations are reached without a zip around them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "cmd/download/torch/pickle.h"
#include "cmd/download/torch/torch_file.h"

namespace {

void check_tensors(std::span<const std::byte> bytes) {
  for (const tgi::download::TorchTensor& tensor : tgi::download::read_torch(bytes, "fuzz")) {
    const std::span<const std::byte> storage = tensor.storage;
    if (storage.empty()) continue;
    if (storage.data() < bytes.data()) std::abort();
    if (storage.data() + storage.size() > bytes.data() + bytes.size()) std::abort();
    if (tensor.num_elements() == 0) continue;
    int64_t last = tensor.offset;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      last += (tensor.shape[i] - 1) * tensor.strides[i];
    }
    if ((last + 1) * tensor.element_bytes > static_cast<int64_t>(storage.size())) std::abort();
    if (tensor.num_bytes() > static_cast<int64_t>(storage.size())) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    if (size > 0 && data[0] == 0) {
      static constexpr std::string_view kAllowed[] = {"torch._utils._rebuild_tensor_v2"};
      (void)tgi::download::read_pickle(bytes.subspan(1), "fuzz", kAllowed);
    } else {
      check_tensors(bytes);
    }
  } catch (const tgi::Error& error) {
    const bool is_typed =
        error.code() == tgi::Code::kInvalidArgument || error.code() == tgi::Code::kUnsupported;
    if (!is_typed) std::abort();
  }
  return 0;
}
