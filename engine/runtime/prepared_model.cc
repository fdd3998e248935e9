// Reads and checks a model before it is loaded. What a setting of ModelOptions stands for is
// settled here.
#include "engine/runtime/prepared_model.h"
#include "engine/gguf/model_files.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files/paths.h"
#include "base/files/preset_files.h"
#include "base/files/regular_file.h"
#include "base/files/speculator_folder.h"
#include "base/known_names.h"
#include "base/log.h"
#include "engine/lora/adapter_source.h"
#include "engine/lora/merged_weights.h"
#include "engine/model/tensor_table.h"
#include "engine/model/weight_check.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/preset_defaults.h"
#include "engine/text/byte_tokenizer.h"

namespace tgi {
namespace {

// REQUIRES: a name that the table of settings allows.
DType dtype_of(std::string_view name, DType automatic) {
  for (const DType dtype : kDTypes) {
    if (dtype_name(dtype) == name) return dtype;
  }
  TGI_CHECK(name == "auto");
  return automatic;
}

// The name of a storage format is no order but a claim about the checkpoint, as TGI's users make
// it.
void check_format_claim(const ModelOptions& options, const LoadedConfig& model) {
  if (options.quantize == model.weight_format->name) return;
  const bool is_quantised = model.weight_format->is_quantised;
  throw Error(Code::kInvalidArgument,
              fmt::format("quantize {}: the checkpoint is {}; {}", options.quantize,
                          is_quantised ? model.weight_format->name : "not quantised",
                          is_quantised ? "leave quantize out"
                                       : "use int8 or int4 to round it while loading, or make such "
                                         "a checkpoint with `tgi quantize`"));
}

// TGI's words are those of kernels that are not here: what is done instead is said.
std::optional<Quantization> rounding_of_alias(const ModelOptions& options,
                                              const LoadedConfig& model) {
  for (const RoundingAlias& alias : kRoundingAliases) {
    if (options.quantize != alias.name) continue;
    if (model.weight_format->is_quantised) {
      check_format_claim(options, model);
      return Quantization::kNone;
    }
    log_warn("the weights are rounded by the kernels of tgi, not in the way that quantize names",
             {{"quantize", options.quantize}, {"rounded_to", alias.rounding}});
    return quantization_from_name(alias.rounding);
  }
  return std::nullopt;
}

Quantization resolve_quantization(const ModelOptions& options, const LoadedConfig& model) {
  if (const auto rounding = rounding_of_alias(options, model)) return *rounding;
  for (const WeightFormat* format : weight_formats()) {
    if (!format->is_quantised || options.quantize != format->name) continue;
    check_format_claim(options, model);
    return Quantization::kNone;
  }
  const auto kind = quantization_from_name(options.quantize);
  TGI_CHECK(kind.has_value());  // the table of settings allows no other
  if (*kind == Quantization::kNone && options.quantize_group_size != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("quantize group size {} is given, but quantize is none; use one of {}",
                            options.quantize_group_size, fmt::join(kRoundingNames, ", ")));
  }
  return *kind;
}

LoadWeightsOptions load_weights_options(const ModelOptions& options,
                                        const LoadedConfig& model,
                                        DType dtype) {
  return {.dtype = dtype,
          .quantization = resolve_quantization(options, model),
          .group_size = options.quantize_group_size,
          .world_size = options.num_shard};
}

std::unique_ptr<Tokenizer> open_tokenizer(const ModelOptions& options,
                                          const FileSource& files,
                                          int32_t vocab_size) {
  if (options.load_format == "dummy" && !has_tokenizer(files)) {
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

// A model's files where a preset has the chat template.
class PresetTemplate final : public FileSource {
 public:
  PresetTemplate(const FileSource& files, const std::string& text, std::string preset)
      : files_(files), text_(text), preset_(std::move(preset)) {}

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    if (name == kTemplateFile) return std::as_bytes(std::span(text_));
    if (name.starts_with("additional_chat_templates/")) return std::nullopt;
    return files_.find(name);
  }

  std::string describe(const std::string& name) const override {
    return name == kTemplateFile ? preset_ + ": TEMPLATE" : files_.describe(name);
  }

 private:
  static constexpr std::string_view kTemplateFile = "chat_template.jinja";

  const FileSource& files_;
  const std::string& text_;
  const std::string preset_;
};

std::optional<ChatTemplate> open_chat_template(const PreparedModel& model) {
  const FileSource& files = *model.files;
  const ModelOptions& options = model.options;
  if (!options.tokenizer_config.empty()) {
    return load_chat_template(OtherTokenizerConfig(files, options.tokenizer_config));
  }
  if (model.preset == nullptr || !model.preset->chat_template) return load_chat_template(files);
  return load_chat_template(PresetTemplate(files, *model.preset->chat_template, options.model));
}

// With tokens that stand for images, which have rows behind those of the vocabulary.
int64_t num_embedded_tokens(const LoadedConfig& model) {
  const TensorTable tensors(model);
  const TensorEntry* const embedding = tensors.find(Role::kTokenEmbedding);
  const int64_t vocab_size = model.config.vocab_size;
  return embedding == nullptr ? vocab_size : std::max(vocab_size, embedding->rows);
}

void read_texts(PreparedModel& model) {
  const FileSource& files = *model.files;
  model.loaded = load_model_config(files);
  if (model.options.pooling != "auto" && model.loaded.task == Task::kGenerate) {
    make_embedder(model.loaded);
  }
  const int32_t vocab_size = model.loaded.config.vocab_size;
  model.rules = read_generation_rules(files, vocab_size);
  model.tokenizer = open_tokenizer(model.options, files, vocab_size);
  if (model.tokenizer->vocab_size() > num_embedded_tokens(model.loaded)) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: the tokenizer has {} tokens, but the model's vocabulary only {}; is this "
                    "tokenizer of another model?",
                    model.options.model, model.tokenizer->vocab_size(), vocab_size));
  }
  add_end_tokens(model.loaded.architecture->end_tokens, *model.tokenizer,
                 model.loaded.config.eos_token_ids);
  model.chat_template = open_chat_template(model);
}

void settle_storage(PreparedModel& model) {
  const ModelOptions& options = model.options;
  LoadRanksOptions& ranks = model.ranks;
  const DType dtype =
      dtype_of(options.dtype, model.backend->automatic_dtype(model.loaded.config.checkpoint_dtype));
  ranks.weights = load_weights_options(options, model.loaded, dtype);
  check_quantization(model.loaded, ranks.weights);
  ranks.kv_dtype = dtype_of(options.kv_cache_dtype, dtype);
  MatrixStorage storage(ranks.weights.quantization, effective_group_size(ranks.weights));
  storage.dtype = dtype;
  model.backend->check_storage(storage, ranks.kv_dtype);
  ranks.device = device_options(options, dtype);
}

// What of them each rank has while it merges.
int merge_threads(int32_t num_ranks) {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / num_ranks);
}

void open_merged_adapter(PreparedModel& model) {
  std::string& folder = model.options.merge_adapter;
  if (folder.empty()) return;
  const bool is_of_preset = model.preset != nullptr && folder == model.preset->adapter;
  if (is_of_preset && model.loaded.weight_format->is_quantised) {
    // What it adds can't be made part of such weights: it is every request's adapter instead.
    model.own_adapter = std::exchange(folder, {});
    return;
  }
  try {
    if (model.options.load_format == "dummy") {
      throw Error(Code::kUnsupported, "can't be merged into random weights");
    }
    model.adapter_files = open_adapter_source(folder);
    model.adapter = made_of_intact(*model.adapter_files, [&] {
      const auto base = open_checkpoint(*model.files);
      return open_adapter(*model.adapter_files, model.loaded, base.get());
    });
  } catch (const Error& error) {
    throw error.in(fmt::format("adapter {}", folder));
  }
}

void choose_drafter(PreparedModel& model) {
  if (!model.options.speculator.empty() && !model.options.draft_model.empty()) {
    throw Error(Code::kInvalidArgument,
                "speculator and draft_model: one of them drafts, not both; leave one out");
  }
  Json config;
  if (!model.options.speculator.empty() && model.options.speculator != kOwnLayer) {
    model.speculator_files = open_folder(model.options.speculator);
    config = parse_json(model.speculator_files->require_text("config.json"));
  }
  const AskedDrafter asked{.settings = model.options,
                           .model = model.loaded,
                           .tokenizer = *model.tokenizer,
                           .backend = *model.backend,
                           .device = model.ranks.device,
                           .dtype = model.ranks.weights.dtype,
                           .kv_dtype = model.ranks.kv_dtype,
                           .files = model.speculator_files.get(),
                           .config = model.speculator_files != nullptr ? &config : nullptr,
                           .model_files = model.files.get()};
  for (const DrafterKind* const kind : drafter_kinds()) {
    if (!kind->is_asked(asked)) continue;
    model.drafter = kind->prepare(asked);
    model.drafter_name = kind->name;
    return;
  }
  if (model.speculator_files == nullptr) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}: not the config.json of what drafts, as it has neither "
                          "medusa_num_heads nor the model_type mlp_speculator, nor is it of an "
                          "EAGLE-3 drafter; a smaller model is given with --draft-model",
                          model.speculator_files->describe("config.json")));
}

int32_t num_drafts(const PreparedModel& model) {
  if (!model.options.speculate) return model.drafter->usual_drafts();
  const int32_t wanted = *model.options.speculate;
  if (wanted <= model.drafter->most_drafts()) return wanted;
  throw Error(Code::kInvalidArgument,
              fmt::format("speculate is {}, but the {} drafter can draft only {} tokens for a "
                          "step; give --speculate less, or leave it out",
                          wanted, model.drafter_name, model.drafter->most_drafts()));
}

// In the words of `tgi ps`.
void settle_speculation(PreparedModel& model) {
  const ModelOptions& options = model.options;
  if (options.speculate == 0) return;
  if (!options.speculate && options.speculator.empty() && options.draft_model.empty()) return;
  if (model.loaded.task != Task::kGenerate) {
    model.speculation_off = "the model draws no tokens";
  } else if (has_state(model.loaded.config)) {
    model.speculation_off = "the model has layers that carry a state, which can't go back";
  } else {
    choose_drafter(model);
    model.ranks.drafter = model.drafter.get();
    model.ranks.max_drafts = num_drafts(model);
    return;
  }
  log_warn("nothing is drafted", {{"because", model.speculation_off}});
}

}  // namespace

DeviceOptions device_options(const ModelOptions& options, DType dtype) {
  return {.dtype = dtype,
          .deterministic = options.deterministic,
          .memory_fraction = options.cuda_memory_fraction,
          .cache_dir = cache_dir(),
          .cpu_isa = options.cpu_isa,
          .num_threads = options.num_threads.value_or(0),
          .pin_threads = options.pin_threads};
}

OpenCheckpoint PreparedModel::open_checkpoint_of() const {
  return [this](const DeviceInfo& device) {
    auto checkpoint = options.load_format == "dummy"
                          ? make_dummy_checkpoint(loaded, 0, device.makes_random_matrices)
                          : open_checkpoint(*files);
    if (adapter_files == nullptr) return checkpoint;
    return std::unique_ptr<Checkpoint>(std::make_unique<MergedWeights>(
        std::move(checkpoint), adapter, loaded, merge_threads(options.num_shard)));
  };
}

std::optional<PoolingMode> PreparedModel::pooling() const {
  if (options.pooling == "auto") return std::nullopt;
  return pooling_mode_from_name(options.pooling == "last-token" ? "lasttoken" : options.pooling);
}

// Heads in place of a model stand for the one that they draft for.
static void settle_model(ModelOptions& options) {
  if (options.model == kDemoModel || !options.speculator.empty()) return;
  const std::optional<std::string> base = base_of_speculator(options.model);
  if (!base) return;
  if (*base != kDemoModel && !std::filesystem::is_directory(*base)) {
    throw Error(Code::kNotFound,
                fmt::format("{}: these heads draft for {}, which is no folder here; `tgi load` and "
                            "`tgi serve` download it, or give the model and these with "
                            "--speculator",
                            options.model, *base));
  }
  options.speculator = options.model;
  options.model = *base;
}

static void settle_preset(PreparedModel& model) {
  model.preset = std::make_shared<const Preset>(read_preset(model.options.model));
  model.model_path = model.preset->from;
  if (model.model_path != kDemoModel && base_of_speculator(model.model_path)) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: FROM {} are heads that draft, and no model; name the model, and "
                            "load the preset with --speculator",
                            model.options.model, model.model_path));
  }
  fill_settings(*model.preset, model.options);
  for (const std::string& part : model.preset->not_used) {
    log_warn("a part of the model is not used", {{"model", model.options.model}, {"part", part}});
  }
}

std::unique_ptr<PreparedModel> prepare_model(const ModelOptions& asked) {
  const auto started = Clock::now();
  ipc::check_model_settings(asked);
  auto model = std::make_unique<PreparedModel>();
  model->asked_model = asked.model;
  model->options = asked;
  if (is_preset_path(asked.model)) {
    settle_preset(*model);
  } else {
    settle_model(model->options);
    model->model_path = model->options.model;
  }
  const ModelOptions& options = model->options;
  model->backend = &find_backend(options.backend);
  check_num_ranks(*model->backend, options.num_shard);
  model->ranks.num_ranks = options.num_shard;
  model->ranks.max_running = options.max_running;
  model->ranks.max_batch_tokens = options.max_batch_tokens;
  model->ranks.max_total_tokens = options.max_total_tokens;
  model->ranks.kv_cache_bytes = options.kv_cache_bytes;
  model->ranks.adapter_memory_fraction = options.adapter_memory_fraction;
  model->ranks.max_active_adapters = options.max_active_adapters;
  model->ranks.stop = options.stop;
  model->ranks.promised_bytes = options.promised_bytes;
  model->files =
      model->model_path == kDemoModel ? open_demo_model() : open_model_files(model->model_path);
  return made_of_intact(*model->files, [&] {
    read_texts(*model);
    if (model->preset != nullptr)
      check_preset_schema(*model->preset, model->loaded.task, options.model);
    settle_storage(*model);
    open_merged_adapter(*model);
    const std::unique_ptr<Checkpoint> checkpoint = model->open_checkpoint_of()({});
    check_weights(model->loaded, *checkpoint);
    settle_speculation(*model);
    if (model->loaded.task != Task::kGenerate) {
      model->vector_head = std::make_shared<const VectorHead>(model->loaded, *model->files,
                                                              *checkpoint, model->pooling());
    }
    model->seconds = std::chrono::duration<double>(Clock::now() - started).count();
    return std::move(model);
  });
}

GivenBack given_back_by(const ServedModel& serving, const PreparedModel& model, bool is_certain) {
  const ipc::ModelStatus status = serving.status();
  GivenBack out{.num_ranks = static_cast<int32_t>(status.num_shard)};
  if (status.backend != model.backend->name()) return out;
  out.bytes = status.memory.held();
  if (is_certain && ranks_share_memory(*model.backend)) out.bytes -= untouched_kv_bytes(status);
  return out;
}

int32_t check_fits(const PreparedModel& model, std::span<const GivenBack> given_back) {
  return check_ranks(*model.backend, model.loaded, model.ranks, given_back);
}

int64_t untouched_kv_bytes(const ipc::ModelStatus& status) {
  if (status.num_blocks == 0) return 0;
  const int64_t touched = status.num_blocks_used + status.num_blocks_cached;
  return status.memory.kv_cache / status.num_blocks * (status.num_blocks - touched);
}

}  // namespace tgi
