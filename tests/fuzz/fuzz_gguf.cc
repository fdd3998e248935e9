// Any bytes as a GGUF file: its container, the config and the names of tensors that its
// architecture makes of them, and its tokenizer's files are made or refused with a typed error, and
// every view lies within the input.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
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
    for (const tgi::GgufTensor& tensor : file.tensors) {
      if (tensor.bytes.empty()) continue;
      const std::byte* begin = tensor.bytes.data();
      if (begin < bytes.data() || begin + tensor.bytes.size() > bytes.data() + size) std::abort();
    }
    refuse_or_pass([&] { read_model(file); });
    refuse_or_pass([&] { (void)tgi::gguf::tokenizer_files(file.metadata); });
  });
  return 0;
}
