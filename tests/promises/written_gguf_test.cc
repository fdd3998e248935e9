// Checkpoints written as GGUF files (engine/quantize/gguf) have the logits that transformers gives
// them, to 1e-4 in f32; what such files can't say of a model is refused by name.
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "engine/gguf/gguf_source.h"
#include "engine/quantize/quantizer.h"
#include "engine/quantize/source_model.h"
#include "engine/runtime/backend_loader.h"
#include "tests/promises/engine_fixture.h"
#include "tests/promises/golden_logits.h"
#include "tests/temp_folder.h"

namespace tgi::written_gguf_test {
namespace {

// Of one byte each, as the alphabet of bytes writes them: the small models have no tokenizer.
std::string tokenizer_of(int32_t vocab_size) {
  Json vocab = Json::object();
  constexpr int32_t kNumPrintable = '~' - '!' + 1;
  for (int32_t id = 0; id < vocab_size; ++id) {
    // Letters first: texts are made of them. Behind all of ASCII follow bytes from A1 on.
    const int32_t letter = 'A' + id <= '~' ? 'A' + id : '!' + id - ('~' - 'A' + 1);
    const std::string symbol =
        id < kNumPrintable ? std::string(1, static_cast<char>(letter))
                           : std::string{'\xC2', static_cast<char>(0xA1 + id - kNumPrintable)};
    vocab[symbol] = id;
  }
  return Json{{"version", "1.0"},
              {"added_tokens", Json::array()},
              {"normalizer", nullptr},
              {"pre_tokenizer",
               {{"type", "ByteLevel"},
                {"add_prefix_space", false},
                {"trim_offsets", true},
                {"use_regex", true}}},
              {"post_processor", nullptr},
              {"decoder", {{"type", "ByteLevel"}}},
              {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}}
      .dump();
}

// A folder with a tokenizer beside it.
class WithTokenizer final : public FileSource {
 public:
  WithTokenizer(const FileSource& folder, std::string tokenizer)
      : folder_(folder), tokenizer_(std::move(tokenizer)) {}
  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    if (name == "tokenizer.json") return std::as_bytes(std::span(tokenizer_));
    return folder_.find(name);
  }
  std::vector<std::string> names() const override { return folder_.names(); }
  std::string describe(const std::string& name) const override { return folder_.describe(name); }

 private:
  const FileSource& folder_;
  const std::string tokenizer_;
};

std::string write_gguf(const FileSource& files, const std::string& path, const char* format) {
  QuantizeOptions options;
  options.model = "golden";
  options.folder = path;
  options.format = format;
  options.force = true;
  options.calibration = {.file = std::string(TGI_SOURCE_DIR) + "/tests/quantize/stories.jsonl",
                         .num_sequences = 2,
                         .sequence_length = 16};
  const LoadedConfig model = load_model_config(files);
  if (!has_plain_layers(model.config)) options.calibration.file.clear();
  try {
    (void)quantize_model({.files = files,
                          .options = options,
                          .backend = find_backend("cpu"),
                          .num_threads = 1,
                          .on_progress = nullptr});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// What of each is in the refusal. Models of classes that can't be written at all are not listed.
const std::map<std::string, std::string>& expected_refusals() {
  static const std::map<std::string, std::string> kRefusals = {
      {"apertus-biases-f32", "a bias of attention's output has no place there"},
      {"apertus-class-defaults-tied-f16", "frequencies of positions (rope)"},
      {"apertus-relu2", "xielu.alpha_p: not in the file's metadata"},
      {"arcee-bias-tied-yarn-f16", "a bias of attention's output has no place there"},
      {"arcee-three-heads", "a bias in the MLP has no place there"},
      {"cohere-bias-untied-f32", "a head of its own has no place there"},
      {"cohere-qk-norm-f16", "norms of q and k are looked for from 64 layers on"},
      {"cohere2-layer-types-f16", "a bias of attention's output has no place there"},
      {"cohere2-three-heads", "a head of its own has no place there"},
      {"ernie4_5-bias-untied-f32", "a bias in the MLP has no place there"},
      {"ernie4_5-three-heads", "a bias in the MLP has no place there"},
      {"falcon-alibi-parallel", "alibi_slopes"},
      {"falcon-rw-style",
       "tensors have no place in it: transformer.h.0.post_attention_layernorm.weight"},
      {"gemma-bias-untied-f16", "a head of its own has no place there"},
      {"gemma2", "attention_scale"},
      {"gemma2-no-softcap-f32", "attention_scale"},
      {"gemma3-pattern", "attention_scale"},
      {"gemma3-softcaps-f32", "attention_scale"},
      {"gemma3-two-ropes-f16", "attention_scale"},
      {"gemma3-multimodal", "attention_scale"},
      {"gemma4-keys-as-values-f32", "a bias of attention's output has no place there"},
      {"gemma4-multimodal", "the last two layers that have some"},
      {"gemma4-shared-kv", "each token has a row for each layer, and there are no others"},
      {"glm", "4 heads of 12 are to be the hidden size, 24"},
      {"glm-mqa-no-bias-f16", "4 heads of 8 are to be the hidden size, 24"},
      {"gpt-neox-tied-no-bias-f32", "activation"},
      {"gpt2-inverse-layer", "the plan of layer 1"},
      {"gpt2-untied-f16", "activation"},
      {"granite-swa-bases-untied-f16", "frequencies of positions (rope)"},
      {"hunyuan-dense-bias-untied-f16", "a bias of attention's output has no place there"},
      {"hy3-all-sparse-tied-f16", "dynamic rope"},
      {"hy3-biases", "a bias of attention's output has no place there"},
      {"hy3-mlp-bias", "a bias in the MLP has no place there"},
      {"internlm3-biases-dynamic-f16", "attention_output_bias"},
      {"jais2-no-biases-tied-f16", "it asks for a bias of attention's output"},
      {"jais2-three-heads", "activation"},
      {"llama-bias-f16", "activation"},
      {"llama-dynamic", "dynamic rope"},
      {"llama-linear", "activation"},
      {"llama-yarn-mscale", "frequencies of positions (rope)"},
      {"minimax-m2-three-heads-f16", "it asks for a head of its own"},
      {"ministral-f16", "sliding_window of layers"},
      {"mistral-layer-types", "sliding_window of layers"},
      {"mistral-no-window-f16", "activation"},
      {"mistral-window", "sliding_window of layers"},
      {"mixtral-window-tied-f16", "sliding_window of layers"},
      {"nemotron-biases-f16", "it asks for a head of its own"},
      {"olmo-bias-mqa-f32", "a bias of attention's output has no place there"},
      {"olmo2-bias-mqa", "a bias of attention's output has no place there"},
      {"olmo2-gqa-tied-f32", "it asks for a head of its own"},
      {"olmo3-mqa-tied-f16", "it asks for a head of its own"},
      {"olmoe-bias-four-experts", "a bias of attention's output has no place there"},
      {"olmoe-clip-normed-gqa-f16", "qkv_clip"},
      {"phi-2-tied", "it asks for a head of its own"},
      {"phi-qk-norm-f16",
       "tensors have no place in it: model.layers.0.self_attn.q_layernorm.weight"},
      {"qwen2-layer-types", "sliding_window of layers"},
      {"qwen2-moe-mlp-only-window",
       "tensors have no place in it: model.layers.0.mlp.gate_proj.weight"},
      {"qwen2-moe-sparse-step-f16",
       "tensors have no place in it: model.layers.0.mlp.gate_proj.weight"},
      {"qwen2-window", "sliding_window of layers"},
      {"qwen3-bias-layer-types", "sliding_window of layers"},
      {"qwen3-moe-mlp-only", "tensors have no place in it: model.layers.1.mlp.gate_proj.weight"},
      {"qwen3-moe-unnormed-tied-f16", "a bias of attention's output has no place there"},
      {"seed-oss-all-biases-f16", "a bias of attention's output has no place there"},
      {"smollm3", "which layers have positions (rope)"},
      {"smollm3-list-untied-f16", "which layers have positions (rope)"},
      {"smollm3-window", "which layers have positions (rope)"},
      {"stablelm-qk-norm-parallel-f16",
       "tensors have no place in it: model.layers.0.self_attn.q_layernorm.norms.{head}.weight"},
      {"stablelm-tied", "it asks for a head of its own"},
      {"starcoder2", "sliding_window of layers"},
      {"starcoder2-mha-sharded", "activation"},
      {"starcoder2-no-bias-untied-f16", "it asks for a bias of attention's output"},
  };
  return kRefusals;
}

// "" when it was written.
std::string check_written(const std::string& folder) {
  const auto files = open_folder(folder);
  const LoadedConfig model = load_model_config(*files);
  const WithTokenizer with_tokenizer(*files, tokenizer_of(model.config.vocab_size));
  const TempFolder out;
  const std::string path = out.file("model.gguf");
  const std::string refusal = write_gguf(with_tokenizer, path, "f32");
  CHECK(std::filesystem::is_empty(out.path()) == !refusal.empty());
  if (!refusal.empty()) return refusal;
  const LoadedFixture loaded = load_workers(*open_gguf(path), {});
  const Json golden = parse_json(files->require_text("golden.json"), 16);
  for (const Json& one : golden.at("cases")) check_logits(loaded, one);
  return "";
}

}  // namespace

TEST_CASE("a checkpoint that is written as a GGUF file keeps its logits") {
  const char* const only = std::getenv("TGI_GOLDEN_FAMILY");
  int num_written = 0;
  for (const char* const set : {"models", "families"}) {
    for (const std::string& folder : golden_model_folders(set)) {
      const std::string name = std::filesystem::path(folder).filename().string();
      if (only != nullptr && name != only) continue;
      INFO(name);
      try {
        const std::string refusal = check_written(folder);
        if (refusal.empty()) ++num_written;
        const auto expected = expected_refusals().find(name);
        if (expected != expected_refusals().end()) {
          CHECK_THAT(refusal, Catch::Contains(expected->second));
        } else if (!refusal.empty()) {
          CHECK_THAT(refusal, Catch::StartsWith("models of "));
        }
      } catch (const Error& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
  CHECK(num_written >= (only != nullptr ? 0 : 50));
}

}  // namespace tgi::written_gguf_test
