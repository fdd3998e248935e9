#include "engine/runtime/inspect.h"
#include "engine/gguf/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/adapter_path.h"
#include "base/files/preset_files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "engine/gguf/metadata_text.h"
#include "engine/lora/adapter_files.h"
#include "engine/lora/adapter_source.h"
#include "engine/model/model_weights.h"
#include "engine/model/state_layout.h"
#include "engine/model/tensor_table.h"
#include "engine/model/transformer.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/kv_facts.h"
#include "engine/runtime/load_ranks.h"
#include "engine/runtime/memory_plan.h"
#include "engine/text/chat_template.h"
#include "engine/weights/checkpoint.h"

namespace tgi {
namespace {

constexpr int32_t kBlockSize = 16;
constexpr std::array<int32_t, 3> kContexts = {2048, 8192, 32768};

struct PlannedDType {
  std::string_view name;
  DType dtype;
  Quantization quantization;
};

constexpr std::array<PlannedDType, 4> kPlannedDTypes = {{
    {"f32", DType::kF32, Quantization::kNone},
    {"bf16", DType::kBF16, Quantization::kNone},
    {"int8", DType::kBF16, Quantization::kInt8},
    {"int4", DType::kBF16, Quantization::kInt4},
}};

// A quantised checkpoint keeps its own integers, and the rest in what nobody has to ask for.
std::vector<PlannedDType> planned_dtypes(const LoadedConfig& model, const Backend& backend) {
  if (!model.weight_format->is_quantised) return {kPlannedDTypes.begin(), kPlannedDTypes.end()};
  return {{model.weight_format->name, backend.automatic_dtype(model.config.checkpoint_dtype),
           Quantization::kNone}};
}

std::vector<int32_t> planned_contexts(const ModelConfig& config) {
  std::vector<int32_t> out;
  for (const int32_t context : kContexts) {
    if (context < config.max_positions) out.push_back(context);
  }
  out.push_back(config.max_positions);
  return out;
}

ipc::DTypePlan plan_dtype(const PlannedDType& row,
                          const LoadedConfig& model,
                          const ModelOptions& options,
                          Backend& backend) {
  // It only answers how large things would be; that depends on its threads.
  const auto device =
      backend.make_device({.dtype = row.dtype, .num_threads = options.num_threads.value_or(0)});
  ipc::DTypePlan out;
  out.dtype = row.name;
  out.weights =
      plan_weight_bytes(model, *device, {.dtype = row.dtype, .quantization = row.quantization});
  const int32_t max_batch_tokens =
      options.max_batch_tokens.value_or(device->info().max_batch_tokens);
  StateSize size{.num_blocks = 1,
                 .block_size = kBlockSize,
                 .kv_dtype = row.dtype,
                 .num_slots = options.max_running.value_or(automatic_running(
                     device->info().max_running, device->info().memory_bytes - out.weights,
                     state_bytes(recurrent_layout(model.config), 1))),
                 .max_batch_tokens = max_batch_tokens,
                 .max_adapters = num_adapters(device->info(), options.adapter_memory_fraction,
                                              options.max_active_adapters)};
  const int64_t activations =
      Transformer::workspace_bytes(model.config, device->info(), 1, max_batch_tokens);
  for (const int32_t context : planned_contexts(model.config)) {
    const KvPlan plan = plan_kv_groups(model.config, context);
    const int64_t block_bytes = device->kv_bytes(kv_layout(model.config, plan, size));
    size.max_blocks_per_slot = context / kBlockSize + (context % kBlockSize != 0 ? 1 : 0);
    out.workspace = activations + device->slot_bytes(slot_layout(model.config, plan, size));
    out.kv_bytes_per_token = plan.groups.num_groups() * block_bytes / kBlockSize;
    const int64_t kv_cache =
        block_bytes * plan.groups.blocks_of_context(context, max_batch_tokens, kBlockSize);
    out.contexts.push_back(
        {.tokens = context, .kv_cache = kv_cache, .total = out.weights + out.workspace + kv_cache});
  }
  return out;
}

void add_plans(const LoadedConfig& model, const ModelOptions& options, ipc::ModelFacts& facts) {
  Backend& backend = find_backend("cpu");
  facts.backend = "cpu";
  facts.memory = backend.make_device({.num_threads = 1})->info().memory_bytes;
  for (const PlannedDType& row : planned_dtypes(model, backend)) {
    try {
      facts.plans.push_back(plan_dtype(row, model, options, backend));
    } catch (const Error& error) {
      ipc::DTypePlan& plan = facts.plans.emplace_back();
      plan.dtype = row.name;
      plan.error = error.what();
    }
  }
}

void add_config(const LoadedConfig& model, ipc::ModelFacts& facts) {
  const ModelConfig& config = model.config;
  facts.architecture = config.architecture;
  facts.num_layers = config.num_layers;
  facts.hidden_size = config.hidden_size;
  facts.intermediate_size = config.intermediate_size;
  facts.num_heads = config.num_heads;
  facts.num_kv_heads = cached_heads(config, 1);
  facts.head_dim = cached_head_dim(config);
  facts.kv_heads = shown_kv_heads(config);
  facts.num_shared_kv_layers = num_shared_kv_layers(config);
  facts.vocab_size = config.vocab_size;
  facts.max_positions = config.max_positions;
  facts.chosen_tokens = config.indexer.rule.sees_all_up_to();
  facts.sliding_window = longest_window(config);
  for (const LayerPlan& layer : config.layers) {
    if (layer.has_attention && layer.reach() > 0) ++facts.num_windowed_layers;
  }
  facts.num_experts = config.experts.num_experts;
  facts.experts_per_token = facts.num_experts > 0 ? config.experts.route.top_k : 0;
  const StateLayout state = recurrent_layout(config);
  facts.num_state_layers = state.num_layers;
  facts.state_bytes = state_bytes(state, 1);
  facts.tied_embeddings = config.tied_embeddings;
  facts.checkpoint_dtype = dtype_name(config.checkpoint_dtype);
  facts.weight_format = model.weight_format->name;
  facts.num_params = count_stored_parameters(TensorTable(model));
}

void add_weights(const FileSource& files, ipc::ModelFacts& facts) {
  try {
    const auto checkpoint = open_checkpoint(files);
    std::map<std::string, ipc::StoredWeights> by_dtype;
    for (const std::string_view name : checkpoint->names()) {
      const StoredTensor& tensor = *checkpoint->find(name);
      ipc::StoredWeights& stored = by_dtype[std::string(tensor.dtype_name)];
      stored.dtype = tensor.dtype_name;
      ++stored.num_tensors;
      stored.bytes += static_cast<int64_t>(checkpoint->bytes(tensor).size());
    }
    for (auto& [dtype, stored] : by_dtype) facts.stored.push_back(std::move(stored));
    std::ranges::sort(facts.stored, std::greater(), &ipc::StoredWeights::bytes);
  } catch (const Error& error) {
    facts.weights_error = error.what();
  }
}

void add_chat_template(const FileSource& files, ipc::ModelFacts& facts) {
  try {
    const std::optional<ChatTemplate> chat = load_chat_template(files);
    if (!chat) return;
    facts.chat_templates = chat->names();
    facts.knows_tools = chat->mentions("tools", true);
  } catch (const Error& error) {
    facts.chat_template_error = error.what();
  }
}

void add_metadata(const FileSource& files, ipc::ModelFacts& facts) {
  const auto text = files.find_text(gguf::kMetadataTextFile);
  if (!text) return;
  const Json metadata = parse_json(*text);
  for (const auto& [name, value] : metadata.items()) {
    facts.metadata.push_back({.name = name, .value = value.get<std::string>()});
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n'\"#*";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// The first line that `choose` takes something from.
template <typename Choose>
std::string first_line(std::string_view text, Choose choose) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view found = trimmed(choose(text.substr(0, end)));
    if (!found.empty()) {
      return is_valid_utf8(found) ? std::string(found.substr(0, 200)) : std::string();
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return "";
}

// A README of the hub begins with "---", lines of YAML, "---"; one is "license: apache-2.0", which
// may be "other" with a name of its own below.
std::string licence_of_card(std::string_view readme) {
  if (!readme.starts_with("---")) return "";
  const std::string_view front = readme.substr(0, readme.find("\n---", 3));
  const auto value_of = [&](std::string_view key) {
    return first_line(front, [&](std::string_view line) {
      return line.starts_with(key) ? line.substr(key.size()) : std::string_view();
    });
  };
  const std::string licence = value_of("license:");
  const std::string name = value_of("license_name:");
  return licence == "other" && !name.empty() ? name : licence;
}

std::string find_licence(const FileSource& files, const std::string& model) {
  if (model == kDemoModel) return "apache-2.0";
  if (const auto readme = files.find_text("README.md")) {
    const std::string licence = licence_of_card(*readme);
    if (!licence.empty()) return licence;
  }
  for (const char* name : {"LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE"}) {
    const auto text = files.find_text(name);
    if (!text) continue;
    const std::string title = first_line(*text, [](std::string_view line) { return line; });
    return title.empty() ? name : fmt::format("{} ({})", title, name);
  }
  return "";
}

}  // namespace

ipc::ModelFacts inspect_model(const ModelOptions& asked) {
  ModelOptions options = asked;
  if (is_preset_path(options.model)) options.model = read_preset(options.model).from;
  const auto files =
      options.model == kDemoModel ? open_demo_model() : open_model_files(options.model);
  const LoadedConfig model = load_model_config(*files);
  ipc::ModelFacts facts;
  add_config(model, facts);
  add_weights(*files, facts);
  add_chat_template(*files, facts);
  add_metadata(*files, facts);
  facts.licence = find_licence(*files, options.model);
  add_plans(model, options, facts);
  return facts;
}

bool holds_adapter(const std::string& model) {
  if (model == kDemoModel || is_preset_path(model)) return false;
  return is_gguf_adapter_path(model) || is_peft_folder(model);
}

ipc::AdapterFolder inspect_adapter(const std::string& folder) {
  const auto files = open_adapter_source(folder);
  const AdapterConfig config = read_adapter_config(*files);
  ipc::AdapterFolder out{.base_model = config.base_model,
                         .revision = config.revision,
                         .rank = config.rank,
                         .alpha = config.alpha,
                         .is_rank_stabilised = config.is_rank_stabilised,
                         .is_dora = config.is_dora,
                         .has_b_biases = config.has_b_biases,
                         .bias = config.bias,
                         .targets = config.targets,
                         .modules = {},
                         .weights_error = {}};
  try {
    AdapterFacts facts = read_adapter_facts(*files);
    out.modules = std::move(facts.targets);
    out.max_rank = facts.max_rank;
    out.num_linears = facts.num_linears;
    out.bytes = facts.size_bytes;
  } catch (const Error& error) {
    out.weights_error = error.what();
  }
  return out;
}

}  // namespace tgi
