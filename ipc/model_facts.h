// The method "inspect": what a model's folder holds and what it would need, without loading it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ipc/protocol.h"

namespace tgi::ipc {

inline constexpr std::string_view kInspect = "inspect";

struct InspectParams {
  std::string model;  // a folder, or "demo"
};

struct StoredWeights {  // of one element type
  std::string dtype;    // as the file spells it: "BF16"
  int64_t num_tensors = 0;
  int64_t bytes = 0;
};

struct MetadataRow {  // what a file says of itself
  std::string name;   // "llama.block_count"
  std::string value;  // as a line of text: long ones by their beginning, lists by their number
};

struct ContextPlan {  // one sequence of so many tokens
  int64_t tokens = 0;
  int64_t kv_cache = 0;  // bytes
  int64_t total = 0;     // bytes: weights, workspace and KV cache
};

struct DTypePlan {
  // "f32", "bf16", "int8", "int4"; of a quantised checkpoint its format alone: "gptq"
  std::string dtype;
  std::string error;      // why it can't be loaded so; then there is nothing else
  int64_t weights = 0;    // bytes
  int64_t workspace = 0;  // bytes, with the longest of the contexts
  int64_t kv_bytes_per_token = 0;
  std::vector<ContextPlan> contexts;
};

struct ModelFacts {
  std::string architecture;
  int64_t num_params = 0;
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  std::vector<KvHeads> kv_heads;     // where layers differ, or some share: those of each
  int64_t num_shared_kv_layers = 0;  // that read the keys and values of another
  int64_t vocab_size = 0;
  int64_t max_positions = 0;   // the longest context it is meant for
  int64_t chosen_tokens = 0;   // that a token sees of those before it, at most; 0: all
  int64_t sliding_window = 0;  // tokens: the longest; 0: no layer has one
  int64_t num_windowed_layers = 0;
  int64_t num_experts = 0;        // of a layer; 0: none
  int64_t experts_per_token = 0;  // that a token goes to, beside those that all go to
  int64_t num_state_layers = 0;   // that carry a state
  int64_t state_bytes = 0;        // of all of them, for one sequence
  bool tied_embeddings = false;
  std::string checkpoint_dtype;
  std::string weight_format;
  std::vector<StoredWeights> stored;
  std::string weights_error;                // why its weights can't be read
  std::vector<std::string> chat_templates;  // their names; none: the model has no template
  bool knows_tools = false;                 // its template does
  std::string chat_template_error;          // why it can't be used
  std::vector<MetadataRow> metadata;        // of a GGUF file, by name
  std::string licence;  // what its README or LICENSE says; "" when they say nothing
  std::string backend;  // that the plans below are for
  int64_t memory = 0;   // bytes that backend may use
  std::vector<DTypePlan> plans;
};

// Of a folder that holds a LoRA adapter the result is {"adapter": these}.
struct AdapterFolder {
  std::string base_model;  // that it says it was made for; "": not said
  std::string revision;    // of it; "": not said
  int64_t rank = 0;        // as its config says, as all up to `targets`
  double alpha = 0.0;
  bool is_rank_stabilised = false;   // what is added has the size alpha / sqrt(rank)
  bool is_dora = false;              // DoRA
  bool has_b_biases = false;         // lora_bias
  std::string bias;                  // which biases were trained: none, all or lora_only
  std::vector<std::string> targets;  // names, a pattern, or "all-linear"
  std::vector<std::string> modules;  // the last parts of the names of those that it changes
  int64_t max_rank = 0;              // of its tensors
  int64_t num_linears = 0;           // that have a product
  int64_t bytes = 0;                 // of its tensors
  std::string weights_error;         // why these can't be read; then there are none of the four
};

OrderedJson to_json(const InspectParams& params);
InspectParams inspect_params_from_json(const OrderedJson& params);
OrderedJson to_json(const ModelFacts& facts);
ModelFacts model_facts_from_json(const OrderedJson& json);
OrderedJson to_json(const AdapterFolder& adapter);
AdapterFolder adapter_folder_from_json(const OrderedJson& json);

}  // namespace tgi::ipc
