// Encoders: BERT and what is computed as it is, Jina's BERT, Nomic BERT, ModernBERT.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/gguf/architectures.h"
#include "engine/gguf/vector_files.h"

namespace tgi::gguf {
namespace {

int64_t head_dim_of(const ModelReader& model) {
  return model.config.at("hidden_size").get<int64_t>() /
         model.config.at("num_attention_heads").get<int64_t>();
}

// Heads are all alike, and share the hidden size.
void check_heads(ModelReader& model) {
  const int64_t num_heads = model.config.at("num_attention_heads").get<int64_t>();
  const auto check = [&](const char* key, int64_t wanted) {
    if (!model.has(key) || model.positive(key) == wanted) return;
    throw Error(
        Code::kUnsupported,
        fmt::format("{}.{}: expected {} in a model of {} heads and a hidden size of {}, got "
                    "{}",
                    model.architecture(), key, wanted, num_heads,
                    model.config.at("hidden_size").get<int64_t>(), model.positive(key)));
  };
  check("attention.head_count_kv", num_heads);
  check("attention.key_length", head_dim_of(model));
  check("attention.value_length", head_dim_of(model));
}

void read_encoder(ModelReader& model, const char* class_name, const char* model_type) {
  read_sizes(model, class_name, model_type);
  model.config["num_attention_heads"] = model.positive("attention.head_count");
  check_heads(model);
}

// Converters drop dimensions of 1: a table of one row is a vector.
void name_table(ModelReader& model, const char* stored, const std::string& name) {
  TensorRule rule{.stored = stored, .name = name};
  const GgufTensor* const tensor = model.find_tensor(fmt::format("{}.weight", stored));
  if (tensor != nullptr && tensor->shape.size() == 1) {
    rule.shape_of_weight = {1, tensor->shape.front()};
  }
  model.rules.push_back(std::move(rule));
}

// How many types of tokens there are; none: 0.
int64_t num_token_types(const ModelReader& model) {
  const GgufTensor* const types = model.find_tensor("token_types.weight");
  if (types == nullptr) return 0;
  return types->shape.size() == 1 ? 1 : types->shape.front();
}

// q, k and v are one tensor in some files.
void name_parts(ModelReader& model,
                const std::string& attention,
                std::array<const char*, 3> names) {
  const auto width = model.config.at("hidden_size").get<int64_t>();
  const bool is_one = model.find_layer_with("attn_qkv.weight").has_value();
  constexpr const char* kStored[] = {"attn_q", "attn_k", "attn_v"};
  for (size_t i = 0; i < names.size(); ++i) {
    model.name(is_one ? "blk.{layer}.attn_qkv" : fmt::format("blk.{{layer}}.{}", kStored[i]),
               attention + names[i],
               is_one ? rows_of(static_cast<int64_t>(i) * width, width) : RowOrder{});
  }
}

void name_attention(ModelReader& model, const std::string& layer) {
  name_parts(model, layer + "attention.self.", {"query", "key", "value"});
  model.name("blk.{layer}.attn_output", layer + "attention.output.dense");
  model.name("blk.{layer}.attn_output_norm", layer + "attention.output.LayerNorm");
}

void name_embeddings(ModelReader& model) {
  model.name("token_embd", "embeddings.word_embeddings");
  model.name("position_embd", "embeddings.position_embeddings");
  model.name("token_embd_norm", "embeddings.LayerNorm");
}

// The rows of positions are all that there are: those before the first one of RoBERTa are cut off.
void read_positions(ModelReader& model) {
  model.config["max_position_embeddings"] = model.tensor("position_embd.weight").shape.front();
}

void read_full_bert(ModelReader& model) {
  const bool classifies = has_classifier(model);
  // A classifier of two layers is RoBERTa's. BERT's own has its pooler for the first one, which
  // converters leave out.
  if (classifies && !model.has_tensor("cls.weight")) {
    throw Error(Code::kUnsupported,
                "cls.output: the layer in front of this classifier, which scores can't do without, "
                "is not in the file; take the model's folder");
  }
  read_encoder(model, classifies ? "RobertaForSequenceClassification" : "BertModel",
               classifies ? "roberta" : "bert");
  Json& config = model.config;
  read_layer_norm(model, "layer_norm_eps");
  read_positions(model);
  config["hidden_act"] = "gelu";
  config["type_vocab_size"] = num_token_types(model);
  if (classifies) {
    config["pad_token_id"] = -1;  // positions are counted from 0
    read_labels(model);
    model.name("cls", "classifier.dense");
    name_table(model, "cls.output", "classifier.out_proj");
  }
  name_embeddings(model);
  name_table(model, "token_types", "embeddings.token_type_embeddings");
  const std::string layer = "encoder.layer.{layer}.";
  name_attention(model, layer);
  model.name("blk.{layer}.ffn_up", layer + "intermediate.dense");
  model.name("blk.{layer}.ffn_down", layer + "output.dense");
  model.name("blk.{layer}.layer_output_norm", layer + "output.LayerNorm");
}

void read_distilbert(ModelReader& model) {
  constexpr double kEpsilon = 1e-12;
  const bool classifies = has_classifier(model);
  read_encoder(model, classifies ? "DistilBertForSequenceClassification" : "DistilBertModel",
               "distilbert");
  Json& config = model.config;
  read_layer_norm(model, "layer_norm_eps");
  if (std::abs(config.value("layer_norm_eps", kEpsilon) - kEpsilon) > 1e-15) {
    throw Error(Code::kUnsupported,
                fmt::format("{}.attention.layer_norm_epsilon: expected {} where tokens have no "
                            "types, got {}",
                            model.architecture(), kEpsilon, config["layer_norm_eps"].dump()));
  }
  read_positions(model);
  config["dim"] = config.at("hidden_size");
  config["n_layers"] = config.at("num_hidden_layers");
  config["n_heads"] = config.at("num_attention_heads");
  config["hidden_dim"] = config.at("intermediate_size");
  config["activation"] = "gelu";
  const std::string layer = "transformer.layer.{layer}.";
  name_parts(model, layer + "attention.", {"q_lin", "k_lin", "v_lin"});
  drop_fields(model, {"layer_norm_eps", "hidden_size", "num_hidden_layers", "num_attention_heads",
                      "intermediate_size"});
  if (classifies) {
    read_labels(model);
    model.name("cls", "pre_classifier");
    name_table(model, "cls.output", "classifier");
  }
  name_embeddings(model);
  model.name("blk.{layer}.attn_output", layer + "attention.out_lin");
  model.name("blk.{layer}.attn_output_norm", layer + "sa_layer_norm");
  model.name("blk.{layer}.ffn_up", layer + "ffn.lin1");
  model.name("blk.{layer}.ffn_down", layer + "ffn.lin2");
  model.name("blk.{layer}.layer_output_norm", layer + "output_layer_norm");
}

// One for layers that see all, one for those that see what is near.
void read_two_ropes(ModelReader& model) {
  Json& config = model.config;
  config["global_rope_theta"] = model.find_number("rope.freq_base").value_or(10000.0);
  config["local_rope_theta"] =
      model.find_number("rope.freq_base_swa").value_or(config["global_rope_theta"].get<double>());
  const int64_t head_dim = head_dim_of(model);
  if (model.find_integer("rope.dimension_count").value_or(head_dim) == head_dim &&
      model.find_text("rope.scaling.type").value_or("none") == "none") {
    return;
  }
  throw Error(Code::kUnsupported,
              fmt::format("{}.rope: heads that are rotated in part, or scaled, are not supported "
                          "for this architecture",
                          model.architecture()));
}

// Each third one sees all, the first before others, where the file doesn't say.
void read_near_layers(ModelReader& model) {
  const auto window = model.find_integer("attention.sliding_window");
  if (window) model.config["local_attention"] = *window;
  const std::vector<bool> given = model.booleans_of_layers("attention.sliding_window_pattern");
  const int64_t pattern =
      given.empty() ? model.find_integer("attention.sliding_window_pattern").value_or(3) : 0;
  Json types = Json::array();
  for (int64_t layer = 0; layer < model.num_layers(); ++layer) {
    const bool is_near =
        given.empty() ? pattern > 0 && layer % pattern != 0 : given[static_cast<size_t>(layer)];
    types.push_back(is_near && window ? "sliding_attention" : "full_attention");
  }
  model.config["layer_types"] = std::move(types);
}

void read_modern_head(ModelReader& model, bool classifies) {
  const auto kind = model.find_integer("classifier.pooling_type").value_or(1);
  if (kind != 1 && kind != 2) {
    throw Error(Code::kUnsupported,
                fmt::format("{}.classifier.pooling_type: {} is not supported; known are 1 (mean), "
                            "2 (cls)",
                            model.architecture(), kind));
  }
  model.config["classifier_pooling"] = kind == 1 ? "mean" : "cls";
  if (!classifies) return;
  read_labels(model);
  model.name("cls", "head.dense");
  model.name("cls.norm", "head.norm");
  name_table(model, "cls.output", "classifier");
}

void name_modern_bert(ModelReader& model) {
  model.name("token_embd", "model.embeddings.tok_embeddings");
  model.name("token_embd_norm", "model.embeddings.norm");
  model.name("output_norm", "model.final_norm");
  const std::string layer = "model.layers.{layer}.";
  model.name("blk.{layer}.attn_norm", layer + "attn_norm");
  model.name("blk.{layer}.attn_qkv", layer + "attn.Wqkv");
  model.name("blk.{layer}.attn_output", layer + "attn.Wo");
  model.name("blk.{layer}.ffn_norm", layer + "mlp_norm");
  model.name("blk.{layer}.ffn_up", layer + "mlp.Wi");
  model.name("blk.{layer}.ffn_down", layer + "mlp.Wo");
}

}  // namespace

void read_bert(ModelReader& model) {
  if (num_token_types(model) == 0) {
    read_distilbert(model);
  } else {
    read_full_bert(model);
  }
}

void read_jina_bert_v2(ModelReader& model) {
  if (has_classifier(model) || model.has_tensor("cls.weight")) {
    throw Error(Code::kUnsupported,
                "cls: the layer in front of this classifier, which scores can't do without, is not "
                "in the file; take the model's folder");
  }
  read_encoder(model, "JinaBertModel", "bert");
  read_layer_norm(model, "layer_norm_eps");
  Json& config = model.config;
  config["position_embedding_type"] = "alibi";
  config["feed_forward_type"] = "geglu";
  config["type_vocab_size"] = num_token_types(model);
  model.name("token_embd", "embeddings.word_embeddings");
  name_table(model, "token_types", "embeddings.token_type_embeddings");
  model.name("token_embd_norm", "embeddings.LayerNorm");
  const std::string layer = "encoder.layer.{layer}.";
  name_attention(model, layer);
  model.name("blk.{layer}.ffn_gate", layer + "mlp.gated_layers(0)");
  model.name("blk.{layer}.ffn_up", layer + "mlp.gated_layers(1)");
  model.name("blk.{layer}.ffn_down", layer + "mlp.wo");
  model.name("blk.{layer}.layer_output_norm", layer + "mlp.layernorm");
}

void read_nomic_bert(ModelReader& model) {
  (void)has_classifier(model);
  read_encoder(model, "NomicBertModel", "nomic_bert");
  read_layer_norm(model, "layer_norm_eps");
  read_rope(model, head_dim_of(model));
  model.config["hidden_act"] = "silu";
  model.config["type_vocab_size"] = num_token_types(model);
  model.name("token_embd", "embeddings.word_embeddings");
  name_table(model, "token_types", "embeddings.token_type_embeddings");
  model.name("token_embd_norm", "emb_ln");
  const std::string layer = "encoder.layers.{layer}.";
  model.name("blk.{layer}.attn_qkv", layer + "attn.Wqkv");
  model.name("blk.{layer}.attn_output", layer + "attn.out_proj");
  model.name("blk.{layer}.attn_output_norm", layer + "norm1");
  model.name("blk.{layer}.ffn_up", layer + "mlp.fc11");
  model.name("blk.{layer}.ffn_gate", layer + "mlp.fc12");
  model.name("blk.{layer}.ffn_down", layer + "mlp.fc2");
  model.name("blk.{layer}.layer_output_norm", layer + "norm2");
}

void read_modern_bert(ModelReader& model) {
  const bool classifies = has_classifier(model);
  read_encoder(model, classifies ? "ModernBertForSequenceClassification" : "ModernBertModel",
               "modernbert");
  Json& config = model.config;
  // Files of a config without layer_norm_eps have it as if the norms were of another kind.
  if (config.contains("rms_norm_eps")) config["norm_eps"] = config["rms_norm_eps"];
  read_layer_norm(model, "norm_eps");
  drop_fields(model, {"rms_norm_eps", "tie_word_embeddings"});
  config["hidden_activation"] = model.find_text("hidden_activation").value_or("gelu");
  read_two_ropes(model);
  read_near_layers(model);
  read_modern_head(model, classifies);
  name_modern_bert(model);
}

}  // namespace tgi::gguf
