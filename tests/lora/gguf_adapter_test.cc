// Adapters in GGUF files: read as the same adapter in a folder of PEFT, and what is refused by
// name.
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/gguf/gguf_source.h"
#include "engine/lora/adapter_facts.h"
#include "engine/lora/adapter_files.h"
#include "engine/lora/adapter_source.h"
#include "engine/lora/gguf_adapter.h"
#include "engine/tensor/weight_element.h"
#include "tests/catch.h"
#include "tests/lora/adapter_builder.h"
#include "tests/model/model_files.h"
#include "tests/temp_folder.h"
#include "tests/weights/gguf_files.h"

namespace tgi {
namespace {

constexpr uint32_t kF32 = 0;
constexpr uint32_t kF16 = 1;
constexpr uint32_t kQ8 = 8;

GgufTestValue f32_value(const std::string& key, float value) {
  return {key, GgufBytes().number<uint32_t>(6).number(value).text()};
}

std::vector<GgufTestValue> adapter_values(const std::string& architecture = "llama",
                                          float alpha = 4.0F) {
  return {text_value("general.architecture", architecture), text_value("general.type", "adapter"),
          text_value("adapter.type", "lora"), f32_value("adapter.lora.alpha", alpha)};
}

std::vector<float> counted(int64_t count, float first) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = first + static_cast<float>(i) / 8.0F;
  return out;
}

GgufTestTensor matrix(const std::string& name, int64_t rows, int64_t cols, float first) {
  return {name,
          {static_cast<uint64_t>(cols), static_cast<uint64_t>(rows)},
          kF32,
          f32_bytes(counted(rows * cols, first))};
}

// The two tensors that files have of the module of lora_of, whose numbers they are.
std::vector<GgufTestTensor> pair_of(const std::string& name,
                                    int64_t outputs,
                                    int64_t inputs,
                                    int64_t rank = 2) {
  return {matrix(name + ".weight.lora_a", rank, inputs, 0.0F),
          matrix(name + ".weight.lora_b", outputs, rank, 100.0F)};
}

std::vector<GgufTestTensor> all_of(const std::vector<std::vector<GgufTestTensor>>& parts) {
  std::vector<GgufTestTensor> out;
  for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

std::string write(const TempFolder& folder,
                  const std::string& name,
                  const std::vector<GgufTestValue>& values,
                  const std::vector<GgufTestTensor>& tensors) {
  const std::string path = folder.file(name);
  std::ofstream(path, std::ios::binary) << gguf_file(values, tensors);
  return path;
}

struct Opened {
  std::unique_ptr<FileSource> files;
  AdapterFiles adapter;

  std::vector<float> numbers(const StoredTensor& tensor) const {
    return read_elements(adapter.tensors->bytes(tensor), *tensor.dtype);
  }
};

Opened opened(const std::string& path, const LoadedConfig& model) {
  Opened out{.files = open_adapter_source(path), .adapter = {}};
  out.adapter = open_adapter(*out.files, model);
  return out;
}

std::string refusal(Code code,
                    const std::vector<GgufTestValue>& values,
                    const std::vector<GgufTestTensor>& tensors,
                    const LoadedConfig& model = load_config(small_llama())) {
  const TempFolder folder;
  const std::string path = write(folder, "a.gguf", values, tensors);
  std::string text = refusal_of_action(code, [&] { (void)opened(path, model); });
  CHECK_THAT(text, Catch::StartsWith(path + ": "));
  return text;
}

// Stored row 2 i is row i of the first half of a head, stored row 2 i + 1 row i of its second half:
// what llama.cpp's converter does to the rows of q and k.
std::vector<float> stored_rows(const std::vector<float>& rows, int64_t head_dim, int64_t rank) {
  std::vector<float> out(rows.size());
  const int64_t num_rows = static_cast<int64_t>(rows.size()) / rank;
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t in_head = row % head_dim;
    const int64_t half = head_dim / 2;
    const int64_t to = row - in_head + (in_head % half) * 2 + in_head / half;
    for (int64_t i = 0; i < rank; ++i) {
      out[static_cast<size_t>(to * rank + i)] = rows[static_cast<size_t>(row * rank + i)];
    }
  }
  return out;
}

TEST_CASE("an adapter in a GGUF file is the one in the folder that it was made of") {
  const LoadedConfig model = load_config(small_llama());
  const MemorySource peft = adapter_files(
      small_adapter_config(),
      together({lora_of("model.layers.1.self_attn.q_proj", 24, 10),
                lora_of("model.layers.0.self_attn.k_proj", 8, 10),
                lora_of("model.layers.0.self_attn.v_proj", 8, 10),
                lora_of("model.layers.1.mlp.down_proj", 10, 14), lora_of("lm_head", 11, 10)}));
  const AdapterFiles expected = open_adapter(peft, model);

  const auto permuted = [](const std::string& name, int64_t outputs) {
    auto pair = pair_of(name, outputs, 10);
    pair[1].bytes = f32_bytes(stored_rows(counted(outputs * 2, 100.0F), 4, 2));
    return pair;
  };
  const TempFolder folder;
  const std::string path =
      write(folder, "a.gguf", adapter_values(),
            all_of({permuted("blk.1.attn_q", 24), permuted("blk.0.attn_k", 8),
                    pair_of("blk.0.attn_v", 8, 10), pair_of("blk.1.ffn_down", 10, 14),
                    pair_of("output", 11, 10)}));
  const Opened got = opened(path, model);
  REQUIRE(got.adapter.linears.size() == expected.linears.size());
  for (size_t i = 0; i < expected.linears.size(); ++i) {
    const AdapterLinear& want = expected.linears[i];
    const AdapterLinear& have = got.adapter.linears[i];
    INFO(want.module);
    CHECK(have.module == want.module);
    CHECK(have.rank == 2);
    CHECK(have.scale == 2.0F);
    CHECK(got.numbers(*have.a.tensor) == read_factor(*expected.tensors, want.a));
    CHECK(got.numbers(*have.b.tensor) == read_factor(*expected.tensors, want.b));
  }
  CHECK(got.adapter.facts.num_linears == 5);
  CHECK(got.adapter.facts.max_rank == 2);
  // The same file, alone in a folder.
  CHECK(opened(folder.path(), model).adapter.linears.size() == 5);
  CHECK(adapter_paths(folder.path()) == std::vector<std::string>{path});
  CHECK(is_gguf_adapter_path(path));
}

TEST_CASE("a GGUF file's adapter has a rank for each linear, and a scale of 1 without alpha") {
  const LoadedConfig model = load_config(small_llama());
  const TempFolder folder;
  const auto tensors =
      all_of({pair_of("blk.0.ffn_up", 14, 10, 3), pair_of("blk.1.ffn_up", 14, 10, 1)});
  const Opened scaled = opened(write(folder, "a.gguf", adapter_values("llama", 6), tensors), model);
  REQUIRE(scaled.adapter.linears.size() == 2);
  CHECK(scaled.adapter.linears[0].rank == 3);
  CHECK(scaled.adapter.linears[0].scale == 2.0F);
  CHECK(scaled.adapter.linears[1].rank == 1);
  CHECK(scaled.adapter.linears[1].scale == 6.0F);
  const Opened plain = opened(write(folder, "b.gguf", adapter_values("llama", 0), tensors), model);
  CHECK(plain.adapter.linears[0].scale == 1.0F);
  CHECK(plain.adapter.linears[1].scale == 1.0F);
}

TEST_CASE("an embedding's A lies transposed in a GGUF file") {
  const LoadedConfig model = load_config(small_llama());
  const TempFolder folder;
  const std::string path = write(folder, "a.gguf", adapter_values(),
                                 {matrix("token_embd.weight.lora_a", 11, 2, 0.0F),
                                  matrix("token_embd.weight.lora_b", 10, 2, 50.0F)});
  const Opened got = opened(path, model);
  REQUIRE(got.adapter.linears.size() == 1);
  const AdapterLinear& linear = got.adapter.linears[0];
  CHECK((linear.a.rows == 2 && linear.a.cols == 11));
  CHECK((linear.b.rows == 10 && linear.b.cols == 2));
  const std::vector<float> a = got.numbers(*linear.a.tensor);
  CHECK(a[1] == 2.0F / 8.0F);   // token 1 of the first
  CHECK(a[11] == 1.0F / 8.0F);  // token 0 of the second
}

TEST_CASE("factors of a GGUF file may be F16 or quantised") {
  const LoadedConfig model = load_config(small_llama());
  const TempFolder folder;
  // 32 numbers are a block: a scale of 1, then the codes.
  Json wide = small_llama();
  wide["hidden_size"] = 32;
  const LoadedConfig wide_model = load_config(wide);
  std::string block("\x00\x3c", 2);
  for (int i = 0; i < 32; ++i) block.push_back(static_cast<char>(i - 16));
  const std::string half(14 * 2, '\x3c');
  const std::string path = write(folder, "a.gguf", adapter_values(),
                                 {{"blk.0.ffn_up.weight.lora_a", {32, 1}, kQ8, block},
                                  {"blk.0.ffn_up.weight.lora_b", {1, 14}, kF16, half}});
  const Opened got = opened(path, wide_model);
  const AdapterLinear& linear = got.adapter.linears.at(0);
  CHECK(got.numbers(*linear.a.tensor).front() == -16.0F);
  CHECK(got.numbers(*linear.a.tensor).back() == 15.0F);
  CHECK(linear.b.tensor->dtype == DType::kF16);
}

// One matrix for each expert, whose numbers are those of expert_pair.
GgufTestTensor stack(
    const std::string& name, int64_t experts, int64_t rows, int64_t cols, float first) {
  GgufTestTensor out = matrix(name, experts * rows, cols, first);
  out.dims = {static_cast<uint64_t>(cols), static_cast<uint64_t>(rows),
              static_cast<uint64_t>(experts)};
  return out;
}

std::vector<GgufTestTensor> stacks_of(const std::string& name,
                                      int64_t experts,
                                      int64_t outputs,
                                      int64_t inputs) {
  return {stack(name + ".weight.lora_a", experts, 2, inputs, 0.0F),
          stack(name + ".weight.lora_b", experts, outputs, 2, 100.0F)};
}

std::vector<TestTensor> expert_pair(const std::string& module,
                                    int64_t expert,
                                    int64_t outputs,
                                    int64_t inputs) {
  const std::string name = "base_model.model." + module;
  const auto first = [&](int64_t size) { return static_cast<float>(expert * size) / 8.0F; };
  return {numbers(name + ".lora_A.weight", 2, inputs, first(2 * inputs)),
          numbers(name + ".lora_B.weight", outputs, 2, 100.0F + first(outputs * 2))};
}

LoadedConfig golden_model(const std::string& name) {
  return load_model_config(*open_folder(TGI_SOURCE_DIR "/tests/golden/families/" + name));
}

struct ExpertNames {
  std::string family;
  std::string architecture;
  std::string experts;  // "model.layers.1.mlp.experts."
  std::string gate;
  std::string down;
};

TEST_CASE("a stack of a GGUF file is an adapter of each expert's own linear") {
  const ExpertNames names =
      GENERATE(ExpertNames{"qwen3-moe", "qwen3moe", "mlp.experts.", "gate_proj", "down_proj"},
               ExpertNames{"mixtral", "llama", "block_sparse_moe.experts.", "w1", "w2"});
  INFO(names.family);
  const LoadedConfig model = golden_model(names.family);
  const int64_t experts = model.config.experts.num_experts;
  const int64_t hidden = model.config.hidden_size;
  const int64_t width = model.config.experts.intermediate_size;
  std::vector<std::vector<TestTensor>> parts;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const std::string one = "model.layers.1." + names.experts + std::to_string(expert) + ".";
    parts.push_back(expert_pair(one + names.gate, expert, width, hidden));
    parts.push_back(expert_pair(one + names.down, expert, hidden, width));
  }
  const MemorySource peft = adapter_files(small_adapter_config(), together(parts));
  const AdapterFiles expected = open_adapter(peft, model);
  const TempFolder folder;
  const auto stacks = all_of({stacks_of("blk.1.ffn_gate_exps", experts, width, hidden),
                              stacks_of("blk.1.ffn_down_exps", experts, hidden, width)});
  const std::string path = write(folder, "a.gguf", adapter_values(names.architecture), stacks);
  CHECK(read_adapter_facts(*open_adapter_source(path)).max_rank == 2);
  const Opened got = opened(path, model);
  REQUIRE(got.adapter.linears.size() == static_cast<size_t>(2 * experts));
  REQUIRE(expected.linears.size() == got.adapter.linears.size());
  for (size_t i = 0; i < expected.linears.size(); ++i) {
    const AdapterLinear& want = expected.linears[i];
    const AdapterLinear& have = got.adapter.linears[i];
    INFO(want.module);
    CHECK(have.module == want.module);
    CHECK(have.parts == want.parts);
    CHECK(have.scale == want.scale);
    CHECK(got.numbers(*have.a.tensor) == read_factor(*expected.tensors, want.a));
    CHECK(got.numbers(*have.b.tensor) == read_factor(*expected.tensors, want.b));
  }
}

TEST_CASE("stacks of a GGUF adapter that the model's experts do not have are refused") {
  const LoadedConfig model = golden_model("qwen3-moe");
  const auto refused = [&](const std::vector<GgufTestTensor>& tensors) {
    return refusal(Code::kInvalidArgument, adapter_values("qwen3moe"), tensors, model);
  };
  const std::string name = "blk.1.ffn_up_exps";
  CHECK_THAT(
      refused(stacks_of(name, 5, 10, 24)),
      Catch::Contains("the model has 6 experts, it has 5; was the adapter made for another"));
  CHECK_THAT(refused({stack(name + ".weight.lora_a", 6, 2, 24, 0.0F),
                      stack(name + ".weight.lora_b", 5, 10, 2, 0.0F)}),
             Catch::Contains("expected as many experts, got 6 and 5"));
  CHECK_THAT(refused({stack(name + ".weight.lora_a", 6, 3, 24, 0.0F),
                      stack(name + ".weight.lora_b", 6, 10, 2, 0.0F)}),
             Catch::Contains("expected one rank, got 3 and 2"));
  CHECK_THAT(refused(stacks_of(name, 6, 11, 24)), Catch::Contains("misshapen"));
  CHECK_THAT(refused(stacks_of("blk.1.ffn_up", 6, 10, 24)),
             Catch::Contains("expected a matrix, got (6, 2, 24)"));
  CHECK_THAT(refusal(Code::kInvalidArgument, adapter_values(), stacks_of(name, 6, 14, 10)),
             Catch::Contains("blk.1.ffn_up_exps"));
}

TEST_CASE("a matrix of a GGUF file may hold several linears of the model") {
  const LoadedConfig model = load_config(small_llama());
  const TempFolder folder;
  const std::string path =
      write(folder, "a.gguf", adapter_values(), pair_of("blk.0.attn_qkv", 40, 10));
  const Opened got = opened(path, model);
  REQUIRE(got.adapter.linears.size() == 3);
  CHECK(got.adapter.linears[2].module == "model.layers.0.self_attn.v_proj");
  CHECK(got.numbers(*got.adapter.linears[2].b.tensor).front() == 100.0F + 64.0F / 8.0F);
  CHECK_THAT(refusal(Code::kInvalidArgument, adapter_values(), pair_of("blk.0.attn_qkv", 41, 10)),
             Catch::Contains("tensor blk.0.attn_qkv.weight has 41 rows, which can't be those of 24 "
                             "of q and as many of k as of v"));
  CHECK_THAT(refusal(Code::kInvalidArgument, adapter_values(), pair_of("blk.0.attn_qkv", 42, 10)),
             Catch::Contains("attn_qkv"));
}

TEST_CASE("what of a GGUF adapter does not fit is refused by name") {
  const auto good = pair_of("blk.0.ffn_up", 14, 10);
  CHECK_THAT(refusal(Code::kInvalidArgument, adapter_values("qwen2"), good),
             Catch::Contains("general.architecture: the adapter is of models of qwen2, this one "
                             "(LlamaForCausalLM) is of llama"));
  auto values = adapter_values();
  values[2] = text_value("adapter.type", "control_vector");
  CHECK_THAT(refusal(Code::kUnsupported, values, good),
             Catch::Contains("adapter.type: adapters of type \"control_vector\""));
  values = adapter_values();
  values[1] = text_value("general.type", "model");
  CHECK_THAT(refusal(Code::kInvalidArgument, values, good),
             Catch::Contains("general.type: expected an adapter, got \"model\""));
  values = adapter_values();
  values.push_back(f32_value("adapter.lora.new", 1.0F));
  CHECK_THAT(refusal(Code::kUnsupported, values, good), Catch::Contains("adapter.lora.new"));
  values = adapter_values();
  values.push_back(text_value("adapter.lora.prompt_prefix", "Query: "));
  CHECK_THAT(refusal(Code::kUnsupported, values, good),
             Catch::Contains("adapter.lora.prompt_prefix"));
  values = adapter_values();
  values.push_back(u32_value("adapter.alora.invocation_tokens", 3));
  CHECK_THAT(refusal(Code::kUnsupported, values, good),
             Catch::Contains("adapter.alora.invocation_tokens"));
  values = adapter_values();
  values.push_back(u32_value("split.count", 2));
  CHECK_THAT(refusal(Code::kUnsupported, values, good), Catch::Contains("split.count"));
  values = adapter_values("llama", std::numeric_limits<float>::quiet_NaN());
  CHECK_THAT(refusal(Code::kInvalidArgument, values, good), Catch::Contains("adapter.lora.alpha"));

  const auto refused = [](const std::vector<GgufTestTensor>& tensors,
                          Code code = Code::kInvalidArgument) {
    return refusal(code, adapter_values(), tensors);
  };
  CHECK_THAT(refused({}), Catch::Contains("holds no tensor of a LoRA"));
  CHECK_THAT(refused({good[0]}), Catch::Contains("blk.0.ffn_up.weight.lora_a: without its lora_b"));
  CHECK_THAT(refused({good[1]}), Catch::Contains("blk.0.ffn_up.weight.lora_b: without its lora_a"));
  CHECK_THAT(refused({good[0], matrix("blk.0.ffn_up.weight.lora_b", 14, 3, 0)}),
             Catch::Contains("expected one rank, got 2 and 3"));
  CHECK_THAT(
      refused(all_of({good, {matrix("blk.0.attn_norm.weight", 1, 10, 0)}}), Code::kUnsupported),
      Catch::Contains("blk.0.attn_norm.weight"));
  CHECK_THAT(refused(pair_of("blk.0.ffn_up_exps", 14, 10)),
             Catch::Contains("expected a matrix for each expert, got (2, 10)"));
  CHECK_THAT(refused(pair_of("blk.0.unheard_of", 14, 10)),
             Catch::Contains("of no linear of models of llama: blk.0.unheard_of"));
  CHECK_THAT(refused(pair_of("blk.2.ffn_up", 14, 10)), Catch::Contains("of no linear of it"));
  CHECK_THAT(refused(pair_of("blk.0.ffn_up", 14, 9)), Catch::Contains("misshapen"));
  CHECK_THAT(refused(pair_of("blk.0.ffn_up", 13, 10)), Catch::Contains("misshapen"));
  CHECK_THAT(refused(pair_of("blk.0.attn_q", 28, 10)),
             Catch::Contains("the model's matrix has 24 rows, it has 28"));
  CHECK_THAT(refused(pair_of("blk.0.attn_q", 20, 10)),
             Catch::Contains("the model's matrix has 24 rows, it has 20"));
  auto nan = good;
  nan[0].bytes.replace(0, 4, f32_bytes({std::numeric_limits<float>::quiet_NaN()}));
  CHECK_THAT(refused(nan), Catch::Contains("not finite"));
}

TEST_CASE("a damaged GGUF adapter is refused, wherever it was cut or changed") {
  const LoadedConfig model = load_config(small_llama());
  const std::string whole = gguf_file(
      adapter_values(), all_of({pair_of("blk.0.ffn_up", 14, 10), pair_of("blk.0.attn_q", 24, 10)}));
  const TempFolder folder;
  const std::string path = folder.file("a.gguf");
  const auto try_bytes = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    try {
      (void)opened(path, model);
      return true;
    } catch (const Error& error) {
      CHECK(error.code() != Code::kInternal);
      return false;
    }
  };
  REQUIRE(try_bytes(whole));
  for (size_t size = 0; size < whole.size(); size += 7)
    CHECK_FALSE(try_bytes(whole.substr(0, size)));
  const size_t header = whole.size() - 24 * 2 * 4;
  for (size_t at = 0; at < header; ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    (void)try_bytes(changed);
  }
}

TEST_CASE("an adapter's file is no model, and a model's no adapter") {
  const TempFolder folder;
  const std::string path =
      write(folder, "a.gguf", adapter_values(), pair_of("blk.0.ffn_up", 14, 10));
  CHECK_THAT(refusal_of_action(Code::kInvalidArgument, [&] { (void)open_gguf(path); }),
             Catch::Contains("general.type: the file is an adapter and no model"));
  CHECK_FALSE(is_gguf_adapter_path(folder.file("none.gguf")));
  const std::string other = write(folder, "b.gguf", {text_value("general.architecture", "llama")},
                                  pair_of("blk.0.ffn_up", 14, 10));
  CHECK_FALSE(is_gguf_adapter_path(other));
  CHECK_THAT(
      refusal_of_action(Code::kInvalidArgument, [&] { (void)open_adapter_source(folder.path()); }),
      Catch::Contains("there are several GGUF files"));
  CHECK(
      refusal_of_action(Code::kNotFound, [&] { (void)open_adapter_source(folder.file("none")); }) ==
      folder.file("none") +
          ": No such file or directory; give a folder that holds adapter_config.json, or a GGUF "
          "file");
}

}  // namespace
}  // namespace tgi
