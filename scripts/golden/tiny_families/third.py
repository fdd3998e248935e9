"""A third checkpoint for families that have two elsewhere: other numbers of heads and layers, more files, and what else
published ones have."""

from .dense_layernorm import BIGCODE, BLOOM, COHERE2, GPTJ, MPT, NEMOTRON, STARCODER2
from .dense_rms import ARCEE, ERNIE, GLM, HELIUM, MINISTRAL3, SEED_OSS
from .experts import (CORRECTION, DBRX, ERNIE_MOE, GLM4_MOE, GRANITE_MOE, HUNYUAN_MOE, LLAMA4, NEWER,
                      OLMOE, PHIMOE, SMALL)
from .spelling import new_dtype, new_rope
from .state import GRANITE_HYBRID, JAMBA, LFM2, MAMBA, MAMBA2, QWEN3_NEXT, ZERO

FILES = {"shards": 2}

# name -> (config.json, storage)
MODELS = {
    "starcoder2-mha-sharded": (
        STARCODER2 | dict(num_key_value_heads=4, sliding_window=None, hidden_act="gelu"), FILES),
    "gptj-sharded": (new_dtype(GPTJ | dict(rotary_dim=2, n_inner=30, activation_function="gelu",
                                           torch_dtype="bfloat16")), FILES),
    "cohere2-three-heads": (
        COHERE2 | dict(num_attention_heads=3, num_key_value_heads=3, sliding_window_pattern=2,
                       sliding_window=5, logit_scale=0.25, tie_word_embeddings=False,
                       intermediate_size=20), FILES),
    "glm-three-heads": (
        GLM | dict(num_attention_heads=3, num_key_value_heads=3, head_dim=8,
                   partial_rotary_factor=0.25), FILES),
    "glm4-three-heads": (
        GLM | dict(architectures=["Glm4ForCausalLM"], model_type="glm4", num_attention_heads=3,
                   num_key_value_heads=1, head_dim=16, tie_word_embeddings=True), FILES),
    "seed-oss-three-heads": (
        SEED_OSS | dict(num_attention_heads=3, num_key_value_heads=3, attention_bias=False,
                        rope_theta=5000.0), FILES),
    "ernie4_5-three-heads": (
        ERNIE | dict(num_attention_heads=3, num_key_value_heads=3, head_dim=8, use_bias=True,
                     num_hidden_layers=3, intermediate_size=20), FILES),
    "helium-three-heads": (
        HELIUM | dict(num_attention_heads=3, num_key_value_heads=1, head_dim=8), FILES),
    "arcee-three-heads": (
        ARCEE | dict(num_attention_heads=3, num_key_value_heads=3, mlp_bias=True), FILES),
    "ministral3-scaled-soon": (
        new_rope(MINISTRAL3 | dict(num_attention_heads=3, num_key_value_heads=3),
                 rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                 original_max_position_embeddings=20, llama_4_scaling_beta=0.2), FILES),
    "bloom-six-heads": (
        BLOOM | dict(num_attention_heads=6, torch_dtype="bfloat16"), FILES | {"matrix_scale": 3.0}),
    "mpt-six-heads": (MPT | dict(n_heads=6, n_layers=1), {"matrix_scale": 2.0}),
    "gpt-bigcode-unscaled": (
        BIGCODE | dict(scale_attn_weights=False, n_head=3, n_inner=30, activation_function="gelu",
                       torch_dtype="bfloat16"), FILES),
    "nemotron-three-heads": (
        NEMOTRON | dict(hidden_size=24, num_attention_heads=3, num_key_value_heads=3, mlp_bias=True,
                        partial_rotary_factor=0.25),
        FILES | {"zero_centred_norms": True}),
    "olmoe-bias-four-experts": (
        OLMOE | dict(num_experts=4, num_experts_per_tok=4, attention_bias=True,
                     num_key_value_heads=1), FILES),
    "granitemoe-top1": (
        GRANITE_MOE | dict(num_experts_per_tok=1, num_local_experts=3, num_key_value_heads=4),
        SMALL | FILES),
    "phimoe-longrope": (
        PHIMOE | dict(num_attention_heads=3, num_key_value_heads=3, num_local_experts=4,
                      router_jitter_noise=0.15, max_position_embeddings=128,
                      rope_scaling=dict(type="longrope", short_factor=[1.0, 1.2, 1.6, 2.0],
                                        long_factor=[2.0, 3.0, 5.0, 9.0], short_mscale=1.24,
                                        long_mscale=1.4, original_max_position_embeddings=128)), {}),
    "glm4-moe-dense-first-two": (
        GLM4_MOE | dict(num_hidden_layers=3, first_k_dense_replace=2, intermediate_size=16,
                        n_routed_experts=6, num_experts_per_tok=1, use_qk_norm=True,
                        routed_scaling_factor=1.0), CORRECTION | FILES),
    "ernie4_5-moe-no-shared": (
        ERNIE_MOE | dict(moe_num_shared_experts=0, moe_num_experts=6, moe_k=2, num_key_value_heads=4,
                         moe_layer_start_index=0), CORRECTION | FILES),
    "hunyuan-moe-top1": (
        HUNYUAN_MOE | dict(moe_topk=1, num_experts=3, num_attention_heads=3, num_key_value_heads=3),
        FILES),
    "dbrx-top1": (
        DBRX | dict(n_heads=2, attn_config=dict(clip_qkv=2, kv_n_heads=2, rope_theta=20000.0),
                    ffn_config=DBRX["ffn_config"] | dict(moe_top_k=1, moe_num_experts=4)),
        NEWER | FILES),
    "llama4-text-dense-and-sparse": (
        LLAMA4 | dict(moe_layers=[1], num_hidden_layers=2, no_rope_layers=[0, 1],
                      attention_chunk_size=6, attention_bias=True, num_attention_heads=3,
                      num_key_value_heads=3, attn_scale=0.3), FILES),
    "mamba-wide-state": (
        MAMBA | dict(state_size=16, time_step_rank=1, conv_kernel=2, torch_dtype="bfloat16"), FILES),
    "mamba2-four-groups": (
        MAMBA2 | dict(n_groups=4, num_heads=8, head_dim=6, state_size=4, use_conv_bias=False,
                      conv_kernel=3), NEWER | FILES),
    "jamba-all-experts": (
        JAMBA | dict(num_hidden_layers=2, attn_layer_period=2, attn_layer_offset=0,
                     expert_layer_period=1, num_experts=4, num_experts_per_tok=1, mamba_d_conv=3,
                     num_attention_heads=3, num_key_value_heads=3), FILES),
    "lfm2-tied-sharded": (
        LFM2 | dict(num_hidden_layers=4, full_attn_idxs=[0, 3], num_attention_heads=3, num_heads=3,
                    num_key_value_heads=3, block_ffn_dim_multiplier=1.5, intermediate_size=24,
                    block_ff_dim=24), FILES),
    "qwen3-next-three-layers": (
        QWEN3_NEXT | dict(num_hidden_layers=3, full_attention_interval=3, linear_num_key_heads=1,
                          linear_num_value_heads=2, num_experts=3, num_experts_per_tok=1,
                          linear_conv_kernel_dim=3, decoder_sparse_step=2, intermediate_size=12),
        ZERO | FILES),
    "granite-hybrid-attention-first": (
        GRANITE_HYBRID | dict(num_hidden_layers=2, layer_types=["attention", "mamba"],
                              num_experts_per_tok=1, num_local_experts=3, mamba_n_heads=4,
                              mamba_d_head=12, attention_bias=True, num_key_value_heads=1),
        SMALL | FILES),
}
