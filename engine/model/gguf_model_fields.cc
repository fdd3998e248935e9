#include "engine/model/gguf_model_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"

namespace tgi {
namespace {

class FieldWriter {
 public:
  FieldWriter(const LoadedConfig& model, GgufFields& fields, std::string_view architecture)
      : model_(model), fields_(fields), prefix_(std::string(architecture) + ".") {}

  const ModelConfig& config() const { return model_.config; }
  // Of the text model, where config.json has others too.
  const Json& json() const {
    const auto it = model_.json.find("text_config");
    return it == model_.json.end() ? model_.json : *it;
  }
  void integer(std::string_view key, int64_t value) {
    fields_.put_integer(prefix_ + std::string(key), value);
  }
  void number(std::string_view key, double value) {
    fields_.put_number(prefix_ + std::string(key), value);
  }
  void boolean(std::string_view key, bool value) {
    fields_.put_boolean(prefix_ + std::string(key), value);
  }
  void text(std::string_view key, std::string_view value) {
    fields_.put_text(prefix_ + std::string(key), value);
  }
  void integers(std::string_view key, const std::vector<int32_t>& values) {
    fields_.put_integers(prefix_ + std::string(key), values);
  }
  void booleans(std::string_view key, const std::vector<bool>& values) {
    fields_.put_booleans(prefix_ + std::string(key), values);
  }

 private:
  const LoadedConfig& model_;
  GgufFields& fields_;
  const std::string prefix_;
};

// --- what few architectures have

void put_granite(FieldWriter& out) {
  const ModelConfig& config = out.config();
  out.number("attention.scale", config.attention_scale);
  out.number("embedding_scale", config.embedding_multiplier);
  out.number("residual_scale", config.residual_multiplier);
  out.number("logit_scale", 1.0 / config.logit_scale);  // what logits are divided by
}

void put_cohere(FieldWriter& out) {
  out.number("logit_scale", out.config().logit_scale);
}

void put_window_pattern(FieldWriter& out) {
  std::vector<bool> has_window;
  for (const LayerPlan& layer : out.config().layers) has_window.push_back(layer.sliding_window > 0);
  out.booleans("attention.sliding_window_pattern", has_window);
}

void put_cohere2(FieldWriter& out) {
  put_cohere(out);
  put_window_pattern(out);
}

void put_clip(FieldWriter& out) {
  if (out.config().qkv_clip > 0) out.number("attention.clamp_kqv", out.config().qkv_clip);
}

void put_parallel(FieldWriter& out) {
  out.boolean("use_parallel_residual", out.config().parallel_branches);
}

void put_granite_swa(FieldWriter& out) {
  put_granite(out);
  put_window_pattern(out);
}

// Layers without a window have heads of another length, and those that read others' keys and values
// may be of another width.
void put_gemma4(FieldWriter& out) {
  const ModelConfig& config = out.config();
  std::vector<int32_t> kv_heads;
  std::vector<int32_t> widths;
  int32_t num_shared = 0;
  for (int32_t i = 0; i < config.num_layers; ++i) {
    const LayerPlan& layer = config.layers[static_cast<size_t>(i)];
    const KvHeads heads = kv_heads_of(config, i);
    kv_heads.push_back(heads.num_kv_heads);
    widths.push_back(layer.intermediate_size > 0 ? layer.intermediate_size
                                                 : config.intermediate_size);
    if (layer.kv_layer != kOwnKv) ++num_shared;
    const std::string suffix = layer.sliding_window > 0 ? "_swa" : "";
    for (const char* key :
         {"attention.key_length", "attention.value_length", "rope.dimension_count"}) {
      out.integer(key + suffix, heads.head_dim);
    }
  }
  out.integers("attention.head_count_kv", kv_heads);
  out.integers("feed_forward_length", widths);
  out.integer("attention.shared_kv_layers", num_shared);
  out.integer("embedding_length_per_layer_input", config.layer_inputs.size);
  put_window_pattern(out);
}

struct Target {
  std::string_view class_name;
  std::string_view architecture;
  void (*put)(FieldWriter& out) = nullptr;
};

// Of each a checkpoint was loaded by llama.cpp too, whose logits were those of transformers
// (scripts/golden/check_written_gguf).
constexpr Target kTargets[] = {
    {"ApertusForCausalLM", "apertus"},
    {"ArceeForCausalLM", "arcee"},
    {"Cohere2ForCausalLM", "cohere2", put_cohere2},
    {"CohereForCausalLM", "command-r", put_cohere},
    {"Ernie4_5ForCausalLM", "ernie4_5"},
    {"FalconForCausalLM", "falcon"},
    {"GPT2LMHeadModel", "gpt2"},
    {"GPTNeoXForCausalLM", "gptneox", put_parallel},
    {"Gemma2ForCausalLM", "gemma2"},
    {"Gemma3ForCausalLM", "gemma3"},
    {"Gemma3ForConditionalGeneration", "gemma3"},
    {"Gemma4ForCausalLM", "gemma4", put_gemma4},
    {"Gemma4ForConditionalGeneration", "gemma4", put_gemma4},
    {"GemmaForCausalLM", "gemma"},
    {"Glm4ForCausalLM", "glm4"},
    {"Glm4MoeForCausalLM", "glm4moe"},
    {"GlmForCausalLM", "chatglm"},
    {"GraniteForCausalLM", "granite", put_granite},
    {"GraniteSWAForCausalLM", "granite_swa", put_granite_swa},
    {"HYV3ForCausalLM", "hy_v3"},
    {"HunYuanDenseV1ForCausalLM", "hunyuan-dense"},
    {"InternLM3ForCausalLM", "llama"},
    {"Jais2ForCausalLM", "jais2"},
    {"LlamaForCausalLM", "llama"},
    {"MiniMaxM2ForCausalLM", "minimax-m2"},
    {"MistralForCausalLM", "llama"},
    {"MixtralForCausalLM", "llama"},
    {"NemotronForCausalLM", "nemotron"},
    {"Olmo2ForCausalLM", "olmo2"},
    {"Olmo3ForCausalLM", "olmo2", put_window_pattern},
    {"OlmoForCausalLM", "olmo", put_clip},
    {"OlmoeForCausalLM", "olmoe"},
    {"Phi3ForCausalLM", "phi3"},
    {"PhiForCausalLM", "phi2"},
    {"Qwen2ForCausalLM", "qwen2"},
    {"Qwen2MoeForCausalLM", "qwen2moe"},
    {"Qwen3ForCausalLM", "qwen3"},
    {"Qwen3MoeForCausalLM", "qwen3moe"},
    {"SeedOssForCausalLM", "seed_oss"},
    {"SmolLM3ForCausalLM", "smollm3"},
    {"StableLmForCausalLM", "stablelm"},
    {"Starcoder2ForCausalLM", "starcoder2"},
};

const Target& target_of(const LoadedConfig& model) {
  std::string known;
  for (const Target& target : kTargets) {
    if (target.class_name == model.config.architecture) return target;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", target.class_name);
  }
  throw Error(Code::kUnsupported,
              fmt::format("models of {} can't be written to GGUF files yet; of these they can: {}",
                          model.config.architecture, known));
}

// --- what most have

// Of layers without windows, where those have one of their own; null: none.
Json scaling_of(const FieldWriter& out) {
  const Json& json = out.json();
  Json scaling = json.value("rope_scaling", Json());
  if (!scaling.is_object()) scaling = json.value("rope_parameters", Json());
  if (!scaling.is_object()) return nullptr;
  if (const auto it = scaling.find("full_attention"); it != scaling.end()) return *it;
  return scaling;
}

std::string scaling_type(const Json& scaling) {
  if (!scaling.is_object()) return "";
  return scaling.value("rope_type", scaling.value("type", std::string()));
}

void put_sizes(FieldWriter& out) {
  const ModelConfig& config = out.config();
  out.integer("block_count", config.num_layers);
  // Linear scaling makes positions more than the field says, which is what readers start from.
  const Json stored = out.json().value("max_position_embeddings", Json());
  const bool is_scaled = scaling_type(scaling_of(out)) == "linear" && stored.is_number();
  out.integer("context_length", is_scaled ? stored.get<int64_t>() : config.max_positions);
  out.integer("embedding_length", config.hidden_size);
  const bool has_dense = std::ranges::any_of(
      config.layers, [](const LayerPlan& layer) { return layer.mlp == MlpKind::kDense; });
  const ExpertsConfig& experts = config.experts;
  out.integer("feed_forward_length", has_dense || config.intermediate_size > 0
                                         ? config.intermediate_size
                                         : experts.intermediate_size);
  out.integer("vocab_size", config.vocab_size);
  out.integer("attention.head_count", config.num_heads);
  out.integer("attention.head_count_kv", config.num_kv_heads);
  out.integer("attention.key_length", config.head_dim);
  out.integer("attention.value_length", config.head_dim);
  const bool is_rms = config.norm_kind == NormKind::kRms;
  out.number(is_rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
             config.norm_eps);
}

void put_experts(FieldWriter& out) {
  const ExpertsConfig& experts = out.config().experts;
  if (experts.num_experts == 0) return;
  out.integer("expert_count", experts.num_experts);
  out.integer("expert_used_count", experts.route.top_k);
  out.integer("expert_feed_forward_length", experts.intermediate_size);
  if (experts.shared_intermediate_size > 0) {
    out.integer("expert_shared_feed_forward_length", experts.shared_intermediate_size);
    out.integer("expert_shared_count",
                experts.shared_intermediate_size / std::max(experts.intermediate_size, 1));
  }
  const RouteRule& route = experts.route;
  constexpr int64_t kSoftmax = 1;  // as files count what makes scores of logits
  constexpr int64_t kSigmoid = 2;
  out.integer("expert_gating_func", route.score == RouterScore::kSigmoid ? kSigmoid : kSoftmax);
  out.boolean("expert_weights_norm", route.normalises);
  out.number("expert_weights_scale", route.scale);
  out.integer("expert_group_count", route.num_groups);
  out.integer("expert_group_used_count", route.top_groups);
  const auto first = std::ranges::find_if(
      out.config().layers, [](const LayerPlan& layer) { return layer.mlp != MlpKind::kDense; });
  out.integer("leading_dense_block_count", first - out.config().layers.begin());
}

// Of the layers with a window, or of those without; null: none of them is rotated.
const RopeSpec* rope_of(const ModelConfig& config, bool with_window) {
  for (const LayerPlan& layer : config.layers) {
    const bool is_one = (layer.sliding_window > 0) == with_window && layer.rope != kNoRope;
    if (is_one) return &config.ropes[static_cast<size_t>(layer.rope)];
  }
  return nullptr;
}

// The scalings that files name, by what config.json names them; what a file can't say is found when
// it is read back.
void put_scaling(FieldWriter& out, const RopeSpec& rope) {
  const Json scaling = scaling_of(out);
  const std::string type = scaling_type(scaling);
  const auto number = [&](const char* field, const char* key) {
    const auto it = scaling.find(field);
    if (it != scaling.end() && it->is_number()) out.number(key, it->get<double>());
  };
  if (type != "linear" && type != "yarn") return;
  out.text("rope.scaling.type", type);
  number("factor", "rope.scaling.factor");
  if (type == "linear") return;
  const auto original = scaling.find("original_max_position_embeddings");
  out.integer("rope.scaling.original_context_length",
              original != scaling.end() && original->is_number()
                  ? original->get<int64_t>()
                  : out.json().value("max_position_embeddings", int64_t{0}));
  number("beta_fast", "rope.scaling.yarn_beta_fast");
  number("beta_slow", "rope.scaling.yarn_beta_slow");
  // Of files the factor beside the usual one.
  const double factor = scaling.value("factor", 1.0);
  const double usual = factor > 1 ? 0.1 * std::log(factor) + 1 : 1.0;
  const double beside = rope.attention_factor / usual;
  constexpr double kRounding = 1e-6;
  if (std::fabs(beside - 1) > kRounding) out.number("rope.scaling.attn_factor", beside);
}

void put_rope(FieldWriter& out) {
  const ModelConfig& config = out.config();
  const RopeSpec* const with_window = rope_of(config, true);
  const RopeSpec* rope = rope_of(config, false);
  if (rope == nullptr) rope = with_window;
  if (rope == nullptr) return;
  out.integer("rope.dimension_count", rope->rotary_dim);
  out.number("rope.freq_base", rope->base);
  if (with_window != nullptr && with_window != rope) {
    out.number("rope.freq_base_swa", with_window->base);
  }
  put_scaling(out, *rope);
}

void put_attention(FieldWriter& out) {
  const ModelConfig& config = out.config();
  if (config.attention_softcap > 0) {
    out.number("attn_logit_softcapping", config.attention_softcap);
  }
  if (config.logit_softcap > 0) out.number("final_logit_softcapping", config.logit_softcap);
  for (const LayerPlan& layer : config.layers) {
    if (layer.sliding_window == 0) continue;
    out.integer("attention.sliding_window", layer.sliding_window);
    break;
  }
}

}  // namespace

std::string_view gguf_architecture_of(const LoadedConfig& model) {
  return target_of(model).architecture;
}

std::string_view find_gguf_architecture(const LoadedConfig& model) {
  const auto* const target =
      std::ranges::find(kTargets, model.config.architecture, &Target::class_name);
  return target == std::end(kTargets) ? std::string_view() : target->architecture;
}

void put_model_fields(const LoadedConfig& model, GgufFields& fields) {
  const Target& target = target_of(model);
  fields.put_text("general.architecture", target.architecture);
  FieldWriter out(model, fields, target.architecture);
  put_sizes(out);
  put_experts(out);
  put_rope(out);
  put_attention(out);
  if (target.put != nullptr) target.put(out);
}

}  // namespace tgi
