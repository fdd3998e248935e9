// The settings of a model, in one table: how it is loaded and served. From it come the flags and
// environment variables of tgid, the fields of a load request, the flags of `tgi load`, what `tgi
// serve` passes on, and all that is written about them (docs/settings.md, man pages, completions).
// To add one: a member, a row, and the place that uses it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/known_names.h"
#include "ipc/setting.h"
#include "ipc/setting_rows.h"

namespace tgi::ipc {

struct ModelSettings {
  std::string load_format = "auto";
  std::string pooling = "auto";
  std::string tokenizer_config;  // "": the model's
  std::string tool_parser = "auto";
  std::string reasoning_parser = "auto";
  std::string dtype = "auto";
  std::string quantize = "none";
  int32_t quantize_group_size = 0;  // 0: the default of the kind
  std::string kv_cache_dtype = "auto";
  std::optional<int64_t> kv_cache_bytes;  // of all ranks together
  std::optional<int32_t> max_total_tokens;
  std::optional<int32_t> max_running;
  std::optional<int32_t> max_batch_tokens;
  double target_step_ms = 200;       // 0: off
  std::optional<int32_t> speculate;  // 0: none; empty: what the speculator usually does, or none
  std::string speculator;            // a folder; "": none
  std::string draft_model;           // as the model is told; "": none
  int32_t max_waiting = 8192;
  int32_t max_best_of = 16;
  int32_t max_stop_sequences = 16;
  int32_t max_top_n_tokens = 20;
  std::optional<int32_t> seed;  // of requests that name none; empty: another one each time
  std::string backend = "auto";
  int32_t num_shard = 1;
  bool deterministic = false;
  double cuda_memory_fraction = 0.9;
  std::string cpu_isa = "auto";
  std::optional<int32_t> num_threads;  // of all ranks
  bool pin_threads = false;
  std::chrono::milliseconds slow_reader_timeout{30000};
  double adapter_memory_fraction = 0.1;  // 0: no adapters
  int32_t max_active_adapters = 1024;
  std::chrono::milliseconds adapter_cycle_time{2000};
  bool lorax_merging = false;
  std::string merge_adapter;  // a folder; "": none
};

using ModelSetting = Setting<ModelSettings>;

inline constexpr auto kPoolingNames = names("auto", "cls", "mean", "max", "last-token");
inline constexpr auto kLoadFormats = names("auto", "dummy");
inline constexpr auto kToolParserChoices = joined(kAutoName, names("none"), kToolDialectNames);
inline constexpr auto kReasoningParserChoices =
    joined(kAutoName, names("none"), kReasoningDialectNames);
inline constexpr auto kDTypeChoices = joined(kAutoName, kDTypeNames);
inline constexpr auto kCacheDTypeChoices = joined(kAutoName, kDTypeNames, kCacheOnlyDTypeNames);
inline constexpr auto kQuantizeChoices =
    joined(names("none"), kRoundingNames, kWeightFormatNames, kRoundingAliasNames);
inline constexpr auto kBackendChoices = joined(kAutoName, kBackendNames);
inline constexpr auto kCpuIsaChoices = joined(kAutoName, kCpuIsaNames);

inline constexpr auto kModelSettings = std::to_array<ModelSetting>({
    setting<&ModelSettings::pooling>(
        {.name = "pooling",
         .value_name = "MODE",
         .help = "which hidden states make the vector of a text: of its first or last token, the "
                 "mean or the highest of all; auto: what the model's own files say. With another "
                 "value a model that draws tokens gives vectors",
         .scope = SettingScope::kLoad,
         .choices = kPoolingNames,
         .in_serve = true}),
    setting<&ModelSettings::load_format>(
        {.name = "load-format",
         .value_name = "FORMAT",
         .help = "dummy: random weights in the shapes of config.json, to measure speed without a "
                 "checkpoint",
         .scope = SettingScope::kModel,
         .choices = kLoadFormats}),
    setting<&ModelSettings::tokenizer_config>(
        {.name = "tokenizer-config",
         .value_name = "FILE",
         .help = "a tokenizer_config.json whose chat template goes before the model's own",
         .scope = SettingScope::kLoad,
         .is_file = true}),
    setting<&ModelSettings::tool_parser>(
        {.name = "tool-parser",
         .value_name = "NAME",
         .help = "how the model writes calls of tools; auto: as its chat template shows it; none: "
                 "tools are refused",
         .scope = SettingScope::kLoad,
         .choices = kToolParserChoices,
         .in_serve = true}),
    setting<&ModelSettings::reasoning_parser>(
        {.name = "reasoning-parser",
         .value_name = "NAME",
         .help = "how the model writes its reasoning; auto: as its chat template shows it; none: "
                 "reasoning stays in the text",
         .scope = SettingScope::kLoad,
         .choices = kReasoningParserChoices,
         .in_serve = true}),
    setting<&ModelSettings::dtype>(
        {.name = "dtype",
         .value_name = "TYPE",
         .help = "of the weights in memory; auto: as the checkpoint says; f32 is exact and takes "
                 "twice the memory and time",
         .scope = SettingScope::kLoad,
         .choices = kDTypeChoices,
         .in_status = true}),
    setting<&ModelSettings::quantize>(
        {.name = "quantize",
         .value_name = "KIND",
         .help = "int8, int4: round the weights of the layers while loading: less memory, faster "
                 "decoding, slightly different answers; the format of a quantised checkpoint is "
                 "known by itself and, where it is given, only checked; eetq and bitsandbytes, "
                 "words of TGI, are int8, bitsandbytes-nf4 and -fp4 int4",
         .scope = SettingScope::kLoad,
         .choices = kQuantizeChoices,
         .in_status = true}),
    setting<&ModelSettings::quantize_group_size>(
        {.name = "quantize-group-size",
         .help = "columns of a weight matrix that share a scale: 32, 64, 96 and so on to 256; 0: "
                 "128 for int8, 64 for int4",
         .scope = SettingScope::kLoad,
         .high = 256}),
    setting<&ModelSettings::kv_cache_dtype>(
        {.name = "kv-cache-dtype",
         .value_name = "TYPE",
         .help = "of the KV cache; auto: as dtype; int8 (with a scale for each token and head) "
                 "only on the CPU",
         .scope = SettingScope::kLoad,
         .choices = kCacheDTypeChoices,
         .in_status = true}),
    setting<&ModelSettings::kv_cache_bytes>(
        {.name = "kv-cache-memory",
         .help = "of the KV cache of all ranks, such as 4GiB; auto: on a GPU what the weights "
                 "leave, but "
                 "no more than two whole contexts of each sequence that may run, else room for 16 "
                 "whole contexts, at most half of what they leave",
         .scope = SettingScope::kLoad,
         .low = 1,
         .in_serve = true}),
    setting<&ModelSettings::max_total_tokens>(
        {.name = "max-total-tokens",
         .help = "of one request, prompt and output together; auto: what the model and the KV "
                 "cache allow",
         .scope = SettingScope::kLoad,
         .low = 2}),
    setting<&ModelSettings::max_running>(
        {.name = "max-running",
         .help = "sequences in a step; each costs a slot of the device's table; auto: 64, on a GPU "
                 "256, fewer where states are large",
         .scope = SettingScope::kLoad,
         .low = 1,
         .in_status = true}),
    setting<&ModelSettings::max_batch_tokens>(
        {.name = "max-batch-tokens",
         .help = "token rows in a step, prompts and decodes together; more prefills faster and "
                 "costs workspace; auto: 512, on a GPU 2048",
         .scope = SettingScope::kLoad,
         .low = 1,
         .in_status = true}),
    setting<&ModelSettings::target_step_ms>(
        {.name = "target-step-ms",
         .value_name = "MS",
         .help = "while others decode, prompts are cut so small that a step stays below this many "
                 "milliseconds; 0: never",
         .high = 1e9}),
    setting<&ModelSettings::speculate>(
        {.name = "speculate",
         .help =
             "tokens that are drafted at most for a step of a sequence, from what followed the "
             "same text before in its prompt or answer; the step verifies them, so that answers "
             "stay as they are and come faster where they repeat something. How many are tried "
             "follows from how many were right and what they cost; 0: none, whatever a preset "
             "says or could draft; auto: as the preset says, else as many as suit what drafts, "
             "or none where nothing was made to",
         .scope = SettingScope::kLoad,
         .high = 64,
         .in_status = true}),
    setting<&ModelSettings::speculator>(
        {.name = "speculator",
         .value_name = "FOLDER",
         .help =
             "heads that were made to draft for this model, in place of what followed the "
             "same text before: Medusa's or an MLP speculator, as text-generation-inference "
             "reads them; without --speculate as many tokens are drafted as there are heads. Or "
             "an EAGLE-3 drafter; up to 5 tokens then. mtp: the layer for the next tokens "
             "that the model's own checkpoint has (DeepSeek V3, GLM 4.5, Hunyuan 3, Mellum 2); up "
             "to 3 "
             "then",
         .scope = SettingScope::kLoad,
         .is_model = true,
         .own_word = kOwnLayer,
         .in_serve = true}),
    setting<&ModelSettings::draft_model>(
        {.name = "draft-model",
         .value_name = "MODEL",
         .help = "a smaller model of the same vocabulary that drafts, with weights and a KV cache "
                 "of its own beside the model's; without --speculate it drafts up to 5 tokens",
         .scope = SettingScope::kLoad,
         .is_model = true,
         .in_serve = true}),
    setting<&ModelSettings::max_waiting>({.name = "max-waiting",
                                          .help = "requests in the queue; more are refused at once",
                                          .low = 1}),
    setting<&ModelSettings::max_best_of>(
        {.name = "max-best-of", .help = "sequences of one request", .low = 1}),
    setting<&ModelSettings::max_stop_sequences>(
        {.name = "max-stop-sequences", .help = "of one request", .low = 1}),
    setting<&ModelSettings::max_top_n_tokens>(
        {.name = "max-top-n-tokens", .help = "alternatives reported for each token", .low = 1}),
    setting<&ModelSettings::seed>(
        {.name = "seed",
         .help = "the seed of requests that draw tokens and name no seed, so that the same request "
                 "has the same answer each time; auto: another seed for each",
         .scope = SettingScope::kLoad}),
    setting<&ModelSettings::backend>(
        {.name = "backend",
         .value_name = "NAME",
         .help = "auto: cuda where there is a GPU, else cpu; reference: plain double-precision "
                 "loops, slow, to check against",
         .scope = SettingScope::kLoad,
         .choices = kBackendChoices,
         .in_status = true}),
    setting<&ModelSettings::num_shard>(
        {.name = "num-shard",
         .help = "ranks that share the model by tensor parallelism, each with its part of the "
                 "weights and of the KV cache: one GPU each, or threads of this processor, where "
                 "it is no faster than one; must divide the model's heads",
         .scope = SettingScope::kLoad,
         .low = 1,
         .in_status = true}),
    setting<&ModelSettings::deterministic>(
        {.name = "deterministic",
         .help = "bits of an answer never depend on what else is in its batch; slower on a GPU, "
                 "always so on the CPU",
         .scope = SettingScope::kLoad,
         .in_status = true,
         .in_serve = true}),
    setting<&ModelSettings::cuda_memory_fraction>(
        {.name = "cuda-memory-fraction",
         .help = "of the memory that is free on a GPU, for weights, KV cache and workspace "
                 "together; above 0, at most 1",
         .scope = SettingScope::kLoad,
         .high = 1,
         .above_low = true}),
    setting<&ModelSettings::cpu_isa>(
        {.name = "cpu-isa",
         .value_name = "NAME",
         .help = "instruction set of the CPU backend; auto: the best that this processor has; all "
                 "give the same bits",
         .choices = kCpuIsaChoices}),
    setting<&ModelSettings::num_threads>(
        {.name = "threads",
         .help = "of the CPU backend, for all ranks together; auto: one per physical core this "
                 "process may use, within the quota of its cgroup",
         .low = 1,
         .in_serve = true}),
    setting<&ModelSettings::pin_threads>(
        {.name = "pin-threads",
         .help = "keep each thread of the CPU backend on one processor: for a machine that serves "
                 "nothing else"}),
    setting<&ModelSettings::slow_reader_timeout>(
        {.name = "slow-reader-timeout",
         .help = "a client that reads nothing for so long is cancelled"}),
    setting<&ModelSettings::adapter_memory_fraction>(
        {.name = "adapter-memory-fraction",
         .help = "of the memory that weights and workspace leave, for adapters that are in use; "
                 "others wait until there is room; 0: no adapters",
         .scope = SettingScope::kLoad,
         .high = 1}),
    setting<&ModelSettings::max_active_adapters>({.name = "max-active-adapters",
                                                  .help = "adapters in use at once; 0: no adapters",
                                                  .scope = SettingScope::kLoad,
                                                  .high = 65536}),
    setting<&ModelSettings::adapter_cycle_time>(
        {.name = "adapter-cycle-time",
         .help = "an adapter that was in use for so long takes no new requests while another one "
                 "waits for its place",
         .scope = SettingScope::kLoad}),
    setting<&ModelSettings::merge_adapter>(
        {.name = "merge-adapter",
         .value_name = "FOLDER",
         .help = "a LoRA adapter that is merged into the weights while they are loaded",
         .scope = SettingScope::kLoad,
         .is_file = true,
         .in_status = true}),
    setting<&ModelSettings::lorax_merging>(
        {.name = "lorax-merging",
         .help = "merged_adapters by LoRAX's arithmetic: A and B each by itself, so that weights "
                 "count twice and one adapter's A meets another's B; adapters of one rank only",
         .scope = SettingScope::kLoad,
         .in_serve = true}),
});

inline std::span<const ModelSetting> model_settings() {
  return kModelSettings;
}

// By the name of its flag; null when there is none.
const ModelSetting* find_model_setting(std::string_view name);

// Throws kInvalidArgument naming the first setting that is not what its row allows.
void check_model_settings(const ModelSettings& settings);

// Those that come with a load, of which some are said and the others are not.
class GivenSettings {
 public:
  // By the name of the flag. Throws kInvalidArgument with what was expected and what came.
  // REQUIRES: the setting is one of a load.
  void set(std::string_view name, const std::string& text);

  // From the fields of a request, of which null counts as not said. Throws naming the field.
  void read(const nlohmann::ordered_json& fields);
  void write(nlohmann::ordered_json& fields) const;

  // What they make of a daemon's settings: those that are not said stay, or have their default.
  void apply_to(ModelSettings& settings) const;

  bool has(std::string_view name) const;
  // Of those that are not said the defaults.
  const ModelSettings& values() const { return values_; }

 private:
  ModelSettings values_;
  std::array<bool, kModelSettings.size()> is_given_{};  // by row
};

}  // namespace tgi::ipc
