#include "engine/gguf/usual_spelling.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tgi::gguf {
namespace {

constexpr std::string_view kArchitecture = "general.architecture";
constexpr const char* kPre = "tokenizer.ggml.pre";

struct Renamed {
  std::string_view from;
  std::string_view to;
};

// Encoders, what leads from them to the model, and layers that predict further tokens.
constexpr std::string_view kOtherTensors[] = {"v.", "mm.", "a.", "mtp.", "model.vision_tower."};

// Fields about them, and about positions of images, which those of text don't depend on.
constexpr std::string_view kOtherKeys[] = {"vision.", "audio.", "mm."};
constexpr std::string_view kUnneededKeys[] = {
    "image_token_id",         "image_token_index",  "vision_start_token_id", "vision_end_token_id",
    "image_start_token_id",   "image_end_token_id", "video_token_id",        "video_start_token_id",
    "video_end_token_id",     "spatial_merge_size", "rope.mrope_section",    "mrope_sections",
    "rope.mrope_interleaved",
};

// Of every architecture.
constexpr Renamed kUsualKeys[] = {
    {"norm_top_k_prob", "expert_weights_norm"},
    {"rope.scaling.beta_fast", "rope.scaling.yarn_beta_fast"},
    {"rope.scaling.beta_slow", "rope.scaling.yarn_beta_slow"},
    {"rope.scaling.extrapolation_factor", "rope.scaling.yarn_ext_factor"},
    {"rope.scaling.mscale_all_dim", "rope.scaling.yarn_log_multiplier"},
    {"rope.scaling_beta", "attention.temperature_scale"},
    {"rope.local.freq_base", "rope.freq_base_swa"},
    {"rope.freq_base_local", "rope.freq_base_swa"},
    {"rope.global.freq_base", "rope.freq_base"},
    {"rope.swa.freq_base", "rope.freq_base_swa"},
    {"rope.swa.dimension_count", "rope.dimension_count_swa"},
    {"attention.head_dim", "attention.key_length"},
    {"head_dim", "attention.key_length"},
    {"num_kv_shared_layers", "attention.shared_kv_layers"},
};

bool is_missing_or_default(std::string_view pre) {
  return pre.empty() || pre == "default";
}

// Those with an encoder in the file leave out what Gemma 3's class has by itself, and the stretch
// that the larger ones, and only they, have.
void complete_gemma3(UsualSpelling& file) {
  constexpr int64_t kContextOfLarger = 131072;
  if (file.has("rope.freq_base")) return;
  file.add_number("rope.freq_base", 1e6F);
  if (file.integer("context_length") < kContextOfLarger) return;
  file.add_text("rope.scaling.type", "linear");
  file.add_number("rope.scaling.factor", 8.0F);
}

void complete_gemma_embedding(UsualSpelling& file) {
  constexpr int64_t kMean = 1;
  file.erase("attention.causal");
  complete_gemma3(file);
  file.add_integer("pooling_type", kMean);
}

void complete_gemma4(UsualSpelling& file) {
  if (file.text_of("tokenizer.ggml.model") == "llama") {
    file.replace_text("tokenizer.ggml.model", "gemma4");
  }
}

void complete_gpt_oss(UsualSpelling& file) {
  file.add_text("rope.scaling.type", "yarn");
  if (is_missing_or_default(file.text_of(kPre))) file.replace_text(kPre, "gpt-4o");
}

// Without a stretch of its positions its files say that there is one of no kind, by 0.
void complete_mistral3(UsualSpelling& file) {
  if (is_missing_or_default(file.text_of(kPre))) file.replace_text(kPre, "tekken");
  const GgufValue* const type = file.find("rope.scaling.type");
  if (type == nullptr || !type->bytes.empty()) return;
  for (const char* key : {"type", "factor", "yarn_beta_fast", "yarn_beta_slow"}) {
    file.erase(std::string("rope.scaling.") + key);
  }
}

// Layers without attention have no heads there.
void complete_qwen_next(UsualSpelling& file) {
  const std::vector<int64_t> heads = file.integers("attention.head_count_kv");
  if (!heads.empty()) {
    file.replace_integer("attention.head_count_kv", *std::ranges::max_element(heads));
  }
}

void complete_lfm2(UsualSpelling& file) {
  if (is_missing_or_default(file.text_of(kPre))) file.replace_text(kPre, "lfm2");
  const GgufTensor* const gate = file.find_tensor("blk.0.ffn_gate.weight");
  const bool has_one_width = file.integers("feed_forward_length").empty();
  if (gate != nullptr && has_one_width) {
    file.replace_integer("feed_forward_length", gate->shape.front());
  }
}

// The lengths of a head and of what is kept for all of them stand in each other's place.
void complete_glm4_moe_lite(UsualSpelling& file) {
  const int64_t key_length = file.integer("attention.key_length");
  const int64_t value_length = file.integer("attention.value_length");
  const int64_t rank = file.integer("attention.kv_lora_rank");
  file.replace_integer("attention.head_count_kv", 1);
  file.replace_integer("attention.key_length", rank + file.integer("rope.dimension_count"));
  file.replace_integer("attention.value_length", rank);
  file.replace_integer("attention.key_length_mla", key_length);
  file.replace_integer("attention.value_length_mla", value_length);
  file.replace_text(kPre, "glm4");
}

void complete_nemotron(UsualSpelling& file) {
  if (file.has("moe_latent_size")) return;
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with(".ffn_latent_down.weight")) continue;
    file.add_integer("moe_latent_size", tensor.shape.front());
    return;
  }
}

constexpr Renamed kGptOssTensors[] = {{".attn_out.", ".attn_output."},
                                      {".ffn_norm.", ".post_attention_norm."}};
constexpr Renamed kEmbeddingTensors[] = {
    {"dense.0.", "dense_2."}, {"dense.1.", "dense_3."}, {"norm.weight", "output_norm.weight"}};
constexpr Renamed kGemma4Tensors[] = {{".ffn_gate_inp.per_expert_scale", ".ffn_down_exps.scale"}};
constexpr Renamed kLfm2Tensors[] = {{"output_norm.", "token_embd_norm."}};
constexpr Renamed kNemotronTensors[] = {{".ffn_latent_in.", ".ffn_latent_down."},
                                        {".ffn_latent_out.", ".ffn_latent_up."}};
constexpr Renamed kLagunaTensors[] = {{".attn_g.", ".attn_gate."}};

struct Spelling {
  std::string_view name;
  std::string_view usual;
  std::span<const Renamed> tensors{};  // parts of names
  void (*complete)(UsualSpelling& file) = nullptr;
  std::string_view only_with{};  // (optional) a part of a tensor's name
};

constexpr Spelling kSpellings[] = {
    {.name = "gemma3",
     .usual = "gemma-embedding",
     .tensors = kEmbeddingTensors,
     .complete = complete_gemma_embedding,
     .only_with = "dense.0."},
    {.name = "gemma3", .usual = "gemma3", .complete = complete_gemma3},
    {.name = "gemma4", .usual = "gemma4", .tensors = kGemma4Tensors, .complete = complete_gemma4},
    {.name = "glm4moelite", .usual = "deepseek2", .complete = complete_glm4_moe_lite},
    {.name = "gptoss", .usual = "gpt-oss", .tensors = kGptOssTensors, .complete = complete_gpt_oss},
    {.name = "laguna", .usual = "laguna", .tensors = kLagunaTensors},
    {.name = "lfm2",
     .usual = "lfm2",
     .tensors = kLfm2Tensors,
     .complete = complete_lfm2,
     .only_with = "output_norm."},
    {.name = "mistral3", .usual = "mistral3", .complete = complete_mistral3},
    {.name = "nemotron_h_moe",
     .usual = "nemotron_h_moe",
     .tensors = kNemotronTensors,
     .complete = complete_nemotron},
    {.name = "nemotron_h_omni",
     .usual = "nemotron_h_moe",
     .tensors = kNemotronTensors,
     .complete = complete_nemotron,
     .only_with = ".ffn_gate_inp."},
    {.name = "nemotron_h_omni", .usual = "nemotron_h"},
    {.name = "olmo3", .usual = "olmo2"},
    {.name = "qwen25vl", .usual = "qwen2vl"},
    {.name = "qwen35", .usual = "qwen35", .complete = complete_qwen_next},
    {.name = "qwen35moe", .usual = "qwen35moe", .complete = complete_qwen_next},
    {.name = "qwen3next", .usual = "qwen3next", .complete = complete_qwen_next},
};

bool has_part(std::span<const GgufTensor> tensors, std::string_view part) {
  return std::ranges::any_of(tensors, [part](const GgufTensor& tensor) {
    return tensor.name.find(part) != std::string_view::npos;
  });
}

const Spelling* find_spelling(std::string_view name, std::span<const GgufTensor> tensors) {
  for (const Spelling& one : kSpellings) {
    if (one.name == name && (one.only_with.empty() || has_part(tensors, one.only_with)))
      return &one;
  }
  return nullptr;
}

bool begins_with_any(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [text](std::string_view one) { return text.starts_with(one); });
}

std::string_view usual_key(std::string_view key) {
  for (const Renamed& one : kUsualKeys) {
    if (one.from == key) return one.to;
  }
  return key;
}

// A part that does not begin with a dot begins the name.
std::string usual_name(std::string_view name, std::span<const Renamed> parts) {
  std::string out(name);
  for (const Renamed& one : parts) {
    const size_t at = out.find(one.from);
    if (at == std::string::npos || (at > 0 && !one.from.starts_with('.'))) continue;
    out.replace(at, one.from.size(), one.to);
  }
  return out;
}

template <typename T>
std::string bytes_of(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

bool is_same(const GgufValue& a, const GgufValue& b) {
  return a.type == b.type && a.element_type == b.element_type && a.count == b.count &&
         std::ranges::equal(a.bytes, b.bytes);
}

}  // namespace

UsualSpelling::UsualSpelling(const GgufMetadata& metadata, std::span<const GgufTensor> tensors)
    : architecture_(metadata.find_text(kArchitecture).value_or("")) {
  take_over(metadata, tensors);
  const Spelling* const spelling = find_spelling(architecture_, tensors_);
  if (spelling != nullptr) {
    for (GgufTensor& tensor : tensors_) {
      std::string name = usual_name(tensor.name, spelling->tensors);
      if (name == tensor.name) continue;
      owned_.push_back(std::move(name));
      stored_names_[owned_.back()] = tensor.name;
      tensor.name = owned_.back();
    }
    if (spelling->usual != architecture_) {
      std::map<std::string, GgufValue, std::less<>> values;
      for (auto& [key, value] : values_) {
        const bool is_own = key.starts_with(architecture_ + ".");
        values[is_own ? std::string(spelling->usual) + key.substr(architecture_.size()) : key] =
            value;
      }
      values_ = std::move(values);
      architecture_ = spelling->usual;
      replace_text(std::string(kArchitecture), architecture_);
    }
    if (spelling->complete != nullptr) spelling->complete(*this);
  }
  for (const auto& [key, value] : values_) metadata_.add(key, value);
}

// All but what is about other things than text, under usual names.
void UsualSpelling::take_over(const GgufMetadata& metadata, std::span<const GgufTensor> tensors) {
  for (const GgufTensor& tensor : tensors) {
    if (!begins_with_any(tensor.name, kOtherTensors)) tensors_.push_back(tensor);
  }
  const std::string prefix = architecture_ + ".";
  for (const std::string_view full : metadata.keys()) {
    const GgufValue& value = *metadata.find(full);
    if (!full.starts_with(prefix)) {
      values_.emplace(full, value);
      continue;
    }
    const std::string_view key = full.substr(prefix.size());
    const bool is_unneeded = std::ranges::find(kUnneededKeys, key) != std::end(kUnneededKeys);
    if (begins_with_any(key, kOtherKeys) || is_unneeded) continue;
    const std::string usual = prefix + std::string(usual_key(key));
    const GgufValue* const other = usual == full ? nullptr : metadata.find(usual);
    if (other != nullptr && is_same(*other, value)) continue;
    values_.emplace(other == nullptr ? usual : std::string(full), value);
  }
}

std::string_view UsualSpelling::stored_name(std::string_view name) const {
  const auto it = stored_names_.find(name);
  return it == stored_names_.end() ? name : it->second;
}

std::string UsualSpelling::key_of(std::string_view key) const {
  return architecture_ + "." + std::string(key);
}

const GgufValue* UsualSpelling::find(std::string_view key) const {
  const auto it = values_.find(key_of(key));
  return it == values_.end() ? nullptr : &it->second;
}

void UsualSpelling::set(std::string key, GgufValueType type, std::string bytes) {
  owned_.push_back(std::move(bytes));
  values_[std::move(key)] = {.type = type, .bytes = std::as_bytes(std::span(owned_.back()))};
}

void UsualSpelling::add_number(std::string_view key, float value) {
  if (!has(key)) set(key_of(key), GgufValueType::kFloat32, bytes_of(value));
}

void UsualSpelling::add_integer(std::string_view key, int64_t value) {
  if (!has(key)) replace_integer(key, value);
}

void UsualSpelling::add_text(std::string_view key, std::string_view value) {
  if (!has(key)) replace_text(key_of(key), value);
}

void UsualSpelling::replace_integer(std::string_view key, int64_t value) {
  set(key_of(key), GgufValueType::kInt64, bytes_of(value));
}

void UsualSpelling::replace_text(const std::string& full_key, std::string_view value) {
  set(full_key, GgufValueType::kString, std::string(value));
}

std::string_view UsualSpelling::text_of(const std::string& full_key) const {
  const auto it = values_.find(full_key);
  if (it == values_.end() || it->second.type != GgufValueType::kString) return {};
  const auto bytes = it->second.bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const GgufTensor* UsualSpelling::find_tensor(std::string_view name) const {
  const auto it = std::ranges::find(tensors_, name, &GgufTensor::name);
  return it == tensors_.end() ? nullptr : &*it;
}

int64_t UsualSpelling::integer(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value == nullptr || value->type == GgufValueType::kArray) return 0;
  GgufMetadata one;
  one.add(key, *value);
  return one.integer(key);
}

std::vector<int64_t> UsualSpelling::integers(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value == nullptr || value->type != GgufValueType::kArray) return {};
  GgufMetadata one;
  one.add(key, *value);
  return one.integers(key);
}

}  // namespace tgi::gguf
