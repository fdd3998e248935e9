// Any bytes as a GGUF file: its container, the config and the names of tensors that its
// architecture makes of them, and its tokenizer's files are made or refused with a typed error;
// every view lies within the input, every value is read by its own type or refused, every tensor
// decodes, and all metadata can be shown.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "engine/gguf/metadata_text.h"
#include "engine/gguf/model_reader.h"
#include "engine/gguf/tokenizer_files.h"
#include "engine/weights/ggml/gguf_file.h"

namespace {

bool is_of_input(const tgi::Error& error) {
  return error.code() == tgi::Code::kInvalidArgument || error.code() == tgi::Code::kUnsupported;
}

template <typename Try>
void refuse_or_pass(const Try& attempt) {
  try {
    attempt();
  } catch (const tgi::Error& error) {
    if (!is_of_input(error)) std::abort();
  }
}

void check_within(const void* begin, size_t size, std::span<const std::byte> input) {
  if (size == 0) return;
  const auto* const first = static_cast<const std::byte*>(begin);
  if (first < input.data() || first + size > input.data() + input.size()) std::abort();
}

void use(const tgi::GgufMetadata& metadata, std::span<const std::byte> input) {
  for (const std::string_view key : metadata.keys()) {
    check_within(key.data(), key.size(), input);
    const tgi::GgufValue& value = *metadata.find(key);
    check_within(value.bytes.data(), value.bytes.size(), input);
    refuse_or_pass([&] { (void)metadata.integer(key); });
    refuse_or_pass([&] { (void)metadata.number(key); });
    refuse_or_pass([&] { (void)metadata.boolean(key); });
    refuse_or_pass([&] { (void)metadata.text(key); });
    refuse_or_pass([&] { (void)metadata.integers(key); });
    refuse_or_pass([&] { (void)metadata.numbers(key); });
    refuse_or_pass([&] { (void)metadata.booleans(key); });
    refuse_or_pass([&] {
      for (const std::string_view text : metadata.texts(key)) {
        check_within(text.data(), text.size(), input);
      }
    });
  }
}

void use(const tgi::GgufTensor& tensor, std::span<const std::byte> input) {
  const tgi::GgmlType& type = *tensor.type;
  check_within(tensor.name.data(), tensor.name.size(), input);
  check_within(tensor.bytes.data(), tensor.bytes.size(), input);
  const auto num_blocks = static_cast<int64_t>(tensor.bytes.size()) / type.block_bytes;
  if (num_blocks * type.block_size != tensor.num_elements()) std::abort();
  if (type.decode == nullptr) return;
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  type.decode(tensor.bytes.data(), num_blocks, values.data());
}

void read_model(const tgi::GgufFile& file) {
  tgi::gguf::ModelReader model(file.metadata, file.tensors);
  for (const tgi::gguf::GgufArchitecture& one : tgi::gguf::gguf_architectures()) {
    if (one.name != model.architecture()) continue;
    one.read(model);
    model.check_all_read();
    (void)model.make_index();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  refuse_or_pass([&] {
    const tgi::GgufFile file = tgi::parse_gguf(bytes, "fuzz");
    use(file.metadata, bytes);
    for (const tgi::GgufTensor& tensor : file.tensors) use(tensor, bytes);
    refuse_or_pass([&] { read_model(file); });
    refuse_or_pass([&] { (void)tgi::gguf::tokenizer_files(file.metadata); });
    (void)tgi::gguf::metadata_text(file.metadata);
  });
  return 0;
}
