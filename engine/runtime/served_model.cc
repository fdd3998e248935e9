#include "engine/runtime/served_model.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/paths.h"
#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/load_ranks.h"
#include "engine/text/byte_tokenizer.h"
#include "engine/weights/checkpoint.h"

namespace tgi {
namespace {

constexpr int32_t kBlockSize = 16;

DType resolve_dtype(std::string_view setting, std::string_view name, DType automatic) {
  if (name == "auto") return automatic;
  if (const auto dtype = dtype_from_name(name)) return *dtype;
  throw Error(Code::kInvalidArgument,
              fmt::format("{} \"{}\" is not known; use auto, f32, bf16 or f16", setting, name));
}

DType weight_dtype(const ModelOptions& options, const ModelConfig& config) {
  const Backend& backend = find_backend(options.backend);
  return resolve_dtype("dtype", options.dtype, backend.automatic_dtype(config.checkpoint_dtype));
}

DType cache_dtype(const ModelOptions& options, DType weights) {
  if (options.kv_cache_dtype == "f8e4m3") return DType::kF8E4M3;
  return resolve_dtype("kv cache dtype", options.kv_cache_dtype, weights);
}

// The name of a storage format is no order but a claim about the checkpoint, as TGI's users make
// it.
void check_format_claim(const ModelOptions& options, const LoadedConfig& model) {
  if (options.quantize == model.weight_format->name) return;
  const bool is_dense = model.weight_format->name == "dense";
  throw Error(Code::kInvalidArgument,
              fmt::format("quantize {}: the checkpoint is {}; {}", options.quantize,
                          is_dense ? "not quantised" : model.weight_format->name,
                          is_dense ? "use int8 or int4 to round it while loading, or make such a "
                                     "checkpoint with `tgi quantize`"
                                   : "leave quantize out"));
}

Quantization resolve_quantization(const ModelOptions& options, const LoadedConfig& model) {
  for (const WeightFormat* format : weight_formats()) {
    if (format->name == "dense" || options.quantize != format->name) continue;
    check_format_claim(options, model);
    return Quantization::kNone;
  }
  for (const Quantization kind : {Quantization::kNone, Quantization::kInt8, Quantization::kInt4}) {
    if (options.quantize != quantization_name(kind)) continue;
    if (kind == Quantization::kNone && options.quantize_group_size != 0) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("quantize group size {} is given, but quantize is none; use int8 or "
                              "int4",
                              options.quantize_group_size));
    }
    return kind;
  }
  throw Error(
      Code::kInvalidArgument,
      fmt::format("quantize \"{}\" is not known; use none, int8 or int4", options.quantize));
}

LoadWeightsOptions load_weights_options(const ModelOptions& options,
                                        const LoadedConfig& model,
                                        DType dtype) {
  return {.dtype = dtype,
          .quantization = resolve_quantization(options, model),
          .group_size = options.quantize_group_size,
          .world_size = options.num_shard};
}

void check_options(const ModelOptions& options) {
  const auto positive = [](std::string_view name, int64_t value) {
    if (value < 1)
      throw Error(Code::kInvalidArgument,
                  fmt::format("{} must be at least 1, got {}", name, value));
  };
  positive("max_running", options.max_running);
  positive("max_batch_tokens", options.max_batch_tokens);
  positive("max_waiting", options.max_waiting);
  positive("max_total_tokens", options.max_total_tokens.value_or(2) - 1);
  if (!(options.cuda_memory_fraction > 0 && options.cuda_memory_fraction <= 1)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("cuda_memory_fraction must be above 0 and at most 1, got {}",
                            options.cuda_memory_fraction));
  }
  if (options.load_format != "auto" && options.load_format != "dummy") {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("load format \"{}\" is not known; use auto or dummy", options.load_format));
  }
}

std::unique_ptr<Tokenizer> open_tokenizer(const ModelOptions& options,
                                          const FileSource& files,
                                          int32_t vocab_size) {
  const bool has_none = !files.find("tokenizer.json") && !files.find("tokenizer.model");
  if (options.load_format == "dummy" && has_none) {
    log_warn("the model has no tokenizer, each byte is a token", {{"model", options.model}});
    return std::make_unique<ByteTokenizer>(vocab_size);
  }
  return load_tokenizer(files);
}

// A model's files where another tokenizer_config.json has the chat template.
class OtherTokenizerConfig final : public FileSource {
 public:
  OtherTokenizerConfig(const FileSource& files, const std::string& path)
      : files_(files), path_(path), file_(path) {}

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    if (name == "tokenizer_config.json") return file_.bytes();
    // These would go before it.
    if (name == "chat_template.jinja" || name == "chat_template.json") return std::nullopt;
    return files_.find(name);
  }

  std::string describe(const std::string& name) const override {
    return name == "tokenizer_config.json" ? path_ : files_.describe(name);
  }

 private:
  const FileSource& files_;
  const std::string path_;
  const MappedFile file_;
};

std::optional<ChatTemplate> open_chat_template(const ModelOptions& options,
                                               const FileSource& files) {
  if (options.tokenizer_config.empty()) return load_chat_template(files);
  return load_chat_template(OtherTokenizerConfig(files, options.tokenizer_config));
}

}  // namespace

DeviceOptions device_options(const ModelOptions& options, DType dtype) {
  return {.dtype = dtype,
          .deterministic = options.deterministic,
          .memory_fraction = options.cuda_memory_fraction,
          .cache_dir = cache_dir(),
          .cpu_isa = options.cpu_isa,
          .num_threads = options.num_threads,
          .pin_threads = options.pin_threads};
}

void ServedModel::check(const ModelOptions& options) {
  check_options(options);
  check_num_ranks(find_backend(options.backend), options.num_shard);
  ServedModel model;
  const LoadedConfig loaded = model.read_files(options);
  const DType dtype = weight_dtype(options, loaded.config);
  const LoadWeightsOptions how = load_weights_options(options, loaded, dtype);
  check_quantization(loaded, how);
  const MatrixStorage storage = how.quantization == Quantization::kNone
                                    ? MatrixStorage(dtype)
                                    : MatrixStorage(how.quantization, effective_group_size(how));
  find_backend(options.backend).check_storage(storage, cache_dtype(options, dtype));
  if (options.load_format != "dummy") (void)open_checkpoint(*model.files_);
}

LoadedConfig ServedModel::read_files(const ModelOptions& options) {
  files_ = options.model == kDemoModel ? open_demo_model() : open_folder(options.model);
  LoadedConfig loaded = load_model_config(*files_);
  const int32_t vocab_size = loaded.config.vocab_size;
  tokenizer_ = open_tokenizer(options, *files_, vocab_size);
  if (tokenizer_->vocab_size() > vocab_size) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: the tokenizer has {} tokens, but the model's vocabulary only {}; is this "
                    "tokenizer of another model?",
                    options.model, tokenizer_->vocab_size(), vocab_size));
  }
  chat_template_ = open_chat_template(options, *files_);
  return loaded;
}

std::unique_ptr<ServedModel> ServedModel::load(const ModelOptions& options) {
  const auto started = Clock::now();
  check_options(options);
  std::unique_ptr<ServedModel> model(new ServedModel());
  model->options_ = options;
  const LoadedConfig loaded = model->read_files(options);
  const ModelConfig& config = loaded.config;
  const FileSource& files = *model->files_;

  const DType dtype = weight_dtype(options, config);
  const DType kv_dtype = cache_dtype(options, dtype);
  const LoadWeightsOptions how = load_weights_options(options, loaded, dtype);
  const auto open = [&](const DeviceInfo& device) {
    return options.load_format == "dummy"
               ? make_dummy_checkpoint(loaded, 0, device.makes_random_matrices)
               : open_checkpoint(files);
  };
  LoadedRanks ranks = load_ranks(find_backend(options.backend), loaded, open,
                                 {.num_ranks = options.num_shard,
                                  .device = device_options(options, dtype),
                                  .weights = how,
                                  .kv_dtype = kv_dtype,
                                  .block_size = kBlockSize,
                                  .max_running = options.max_running,
                                  .max_batch_tokens = options.max_batch_tokens,
                                  .max_total_tokens = options.max_total_tokens,
                                  .kv_cache_bytes = options.kv_cache_bytes,
                                  .stop = options.stop});
  const PlannedMemory& plan = ranks.plan;

  ipc::ModelStatus& facts = model->facts_;
  facts.name = options.model;
  facts.architecture = config.architecture;
  facts.dtype = dtype_name(dtype);
  facts.quantize = quantization_name(how.quantization);
  facts.quantize_group_size = effective_group_size(how);
  const HeldWeights held = held_weights(loaded, how);
  if (!held.types.empty()) {
    // Only the cpu backend has kernels for a checkpoint's own integers.
    const bool holds_integers = ranks.backend == "cpu";
    facts.quantize = loaded.weight_format->name;
    facts.quantize_held = holds_integers ? held.types : facts.dtype;
    facts.quantize_group_size = holds_integers ? held.group_size : 0;
  }
  facts.kv_cache_dtype = dtype_name(kv_dtype);
  facts.backend = ranks.backend;
  facts.isa = ranks.isa;
  facts.device = ranks.device;
  for (const LeftOutKernels& one : ranks.left_out) {
    facts.left_out.push_back({one.isa, one.kernel, one.reason});
  }
  facts.num_shard = options.num_shard;
  facts.deterministic = options.deterministic;
  facts.num_threads = ranks.num_threads;
  facts.num_params = ranks.num_params;
  facts.vocab_size = config.vocab_size;
  facts.max_total_tokens = plan.max_total_tokens;
  facts.max_running = options.max_running;
  facts.max_batch_tokens = options.max_batch_tokens;
  facts.max_best_of = options.limits.max_best_of;
  facts.max_stop_sequences = options.limits.max_stop_sequences;
  facts.max_top_n_tokens = options.limits.max_top_n_tokens;
  facts.block_size = kBlockSize;
  facts.num_blocks = plan.num_blocks;
  facts.kv_bytes_per_token = ranks.block_bytes / kBlockSize;
  facts.weight_bytes_per_token = ranks.streamed_bytes_per_token;
  facts.has_chat_template = model->chat_template_.has_value();
  facts.memory = {.weights = ranks.weight_bytes,
                  .kv_cache = ranks.kv_bytes,
                  .workspace = ranks.workspace_bytes,
                  .available = ranks.available_bytes};

  Limits limits = options.limits;
  limits.max_total_tokens = plan.max_total_tokens;
  limits.max_logit_bias = ranks.max_logit_bias;
  model->max_top_tokens_ = ranks.max_top_tokens;
  model->intake_ = std::make_unique<Intake>(
      limits, *model->tokenizer_, model->chat_template_ ? &*model->chat_template_ : nullptr,
      config.vocab_size);
  EngineOptions engine;
  engine.scheduler = {.max_running = options.max_running,
                      .max_batch_tokens = options.max_batch_tokens,
                      .target_step_ms = options.target_step_ms};
  engine.num_blocks = plan.num_blocks;
  engine.block_size = kBlockSize;
  engine.max_waiting = options.max_waiting;
  engine.slow_reader_timeout = options.slow_reader_timeout;
  engine.eos_token_ids = config.eos_token_ids;
  engine.on_failure = options.on_failure;
  model->engine_ = std::make_unique<Engine>(engine, std::move(ranks.workers), *model->tokenizer_);

  facts.load_seconds = std::chrono::duration<double>(Clock::now() - started).count();
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

ipc::ModelStatus ServedModel::status() const {
  ipc::ModelStatus out = facts_;
  const EngineStats stats = engine_->stats();
  out.num_blocks_used = stats.num_blocks_used;
  out.num_blocks_cached = stats.num_blocks_cached;
  out.num_blocks_free = stats.num_blocks_free;
  out.num_running = stats.num_running;
  out.num_waiting = stats.num_waiting;
  out.captured_rows.assign(stats.prepared_rows.begin(), stats.prepared_rows.end());
  return out;
}

}  // namespace tgi
