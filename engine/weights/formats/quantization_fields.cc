// Source of the names: QuantizationConfigMixin and its classes in `transformers` 4 and 5, the
// config classes of AutoGPTQ, GPTQModel, AutoAWQ and optimum, and what AutoRound writes beside.
#include "engine/weights/formats/quantization_fields.h"

#include <algorithm>
#include <array>

namespace tgi {
namespace {

constexpr std::string_view kMaking = "says how the numbers were found, not what they mean";
constexpr std::string_view kOrigin = "says where the file comes from";
constexpr std::string_view kKernels = "chooses how the same sums are computed";
constexpr std::string_view kMachine = "is about the machine that quantised";
constexpr std::string_view kAnother = "another layout of the weights is asked for";
constexpr std::string_view kRotated = "inputs would have to be rotated first";
constexpr std::string_view kBlocks = "the layers of the model are what is quantised";
constexpr std::string_view kEffect = "what the stored numbers mean";

constexpr auto kQuantizerFields = std::to_array<KnownField>({
    read("quant_method"),
    read_or_null("method"),

    // GPTQConfig of transformers and optimum.
    harmless("tokenizer", kMaking),
    harmless("dataset", kMaking),
    harmless("damp_percent", kMaking),
    harmless("act_group_aware", kMaking),
    harmless("true_sequential", kMaking),
    harmless("meta", kMaking),
    harmless("model_seqlen", kMaking),
    harmless("module_name_preceding_first_block", kMaking),
    harmless("batch_size", kMaking),
    harmless("pad_token_id", kMaking),
    harmless("cache_block_outputs", kMaking),
    harmless("max_input_length", kKernels),
    harmless("use_exllama", kKernels),
    harmless("disable_exllama", kKernels),
    harmless("exllama_config", kKernels),
    harmless("use_cuda_fp16", kKernels),
    harmless_if("block_name_to_quantize", R"(["model.layers", "transformer.h"])", kBlocks),

    // AutoGPTQ.
    harmless("static_groups", kMaking),
    harmless("model_name_or_path", kOrigin),
    harmless("model_file_base_name", "the weights are in model.safetensors or what its index says"),

    // GPTQModel.
    harmless("damp_auto_increment", kMaking),
    harmless("hyb_act", kMaking),
    harmless("mse", kMaking),
    harmless("gptaq", kMaking),
    harmless("foem", kMaking),
    harmless("hessian", kMaking),
    harmless("fallback", kMaking),
    harmless("failsafe", kMaking),
    harmless("failsafe_with_rtn", kMaking),
    harmless("smooth", kMaking),
    harmless("smoother", kMaking),
    harmless("scale_search_chunked_activations", kMaking),
    harmless("moe", kMaking),
    harmless("telemetry", kMachine),
    harmless("device", kMachine),
    harmless("pack_impl", kMachine),
    harmless("parallel_packing", kMachine),
    harmless("offload_to_disk", kMachine),
    harmless("offload_to_disk_path", kMachine),
    harmless("compute_device_filter", kMachine),
    harmless("calibration_data_device", kMachine),
    harmless("auto_forward_data_parallel", kMachine),
    harmless("dense_vram_strategy", kMachine),
    harmless("dense_vram_strategy_devices", kMachine),
    harmless("moe_vram_strategy", kMachine),
    harmless("moe_vram_strategy_devices", kMachine),
    harmless("gc_mode", kMachine),
    harmless("wait_for_submodule_finalizers", kMachine),
    harmless_if("mock_quantization", "[false]", "the weights were not really quantised"),
    harmless_if("preprocessors", "[[]]", "weights may be padded or decoded first"),
    harmless_if("pack_dtype", R"(["int32"])", "integers are taken from words of 32 bits"),
    harmless_if("dynamic", "[{}]", "rules for some of the modules are not supported"),
    harmless_if("rotation", "[]", kRotated),
    harmless_if("adapter", "[]", "LoRA is not supported"),
    harmless_if("activation", "[]", "activations are rounded as the device's kernels do it only"),
    harmless_if("weight_only", "[]", kAnother),

    // AutoRound.
    harmless("autoround_version", kOrigin),
    harmless("amp", kMaking),
    harmless("enable_minmax_tuning", kMaking),
    harmless("enable_norm_bias_tuning", kMaking),
    harmless("enable_quanted_input", kMaking),
    harmless("enable_alg_ext", kMaking),
    harmless("gradient_accumulate_steps", kMaking),
    harmless("iters", kMaking),
    harmless("lr", kMaking),
    harmless("minmax_lr", kMaking),
    harmless("nsamples", kMaking),
    harmless("sampler", kMaking),
    harmless("seqlen", kMaking),
    harmless("seed", kMaking),
    harmless("train_bs", kMaking),
    harmless("low_gpu_mem_usage", kMachine),
    harmless("low_cpu_mem_usage", kMachine),
    harmless("scale_dtype", "the tensors of the scales say it"),
    harmless_if("data_type", R"(["int"])", kAnother),
    harmless_if("super_bits", "[]", kAnother),
    harmless_if("super_group_size", "[]", kAnother),
    harmless_if("extra_config", "[{}]", "rules for some of the modules are not supported"),
    harmless_if("quant_block_list", R"([[], "model.layers", "transformer.h"])", kBlocks),
    harmless_if("to_quant_block_names", R"([[], "model.layers", "transformer.h"])", kBlocks),
    harmless_if("act_bits", "[16, 32]", kActivationsReason),
    harmless("act_data_type", kActivationsReason),
    harmless("act_dynamic", kActivationsReason),
    harmless("act_group_size", kActivationsReason),
    harmless("act_sym", kActivationsReason),
});

}  // namespace

std::string quant_method_of(const JsonReader& config) {
  if (!config.has("quantization_config")) return "";
  return config.object("quantization_config").string_or("quant_method", "");
}

void check_quantization(const JsonReader& quantization,
                        std::span<const KnownField> own,
                        std::string_view method) {
  (void)name_in_use(quantization, {"quant_method", "method"});
  refuse_unknown_fields(quantization, own, kQuantizerFields, method, kEffect);
}

void check_quantization_part(const JsonReader& part,
                             std::span<const KnownField> own,
                             std::string_view what) {
  refuse_unknown_fields(part, own, {}, what, kEffect);
}

bool is_activation_scale(const Checkpoint& /*checkpoint*/, const StoredTensor& tensor) {
  constexpr std::string_view kEndings[] = {
      ".input_scale",      ".input_zero_point",  ".output_scale", ".output_zero_point",
      ".activation_scale", ".input_scale_ub",    ".q_scale",      ".k_scale",
      ".v_scale",          ".input_global_scale"};
  return std::ranges::any_of(
      kEndings, [&](std::string_view ending) { return tensor.name.ends_with(ending); });
}

}  // namespace tgi
