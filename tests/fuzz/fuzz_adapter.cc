// Any bytes as an adapter, its config up to the first 0 and then its tensors, or a GGUF file:
// refused with a typed error, or cut into parts whose numbers all lie within the input.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/lora/adapter_parts.h"
#include "engine/lora/gguf_adapter.h"
#include "tests/model/model_files.h"

namespace {

class Input final : public tgi::FileSource {
 public:
  Input(std::span<const std::byte> config,
        std::span<const std::byte> weights,
        std::string file = tgi::kAdapterWeightsFile)
      : config_(config), weights_(weights), file_(std::move(file)) {}

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    if (name == tgi::kAdapterConfigFile) return config_;
    if (name == file_) return weights_;
    return std::nullopt;
  }
  std::string describe(const std::string& name) const override { return "fuzz/" + name; }

 private:
  const std::span<const std::byte> config_;
  const std::span<const std::byte> weights_;
  const std::string file_;
};

void check_inside(const tgi::HostWeight& weight, std::span<const std::byte> bytes) {
  const tgi::WeightPart& part = weight.parts.at(0);
  if (part.rows < 0 || part.cols < 0 || part.row_stride < 0 || part.col_stride < 0) std::abort();
  if (part.rows == 0 || part.cols == 0) return;
  const int64_t last = (part.rows - 1) * part.row_stride + (part.cols - 1) * part.col_stride;
  const std::byte* end = part.data + (static_cast<size_t>(last) + 1) * tgi::dtype_size(part.dtype);
  if (part.data < bytes.data() || end > bytes.data() + bytes.size()) std::abort();
}

// Numbers that are decoded, or put in another order, are not those of the input: of all of them
// one is read, which has to be there.
void read_last(const tgi::HostWeight& weight) {
  const tgi::WeightPart& part = weight.parts.at(0);
  if (part.rows == 0 || part.cols == 0) return;
  const int64_t last = (part.rows - 1) * part.row_stride + (part.cols - 1) * part.col_stride;
  const size_t end = (static_cast<size_t>(last) + 1) * tgi::dtype_size(part.dtype);
  static volatile int num_zeros = 0;
  if (part.data[end - 1] == std::byte{0}) num_zeros = num_zeros + 1;
}

void try_gguf(std::span<const std::byte> bytes, const tgi::LoadedConfig& model) {
  try {
    const std::string config = tgi::gguf_adapter_config(tgi::parse_gguf(bytes, "fuzz"));
    const Input files(std::as_bytes(std::span(config)), bytes, tgi::kGgufAdapterFile);
    (void)tgi::read_adapter_facts(files);
    const tgi::AdapterFiles adapter = tgi::open_adapter(files, model);
    for (const auto& part : tgi::adapter_parts(adapter, model, {.rank = 1, .world_size = 2})) {
      read_last(part.a);
      for (const tgi::HostWeight& piece : part.b) read_last(piece);
    }
  } catch (const tgi::Error& error) {
    if (error.code() == tgi::Code::kInternal) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tgi::LoadedConfig model = tgi::load_config(tgi::small_llama());
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (tgi::is_gguf(bytes)) {
    try_gguf(bytes, model);
    return 0;
  }
  size_t end = 0;
  while (end < size && data[end] != 0) ++end;
  const Input files(bytes.first(end), bytes.subspan(end < size ? end + 1 : end));
  try {
    (void)tgi::read_adapter_facts(files);
  } catch (const tgi::Error& error) {
    if (error.code() == tgi::Code::kInternal) std::abort();
  }
  try {
    const tgi::AdapterFiles adapter = tgi::open_adapter(files, model);
    for (int rank = 0; rank < 2; ++rank) {
      for (const auto& part : tgi::adapter_parts(adapter, model, {.rank = rank, .world_size = 2})) {
        check_inside(part.a, bytes);
        for (const tgi::HostWeight& piece : part.b) check_inside(piece, bytes);
      }
    }
  } catch (const tgi::Error& error) {
    if (error.code() == tgi::Code::kInternal) std::abort();
  }
  return 0;
}
