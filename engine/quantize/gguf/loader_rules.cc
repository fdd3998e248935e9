#include "engine/quantize/gguf/loader_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tgi {
namespace {

enum class Presence : uint8_t { kNever, kOptional, kRequired };

struct LoaderRules {
  std::string_view architecture;
  Presence head = Presence::kOptional;      // output.weight
  Presence output_bias = Presence::kNever;  // attn_output.bias
  Presence mlp_bias = Presence::kNever;     // ffn_up.bias and ffn_down.bias
  bool gate_bias = false;
  bool divides_frequencies = false;  // rope_freqs
  bool knows_longrope = false;       // rope_factors_long, rope_factors_short
  bool heads_fill_width = false;     // num_heads * head_dim is the hidden size
  // (optional) What else is wrong with a model; "" when nothing is.
  std::string_view (*fault)(const ModelConfig& config) = nullptr;
};

std::string_view command_r_fault(const ModelConfig& config) {
  constexpr int32_t kLayersWithNorms = 64;
  if (!config.has_qk_norm || config.num_layers >= kLayersWithNorms) return "";
  return "norms of q and k are looked for from 64 layers on";
}

// Experts are weighed as an architecture's first models want it, whatever the file says.
std::string_view normed_experts_fault(const ModelConfig& config) {
  return config.experts.route.normalises ? "" : "it norms the weights of the chosen experts always";
}
std::string_view plain_experts_fault(const ModelConfig& config) {
  return config.experts.route.normalises ? "it never norms the weights of the chosen experts" : "";
}

std::string_view olmoe_fault(const ModelConfig& config) {
  return config.num_kv_heads == config.num_heads ? plain_experts_fault(config)
                                                 : "k has as many heads as q";
}

std::string_view gemma4_fault(const ModelConfig& config) {
  const LayerInputs& inputs = config.layer_inputs;
  if (inputs.size > 0 && inputs.vocab_size != config.vocab_size) {
    return "each token has a row for each layer, and there are no others";
  }
  const auto own = static_cast<int32_t>(std::ranges::count_if(
      config.layers, [](const LayerPlan& layer) { return layer.has_own_kv(); }));
  for (const LayerPlan& layer : config.layers) {
    if (layer.has_own_kv() || layer.kv_layer == own - (layer.sliding_window > 0 ? 2 : 1)) continue;
    return "keys and values that others read are those of the last two layers that have some, the "
           "first of which has a window";
  }
  for (const LayerPlan& layer : config.layers) {
    if (layer.sliding_window > 0 || layer.rope == kNoRope) continue;
    const RopeSpec& rope = config.ropes[static_cast<size_t>(layer.rope)];
    const bool turns_all = std::ranges::find(rope.inv_freq, 0.0F) == rope.inv_freq.end();
    return turns_all ? "it asks for frequencies of which some turn nothing" : "";
  }
  return "it asks for a layer without a window";
}

constexpr auto kNever = Presence::kNever;
constexpr auto kOptional = Presence::kOptional;
constexpr auto kRequired = Presence::kRequired;

constexpr LoaderRules kRules[] = {
    {.architecture = "apertus", .divides_frequencies = true},
    {.architecture = "arcee", .divides_frequencies = true},
    {.architecture = "chatglm", .heads_fill_width = true},
    {.architecture = "cohere2", .head = kNever, .heads_fill_width = true},
    {.architecture = "command-r",
     .head = kNever,
     .heads_fill_width = true,
     .fault = command_r_fault},
    {.architecture = "ernie4_5", .output_bias = kOptional},
    {.architecture = "falcon", .heads_fill_width = true},
    {.architecture = "gemma", .head = kNever},
    {.architecture = "gemma2", .head = kNever},
    {.architecture = "gemma3"},
    {.architecture = "gemma4", .divides_frequencies = true, .fault = gemma4_fault},
    {.architecture = "glm4"},
    {.architecture = "glm4moe"},
    {.architecture = "gpt2",
     .output_bias = kRequired,
     .mlp_bias = kRequired,
     .heads_fill_width = true},
    {.architecture = "gptneox",
     .head = kRequired,
     .output_bias = kRequired,
     .mlp_bias = kRequired,
     .heads_fill_width = true},
    {.architecture = "granite",
     .output_bias = kOptional,
     .mlp_bias = kOptional,
     .gate_bias = true,
     .divides_frequencies = true,
     .knows_longrope = true},
    {.architecture = "granite_swa",
     .output_bias = kOptional,
     .mlp_bias = kOptional,
     .gate_bias = true,
     .divides_frequencies = true},
    {.architecture = "hunyuan-dense"},
    {.architecture = "hy_v3"},
    {.architecture = "jais2", .output_bias = kRequired, .mlp_bias = kRequired},
    {.architecture = "llama",
     .output_bias = kOptional,
     .mlp_bias = kOptional,
     .gate_bias = true,
     .divides_frequencies = true,
     .knows_longrope = true},
    {.architecture = "minimax-m2", .head = kRequired},
    {.architecture = "nemotron",
     .head = kRequired,
     .output_bias = kOptional,
     .mlp_bias = kOptional,
     .heads_fill_width = true},
    {.architecture = "olmo", .heads_fill_width = true},
    {.architecture = "olmo2", .head = kRequired, .heads_fill_width = true},
    {.architecture = "olmoe", .head = kRequired, .heads_fill_width = true, .fault = olmoe_fault},
    {.architecture = "phi2",
     .head = kRequired,
     .output_bias = kRequired,
     .mlp_bias = kRequired,
     .heads_fill_width = true},
    // Its windows are left out: beyond them llama.cpp goes its own way.
    {.architecture = "phi3", .knows_longrope = true, .heads_fill_width = true},
    {.architecture = "qwen2", .heads_fill_width = true},
    {.architecture = "qwen2moe",
     .head = kRequired,
     .heads_fill_width = true,
     .fault = plain_experts_fault},
    {.architecture = "qwen3"},
    {.architecture = "qwen3moe", .fault = normed_experts_fault},
    {.architecture = "seed_oss"},
    {.architecture = "smollm3"},
    {.architecture = "stablelm", .head = kRequired, .heads_fill_width = true},
    {.architecture = "starcoder2",
     .output_bias = kRequired,
     .mlp_bias = kRequired,
     .heads_fill_width = true},
};

const LoaderRules& rules_of(std::string_view architecture) {
  const auto* const it = std::ranges::find(kRules, architecture, &LoaderRules::architecture);
  if (it != std::end(kRules)) return *it;
  throw Error(Code::kInternal, fmt::format("no rules for files of {}", architecture));
}

class Checker {
 public:
  Checker(const GgufFilePlan& plan, const ModelConfig& config)
      : plan_(plan), config_(config), rules_(rules_of(plan.architecture)) {}

  void check() const {
    check_presence(rules_.head, "output.weight", "a head of its own");
    check_presence(rules_.output_bias, "attn_output.bias", "a bias of attention's output");
    check_presence(rules_.mlp_bias, "ffn_up.bias", "a bias in the MLP");
    check_presence(rules_.mlp_bias, "ffn_down.bias", "a bias of the MLP's output");
    const auto only = [](bool is_known) { return is_known ? kOptional : kNever; };
    check_presence(only(rules_.gate_bias), "ffn_gate.bias", "a bias of the MLP's gate");
    check_presence(only(rules_.divides_frequencies), "rope_freqs.weight",
                   "rope scaling of type llama3");
    check_presence(only(rules_.knows_longrope), "rope_factors_long.weight",
                   "rope scaling of type longrope");
    const int64_t width = int64_t{config_.num_heads} * config_.head_dim;
    if (rules_.heads_fill_width && width != config_.hidden_size) {
      refuse(fmt::format("{} heads of {} are to be the hidden size, {}", config_.num_heads,
                         config_.head_dim, config_.hidden_size));
    }
    if (rules_.fault == nullptr) return;
    const std::string_view fault = rules_.fault(config_);
    if (!fault.empty()) refuse(std::string(fault));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Code::kUnsupported,
                fmt::format("llama.cpp would not load a GGUF file of the architecture {} of this "
                            "model, or not as it is: {}",
                            plan_.architecture, why));
  }
  // `name`: of the file, or what follows "blk.0.".
  void check_presence(Presence presence, std::string_view name, std::string_view what) const {
    const std::string of_layer = "." + std::string(name);
    const bool is_there = std::ranges::any_of(plan_.tensors, [&](const GgufTensorPlan& tensor) {
      return tensor.name == name || tensor.name.ends_with(of_layer);
    });
    if (is_there && presence == kNever) refuse(fmt::format("{} has no place there", what));
    if (!is_there && presence == kRequired) refuse(fmt::format("it asks for {}", what));
  }

  const GgufFilePlan& plan_;
  const ModelConfig& config_;
  const LoaderRules& rules_;
};

}  // namespace

void check_loader_rules(const GgufFilePlan& plan, const ModelConfig& config) {
  Checker(plan, config).check();
}

}  // namespace tgi
