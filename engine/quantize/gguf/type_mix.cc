#include "engine/quantize/gguf/type_mix.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>

#include "base/error.h"

namespace tgi {
namespace {

// general.file_type as llama.cpp counts them (enum llama_ftype).
constexpr GgufFormat kFormats[] = {
    {"f32", "GGUF F32", "F32", 32, 0},
    {"f16", "GGUF F16", "F16", 16, 1},
    {"bf16", "GGUF BF16", "BF16", 16, 32},
    {"q8_0", "GGUF Q8_0", "Q8_0", 8, 7},
    {"q6_k", "GGUF Q6_K", "Q6_K", 6, 18},
    {"q5_k_m", "GGUF Q5_K, some matrices Q6_K", "Q5_K", 5, 17},
    {"q4_k_m", "GGUF Q4_K, some matrices Q6_K", "Q4_K", 4, 15},
    {"q4_0", "GGUF Q4_0, the head Q6_K", "Q4_0", 4, 2},
    {"iq4_xs", "GGUF IQ4_XS, some matrices Q5_K, the head Q6_K", "IQ4_XS", 4, 30},
    {"mxfp4", "GGUF MXFP4, attention and head Q8_0", "MXFP4", 4, 38},
};

const GgmlType& type(std::string_view name) {
  return *find_ggml_type(name);
}

// For rows that no whole number of blocks makes up: what comes nearest of those of 32.
const GgmlType& fallback(const GgmlType& wanted, int64_t cols) {
  struct Row {
    std::string_view from, to;
  };
  constexpr Row kSmaller[] = {
      {"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}, {"IQ4_XS", "IQ4_NL"}};
  if (cols % wanted.block_size == 0) return wanted;
  for (const Row& row : kSmaller) {
    if (row.from == wanted.name) return fallback(type(row.to), cols);
  }
  return type("F16");
}

bool is_of(std::string_view part, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, part) != names.end();
}

// The first and last eighths of the layers, and every third between.
bool gets_more_bits(int32_t layer, int32_t num_layers) {
  const int32_t eighth = num_layers / 8;
  return layer < eighth || layer >= 7 * num_layers / 8 || (layer - eighth) % 3 == 2;
}

// "blk.3.ffn_down.weight" is "ffn_down".
std::string_view part_of(std::string_view name) {
  if (name.starts_with("blk.")) name.remove_prefix(name.find('.', 4) + 1);
  return name.substr(0, name.rfind('.'));
}

}  // namespace

std::span<const GgufFormat> gguf_formats() {
  return kFormats;
}

const GgufFormat* find_gguf_format(std::string_view name) {
  const auto* const it = std::ranges::find(kFormats, name, &GgufFormat::name);
  return it == std::end(kFormats) ? nullptr : it;
}

TypeMix::TypeMix(const GgufFormat& format, const ModelConfig& config, const GgufFilePlan& plan)
    : format_(format), config_(config) {
  for (const GgufTensorPlan& tensor : plan.tensors) {
    has_head_ = has_head_ || tensor.name == "output.weight";
    has_experts_ = has_experts_ || tensor.name.find("_exps.") != std::string::npos;
  }
}

const GgmlType& TypeMix::type_of(const GgufTensorPlan& tensor) const {
  const GgmlType& plain = type("F32");
  // Vectors, whatever is no matrix to be multiplied with, and the few numbers that choose experts.
  const bool is_matrix = !tensor.sources.empty() && !tensor.sources.front()->is_vector();
  const std::string_view part = part_of(tensor.name);
  if (!is_matrix || is_of(part, {"ffn_gate_inp", "ffn_gate_inp_shexp", "position_embd"})) {
    return plain;
  }
  const int32_t layer = tensor.sources.front()->layer;
  return fallback(wanted(part, layer), tensor.shape.back());
}

const GgmlType& TypeMix::wanted(std::string_view part, int32_t layer) const {
  const GgmlType& most = type(format_.type);
  const bool is_head = part == "output" || (part == "token_embd" && !has_head_);
  if (format_.bits >= 8) return most;
  if (format_.type == "MXFP4") {
    const bool is_mlp = has_experts_ ? part.ends_with("_exps") : part.starts_with("ffn_");
    return is_mlp ? most : type("Q8_0");
  }
  if (is_head) return type("Q6_K");
  const bool is_down = is_of(part, {"ffn_down", "ffn_down_exps", "ffn_down_shexp"});
  const bool is_value = part == "attn_v";
  const bool more = layer >= 0 && gets_more_bits(layer, config_.num_layers);
  if (format_.type == "Q4_K" || format_.type == "Q5_K") {
    if ((is_value || is_down) && more) return type("Q6_K");
    if (format_.type == "Q4_K" && part == "attn_qkv") return type("Q5_K");
  }
  if (format_.type == "IQ4_XS") {
    constexpr int32_t kFewKvHeads = 4;  // heads of q for each
    if (is_value && config_.num_heads >= kFewKvHeads * config_.num_kv_heads) return type("Q5_K");
    if (is_down && layer < config_.num_layers / 8) return type("Q5_K");
  }
  return most;
}

}  // namespace tgi
