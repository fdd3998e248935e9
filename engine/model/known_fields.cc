// Source of the names: PretrainedConfig and GenerationConfig of `transformers` 4 and 5, and what
// tools write into the config.json of published models.
#include "engine/model/known_fields.h"

#include <array>
#include <string_view>

namespace tgi {
namespace {

constexpr std::string_view kOrigin = "says where the file comes from";
constexpr std::string_view kTraining = "is used in training only";
constexpr std::string_view kPython = "is about objects of Python, not about numbers";
constexpr std::string_view kSpeed = "chooses how the same sums are computed";
constexpr std::string_view kHeads = "is used by classifiers and pipelines, not to generate text";
constexpr std::string_view kSampling = "each request says how to sample";
constexpr std::string_view kTokenizer = "the tokenizer's own files say it";
constexpr std::string_view kDecoderOnly = "models are decoders, without a second input";
constexpr std::string_view kAddedLayers = "layers that differ from each other are not supported";
constexpr std::string_view kLength = "the context is that of max_position_embeddings";

constexpr auto kGenericFields = std::to_array<KnownField>({
    read_or_null("architectures"),
    read("model_type"),
    read_or_null("dtype"),
    read_or_null("torch_dtype"),
    read_or_null("bos_token_id"),
    read_or_null("eos_token_id"),
    read_or_null("quantization_config"),

    harmless("_name_or_path", kOrigin),
    harmless("name_or_path", kOrigin),
    harmless("_commit_hash", kOrigin),
    harmless("transformers_version", kOrigin),
    harmless("auto_map", "Python code beside the weights is never run"),
    harmless("custom_pipelines", "Python code beside the weights is never run"),
    harmless("unsloth_*", kOrigin),
    harmless("_unsloth_*", kOrigin),
    harmless("transformers.js_config", "is read by transformers.js only"),
    harmless("is_bitnet_config", "quantization_config says how the weights are stored"),
    harmless("is_llama_config", "is read by the trainer that wrote it"),
    harmless("_from_model_config", kOrigin),
    harmless("_pre_quantization_dtype", kOrigin),
    harmless_if("transformers_weights",
                "[]",
                "the weights are those that model.safetensors or its index names"),

    harmless("attention_dropout", kTraining),
    harmless("hidden_dropout", kTraining),
    harmless("hidden_dropout_prob", kTraining),
    harmless("attention_probs_dropout_prob", kTraining),
    harmless("classifier_dropout", kTraining),
    harmless("embedding_dropout", kTraining),
    harmless("resid_dropout", kTraining),
    harmless("residual_dropout", kTraining),
    harmless("resid_pdrop", kTraining),
    harmless("embd_pdrop", kTraining),
    harmless("attn_pdrop", kTraining),
    harmless("initializer_range", kTraining),
    harmless("initializer_factor", kTraining),
    harmless("gradient_checkpointing", kTraining),
    harmless("neftune_noise_alpha", kTraining),
    harmless("pretraining_tp", "cuts products into sums of parts"),
    harmless("use_cache", "keys and values are always kept"),

    harmless("output_attentions", kPython),
    harmless("_output_attentions", kPython),
    harmless("output_hidden_states", kPython),
    harmless("output_past", kPython),
    harmless("output_scores", kPython),
    harmless("output_logits", kPython),
    harmless("return_dict", kPython),
    harmless("use_return_dict", kPython),
    harmless("return_dict_in_generate", kPython),
    harmless("return_legacy_cache", kPython),
    harmless("tie_last_hidden_states", kPython),
    harmless("torchscript", kPython),
    harmless("use_bfloat16", "is read by TensorFlow on TPUs only"),
    harmless("xla_device", "is read by TensorFlow on TPUs only"),
    harmless("tf_legacy_loss", kTraining),

    harmless("chunk_size_feed_forward", kSpeed),
    harmless("attn_implementation", kSpeed),
    harmless("_attn_implementation", kSpeed),
    harmless("_attn_implementation_internal", kSpeed),
    harmless("_attn_implementation_autoset", kSpeed),
    harmless("experts_implementation", kSpeed),
    harmless("_experts_implementation", kSpeed),
    harmless("_experts_implementation_internal", kSpeed),
    harmless("_flash_attn_2_enabled", kSpeed),
    harmless("use_flash_attn", kSpeed),
    harmless("use_flash_attention", kSpeed),
    harmless("use_flash_attention_2", kSpeed),
    harmless("cache_implementation", kSpeed),
    harmless("cache_config", kSpeed),
    harmless("max_cache_len", kSpeed),
    harmless("compile_config", kSpeed),
    harmless("continuous_batching_config", kSpeed),
    harmless("disable_compile", kSpeed),
    harmless("low_memory", kSpeed),
    harmless("prefill_chunk_size", kSpeed),

    harmless("finetuning_task", kHeads),
    harmless("id2label", kHeads),
    harmless("label2id", kHeads),
    harmless("num_labels", kHeads),
    harmless("_num_labels", kHeads),
    harmless("problem_type", kHeads),
    // Read by the head (engine/vectors).
    harmless("sentence_transformers", kHeads),
    harmless("sbert_ce_default_activation_function", kHeads),
    harmless("task_specific_params", kHeads),
    harmless_if("prefix", R"([""])", "a prompt is taken as it is; put the text before each prompt"),

    harmless("tokenizer_class", kTokenizer),
    harmless("model_max_length", kTokenizer),
    harmless("pad_token_id", "sequences are never padded"),
    harmless("sep_token_id", kTokenizer),
    harmless("unk_token_id", kTokenizer),
    harmless("bos_token", kTokenizer),
    harmless("eos_token", kTokenizer),
    harmless("pad_token", kTokenizer),
    harmless("decoder_start_token_id", kDecoderOnly),
    harmless("max_sequence_length", kLength),
    harmless("max_seq_len", kLength),
    harmless("max_seq_length", kLength),
    harmless("seq_length", kLength),

    read_or_null("is_causal"),
    harmless("is_decoder", kDecoderOnly),
    harmless_if("is_encoder_decoder", "[false]", kDecoderOnly),
    harmless_if("tie_encoder_decoder", "[false]", kDecoderOnly),
    harmless_if("add_cross_attention", "[false]", kDecoderOnly),
    harmless("cross_attention_hidden_size", kDecoderOnly),
    harmless_if("pruned_heads", "[{}]", kAddedLayers),
    harmless_if("per_layer_config", "[{}]", kAddedLayers),

    harmless("max_length", kSampling),
    harmless("max_new_tokens", kSampling),
    harmless("min_length", kSampling),
    harmless("min_new_tokens", kSampling),
    harmless("max_time", kSampling),
    harmless("stop_strings", kSampling),
    harmless("do_sample", kSampling),
    harmless("early_stopping", kSampling),
    harmless("num_beams", kSampling),
    harmless("num_beam_groups", kSampling),
    harmless("diversity_penalty", kSampling),
    harmless("length_penalty", kSampling),
    harmless("temperature", kSampling),
    harmless("top_k", kSampling),
    harmless("top_p", kSampling),
    harmless("top_h", kSampling),
    harmless("min_p", kSampling),
    harmless("typical_p", kSampling),
    harmless("epsilon_cutoff", kSampling),
    harmless("eta_cutoff", kSampling),
    harmless("repetition_penalty", kSampling),
    harmless("encoder_repetition_penalty", kSampling),
    harmless("no_repeat_ngram_size", kSampling),
    harmless("encoder_no_repeat_ngram_size", kSampling),
    harmless("bad_words_ids", kSampling),
    harmless("force_words_ids", kSampling),
    harmless("constraints", kSampling),
    harmless("renormalize_logits", kSampling),
    harmless("num_return_sequences", kSampling),
    harmless("forced_bos_token_id", kSampling),
    harmless("forced_eos_token_id", kSampling),
    harmless("remove_invalid_values", kSampling),
    harmless("exponential_decay_length_penalty", kSampling),
    harmless("suppress_tokens", kSampling),
    harmless("begin_suppress_tokens", kSampling),
    harmless("sequence_bias", kSampling),
    harmless("token_healing", kSampling),
    harmless("guidance_scale", kSampling),
    harmless("penalty_alpha", kSampling),
    harmless("dola_layers", kSampling),
    harmless("watermarking_config", kSampling),
    harmless("assistant_confidence_threshold", kSampling),
    harmless("assistant_early_exit", kSampling),
    harmless("assistant_ensemble_weight", kSampling),
    harmless("assistant_lookbehind", kSampling),
    harmless("target_lookbehind", kSampling),
    harmless("is_assistant", kSampling),
    harmless("max_matching_ngram_size", kSampling),
    harmless("num_assistant_tokens", kSampling),
    harmless("num_assistant_tokens_schedule", kSampling),
    harmless("prompt_lookup_num_tokens", kSampling),
    harmless("speculation_type", kSampling),
    harmless("use_mtp", kSampling),
});

}  // namespace

std::span<const KnownField> generic_fields() {
  return kGenericFields;
}

}  // namespace tgi
