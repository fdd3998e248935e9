#include "engine/runtime/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files/preset_files.h"
#include "base/log.h"
#include "engine/dialect/dialect.h"
#include "engine/model/model_weights.h"
#include "engine/model/state_layout.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/kv_facts.h"
#include "engine/runtime/load_ranks.h"
#include "engine/runtime/prepared_model.h"
#include "engine/runtime/preset_defaults.h"

namespace tgi {

// Of one sequence in a step: more of a long text would keep the others waiting.
static constexpr int32_t kMaxForcedTokens = 16;

void ServedModel::check(const ModelOptions& options) {
  (void)prepare_model(options);
}

std::unique_ptr<ServedModel> ServedModel::load(const ModelOptions& options) {
  return load(prepare_model(options));
}

static std::unique_ptr<Drafter> load_drafter(const PreparedModel& prepared,
                                             const LoadedRanks& ranks) {
  if (prepared.drafter == nullptr) return nullptr;
  const auto load = [&] { return prepared.drafter->load(ranks.drafted); };
  const bool has_own = prepared.speculator_files != nullptr;
  return made_of_intact(has_own ? *prepared.speculator_files : *prepared.files, load);
}

static void check_rules(const GenerationRules& rules, int32_t max_logit_bias) {
  for (const std::string& field : rules.unheeded) {
    log_warn("a rule of generation_config.json is not kept", {{"field", field}});
  }
  if (rules.suppressed_ids.size() <= static_cast<size_t>(max_logit_bias)) return;
  throw Error(
      Code::kUnsupported,
      fmt::format("generation_config.json: suppress_tokens has {} tokens, this device takes "
                  "up to {}",
                  rules.suppressed_ids.size(), max_logit_bias));
}

std::unique_ptr<ServedModel> ServedModel::load(std::unique_ptr<PreparedModel> prepared) {
  const auto started = Clock::now();
  const ModelOptions& options = prepared->options;
  const LoadedConfig& loaded = prepared->loaded;
  const ModelConfig& config = loaded.config;
  const LoadWeightsOptions& how = prepared->ranks.weights;
  LoadedRanks ranks = made_of_intact(*prepared->files, [&] {
    return load_ranks(*prepared->backend, loaded, prepared->open_checkpoint_of(), prepared->ranks);
  });
  if (prepared->adapter_files != nullptr) prepared->adapter_files->check_intact();
  std::unique_ptr<Drafter> drafter = load_drafter(*prepared, ranks);
  // From here on nothing of the files is needed any more.
  std::unique_ptr<ServedModel> model(new ServedModel());
  model->options_ = options;
  model->tokenizer_ = std::move(prepared->tokenizer);
  model->chat_template_ = std::move(prepared->chat_template);
  model->preset_ = std::move(prepared->preset);
  const PlannedMemory& plan = ranks.plan;
  const int32_t block_size = prepared->ranks.block_size;

  ipc::ModelStatus& facts = model->facts_;
  facts.name = options.model;
  facts.served_name = options.name;
  facts.architecture = config.architecture;
  facts.task = task_name(loaded.task);
  model->vector_head_ = prepared->vector_head;
  if (model->vector_head_ != nullptr) facts.dimensions = model->vector_head_->kept_dimensions();
  facts.dtype = dtype_name(how.dtype);
  facts.quantize = quantization_name(how.quantization);
  facts.quantize_group_size = effective_group_size(how);
  const HeldWeights held = held_weights(loaded, how, ranks.keeps);
  if (!held.types.empty()) {
    facts.quantize = loaded.weight_format->name;
    facts.quantize_held = ranks.keeps.stored_integers ? held.types : facts.dtype;
    facts.quantize_group_size = ranks.keeps.stored_integers ? held.group_size : 0;
  }
  facts.kv_cache_dtype = dtype_name(prepared->ranks.kv_dtype);
  facts.backend = ranks.backend;
  facts.isa = ranks.isa;
  facts.device = ranks.device;
  for (const LeftOutKernels& one : ranks.left_out) {
    facts.left_out.push_back({one.isa, one.kernel, one.reason});
  }
  facts.num_shard = options.num_shard;
  facts.merge_adapter = options.merge_adapter;
  facts.deterministic = options.deterministic;
  facts.num_threads = ranks.num_threads;
  facts.num_params = ranks.num_params;
  facts.vocab_size = config.vocab_size;
  facts.max_total_tokens = plan.max_total_tokens;
  facts.max_running = ranks.max_running;
  facts.max_batch_tokens = ranks.max_batch_tokens;
  facts.speculate = prepared->ranks.max_drafts;
  facts.speculation_off = prepared->speculation_off;
  facts.drafter = prepared->drafter_name;
  facts.max_best_of = options.max_best_of;
  facts.max_stop_sequences = options.max_stop_sequences;
  facts.max_top_n_tokens = options.max_top_n_tokens;
  facts.block_size = block_size;
  facts.kv_groups = {.num_full = ranks.kv_groups.num_full,
                     .num_windowed = ranks.kv_groups.num_windowed,
                     .window = ranks.kv_groups.window,
                     .num_layers = ranks.num_group_layers,
                     .heads = shown_kv_heads(config),
                     .num_shared = num_shared_kv_layers(config)};
  facts.num_blocks = plan.num_blocks;
  facts.kv_bytes_per_token = ranks.kv_groups.num_groups() * ranks.block_bytes / block_size;
  facts.weight_bytes_per_token = ranks.streamed_bytes_per_token;
  facts.has_chat_template = model->chat_template_.has_value();
  facts.memory = {.weights = ranks.weight_bytes,
                  .kv_cache = ranks.kv_bytes,
                  .workspace = ranks.workspace_bytes,
                  .adapters = ranks.adapter_bytes,
                  .states = state_bytes(recurrent_layout(config), ranks.max_running),
                  .drafter = ranks.drafter_bytes,
                  .available = ranks.available_bytes};

  const GenerationRules& rules = prepared->rules;
  check_rules(rules, ranks.max_logit_bias);
  const Limits limits{.max_total_tokens = plan.max_total_tokens,
                      .max_best_of = options.max_best_of,
                      .max_stop_sequences = options.max_stop_sequences,
                      .max_top_n_tokens = options.max_top_n_tokens,
                      .seed = options.seed,
                      .max_drafts = prepared->ranks.max_drafts,
                      .max_logit_bias = ranks.max_logit_bias,
                      .suppressed_ids = rules.suppressed_ids};
  model->max_top_tokens_ = ranks.max_top_tokens;
  const ChatTemplate* const chat_template =
      model->chat_template_ ? &*model->chat_template_ : nullptr;
  const dialect::Dialects dialects =
      dialect::choose_dialects(chat_template, options.tool_parser, options.reasoning_parser);
  if (dialects.tools != nullptr) facts.tool_parser = dialects.tools->name;
  if (dialects.reasoning != nullptr) facts.reasoning_parser = dialects.reasoning->name;
  model->guides_ = std::make_unique<GuideCompiler>(*model->tokenizer_, config.vocab_size,
                                                   config.eos_token_ids, dialects);
  // Nobody waits for it: a request that comes first makes what it needs itself.
  if (model->vector_head_ == nullptr && model->guides_->has_vocabulary()) {
    model->warming_guides_ = std::jthread([guides = model->guides_.get()] {
      try {
        guides->warm_up();
      } catch (const std::exception& error) {
        log_warn("the masks of guided answers were not made ahead", {{"error", error.what()}});
      }
    });
  }
  model->intake_ = std::make_unique<Intake>(limits, *model->tokenizer_, chat_template,
                                            config.vocab_size, model->guides_.get(), dialects);
  if (model->vector_head_ != nullptr) {
    model->vectors_ = std::make_unique<VectorIntake>(
        *model->vector_head_, *model->tokenizer_, chat_template, config.vocab_size,
        config.num_token_types, plan.max_total_tokens, config.is_causal);
    facts.max_total_tokens = model->vectors_->max_tokens();
  }
  EngineOptions engine;
  // A device that runs ahead of the host has the next step already when a token is known; a state
  // can't go back to where the grammar was too much to be followed.
  const bool takes_forced = ranks.workers->max_steps_in_flight() == 1 && !has_state(config);
  engine.scheduler = {.max_running = ranks.max_running,
                      .max_batch_tokens = ranks.max_batch_tokens,
                      .target_step_ms = options.target_step_ms,
                      .shares_prefixes = !has_state(config) && config.is_causal,
                      .whole_prompts = !config.is_causal,
                      .max_forced_tokens = takes_forced ? kMaxForcedTokens : 0};
  engine.num_blocks = plan.num_blocks;
  engine.block_size = block_size;
  engine.kv_groups = ranks.kv_groups;
  engine.max_waiting = options.max_waiting;
  engine.slow_reader_timeout = options.slow_reader_timeout;
  engine.vocab_size = config.vocab_size;
  engine.eos_token_ids = config.eos_token_ids;
  engine.adapters = {.memory_bytes = plan.adapter_bytes,
                     .max_active = ranks.max_active_adapters,
                     .cycle_time = options.adapter_cycle_time};
  engine.on_failure = options.on_failure;
  model->engine_ = std::make_unique<Engine>(engine, std::move(ranks.workers), *model->tokenizer_,
                                            std::move(drafter));
  // With an adapter merged into them the weights are no longer those of the folder.
  const bool has_files = options.load_format != "dummy" && prepared->model_path != kDemoModel &&
                         options.merge_adapter.empty();
  model->adapters_ = std::make_unique<AdapterStore>(loaded, how, options.num_shard,
                                                    has_files ? prepared->model_path : "",
                                                    *model->engine_, options.lorax_merging);
  if (!prepared->own_adapter.empty()) model->load_own_adapter(prepared->own_adapter);

  facts.load_seconds =
      prepared->seconds + std::chrono::duration<double>(Clock::now() - started).count();
  log_info("model loaded", {{"model", facts.name},
                            {"architecture", facts.architecture},
                            {"params", facts.num_params},
                            {"dtype", facts.dtype},
                            {"quantize", facts.quantize},
                            {"held", facts.quantize_held},
                            {"backend", facts.backend},
                            {"isa", facts.isa},
                            {"ranks", facts.num_shard},
                            {"threads", facts.num_threads},
                            {"seconds", fmt::format("{:.2f}", facts.load_seconds)}});
  return model;
}

// Found out at the load, not by the first request.
void ServedModel::load_own_adapter(const std::string& path) {
  const std::string name = name_of_preset(options_.model) + "+adapter";
  own_adapter_ = adapters_->load(name, path);
  const int64_t room = facts_.memory.adapters / std::max<int64_t>(facts_.num_shard, 1);
  if (own_adapter_->device_bytes > room) {
    throw Error(Code::kOutOfMemory,
                fmt::format("adapter {}: takes {} bytes of a device, and {} are kept for adapters; "
                            "--adapter-memory-fraction gives them more",
                            path, own_adapter_->device_bytes, room));
  }
  adapters_->pin(name, true);
}

template <typename Asked>
std::shared_ptr<const HostAdapter> ServedModel::adapter_of(const Asked& asked) {
  if (!asked.adapter) return own_adapter_;
  return asked.adapter_path ? adapters_->load(*asked.adapter, *asked.adapter_path)
                            : adapters_->find(*asked.adapter);
}

void ServedModel::require_task(std::string_view method, bool fits) const {
  if (fits) return;
  throw Error(
      Code::kInvalidArgument,
      fmt::format("{}: the model {} is made for the task {}, not for this; load one that is "
                  "made to {}",
                  method, facts_.name, facts_.task, method));
}

std::vector<std::unique_ptr<Request>> ServedModel::prepare_texts(std::string_view method,
                                                                 const ipc::VectorParams& asked) {
  const bool embeds = vectors_ != nullptr && vectors_->head().task() == Task::kEmbed;
  require_task(method, vectors_ != nullptr && embeds == (method == ipc::kEmbed));
  const std::shared_ptr<const HostAdapter> adapter = adapter_of(asked);
  std::vector<std::unique_ptr<Request>> requests = vectors_->prepare(asked);
  for (const auto& request : requests) request->adapter = adapter;
  return requests;
}

std::unique_ptr<Request> ServedModel::prepare(const ipc::GenerateRequest& asked,
                                              std::stop_token stop) {
  require_task(ipc::kGenerate, vectors_ == nullptr);
  // First: what is wrong with an adapter is no matter of the prompt.
  std::shared_ptr<const HostAdapter> adapter =
      asked.merged_adapters ? adapters_->merged(*asked.merged_adapters, std::move(stop))
                            : adapter_of(asked);
  const auto settled = with_defaults(preset_.get(), asked);
  std::unique_ptr<Request> request = intake_->prepare(settled ? *settled : asked);
  request->adapter = std::move(adapter);
  return request;
}

ipc::TokenizeResult ServedModel::tokenize(const ipc::TokenizeParams& asked) const {
  const auto settled = with_defaults(preset_.get(), asked);
  return intake_->tokenize(settled ? *settled : asked);
}

ipc::AdapterList ServedModel::list_adapters() const {
  return {.adapters = adapters_->list(),
          .max_bytes = facts_.memory.adapters / std::max<int64_t>(facts_.num_shard, 1),
          .used_bytes = engine_->stats().adapter_bytes_used,
          .max_active = options_.max_active_adapters};
}

ipc::ModelStatus ServedModel::status() const {
  ipc::ModelStatus out = facts_;
  const EngineStats stats = engine_->stats();
  out.num_blocks_used = stats.num_blocks_used;
  out.num_blocks_cached = stats.num_blocks_cached;
  out.num_blocks_free = stats.num_blocks_free;
  out.num_running = stats.num_running;
  out.num_waiting = stats.num_waiting;
  out.num_adapters = adapters_->count();
  out.num_active_adapters = stats.num_active_adapters;
  out.adapter_bytes_used = stats.adapter_bytes_used;
  out.captured_rows.assign(stats.prepared_rows.begin(), stats.prepared_rows.end());
  return out;
}

}  // namespace tgi
