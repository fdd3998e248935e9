// Golden files whose q, k and v, or gate and up of all experts, were joined as llama.cpp's
// converter does it when asked to: every tensor is the same as before.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "engine/gguf/gguf_source.h"
#include "engine/model/architecture.h"
#include "engine/model/weight_check.h"
#include "engine/weights/ggml/ggml_types.h"
#include "engine/weights/ggml/gguf_file.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"
#include "tests/weights/gguf_files.h"

namespace tgi::fused_test {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

GgufTestValue written(std::string_view key, const GgufValue& value) {
  GgufBytes out;
  out.number(static_cast<uint32_t>(value.type));
  if (value.type == GgufValueType::kArray) {
    out.number(static_cast<uint32_t>(value.element_type)).number<uint64_t>(value.count);
  }
  if (value.type == GgufValueType::kString) out.number<uint64_t>(value.bytes.size());
  return {std::string(key), out.raw(text_of(value.bytes)).text()};
}

GgufTestTensor written(const GgufTensor& tensor) {
  return {.name = std::string(tensor.name),
          .dims = {tensor.shape.rbegin(), tensor.shape.rend()},
          .type = tensor.type->id,
          .bytes = text_of(tensor.bytes)};
}

// Rows of all parts, of a stack those of each of its matrices.
GgufTestTensor joined(const std::string& name, const std::vector<GgufTestTensor>& parts) {
  GgufTestTensor out = parts.front();
  out.name = name;
  out.bytes.clear();
  const bool is_stack = out.dims.size() == 3;
  const uint64_t num_matrices = is_stack ? out.dims[2] : 1;
  uint64_t& num_rows = out.dims[out.dims.size() == 1 ? 0 : 1];
  num_rows = 0;
  for (const GgufTestTensor& part : parts) num_rows += part.dims[part.dims.size() == 1 ? 0 : 1];
  for (uint64_t i = 0; i < num_matrices; ++i) {
    for (const GgufTestTensor& part : parts) {
      const size_t size = part.bytes.size() / num_matrices;
      out.bytes += part.bytes.substr(i * size, size);
    }
  }
  return out;
}

// The same file with those parts joined where a layer has all of them; returns how many were.
int write_joined(const std::string& from,
                 const std::string& to,
                 const std::vector<std::string>& parts,
                 const std::string& whole) {
  const MappedFile file(from);
  const GgufFile golden = parse_gguf(file.bytes(), from);
  std::vector<GgufTestValue> values;
  for (const std::string_view key : golden.metadata.keys()) {
    values.push_back(written(key, *golden.metadata.find(key)));
  }
  std::map<std::string, GgufTestTensor> tensors;
  for (const GgufTensor& tensor : golden.tensors) {
    tensors.emplace(tensor.name, written(tensor));
  }
  int count = 0;
  for (int layer = 0; layer < 100; ++layer) {
    for (const char* suffix : {".weight", ".bias"}) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      std::vector<GgufTestTensor> found;
      for (const std::string& part : parts) {
        const auto it = tensors.find(block + part + suffix);
        if (it != tensors.end()) found.push_back(it->second);
      }
      const auto is_another = [&](const GgufTestTensor& part) {
        const GgufTestTensor& first = found.front();
        return part.type != first.type || (part.dims.size() > 1 && part.dims[0] != first.dims[0]);
      };
      if (found.size() != parts.size() || std::ranges::any_of(found, is_another)) continue;
      for (const GgufTestTensor& part : found) tensors.erase(part.name);
      const std::string name = block + whole + suffix;
      tensors[name] = joined(name, found);
      ++count;
    }
  }
  std::vector<GgufTestTensor> all;
  for (auto& [name, tensor] : tensors) all.push_back(std::move(tensor));
  std::ofstream(to, std::ios::binary) << gguf_file(values, all);
  return count;
}

// The bytes of a tensor's rows in their order.
std::string rows_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const std::string bytes = text_of(checkpoint.bytes(tensor));
  if (tensor.row_order.empty()) return bytes;
  const GgmlType& type = *find_ggml_type(tensor.dtype_name);
  const auto size = static_cast<size_t>(tensor.shape.back() / type.block_size * type.block_bytes);
  std::string out;
  for (const int32_t row : tensor.row_order) {
    out += bytes.substr(static_cast<size_t>(row) * size, size);
  }
  return out;
}

void check_same(const std::string& golden, const std::string& fused) {
  const auto files = open_gguf(golden);
  const auto fused_files = open_gguf(fused);
  const auto checkpoint = open_checkpoint(*files);
  const auto other = open_checkpoint(*fused_files);
  const LoadedConfig model = load_model_config(*fused_files);
  CHECK(model.json == load_model_config(*files).json);
  check_weights(model, *other);
  for (const std::string_view name : checkpoint->names()) {
    // Stacks that a model reads whole are parts there.
    if (name.ends_with("gate_up_proj(0)") || name.ends_with("gate_up_proj(1)")) continue;
    INFO(name);
    const StoredTensor* const tensor = other->find(name);
    REQUIRE(tensor != nullptr);
    CHECK(tensor->shape == checkpoint->find(name)->shape);
    CHECK((rows_of(*other, *tensor) == rows_of(*checkpoint, *checkpoint->find(name))));
  }
}

void check_all(const std::vector<std::string>& parts,
               const std::string& whole,
               const std::set<std::string>& names) {
  const TempFolder folder;
  for (const std::string& name : names) {
    INFO(name << ", " << whole);
    const std::string golden = TGI_SOURCE_DIR "/tests/golden/gguf/" + name + "/model.gguf";
    const std::string fused = folder.file("fused.gguf");
    REQUIRE(write_joined(golden, fused, parts, whole) > 0);
    check_same(golden, fused);
  }
}

TEST_CASE("q, k and v that are one tensor are those of the file that has them apart") {
  check_all({"attn_q", "attn_k", "attn_v"}, "attn_qkv",
            {"gemma3n-multimodal", "gemma4-experts", "gemma4-shared-kv", "glm4v", "granite",
             "kimi-linear", "lfm2", "lfm2-moe", "nemotron-h", "nemotron-h-experts", "qwen3-next",
             "qwen3_5", "qwen3_5-moe", "qwen3-moe", "stablelm"});
}

TEST_CASE("gate and up of all experts that are one tensor are those of the file with two") {
  check_all({"ffn_gate_exps", "ffn_up_exps"}, "ffn_gate_up_exps",
            {"cohere2-moe", "lfm2-moe", "qwen3-next", "qwen3_5-moe"});
}

TEST_CASE("rows of a joined tensor that can't be those of its parts are refused") {
  const TempFolder folder;
  const std::string golden = TGI_SOURCE_DIR "/tests/golden/gguf/lfm2/model.gguf";
  write_joined(golden, folder.file("m.gguf"), {"attn_q"}, "attn_qkv");
  CHECK_THROWS_WITH(
      open_gguf(folder.file("m.gguf")),
      Catch::Contains("attn_qkv.weight has ") && Catch::Contains("of q and as many of k as of v"));
}

}  // namespace
}  // namespace tgi::fused_test
