// Source of the names: LoraConfig and PeftConfig of `peft` up to 0.21, and what tools write beside.
#include "engine/lora/adapter_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/json.h"

namespace tgi {
namespace {

constexpr std::string_view kOrigin = "says where the file comes from";
constexpr std::string_view kPython = "is about objects of Python, not about numbers";
constexpr std::string_view kTraining = "is used in training only";
constexpr std::string_view kTensorsTell = "which modules are changed is seen from the tensors";
constexpr std::string_view kStart = "says what training began with";
constexpr std::string_view kNewBase =
    "it changes the weights of the base model, too; save the adapter with "
    "path_initial_model_for_weight_conversion, which makes it one of the model as it is";
constexpr std::string_view kVariant = "this variant of LoRA is not read";
constexpr std::string_view kWholeWeights =
    "adapters that bring whole weights are not supported; merge this one into the model instead";

constexpr auto kFields = std::to_array<KnownField>({
    read("peft_type"),
    read_or_null("base_model_name_or_path"),
    read_or_null("revision"),
    read("r"),
    read("lora_alpha"),
    read_or_null("use_rslora"),
    read_or_null("rank_pattern"),
    read_or_null("alpha_pattern"),
    read_or_null("target_modules"),
    read_or_null("target_parameters"),
    read_or_null("peft_version"),
    read_or_null("bias"),
    read_or_null("use_dora"),
    read_or_null("lora_bias"),

    harmless_if("task_type",
                R"(["CAUSAL_LM", "FEATURE_EXTRACTION"])",
                "adapters of other tasks have heads of their own"),
    harmless("auto_mapping", kPython),
    harmless("_commit_hash", kOrigin),
    harmless("unsloth_*", kOrigin),
    harmless("_unsloth_*", kOrigin),
    harmless("inference_mode", kTraining),
    harmless("lora_dropout", kTraining),
    harmless("lora_dtype", kTraining),
    harmless("lorap_lr_ratio", kTraining),
    harmless("lorap_emb_lr", kTraining),
    harmless("ephemeral_gpu_offload", kPython),
    harmless("runtime_config", kPython),
    harmless("merge_weights", "says how the trainer held the weights"),
    harmless("megatron_core", kPython),
    harmless_if("megatron_config", "[]", kVariant),

    harmless("exclude_modules", kTensorsTell),
    harmless("layers_to_transform", kTensorsTell),
    harmless("layers_pattern", kTensorsTell),
    harmless("fan_in_fan_out",
             "says how the base stores its weights; those of the adapter are the same for both"),

    harmless_if(
        "init_lora_weights", R"([true, false, "gaussian", "eva", "orthogonal", "mica"])", kNewBase),
    harmless("loftq_config", kStart),
    harmless("eva_config", kStart),
    harmless("corda_config", kStart),
    harmless("lora_ga_config", kStart),

    harmless_if("modules_to_save", "[[]]", kWholeWeights),
    harmless_if(
        "trainable_token_indices",
        "[[], {}]",
        "rows of the embedding that were trained by themselves are not supported; merge the "
        "adapter into the model instead"),
    harmless_if("layer_replication", "[[]]", "layers that are used twice are not supported"),
    harmless_if("ensure_weight_tying",
                "[false]",
                "adapters of the head and the embedding together are not supported"),
    harmless_if("alora_invocation_tokens",
                "[]",
                "an adapter counts for all tokens of a request, not from some of them on"),
    harmless_if("use_qalora", "[false]", kVariant),
    harmless("qalora_group_size", "counts with use_qalora only"),
    harmless_if("velora_config", "[]", kVariant),
    harmless_if("monteclora_config", "[]", kVariant),
    harmless_if("use_bdlora", "[false]", kVariant),
    harmless_if("arrow_config", "[]", kVariant),
    harmless_if("kasa_config", "[]", kVariant),
    harmless_if("enable_lora", "[]", kVariant),
});

[[noreturn]] void refuse(const std::string& message) {
  throw Error(Code::kInvalidArgument, message);
}

int32_t to_rank(const Json& value, const std::string& path) {
  if (!value.is_number_integer()) {
    refuse(fmt::format("{}: expected a whole number, got {}", path, value.dump()));
  }
  // Beyond an int64 it is a number all the same, and out of range.
  const double rank = value.get<double>();
  if (rank < 1) refuse(fmt::format("{}: expected a rank of 1 or more, got {}", path, value.dump()));
  if (rank > kMaxAdapterRank) {
    throw Error(Code::kUnsupported, fmt::format("{}: rank {} is above {}, the largest supported",
                                                path, value.dump(), kMaxAdapterRank));
  }
  return value.get<int32_t>();
}

double to_alpha(const Json& value, const std::string& path) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    refuse(fmt::format("{}: expected a number, got {}", path, value.dump()));
  }
  return value.get<double>();
}

// In the order of the file, which a Json does not keep. REQUIRES: `text` parses as one.
template <typename T>
NumbersByPattern<T> read_pattern(const JsonReader& config,
                                 const nlohmann::ordered_json& ordered,
                                 const std::string& key,
                                 T (*convert)(const Json&, const std::string&)) {
  NumbersByPattern<T> out;
  if (!config.has(key)) return out;
  const JsonReader values = config.object(key);
  for (const auto& [pattern, unused] : ordered.at(key).items()) {
    out.emplace_back(pattern, convert(values.json().at(pattern), values.path_of(pattern)));
  }
  return out;
}

std::vector<std::string> read_targets(const JsonReader& config) {
  if (!config.has("target_modules")) return {};
  if (config.json().at("target_modules").is_string()) return {config.string("target_modules")};
  return config.strings_or_empty("target_modules");
}

// Of those before 0.19, which first wrote no version at all.
bool has_old_expert_order(std::string_view version) {
  return version.empty() || version.starts_with("0.17.") || version.starts_with("0.18.");
}

std::string read_bias(const JsonReader& config) {
  static constexpr std::array<std::string_view, 3> kBiases = {"none", "all", "lora_only"};
  std::string bias = config.string_or("bias", "none");
  if (std::ranges::find(kBiases, bias) == kBiases.end()) {
    refuse(fmt::format("bias: expected none, all or lora_only, got {}", Json(bias).dump()));
  }
  return bias;
}

AdapterConfig read_fields(std::string_view text) {
  const Json json = parse_json(text);
  const JsonReader config(json, "");
  const std::string type = config.string("peft_type");
  if (type != "LORA") {
    throw Error(Code::kUnsupported,
                fmt::format("peft_type: adapters of type {} are not supported, only LORA",
                            Json(type).dump()));
  }
  refuse_unknown_fields(config, kFields, {}, "LoRA adapters", "what the adapter computes");
  const auto ordered = nlohmann::ordered_json::parse(text);

  AdapterConfig out;
  out.base_model = config.string_or("base_model_name_or_path", "");
  out.revision = config.string_or("revision", "");
  if (config.has("r")) out.rank = to_rank(json.at("r"), "r");
  if (config.has("lora_alpha")) out.alpha = to_alpha(json.at("lora_alpha"), "lora_alpha");
  out.is_rank_stabilised = config.boolean_or("use_rslora", false);
  out.is_dora = config.boolean_or("use_dora", false);
  out.has_b_biases = config.boolean_or("lora_bias", false);
  if (out.is_dora && out.has_b_biases) {
    throw Error(Code::kUnsupported, "lora_bias: not supported together with use_dora");
  }
  out.ranks = read_pattern(config, ordered, "rank_pattern", to_rank);
  out.alphas = read_pattern(config, ordered, "alpha_pattern", to_alpha);
  out.targets = read_targets(config);
  out.parameters = config.strings_or_empty("target_parameters");
  out.has_old_expert_order = has_old_expert_order(config.string_or("peft_version", ""));
  out.bias = read_bias(config);
  return out;
}

}  // namespace

AdapterConfig read_adapter_config(const FileSource& files) {
  const std::string_view text = files.require_text(kAdapterConfigFile);
  try {
    return read_fields(text);
  } catch (const Error& error) {
    throw error.in(files.describe(kAdapterConfigFile));
  }
}

std::span<const KnownField> adapter_fields() {
  return kFields;
}

}  // namespace tgi
