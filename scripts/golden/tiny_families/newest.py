"""Families that came late, and the text models of multimodal checkpoints."""

from .dense_layernorm import GPTJ, OPT
from .dense_rms import EXAONE4, MINISTRAL3
from .experts import CORRECTION, LLAMA4
from .first import LLAMA, MISTRAL, QWEN2, QWEN3
from .more import LFM2_MOE, NEMOTRON_H
from .spelling import architecture, new_dtype, new_rope, without
from .state import LFM2, MAMBA, NEWER, QWEN3_NEXT, ZERO

VISION = dict(model_type="pixtral", hidden_size=16, intermediate_size=16, num_hidden_layers=1,
              num_attention_heads=2, image_size=8, patch_size=4, head_dim=8)
OUTER = ("architectures", "torch_dtype", "bos_token_id", "eos_token_id", "tie_word_embeddings")


def multimodal(name, model_type, text, vision=None, **changes):
    """The text model's config inside of that of a checkpoint that sees, as published ones spell it."""
    return dict(architectures=[name], model_type=model_type, text_config=without(text, *OUTER),
                vision_config=vision or VISION, eos_token_id=[1, 3], bos_token_id=1,
                tie_word_embeddings=text["tie_word_embeddings"],
                torch_dtype="bfloat16") | changes


QWEN3_5 = without(QWEN3_NEXT, "architectures", "model_type", "rope_theta", "rope_scaling", "partial_rotary_factor",
                  "decoder_sparse_step", "moe_intermediate_size", "shared_expert_intermediate_size", "num_experts",
                  "num_experts_per_tok", "norm_topk_prob", "mlp_only_layers", "output_router_logits",
                  "router_aux_loss_coef", "full_attention_interval") | dict(
    architectures=["Qwen3_5ForCausalLM"], model_type="qwen3_5_text", full_attention_interval=3, num_hidden_layers=3,
    rope_parameters={"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25,
                     "mrope_section": [1, 1, 1], "mrope_interleaved": True})
QWEN3_5_MOE = without(QWEN3_5, "intermediate_size") | dict(
    architectures=["Qwen3_5MoeForCausalLM"], model_type="qwen3_5_moe_text", moe_intermediate_size=6,
    shared_expert_intermediate_size=10, num_experts=5, num_experts_per_tok=2, full_attention_interval=2,
    num_hidden_layers=2)
QWEN_VISION = dict(model_type="qwen3_5", depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=24,
                   num_position_embeddings=4, patch_size=4)
QWEN_VL = architecture(
    "", "qwen2_5_vl_text", rms_norm_eps=1e-6, hidden_act="silu", use_sliding_window=False, sliding_window=8,
    max_window_layers=2, rope_theta=1000000.0, rope_scaling={"type": "mrope", "mrope_section": [1, 1, 1]})
QWEN3_VL = architecture(
    "", "qwen3_vl_text", rms_norm_eps=1e-6, hidden_act="silu", head_dim=8, attention_bias=False, rope_theta=5000000.0,
    rope_scaling={"rope_type": "default", "mrope_section": [2, 1, 1], "mrope_interleaved": True})
QWEN3_VL_MOE = QWEN3_VL | dict(
    model_type="qwen3_vl_moe_text", intermediate_size=20, moe_intermediate_size=10, num_experts=5, num_experts_per_tok=2,
    decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True, num_key_value_heads=1)
QWEN2_VISION = dict(model_type="qwen2_5_vl", depth=1, hidden_size=16, intermediate_size=16, num_heads=2,
                    out_hidden_size=24, patch_size=4, fullatt_block_indexes=[0])
QWEN3_VISION = QWEN_VISION | dict(deepstack_visual_indexes=[0])
BITNET = architecture(
    "BitNetForCausalLM", "bitnet", rms_norm_eps=1e-5, hidden_act="relu2", rope_theta=500000.0)
JAIS2 = architecture(
    "Jais2ForCausalLM", "jais2", layer_norm_eps=1e-5, hidden_act="relu2", attention_bias=True, mlp_bias=True, head_dim=6)
HYPERCLOVAX = architecture(
    "HyperCLOVAXForCausalLM", "hyperclovax", rms_norm_eps=1e-5, hidden_act="silu", attention_bias=False, mlp_bias=False,
    head_dim=8, use_post_norm=True, embedding_multiplier=3.0, logits_scaling=0.125, residual_multiplier=0.7,
    attention_multiplier=0.2)
AFMOE = architecture(
    "AfmoeForCausalLM", "afmoe", rms_norm_eps=1e-5, hidden_act="silu", intermediate_size=30, moe_intermediate_size=10,
    num_hidden_layers=3, num_dense_layers=1, head_dim=8, num_experts=6, num_experts_per_tok=2, num_shared_experts=1,
    route_scale=2.4, route_norm=True, score_func="sigmoid", n_group=1, topk_group=1, global_attn_every_n_layers=2,
    sliding_window=8, mup_enabled=True, rope_scaling=None, load_balance_coeff=0.001, use_grouped_mm=True)
BAMBA = architecture(
    "BambaForCausalLM", "bamba", hidden_act="silu", rms_norm_eps=1e-5, intermediate_size=20,
    num_hidden_layers=3, attn_layer_indices=[1], attention_bias=False, mlp_bias=False,
    mamba_n_heads=6, mamba_d_head=8, mamba_n_groups=1, mamba_d_state=6, mamba_d_conv=4,
    mamba_expand=2, mamba_chunk_size=16, mamba_conv_bias=True, mamba_proj_bias=False,
    num_attention_heads=3, num_key_value_heads=1, attn_rotary_emb=4, partial_rotary_factor=0.5,
    num_logits_to_keep=1, rope_scaling=None)
SOLAR = without(architecture(
    "SolarOpenForCausalLM", "solar_open", rms_norm_eps=1e-5, hidden_act="silu", head_dim=8, moe_intermediate_size=10,
    n_routed_experts=6, n_shared_experts=1, num_experts_per_tok=2, n_group=1, topk_group=1, norm_topk_prob=True,
    routed_scaling_factor=1.5, attention_bias=False, rope_theta=1000000.0, rope_scaling=None), "intermediate_size")
# transformers 5.5 rotates otherwise.
WHOLE = NEWER | {"whole_texts": True}
BIAS = {"keep_float32": ["expert_bias"], "needs": [5, 23]}
LLAMA_VISION = dict(model_type="llama4_vision_model", hidden_size=16, intermediate_size=64, num_hidden_layers=1,
                    num_attention_heads=2, image_size=8, patch_size=4, vision_output_dim=16, projector_input_dim=16,
                    projector_output_dim=16)
LFM2_PUBLISHED = without(LFM2, "tie_embedding") | dict(
    tie_word_embeddings=True, block_mlp_init_scale=1.0, block_out_init_scale=1.0, block_use_xavier_init=True,
    conv_use_xavier_init=True)
CODEGEN = GPTJ | dict(architectures=["CodeGenForCausalLM"], model_type="codegen")
NANOCHAT = without(architecture(
    "NanoChatForCausalLM", "nanochat", rms_norm_eps=1e-6, hidden_act="relu2", attention_bias=False,
    final_logit_softcapping=15.0), "head_dim")
SIGLIP = dict(model_type="siglip_vision_model", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
              image_size=8, patch_size=4)
SMOLVLM_VISION = SIGLIP | dict(model_type="smolvlm_vision")
INTERNVL_VISION = dict(model_type="internvl_vision", hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                       num_attention_heads=2, image_size=[8, 8], patch_size=[4, 4])
CLIP = dict(model_type="clip_vision_model", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            image_size=8, patch_size=4, projection_dim=8, vocab_size=10)
VOXTRAL_SOUNDS = dict(model_type="voxtral_encoder", hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                      num_attention_heads=2, num_mel_bins=8, max_source_positions=16, head_dim=8, vocab_size=10)
QWEN2_SOUNDS = dict(model_type="qwen2_audio_encoder", d_model=16, encoder_ffn_dim=16, encoder_layers=1,
                    encoder_attention_heads=2, num_mel_bins=8, max_source_positions=16)

# name -> (config.json, storage)
MODELS = {
    "codegen": (CODEGEN, NEWER),
    "codegen-rotary-8-f32": (
        new_dtype(CODEGEN | dict(n_embd=20, n_head=2, n_inner=26, rotary_dim=8, torch_dtype="float32")), NEWER),
    "codegen-three-heads-f16": (
        CODEGEN | dict(n_head=3, rotary_dim=4, activation_function="gelu", torch_dtype="float16"), NEWER | {"shards": 2}),
    "nanochat": (NANOCHAT, NEWER),
    "nanochat-bias-f16": (
        new_rope(NANOCHAT | dict(attention_bias=True, num_key_value_heads=1, num_hidden_layers=3, torch_dtype="float16",
                                 final_logit_softcapping=None), rope_type="default"), NEWER),
    "nanochat-three-heads": (
        NANOCHAT | dict(num_attention_heads=3, num_key_value_heads=3, hidden_act="gelu", final_logit_softcapping=2.5),
        NEWER | {"shards": 2}),
    "smolvlm": (
        multimodal("SmolVLMForConditionalGeneration", "smolvlm", LLAMA | dict(tie_word_embeddings=False), SMOLVLM_VISION,
                   image_token_id=60, scale_factor=2, use_cache=True), NEWER),
    "smolvlm-tied-three-heads-f16": (
        multimodal("SmolVLMForConditionalGeneration", "smolvlm",
                   LLAMA | dict(tie_word_embeddings=True, num_attention_heads=3, num_key_value_heads=3), SMOLVLM_VISION,
                   torch_dtype="float16"), NEWER | {"embedding_scale": 0.25}),
    "idefics3": (
        multimodal("Idefics3ForConditionalGeneration", "idefics3", LLAMA | dict(tie_word_embeddings=False),
                   SIGLIP | dict(model_type="idefics3_vision"), scale_factor=2), NEWER | {"shards": 2}),
    "internvl": (
        multimodal("InternVLForConditionalGeneration", "internvl", QWEN2 | dict(tie_word_embeddings=False), INTERNVL_VISION,
                   image_token_id=60, image_seq_length=4, downsample_ratio=0.5, projector_hidden_act="gelu",
                   vision_feature_layer=-1, vision_feature_select_strategy="default"), NEWER),
    "internvl-qwen3-tied-f16": (
        multimodal("InternVLForConditionalGeneration", "internvl", QWEN3 | dict(tie_word_embeddings=True), INTERNVL_VISION,
                   torch_dtype="float16"), NEWER | {"embedding_scale": 0.25}),
    "lfm2-vl": (
        multimodal("Lfm2VlForConditionalGeneration", "lfm2_vl", LFM2_PUBLISHED, SIGLIP | dict(model_type="siglip2_vision_model"),
                   image_token_id=60, downsample_factor=2, projector_hidden_size=20, projector_bias=True), NEWER),
    "llava-next-video": (
        multimodal("LlavaNextVideoForConditionalGeneration", "llava_next_video", LLAMA | dict(tie_word_embeddings=False),
                   CLIP, image_token_index=60, video_token_index=59, spatial_pool_mode="average", spatial_pool_stride=2,
                   image_grid_pinpoints=[[8, 8]]), NEWER),
    "voxtral": (
        without(multimodal("VoxtralForConditionalGeneration", "voxtral", LLAMA | dict(tie_word_embeddings=False),
                           audio_config=VOXTRAL_SOUNDS, audio_token_id=24), "vision_config"), NEWER),
    "qwen2-audio": (
        without(multimodal("Qwen2AudioForConditionalGeneration", "qwen2_audio", QWEN2 | dict(tie_word_embeddings=False),
                           audio_config=QWEN2_SOUNDS, audio_token_index=60), "vision_config"), NEWER),
    "llama4-multimodal": (
        multimodal("Llama4ForConditionalGeneration", "llama4", LLAMA4 | dict(no_rope_layers=[], num_hidden_layers=4),
                   LLAMA_VISION, boi_token_index=58, eoi_token_index=59, image_token_index=60),
        NEWER),
    # Scout's spelling of the scaling, whose two factors are one.
    "llama4-step-scaling": (
        LLAMA4 | dict(attn_temperature_tuning=True, moe_layers=[1], num_local_experts=3, attention_bias=True,
                      attention_chunk_size=5, num_attention_heads=3, num_key_value_heads=1,
                      rope_scaling={"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 1.0, "original_max_position_embeddings": 32}), {}),
    "mistral3": (
        multimodal("Mistral3ForConditionalGeneration", "mistral3",
                   without(MISTRAL, "sliding_window") | dict(sliding_window=None, tie_word_embeddings=False),
                   image_token_index=60, spatial_merge_size=2), NEWER),
    "mistral3-ministral-tied": (
        multimodal("Mistral3ForConditionalGeneration", "mistral3",
                   MINISTRAL3 | dict(tie_word_embeddings=True, rope_theta=1e6, sliding_window=None),
                   image_token_index=60, dtype="float16", spatial_merge_size=1), NEWER | {"embedding_scale": 0.25}),
    "mistral3-three-heads": (
        multimodal("Mistral3ForConditionalGeneration", "mistral3",
                   MISTRAL | dict(num_attention_heads=3, num_key_value_heads=3, head_dim=10, sliding_window=8,
                                  tie_word_embeddings=False)), NEWER | {"shards": 2}),
    "exaone4_5": (
        multimodal("Exaone4_5_ForConditionalGeneration", "exaone4_5", EXAONE4 | dict(tie_word_embeddings=False),
                   dict(model_type="exaone4_5_vision", hidden_size=16, intermediate_size=16, depth=1, num_heads=2,
                        num_key_value_heads=1, out_hidden_size=24, patch_size=4)), NEWER),
    "qwen3_5": (QWEN3_5, ZERO | NEWER),
    "qwen3_5-tied-f16": (
        new_dtype(without(QWEN3_5, "full_attention_interval") | dict(
            layer_types=["full_attention", "linear_attention"], num_hidden_layers=2, tie_word_embeddings=True,
            linear_num_key_heads=3, linear_num_value_heads=3, linear_key_head_dim=8, linear_value_head_dim=6,
            num_key_value_heads=3, torch_dtype="float16")), ZERO | NEWER),
    "qwen3_5-multimodal": (
        multimodal("Qwen3_5ForConditionalGeneration", "qwen3_5", QWEN3_5 | dict(num_hidden_layers=3), QWEN_VISION,
                   image_token_id=57, video_token_id=58, vision_start_token_id=59, vision_end_token_id=60),
        ZERO | NEWER),
    "qwen3_5-moe": (QWEN3_5_MOE, ZERO | NEWER),
    # As published: the experts of a layer one behind the other.
    "qwen3_5-moe-stacked": (
        QWEN3_5_MOE | dict(num_experts=4, shared_expert_intermediate_size=6, num_hidden_layers=3, torch_dtype="float32"),
        ZERO | NEWER | {"extra": "stacked_experts"}),
    "qwen3_5-moe-tied-f16": (
        new_dtype(QWEN3_5_MOE | dict(num_experts=4, num_experts_per_tok=3, tie_word_embeddings=True,
                                     linear_num_key_heads=1, num_key_value_heads=3, torch_dtype="float16")), ZERO | NEWER),
    "qwen3_5-moe-multimodal": (
        multimodal("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", QWEN3_5_MOE, QWEN_VISION | dict(
            model_type="qwen3_5_moe"), image_token_id=57, video_token_id=58, vision_start_token_id=59,
            vision_end_token_id=60), ZERO | NEWER),
    # As published: the fields of the text model beside those of the other.
    "qwen2_5-vl": (
        without(QWEN_VL, "model_type") | dict(
            architectures=["Qwen2_5_VLForConditionalGeneration"], model_type="qwen2_5_vl", vision_config=QWEN2_VISION,
            image_token_id=57, video_token_id=58, vision_start_token_id=59, vision_end_token_id=60, vision_token_id=56),
        NEWER),
    "qwen2_5-vl-nested-tied-f16": (
        multimodal("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", QWEN_VL | dict(
            tie_word_embeddings=True, num_key_value_heads=1, num_hidden_layers=3), QWEN2_VISION, torch_dtype="float16",
            image_token_id=57, video_token_id=58), NEWER | {"embedding_scale": 0.25}),
    "qwen3-vl": (
        multimodal("Qwen3VLForConditionalGeneration", "qwen3_vl", QWEN3_VL, QWEN3_VISION | dict(model_type="qwen3_vl"),
                   image_token_id=57, video_token_id=58, vision_start_token_id=59, vision_end_token_id=60), NEWER),
    "qwen3-vl-tied-f16": (
        multimodal("Qwen3VLForConditionalGeneration", "qwen3_vl", QWEN3_VL | dict(
            tie_word_embeddings=True, attention_bias=True, num_attention_heads=3, num_key_value_heads=3),
            QWEN3_VISION | dict(model_type="qwen3_vl"), torch_dtype="float16"), NEWER | {"embedding_scale": 0.25}),
    "qwen3-vl-moe": (
        multimodal("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", QWEN3_VL_MOE, QWEN3_VISION | dict(
            model_type="qwen3_vl_moe")), NEWER | {"extra": "transposed_experts"}),
    "qwen3-vl-moe-dense-first": (
        multimodal("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", QWEN3_VL_MOE | dict(
            mlp_only_layers=[0], num_experts=4, num_experts_per_tok=3), QWEN3_VISION | dict(model_type="qwen3_vl_moe"),
            torch_dtype="float32"), NEWER | {"shards": 2, "extra": "transposed_experts"}),
    "llava": (
        multimodal("LlavaForConditionalGeneration", "llava", LLAMA | dict(tie_word_embeddings=False),
                   dict(model_type="clip_vision_model", hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                        num_attention_heads=2, image_size=8, patch_size=4, projection_dim=8, vocab_size=10),
                   ignore_index=-100, image_token_index=60, image_seq_length=4, projector_hidden_act="gelu",
                   vision_feature_layer=-1, vision_feature_select_strategy="default"), NEWER),
    "solar-open": (SOLAR, NEWER | CORRECTION),
    "solar-open-groups-tied-f16": (
        new_rope(without(SOLAR, "rope_scaling") | dict(
            n_group=3, topk_group=2, n_shared_experts=2, norm_topk_prob=False, tie_word_embeddings=True,
            attention_bias=True, num_key_value_heads=1, torch_dtype="float16"), rope_type="default"), NEWER | CORRECTION),
    "solar-open-three-heads": (
        SOLAR | dict(num_attention_heads=3, num_key_value_heads=3, n_routed_experts=5, num_experts_per_tok=3,
                     num_hidden_layers=3), NEWER | CORRECTION | {"shards": 2}),
    "bitnet": (BITNET, {"needs": [5, 23]}),
    "bitnet-bias-tied-f16": (
        BITNET | dict(attention_bias=True, tie_word_embeddings=True, num_key_value_heads=1, hidden_act="silu",
                      torch_dtype="float16"), {"needs": [5, 23]}),
    "jais2": (JAIS2, {}),
    "jais2-no-biases-tied-f16": (
        new_rope(JAIS2 | dict(attention_bias=False, mlp_bias=False, tie_word_embeddings=True, num_key_value_heads=1,
                              torch_dtype="float16"), rope_type="default"), {}),
    "jais2-three-heads": (
        JAIS2 | dict(num_attention_heads=3, num_key_value_heads=3, head_dim=10, hidden_act="relu", num_hidden_layers=3),
        {"shards": 2}),
    "hyperclovax": (HYPERCLOVAX, NEWER),
    "hyperclovax-no-post-norm-f16": (
        new_rope(without(HYPERCLOVAX, "attention_multiplier") | dict(
            use_post_norm=False, attention_bias=True, mlp_bias=True, num_key_value_heads=1, logits_scaling=0.5,
            embedding_multiplier=2.0, torch_dtype="float16"), rope_type="default"), NEWER),
    "hyperclovax-three-heads": (
        HYPERCLOVAX | dict(num_attention_heads=3, num_key_value_heads=3, head_dim=10, num_hidden_layers=3),
        NEWER | {"shards": 2}),
    "afmoe": (AFMOE, BIAS),
    "afmoe-dense-first-two-f16": (
        new_rope(without(AFMOE, "rope_scaling") | dict(
            num_dense_layers=2, num_shared_experts=2, mup_enabled=False, num_experts_per_tok=3, num_key_value_heads=1,
            tie_word_embeddings=True, layer_types=["full_attention", "sliding_attention", "sliding_attention"],
            torch_dtype="float16"), rope_type="default"), BIAS | {"embedding_scale": 0.1}),
    "afmoe-all-experts": (
        AFMOE | dict(num_dense_layers=0, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
                     num_experts=5, sliding_window=5), BIAS | {"shards": 2}),
    "bamba": (BAMBA, WHOLE),
    "bamba-biases-tied-f16": (
        new_rope(without(BAMBA, "rope_scaling", "partial_rotary_factor") | dict(
            attn_layer_indices=[0], num_hidden_layers=2, attention_bias=True, mlp_bias=True,
            mamba_proj_bias=True, tie_word_embeddings=True, mamba_n_heads=4, mamba_d_head=12,
            num_key_value_heads=3, torch_dtype="float16"),
            rope_type="default", partial_rotary_factor=0.5), WHOLE),
    "bamba-wide-state": (
        BAMBA | dict(attn_layer_indices=[0, 2], mamba_d_state=19, mamba_conv_bias=False,
                     mamba_d_conv=3, num_attention_heads=2, num_key_value_heads=1), WHOLE),
    # As the model of 350M: embeddings that are narrower than the stream, norms after the branches.
    "opt-350m-style": (OPT | dict(do_layer_norm_before=False, word_embed_proj_dim=14), {}),
    "opt-wide-embeddings-untied": (
        OPT | dict(word_embed_proj_dim=30, tie_word_embeddings=False, torch_dtype="float32"), {}),
    "nemotron-h-narrow-experts": (
        NEMOTRON_H | dict(
            hybrid_override_pattern="E*ME", n_routed_experts=5, n_shared_experts=1, n_group=1, topk_group=1,
            moe_intermediate_size=8, moe_shared_expert_intermediate_size=10, moe_latent_size=14,
            num_experts_per_tok=2, norm_topk_prob=True, routed_scaling_factor=1.5, mlp_bias=False,
            torch_dtype="float16"), NEWER | CORRECTION),
    "lfm2-moe-no-bias-f16": (
        new_rope(LFM2_MOE | dict(
            use_expert_bias=False, norm_topk_prob=False, routed_scaling_factor=1.5, num_experts_per_tok=3,
            layer_types=["full_attention", "conv", "conv"], num_dense_layers=0, num_key_value_heads=1,
            torch_dtype="float16"), rope_type="default"), {}),
    "lfm2-moe-all-attention": (
        LFM2_MOE | dict(num_dense_layers=2, layer_types=["conv", "full_attention", "full_attention"], num_experts=4,
                        conv_L_cache=4, conv_bias=True), {"keep_float32": ["expert_bias"], "shards": 2}),
    "falcon-mamba-biases-tied-f16": (
        new_dtype(MAMBA | dict(
            architectures=["FalconMambaForCausalLM"], model_type="falcon_mamba", mixer_rms_eps=1e-4, use_bias=True,
            use_conv_bias=False, conv_kernel=3, time_step_rank=2, tie_word_embeddings=True, torch_dtype="float16")), {}),
    "falcon-mamba-wide-state": (
        MAMBA | dict(architectures=["FalconMambaForCausalLM"], model_type="falcon_mamba", mixer_rms_eps=1e-6,
                     state_size=19, tie_word_embeddings=False, num_hidden_layers=3, n_layer=3), {"shards": 2}),
}
