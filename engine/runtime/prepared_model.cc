// Reads and checks a model before it is loaded. What a setting of ModelOptions stands for is
// settled here.
#include "engine/runtime/prepared_model.h"

#include <fmt/format.h>

#include "base/files/paths.h"
#include "base/files/regular_file.h"
#include "base/log.h"
#include "engine/model/weight_check.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/demo_model.h"
#include "engine/text/byte_tokenizer.h"

namespace tgi {
namespace {

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
      : files_(files), path_(path), text_(read_regular_file(path)) {}

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    if (name == "tokenizer_config.json") return std::as_bytes(std::span(text_));
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
  const std::string text_;
};

std::optional<ChatTemplate> open_chat_template(const ModelOptions& options,
                                               const FileSource& files) {
  if (options.tokenizer_config.empty()) return load_chat_template(files);
  return load_chat_template(OtherTokenizerConfig(files, options.tokenizer_config));
}

void read_texts(PreparedModel& model) {
  const FileSource& files = *model.files;
  model.loaded = load_model_config(files);
  const int32_t vocab_size = model.loaded.config.vocab_size;
  model.tokenizer = open_tokenizer(model.options, files, vocab_size);
  if (model.tokenizer->vocab_size() > vocab_size) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: the tokenizer has {} tokens, but the model's vocabulary only {}; is this "
                    "tokenizer of another model?",
                    model.options.model, model.tokenizer->vocab_size(), vocab_size));
  }
  model.chat_template = open_chat_template(model.options, files);
}

void settle_storage(PreparedModel& model) {
  const ModelOptions& options = model.options;
  LoadRanksOptions& ranks = model.ranks;
  const DType dtype = weight_dtype(options, model.loaded.config);
  ranks.weights = load_weights_options(options, model.loaded, dtype);
  check_quantization(model.loaded, ranks.weights);
  ranks.kv_dtype = cache_dtype(options, dtype);
  const bool is_rounded = ranks.weights.quantization != Quantization::kNone;
  model.backend->check_storage(
      is_rounded ? MatrixStorage(ranks.weights.quantization, effective_group_size(ranks.weights))
                 : MatrixStorage(dtype),
      ranks.kv_dtype);
  ranks.device = device_options(options, dtype);
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

OpenCheckpoint PreparedModel::open_checkpoint_of() const {
  return [this](const DeviceInfo& device) {
    return options.load_format == "dummy"
               ? make_dummy_checkpoint(loaded, 0, device.makes_random_matrices)
               : open_checkpoint(*files);
  };
}

std::unique_ptr<PreparedModel> prepare_model(const ModelOptions& options) {
  const auto started = Clock::now();
  check_options(options);
  auto model = std::make_unique<PreparedModel>();
  model->options = options;
  model->backend = &find_backend(options.backend);
  check_num_ranks(*model->backend, options.num_shard);
  model->ranks.num_ranks = options.num_shard;
  model->ranks.max_running = options.max_running;
  model->ranks.max_batch_tokens = options.max_batch_tokens;
  model->ranks.max_total_tokens = options.max_total_tokens;
  model->ranks.kv_cache_bytes = options.kv_cache_bytes;
  model->ranks.stop = options.stop;
  model->files = options.model == kDemoModel ? open_demo_model() : open_folder(options.model);
  return made_of_intact(*model->files, [&] {
    read_texts(*model);
    settle_storage(*model);
    check_weights(model->loaded, *model->open_checkpoint_of()({}));
    model->seconds = std::chrono::duration<double>(Clock::now() - started).count();
    return std::move(model);
  });
}

void check_fits(const PreparedModel& model, const ServedModel& serving) {
  const ipc::ModelStatus status = serving.status();
  GivenBack given_back{.num_ranks = static_cast<int32_t>(status.num_shard)};
  if (status.backend == model.backend->name()) {
    // What of its KV cache no token has touched yet is free already on some machines, and counted
    // twice here. Then the load is refused later, and the model that gave way is loaded again.
    const ipc::MemoryPlan& memory = status.memory;
    given_back.bytes = memory.weights + memory.kv_cache + memory.workspace;
  }
  check_ranks(*model.backend, model.loaded, model.ranks, given_back);
}

}  // namespace tgi
