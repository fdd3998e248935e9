"""Families that came after those of ninth: see make_tiny_checkpoints."""

from .first import QWEN2
from .newest import multimodal
from .ninth import NEWEST
from .spelling import architecture, new_dtype, new_rope, without
from .wrapped import UNTIED

# Steps of its Mamba 2 have a least size, which transformers forgets where it goes on token by token.
# Weights are small, or the class itself would be a thousandth of a logit away from what it is in float64.
WHOLE = NEWEST | {"whole_texts": True, "matrix_scale": 0.8}
ZAMBA2 = without(architecture(
    "Zamba2ForCausalLM", "zamba2", rms_norm_eps=1e-5, hidden_act="gelu", hidden_size=24, num_hidden_layers=5,
    layers_block_type=["mamba", "hybrid", "mamba", "hybrid", "hybrid"], num_mem_blocks=2, num_key_value_heads=4,
    use_shared_attention_adapter=True, use_mem_rope=True, use_long_context=False, adapter_rank=5, mamba_d_state=6,
    mamba_d_conv=4, mamba_expand=2, mamba_ngroups=1, n_mamba_heads=6, add_bias_linear=False, use_conv_bias=True,
    chunk_size=16, time_step_min=0.001, time_step_max=0.1, time_step_floor=1e-4, tie_word_embeddings=True,
    use_mem_eff_path=False, use_mamba_kernels=True, num_logits_to_keep=1, pad_token_id=0), "rope_scaling")

DIFF = architecture("DiffLlamaForCausalLM", "diffllama", rms_norm_eps=1e-5, hidden_act="silu", attention_bias=False, lambda_std_dev=0.1,
                    rope_scaling=None)

FLAMINGO_SOUNDS = dict(model_type="audioflamingo3_encoder", hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                       num_attention_heads=2, num_mel_bins=8, max_source_positions=16)

# name -> (config.json, storage)
MODELS = {
    "zamba2": (ZAMBA2, WHOLE),
    # One block, grouped heads, biases; nothing is rotated; steps are often smaller than the least.
    "zamba2-one-block-bias-f16": (
        new_dtype(without(ZAMBA2, "rope_theta") | dict(
            num_mem_blocks=1, num_hidden_layers=4, layers_block_type=["hybrid", "linear_attention", "linear_attention", "hybrid"],
            use_shared_attention_adapter=False, use_mem_rope=False, num_attention_heads=6, num_key_value_heads=2,
            add_bias_linear=True, mamba_ngroups=2, n_mamba_heads=4, mamba_d_conv=3, mamba_d_state=10, adapter_rank=3,
            time_step_min=0.3, torch_dtype="float16")), WHOLE),
    # Three blocks, of which one is used again; the class's own size of the MLP and its own rotation.
    "zamba2-three-blocks-silu": (
        new_rope(ZAMBA2 | dict(
            hidden_size=20, intermediate_size=None, num_mem_blocks=3, num_attention_heads=5, num_key_value_heads=5,
            num_hidden_layers=6, layers_block_type=["mamba", "hybrid", "hybrid", "mamba", "hybrid", "hybrid"],
            hidden_act="silu", use_long_context=True, mamba_expand=3, n_mamba_heads=5, adapter_rank=7, rms_norm_eps=1e-3),
            rope_type="default"), WHOLE | {"shards": 2}),
    "diffllama": (DIFF, NEWEST),
    # Two query heads for each of keys, heads that are not the stream's part, biases.
    "diffllama-four-pairs-bias-f16": (
        new_rope(without(DIFF, "rope_scaling") | dict(
            num_attention_heads=8, num_key_value_heads=8, head_dim=6, attention_bias=True, tie_word_embeddings=True,
            num_hidden_layers=3, rms_norm_eps=1e-3, torch_dtype="float16"), rope_type="linear", factor=2.0), NEWEST),
    "diffllama-three-in-one": (
        new_dtype(DIFF | dict(num_attention_heads=12, num_key_value_heads=4, head_dim=10, hidden_size=30, num_hidden_layers=4,
                              rope_scaling={"rope_type": "dynamic", "factor": 2.0}, max_position_embeddings=48)),
        NEWEST | {"shards": 2, "prompt_lengths": (1, 7, 20)}),
    "music-flamingo": (
        without(multimodal("MusicFlamingoForConditionalGeneration", "musicflamingo", QWEN2 | UNTIED, audio_config=FLAMINGO_SOUNDS,
                           audio_token_id=60, audio_bos_token_id=58, audio_eos_token_id=59), "vision_config"), NEWEST),
}
