"""Families whose layers others have under other names, and those between them: see make_tiny_checkpoints."""

from .experts import CORRECTION, DEEPSEEK3, GLM4_MOE
from .latent import YARN
from .spelling import architecture, new_dtype, new_rope, without

NEWEST = {"needs": [5, 24]}
EXAONE = without(architecture(
    "ExaoneForCausalLM", "exaone", num_layers=2, layer_norm_epsilon=1e-5, activation_function="silu", head_dim=8,
    embed_dropout=0.0, rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                     "original_max_position_embeddings": 32}), "num_hidden_layers")
IQUEST = architecture(
    "IQuestCoderForCausalLM", "iquestcoder", rms_norm_eps=1e-5, hidden_act="silu", head_dim=8, attention_bias=False,
    mlp_bias=False, clip_qkv=None, use_sliding_window=False, sliding_window=None, max_window_layers=0)
AX_K1 = without(DEEPSEEK3, "topk_method") | dict(
    architectures=["AXK1ForCausalLM"], model_type="axk1", topk_method="noaux_tc", moe_layer_freq=1)
SARVAM = without(GLM4_MOE, "n_routed_experts", "n_shared_experts", "partial_rotary_factor", "attention_bias") | dict(
    architectures=["SarvamMoEForCausalLM"], model_type="sarvam_moe", num_experts=6, num_shared_experts=1,
    use_qkv_bias=False, use_qk_norm=True, first_k_dense_replace=1)
SARVAM_MLA = without(DEEPSEEK3, "q_lora_rank", "n_routed_experts", "n_shared_experts") | dict(
    architectures=["SarvamMLAForCausalLM"], model_type="sarvam_mla", num_experts=6, num_shared_experts=1, n_group=1,
    topk_group=1, first_k_dense_replace=1)

FLINT = architecture(
    "FlintForCausalLM", "flint", rms_norm_eps=1e-6, hidden_act="silu", head_dim=8, attention_bias=False, num_hidden_layers=4,
    intermediate_size=30, moe_intermediate_size=10, shared_expert_intermediate_size=14, num_experts=6, num_experts_per_tok=2,
    norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[0], sliding_window=7, rope_scaling=None,
    layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"])
SINKS = {"keep_float32": ["softmax_offset", "gate.weight"]}
# What they see and hear by, as small as it can be.
PHI4_PARTS = dict(
    vision_config=dict(hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=28,
                       patch_size=14, crop_size=28),
    audio_config=dict(hidden_size=16, intermediate_size=16, num_blocks=1, num_attention_heads=2, ext_pw_out_channel=16,
                      depthwise_separable_out_channel=16, input_size=8, nemo_conv_channels=8, downsample_rate=8))
PHI4_MULTIMODAL = architecture(
    "Phi4MultimodalForCausalLM", "phi4_multimodal", rms_norm_eps=1e-5, hidden_act="silu", partial_rotary_factor=0.75,
    hidden_size=32, original_max_position_embeddings=24, sliding_window=None, pad_token_id=0, **PHI4_PARTS,
    rope_scaling=dict(type="longrope", short_factor=[1.0, 1.1, 1.2], long_factor=[1.0, 2.0, 3.5]))

MIMO = without(architecture(
    "MiMoV2FlashForCausalLM", "mimo_v2_flash", rms_norm_eps=1e-5, hidden_act="silu", head_dim=12, v_head_dim=7,
    num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1, intermediate_size=30, moe_intermediate_size=10,
    n_routed_experts=6, num_experts_per_tok=2, norm_topk_prob=True, n_group=1, topk_group=1, routed_scaling_factor=1.0,
    attention_value_scale=0.707, attention_bias=False, sliding_window=7, mlp_layer_types=["dense", "sparse", "sparse", "sparse"],
    layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
    rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.334},
                     "sliding_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.334}}),
    "rope_theta")
FLOAT_ROUTER = {"keep_float32": ["mlp.gate.weight", "e_score_correction_bias"]}

# name -> (config.json, storage)
MODELS = {
    "exaone": (EXAONE, NEWEST),
    "exaone-tied-f16": (
        new_rope(without(EXAONE, "rope_scaling") | dict(tie_word_embeddings=True, num_key_value_heads=1, torch_dtype="float16"),
                 rope_type="default"), NEWEST),
    # As transformers saves it: the class that computes it, and the names of its own config.
    "exaone-three-heads": (
        without(EXAONE, "num_layers", "layer_norm_epsilon", "activation_function") | dict(
            architectures=["LlamaForCausalLM"], num_hidden_layers=3, rms_norm_eps=1e-5, hidden_act="gelu",
            num_attention_heads=3, num_key_value_heads=3, head_dim=10), NEWEST | {"shards": 2}),
    "iquest-coder": (IQUEST, NEWEST),
    "iquest-coder-biases-tied-f16": (
        new_rope(IQUEST | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True, num_key_value_heads=1,
                               torch_dtype="float16"), rope_type="default"), NEWEST),
    "iquest-coder-three-heads": (
        IQUEST | dict(architectures=["LlamaForCausalLM"], num_attention_heads=3, num_key_value_heads=3, head_dim=10,
                      num_hidden_layers=3, rope_scaling={"rope_type": "linear", "factor": 3.0}), NEWEST | {"shards": 2}),
    "axk1": (AX_K1, NEWEST | CORRECTION),
    # As published: without the bias of the choice.
    "axk1-no-choice-bias-f16": (
        AX_K1 | dict(n_group=1, topk_group=1, rope_scaling=YARN, attention_bias=True, torch_dtype="float16"),
        NEWEST | {"extra": "no_choice_bias"}),
    "axk1-odd-sizes": (
        without(AX_K1, "first_k_dense_replace", "moe_layer_freq") | dict(
            mlp_layer_types=["sparse", "dense", "sparse"], num_hidden_layers=3, hidden_size=35, num_attention_heads=5,
            num_key_value_heads=5, kv_lora_rank=33, qk_rope_head_dim=10, v_head_dim=17, rope_interleave=False,
            n_shared_experts=2), NEWEST | CORRECTION | {"shards": 2}),
    "sarvam-moe": (SARVAM, NEWEST | CORRECTION),
    "sarvam-moe-groups-tied-f16": (
        new_rope(without(SARVAM, "rope_scaling") | dict(
            n_group=3, topk_group=2, num_shared_experts=2, norm_topk_prob=False, tie_word_embeddings=True, use_qkv_bias=True,
            num_key_value_heads=1, torch_dtype="float16"), rope_type="default", partial_rotary_factor=0.5),
        NEWEST | CORRECTION),
    "sarvam-moe-as-glm": (
        without(SARVAM, "num_experts", "num_shared_experts", "use_qkv_bias") | dict(
            architectures=["Glm4MoeForCausalLM"], n_routed_experts=5, n_shared_experts=1, use_qk_norm=False,
            num_experts_per_tok=3, num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=3),
        NEWEST | CORRECTION | {"shards": 2}),
    "sarvam-mla": (SARVAM_MLA, NEWEST | CORRECTION),
    # The older spelling.
    "sarvam-mla-yarn-f16": (
        SARVAM_MLA | dict(
            rope_scaling=YARN | dict(type="deepseek_yarn"), head_dim=18, q_head_dim=10, q_lora_rank=None, v_head_dim=11,
            num_hidden_layers=3, torch_dtype="float16"), NEWEST | CORRECTION),
    "sarvam-mla-as-deepseek": (
        new_dtype(without(SARVAM_MLA, "num_experts", "num_shared_experts") | dict(
            architectures=["DeepseekV3ForCausalLM"], n_routed_experts=8, n_shared_experts=2, n_group=4, topk_group=2,
            q_lora_rank=9, rope_interleave=False)), NEWEST | CORRECTION | {"shards": 2}),
    "flint": (FLINT, NEWEST | SINKS),
    "flint-biases-tied-f16": (
        new_rope(without(FLINT, "rope_scaling") | dict(
            attention_bias=True, tie_word_embeddings=True, num_key_value_heads=1, norm_topk_prob=False, num_experts_per_tok=3,
            mlp_only_layers=[], decoder_sparse_step=2, torch_dtype="float16"), rope_type="default"), NEWEST | SINKS),
    "flint-default-layers": (
        without(FLINT, "layer_types", "mlp_only_layers") | dict(
            num_hidden_layers=5, num_attention_heads=3, num_key_value_heads=3, head_dim=10, sliding_window=20),
        NEWEST | SINKS | {"shards": 2}),
    "mimo-v2-flash": (MIMO, NEWEST | FLOAT_ROUTER),
    # The spelling of published files, whose lists are here what the class takes where there are none.
    "mimo-v2-flash-published-f16": (
        without(MIMO, "layer_types", "mlp_layer_types", "rope_parameters", "rms_norm_eps", "sliding_window") | dict(
            layernorm_epsilon=1e-5, hybrid_layer_pattern=[0, 1, 1, 1, 1, 0, 1], moe_layer_freq=[0, 1, 1, 1, 1, 1, 1],
            num_hidden_layers=7, sliding_window_size=8, attention_chunk_size=8, hybrid_block_size=None, rope_theta=5000000,
            swa_rope_theta=10000, partial_rotary_factor=0.334, swa_num_attention_heads=4, swa_num_key_value_heads=2,
            swa_head_dim=12, swa_v_head_dim=7, add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False,
            n_shared_experts=None, routed_scaling_factor=None, scoring_func="sigmoid", topk_method="noaux_tc",
            torch_dtype="float16"), NEWEST | FLOAT_ROUTER),
    "mimo-v2-flash-long-values": (
        MIMO | dict(head_dim=8, v_head_dim=14, num_attention_heads=6, num_key_value_heads=3, num_hidden_layers=3,
                    layer_types=["sliding_attention", "full_attention", "sliding_attention"], attention_bias=True,
                    mlp_layer_types=["sparse", "dense", "sparse"], attention_value_scale=None, n_group=3, topk_group=2,
                    norm_topk_prob=False, routed_scaling_factor=1.7, tie_word_embeddings=True,
                    rope_parameters={"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e5,
                                                        "partial_rotary_factor": 0.5},
                                     "sliding_attention": {"rope_type": "default", "rope_theta": 1e4,
                                                           "partial_rotary_factor": 1.0}}),
        NEWEST | FLOAT_ROUTER | {"shards": 2}),
    "phi4-multimodal": (PHI4_MULTIMODAL, NEWEST | {"prompt_lengths": (30, 33, 40)}),
    "phi4-multimodal-tied-f16": (
        new_rope(without(PHI4_MULTIMODAL, "rope_scaling", "partial_rotary_factor") | dict(
            tie_word_embeddings=True, num_key_value_heads=1, sliding_window=9, torch_dtype="float16"),
            rope_type="default", partial_rotary_factor=0.5), NEWEST),
}
