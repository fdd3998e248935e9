// What most decoders have in common: fields and names of Llama's block.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/gguf/model_reader.h"

namespace tgi::gguf {
namespace {

constexpr const char* kHead = "output";

[[noreturn]] void unsupported(const ModelReader& model,
                              std::string_view key,
                              const std::string& why) {
  throw Error(Code::kUnsupported, fmt::format("{}.{}: {}", model.architecture(), key, why));
}

// One divisor for each frequency, stored as tensors: Llama 3.1's and LongRoPE's.
bool add_factor_tensors(ModelReader& model, Json& scaling) {
  const auto add = [&](const char* key, const char* tensor) {
    if (model.has_tensor(tensor)) scaling[key] = model.values(tensor);
  };
  if (model.has_tensor("rope_freqs.weight")) {
    add("short_factor", "rope_freqs.weight");
    add("long_factor", "rope_freqs.weight");
    scaling["attention_factor"] = 1.0;
  } else if (model.has_tensor("rope_factors_long.weight")) {
    add("short_factor", "rope_factors_short.weight");
    add("long_factor", "rope_factors_long.weight");
  } else {
    return false;
  }
  model.ignore_tensor("rope_freqs");
  model.ignore_tensor("rope_factors_long");
  model.ignore_tensor("rope_factors_short");
  scaling["rope_type"] = "longrope";
  return true;
}

void read_yarn(ModelReader& model, Json& scaling) {
  if (const auto factor = model.find_number("rope.scaling.yarn_beta_fast"))
    scaling["beta_fast"] = *factor;
  if (const auto factor = model.find_number("rope.scaling.yarn_beta_slow"))
    scaling["beta_slow"] = *factor;
  if (model.find_number("rope.scaling.yarn_ext_factor").value_or(1.0) != 1.0) {
    unsupported(model, "rope.scaling.yarn_ext_factor", "only 1 is supported");
  }
  if (const auto factor = model.find_number("rope.scaling.yarn_attn_factor")) {
    scaling["attention_factor"] = *factor;
  }
}

Json read_scaling(ModelReader& model) {
  Json scaling = Json::object();
  // Files of before there were kinds have a factor alone, and had another name for it.
  const std::string type = model.find_text("rope.scaling.type").value_or("linear");
  const auto older_factor = model.find_number("rope.scale_linear");
  auto factor = model.find_number("rope.scaling.factor");
  if (!factor) factor = older_factor;
  const auto original = model.find_integer("rope.scaling.original_context_length");
  const auto attention_factor = model.find_number("rope.scaling.attn_factor");
  model.pass_over("rope.scaling.finetuned");
  if (original) scaling["original_max_position_embeddings"] = *original;
  if (add_factor_tensors(model, scaling)) {
    if (attention_factor) scaling["attention_factor"] = *attention_factor;
    return scaling;
  }
  // CodeShell's files say that they stretch positions by 1.
  const bool is_stretched = type != "linear" || factor.value_or(1.0) != 1.0;
  if (type == "none" || (!is_stretched && !attention_factor)) return nullptr;
  if (type != "linear" && type != "yarn") {
    unsupported(model, "rope.scaling.type", fmt::format("\"{}\" is not known here", type));
  }
  scaling["rope_type"] = type;
  if (factor) scaling["factor"] = *factor;
  if (type == "yarn") read_yarn(model, scaling);
  if (attention_factor) {
    // Of YaRN it stands beside the usual one, which is multiplied with it.
    const bool is_beside = type == "yarn" && factor.value_or(1.0) > 1.0;
    scaling["attention_factor"] =
        *attention_factor * (is_beside ? 0.1 * std::log(*factor) + 1.0 : 1.0);
  }
  return scaling;
}

// Files that don't say it may have another one than the heads' share of the hidden size: what
// attention puts together has all heads.
int64_t read_head_dim(ModelReader& model, int64_t num_heads) {
  if (model.has("attention.key_length")) return model.positive("attention.key_length");
  const int64_t layer = model.find_layer_with("attn_output.weight").value_or(0);
  const GgufTensor* output = model.find_tensor(fmt::format("blk.{}.attn_output.weight", layer));
  const int64_t width =
      output != nullptr ? output->shape.back() : model.config.at("hidden_size").get<int64_t>();
  return width / num_heads;
}

// What the numbers that stay plain are held in when nobody says otherwise.
std::string_view dtype_of_file(const ModelReader& model) {
  const std::string_view type = model.tensor(model.embedding + ".weight").type->name;
  return type == "F32" ? "float32" : type == "F16" ? "float16" : "bfloat16";
}

}  // namespace

RowOrder rotated_heads(std::string_view name, int64_t num_heads, int64_t rows, int64_t first) {
  if (num_heads < 1 || rows % (2 * num_heads) != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} rows can't be those of {} heads", rows, num_heads));
  }
  return {.name = fmt::format("{} of {} from {}", name, rows, first),
          .count = rows,
          .rows = [num_heads, rows, first] {
            const int64_t head_dim = rows / num_heads;
            const int64_t half = head_dim / 2;
            std::vector<int32_t> out(static_cast<size_t>(rows));
            for (int64_t row = 0; row < rows; ++row) {
              const int64_t in_head = row % head_dim;
              const int64_t stored = row - in_head + in_head % half * 2 + in_head / half;
              out[static_cast<size_t>(row)] = static_cast<int32_t>(first + stored);
            }
            return out;
          }};
}

RowOrder rows_of(int64_t first, int64_t count) {
  return {.name = fmt::format("{} from {}", count, first), .count = count, .rows = [first, count] {
            std::vector<int32_t> out(static_cast<size_t>(count));
            std::iota(out.begin(), out.end(), static_cast<int32_t>(first));
            return out;
          }};
}

RowOrder qkv_by_kv_head(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim) {
  return {.name = "qkv",
          .count = (num_heads + 2 * num_kv_heads) * head_dim,
          .rows = [num_heads, num_kv_heads, head_dim] {
            const int64_t group = num_heads / num_kv_heads;
            std::vector<int32_t> out;
            const auto add = [&](int64_t first_head) {
              for (int64_t i = 0; i < head_dim; ++i) {
                out.push_back(static_cast<int32_t>(first_head * head_dim + i));
              }
            };
            for (int64_t kv_head = 0; kv_head < num_kv_heads; ++kv_head) {
              for (int64_t head = 0; head < group; ++head) add(kv_head * group + head);
              add(num_heads + kv_head);
              add(num_heads + num_kv_heads + kv_head);
            }
            return out;
          }};
}

void read_rope(ModelReader& model, int64_t head_dim) {
  Json& config = model.config;
  config["rope_theta"] = model.find_number("rope.freq_base").value_or(10000.0);
  const int64_t rotated = model.find_integer("rope.dimension_count").value_or(head_dim);
  if (rotated != head_dim) {
    config["partial_rotary_factor"] = static_cast<double>(rotated) / static_cast<double>(head_dim);
  }
  Json scaling = read_scaling(model);
  if (!scaling.is_null()) config["rope_scaling"] = std::move(scaling);
}

void read_outer_sizes(ModelReader& model,
                      std::string_view class_name,
                      std::string_view model_type) {
  Json& config = model.config;
  config["architectures"] = Json::array({class_name});
  config["model_type"] = model_type;
  config["torch_dtype"] = dtype_of_file(model);
  config["num_hidden_layers"] = model.num_layers();
  config["hidden_size"] = model.positive("embedding_length");
  config["max_position_embeddings"] = model.positive("context_length");
  if (const auto epsilon = model.find_number("attention.layer_norm_rms_epsilon")) {
    config["rms_norm_eps"] = *epsilon;
  }
  config["vocab_size"] = model.tensor(model.embedding + ".weight").shape.front();
  model.pass_over("vocab_size");
  model.pass_over("tensor_data_layout");  // the architecture says it
  config["tie_word_embeddings"] =
      model.embedding == kHead || !model.has_tensor(fmt::format("{}.weight", kHead));
}

void read_sizes(ModelReader& model, std::string_view class_name, std::string_view model_type) {
  read_outer_sizes(model, class_name, model_type);
  if (!model.has("feed_forward_length")) return;
  model.config["intermediate_size"] = model.one_of_layers("feed_forward_length");
}

void read_heads(ModelReader& model) {
  Json& config = model.config;
  const int64_t num_heads = model.positive("attention.head_count");
  config["num_attention_heads"] = num_heads;
  config["num_key_value_heads"] =
      model.has("attention.head_count_kv") ? model.positive("attention.head_count_kv") : num_heads;
  const int64_t head_dim = read_head_dim(model, num_heads);
  if (model.find_integer("attention.value_length").value_or(head_dim) != head_dim) {
    unsupported(model, "attention.value_length",
                "another length than that of keys is not supported here");
  }
  config["head_dim"] = head_dim;
}

void read_decoder(ModelReader& model, std::string_view class_name, std::string_view model_type) {
  read_sizes(model, class_name, model_type);
  read_heads(model);
  read_rope(model, model.config.at("head_dim").get<int64_t>());
}

void name_outer(ModelReader& model, Change norm) {
  model.name(model.embedding, "model.embed_tokens");
  if (model.embedding != kHead) model.name(kHead, "lm_head");
  model.name("output_norm", "model.norm", {}, norm);
}

void state_rotary_part(ModelReader& model) {
  if (!model.config.contains("partial_rotary_factor")) model.config["partial_rotary_factor"] = 1.0;
}

void read_width_of_tensor(ModelReader& model) {
  model.config["intermediate_size"] = model.tensor("blk.0.ffn_up.weight").shape.front();
}

std::vector<bool> layers_with(const ModelReader& model, std::string_view tensor) {
  std::vector<bool> out;
  const auto num_layers = model.config.at("num_hidden_layers").get<int64_t>();
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    out.push_back(model.has_tensor(fmt::format("blk.{}.{}", layer, tensor)));
  }
  return out;
}

Json read_layer_types(ModelReader& model, int64_t pattern, WindowOrder order) {
  const std::vector<bool> given = model.booleans_of_layers("attention.sliding_window_pattern");
  if (given.empty()) {
    pattern = model.find_integer("attention.sliding_window_pattern").value_or(pattern);
  }
  Json out = Json::array();
  const auto num_layers = model.config.at("num_hidden_layers").get<int64_t>();
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const int64_t full = order == WindowOrder::kFullFirst ? 0 : pattern - 1;
    const bool has_window =
        given.empty() ? pattern > 0 && layer % pattern != full : given[static_cast<size_t>(layer)];
    out.push_back(has_window ? "sliding_attention" : "full_attention");
  }
  return out;
}

void drop_predicting_layers(ModelReader& model) {
  const int64_t predicting = model.find_integer("nextn_predict_layers").value_or(0);
  const int64_t num_layers = model.num_layers() - predicting;
  if (predicting < 0 || num_layers < 1) {
    unsupported(model, "nextn_predict_layers",
                fmt::format("{} of {} layers can't be for predicting further tokens", predicting,
                            model.num_layers()));
  }
  model.config["num_hidden_layers"] = num_layers;
  model.ignore_layers_from(num_layers);
}

bool read_windows(ModelReader& model, int64_t pattern, WindowOrder order) {
  const int64_t window = model.find_integer("attention.sliding_window").value_or(0);
  if (window <= 0) return false;
  model.config["sliding_window"] = window;
  model.config["layer_types"] = read_layer_types(model, pattern, order);
  return true;
}

void drop_fields(ModelReader& model, std::initializer_list<const char*> fields) {
  for (const char* field : fields) model.config.erase(field);
}

void read_layer_norm(ModelReader& model, const char* field) {
  if (const auto epsilon = model.find_number("attention.layer_norm_epsilon")) {
    model.config[field] = *epsilon;
  }
}

void read_attention_bias(ModelReader& model) {
  model.config["attention_bias"] =
      model.find_layer_with("attn_q.bias") || model.find_layer_with("attn_qkv.bias");
}

void read_biases(ModelReader& model) {
  read_attention_bias(model);
  model.config["mlp_bias"] = model.has_tensor("blk.0.ffn_up.bias");
}

void name_bare(ModelReader& model,
               std::string_view stored,
               const std::string& name,
               const char* stored_suffix) {
  model.rules.push_back({.stored = std::string(stored),
                         .name = name,
                         .bias_suffix = "",
                         .stored_suffix = stored_suffix});
}

namespace {

void name_qkv(ModelReader& model, bool is_rotated) {
  const auto head_dim = model.config.at("head_dim").get<int64_t>();
  const auto add = [&](const char* part, const char* name, const char* heads) {
    const auto num_heads = model.config.at(heads).get<int64_t>();
    RowOrder order;
    if (is_rotated) order = rotated_heads("heads", num_heads, num_heads * head_dim);
    model.name(std::string("blk.{layer}.") + part,
               std::string("model.layers.{layer}.self_attn.") + name, order);
  };
  add("attn_q", "q_proj", "num_attention_heads");
  add("attn_k", "k_proj", "num_key_value_heads");
  model.name("blk.{layer}.attn_v", "model.layers.{layer}.self_attn.v_proj");
}

}  // namespace

void name_attention(ModelReader& model) {
  name_qkv(model, false);
  model.name("blk.{layer}.attn_output", "model.layers.{layer}.self_attn.o_proj");
}

void name_rotated_attention(ModelReader& model) {
  name_qkv(model, true);
  model.name("blk.{layer}.attn_output", "model.layers.{layer}.self_attn.o_proj");
}

void name_qk_norms(ModelReader& model, Change norm) {
  model.name("blk.{layer}.attn_q_norm", "model.layers.{layer}.self_attn.q_norm", {}, norm);
  model.name("blk.{layer}.attn_k_norm", "model.layers.{layer}.self_attn.k_norm", {}, norm);
}

void name_norms(ModelReader& model, Change norm) {
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.input_layernorm", {}, norm);
  model.name("blk.{layer}.ffn_norm", "model.layers.{layer}.post_attention_layernorm", {}, norm);
}

void name_four_norms(ModelReader& model, Change norm) {
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.input_layernorm", {}, norm);
  model.name("blk.{layer}.post_attention_norm", "model.layers.{layer}.post_attention_layernorm", {},
             norm);
  model.name("blk.{layer}.ffn_norm", "model.layers.{layer}.pre_feedforward_layernorm", {}, norm);
  model.name("blk.{layer}.post_ffw_norm", "model.layers.{layer}.post_feedforward_layernorm", {},
             norm);
}

void name_post_norms(ModelReader& model) {
  model.name("blk.{layer}.post_attention_norm", "model.layers.{layer}.post_attention_layernorm");
  model.name("blk.{layer}.post_ffw_norm", "model.layers.{layer}.post_feedforward_layernorm");
}

void name_decoder(ModelReader& model, Change norm) {
  name_outer(model, norm);
  name_norms(model, norm);
  name_attention(model);
  name_mlp(model);
}

void name_mlp(ModelReader& model, const std::string& mlp) {
  model.name("blk.{layer}.ffn_gate", mlp + ".gate_proj");
  model.name("blk.{layer}.ffn_up", mlp + ".up_proj");
  model.name("blk.{layer}.ffn_down", mlp + ".down_proj");
}

void name_projections(ModelReader& model, const std::string& attention) {
  model.name("blk.{layer}.attn_q", attention + ".q_proj");
  model.name("blk.{layer}.attn_k", attention + ".k_proj");
  model.name("blk.{layer}.attn_v", attention + ".v_proj");
  model.name("blk.{layer}.attn_output", attention + ".o_proj");
}

}  // namespace tgi::gguf
