// Models of every type of GGUF's blocks compute what the same models do from the numbers that the
// blocks stand for, which are the gguf package's bit for bit (tests/weights/ggml_types_test.cc):
// matrices cut, permuted, fused and dealt out to experts included.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/files/regular_file.h"
#include "base/json.h"
#include "engine/gguf/gguf_source.h"
#include "engine/weights/ggml/ggml_types.h"
#include "tests/promises/engine_fixture.h"
#include "tests/temp_folder.h"
#include "tests/weights/gguf_files.h"

namespace tgi::gguf_types_test {
namespace {

constexpr uint32_t kF32 = 0;
constexpr uint64_t kHidden = 256;
constexpr uint64_t kWidth = 512;
constexpr uint64_t kHeads = 4;
constexpr uint64_t kKvHeads = 2;
constexpr uint64_t kHeadDim = kHidden / kHeads;
constexpr uint64_t kVocab = 24;
constexpr uint64_t kExperts = 4;
constexpr uint32_t kLayers = 2;

enum class Shape { kLlama, kQwen3, kExperts };

const Json& golden_blocks() {
  static const Json golden =
      parse_json(read_regular_file(TGI_SOURCE_DIR "/tests/golden/ggml_blocks.json"));
  return golden;
}

// Blocks of numbers that a model may have: written where the type is, else those of the golden
// file.
class Blocks {
 public:
  explicit Blocks(const GgmlType& type) : type_(type) {
    const std::string hex = golden_blocks().at(std::string(type.name)).at("blocks");
    for (size_t i = 0; i < hex.size(); i += 2) {
      golden_ += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
  }

  std::string draw(uint64_t num_elements) {
    if (type_.encode == nullptr) return draw_golden(num_elements);
    std::normal_distribution<float> normal(0.0F, 0.06F);
    std::vector<float> values(num_elements);
    for (float& value : values) value = normal(random_);
    std::string out(bytes_of(num_elements), '\0');
    type_.encode(values.data(), static_cast<int64_t>(num_elements) / type_.block_size, nullptr,
                 reinterpret_cast<std::byte*>(out.data()));
    return out;
  }

  // As F32 holds them.
  std::string decode(const std::string& blocks) const {
    const auto count = static_cast<int64_t>(blocks.size()) / type_.block_bytes;
    std::string out(static_cast<size_t>(count * type_.block_size) * sizeof(float), '\0');
    type_.decode(reinterpret_cast<const std::byte*>(blocks.data()), count,
                 reinterpret_cast<float*>(out.data()));
    return out;
  }

 private:
  size_t bytes_of(uint64_t num_elements) const {
    return num_elements / static_cast<uint64_t>(type_.block_size) *
           static_cast<uint64_t>(type_.block_bytes);
  }

  std::string draw_golden(uint64_t num_elements) {
    const auto size = static_cast<size_t>(type_.block_bytes);
    std::string out;
    while (out.size() < bytes_of(num_elements)) {
      out += golden_.substr(random_() % (golden_.size() / size) * size, size);
    }
    return out;
  }

  const GgmlType& type_;
  std::string golden_;
  std::mt19937 random_{18};
};

GgufTestValue number_value(const std::string& key, float value) {
  return {key, GgufBytes().number<uint32_t>(6).number(value).text()};
}

std::vector<GgufTestValue> values_of(Shape shape) {
  const std::string name = shape == Shape::kQwen3 ? "qwen3" : "llama";
  std::vector<GgufTestValue> out = {
      text_value("general.architecture", name),
      u32_value(name + ".block_count", kLayers),
      u32_value(name + ".context_length", 64),
      u32_value(name + ".embedding_length", kHidden),
      u32_value(name + ".feed_forward_length", kWidth),
      u32_value(name + ".attention.head_count", kHeads),
      u32_value(name + ".attention.head_count_kv", kKvHeads),
      u32_value(name + ".attention.key_length", kHeadDim),
      u32_value(name + ".attention.value_length", kHeadDim),
      number_value(name + ".attention.layer_norm_rms_epsilon", 1e-5F),
      number_value(name + ".rope.freq_base", 10000.0F),
  };
  if (shape == Shape::kExperts) {
    out.push_back(u32_value("llama.expert_count", kExperts));
    out.push_back(u32_value("llama.expert_used_count", 2));
  }
  GgufBytes tokens;
  tokens.number<uint32_t>(9).number<uint32_t>(8).number<uint64_t>(kVocab);
  for (uint64_t i = 0; i < kVocab; ++i) tokens.string(std::string(1, static_cast<char>('a' + i)));
  out.push_back(text_value("tokenizer.ggml.model", "gpt2"));
  out.push_back(text_value("tokenizer.ggml.pre", "gpt-2"));
  out.emplace_back("tokenizer.ggml.tokens", tokens.text());
  return out;
}

// The same model twice: its matrices in blocks, and as the numbers that these stand for.
struct Files {
  std::vector<GgufTestTensor> packed;
  std::vector<GgufTestTensor> plain;
};

class Maker {
 public:
  explicit Maker(const GgmlType& type) : type_(type), blocks_(type) {}

  Files make(Shape shape) {
    matrix("token_embd", {kHidden, kVocab});
    matrix("output", {kHidden, kVocab});
    norm("output_norm", kHidden);
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      const auto in_layer = [&](const char* name) { return fmt::format("blk.{}.{}", layer, name); };
      norm(in_layer("attn_norm"), kHidden);
      norm(in_layer("ffn_norm"), kHidden);
      matrix(in_layer("attn_q"), {kHidden, kHidden});
      matrix(in_layer("attn_k"), {kHidden, kKvHeads * kHeadDim});
      matrix(in_layer("attn_v"), {kHidden, kKvHeads * kHeadDim});
      matrix(in_layer("attn_output"), {kHidden, kHidden});
      if (shape == Shape::kQwen3) {
        norm(in_layer("attn_q_norm"), kHeadDim);
        norm(in_layer("attn_k_norm"), kHeadDim);
      }
      if (shape == Shape::kExperts) {
        floats(in_layer("ffn_gate_inp"), {kHidden, kExperts}, 0.0F, 0.1F);
        matrix(in_layer("ffn_gate_exps"), {kHidden, kWidth, kExperts});
        matrix(in_layer("ffn_up_exps"), {kHidden, kWidth, kExperts});
        matrix(in_layer("ffn_down_exps"), {kWidth, kHidden, kExperts});
      } else {
        matrix(in_layer("ffn_gate"), {kHidden, kWidth});
        matrix(in_layer("ffn_up"), {kHidden, kWidth});
        matrix(in_layer("ffn_down"), {kWidth, kHidden});
      }
    }
    return std::move(files_);
  }

 private:
  static uint64_t count_of(const std::vector<uint64_t>& dims) {
    uint64_t count = 1;
    for (const uint64_t size : dims) count *= size;
    return count;
  }

  void matrix(const std::string& name, const std::vector<uint64_t>& dims) {
    const std::string blocks = blocks_.draw(count_of(dims));
    files_.packed.push_back({name + ".weight", dims, type_.id, blocks});
    files_.plain.push_back({name + ".weight", dims, kF32, blocks_.decode(blocks)});
  }

  void floats(const std::string& name, const std::vector<uint64_t>& dims, float mean, float width) {
    std::normal_distribution<float> normal(mean, width);
    GgufBytes bytes;
    for (uint64_t i = 0; i < count_of(dims); ++i) bytes.number(normal(random_));
    files_.packed.push_back({name + ".weight", dims, kF32, bytes.text()});
    files_.plain.push_back(files_.packed.back());
  }

  void norm(const std::string& name, uint64_t size) { floats(name, {size}, 1.0F, 0.1F); }

  const GgmlType& type_;
  Blocks blocks_;
  std::mt19937 random_{7};
  Files files_;
};

using Rows = std::vector<std::vector<double>>;

Rows logprobs_of(const std::string& path, bool is_reference) {
  const auto files = open_gguf(path);
  LoadedFixture loaded = load_workers(*files, {.is_reference = is_reference});
  std::vector<int32_t> token_ids;
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < 20; ++i) {
    token_ids.push_back(i * 7 % static_cast<int32_t>(kVocab));
    positions.push_back(i);
  }
  return all_logprobs(*loaded.workers, token_ids, positions, static_cast<int32_t>(kVocab),
                      loaded.kv_plan.groups.num_groups());
}

// By the largest of those that are expected.
double largest_difference(const Rows& got, const Rows& wanted) {
  double difference = 0;
  double largest = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (size_t id = 0; id < wanted[i].size(); ++id) {
      difference = std::max(difference, std::abs(got[i][id] - wanted[i][id]));
      largest = std::max(largest, std::abs(wanted[i][id]));
    }
  }
  return difference / largest;
}

}  // namespace

TEST_CASE("a model of every type of GGUF computes what the numbers of its blocks do") {
  const TempFolder folder;
  const std::string packed = folder.file("packed.gguf");
  const std::string plain = folder.file("plain.gguf");
  int count = 0;
  for (const GgmlType& type : ggml_types()) {
    if (!type.is_quantised()) continue;
    for (const Shape shape : {Shape::kLlama, Shape::kQwen3, Shape::kExperts}) {
      INFO(type.name << ", shape " << static_cast<int>(shape));
      const Files files = Maker(type).make(shape);
      std::ofstream(packed, std::ios::binary) << gguf_file(values_of(shape), files.packed);
      std::ofstream(plain, std::ios::binary) << gguf_file(values_of(shape), files.plain);
      const Rows wanted = logprobs_of(plain, true);
      CHECK(largest_difference(logprobs_of(packed, true), wanted) < 1e-4);
      // Where activations are rounded to int8, another expert may be chosen.
      if (shape == Shape::kExperts) continue;
      CHECK(largest_difference(logprobs_of(packed, false), wanted) < 0.1);
    }
    ++count;
  }
  CHECK(count == static_cast<int>(golden_blocks().size()));
}

}  // namespace tgi::gguf_types_test
