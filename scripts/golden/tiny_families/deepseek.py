"""The first DeepSeek MoE, DeepSeek V4, and Hunyuan 4 with eyes: see make_tiny_checkpoints."""

from .chosen import HYV4
from .experts import CORRECTION, DEEPSEEK2
from .latent import YARN
from .spelling import without
from .wrapped import NEWEST, SMALL, UNTIED, seeing

DEEPSEEK = without(DEEPSEEK2, "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "topk_method",
                   "n_group", "topk_group", "routed_scaling_factor") | dict(
    architectures=["DeepseekForCausalLM"], model_type="deepseek", num_key_value_heads=2, num_hidden_layers=3)
HYV4_TEXT = without(HYV4, "architectures", "rope_theta") | UNTIED | dict(
    model_type="hy_v4_vl_text", rms_norm_eps=1e-4,
    rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[1, 1, 0]))
VISION = without(SMALL, "image_size") | dict(model_type="hy_v4_vl_vision", out_hidden_size=24, max_image_size=64)
V4 = dict(
    architectures=["DeepseekV4ForCausalLM"], model_type="deepseek_v4", vocab_size=61, hidden_size=24, moe_intermediate_size=10,
    num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1, head_dim=12, q_lora_rank=10, o_groups=2, o_lora_rank=7,
    max_position_embeddings=256, rope_theta=10000.0, compress_rope_theta=40000.0, partial_rotary_factor=0.5, sliding_window=9,
    layer_types=["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "compressed_sparse_attention"],
    compress_rates=dict(compressed_sparse_attention=3, heavily_compressed_attention=5),
    mlp_layer_types=["hash_moe", "moe", "hash_moe", "moe"], n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=3,
    norm_topk_prob=True, routed_scaling_factor=1.5, scoring_func="sqrtsoftplus", swiglu_limit=10.0, hidden_act="silu",
    hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-6, index_n_heads=5, index_head_dim=10, index_topk=4, num_nextn_predict_layers=0,
    rms_norm_eps=1e-6, attention_bias=False, mlp_bias=False, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2,
    torch_dtype="bfloat16")

# name -> (config.json, storage)
MODELS = {
    "deepseek-moe": (DEEPSEEK, {}),
    "deepseek-moe-every-second-f16": (
        DEEPSEEK | dict(num_hidden_layers=4, moe_layer_freq=2, norm_topk_prob=True, num_experts_per_tok=3, n_shared_experts=None,
                        attention_bias=True, num_attention_heads=3, num_key_value_heads=3, first_k_dense_replace=0,
                        torch_dtype="float16"), {"shards": 2}),
    "deepseek-moe-one-expert": (
        DEEPSEEK | dict(num_experts_per_tok=1, norm_topk_prob=True, n_shared_experts=1, n_routed_experts=5, num_key_value_heads=4,
                        rope_scaling=dict(type="linear", factor=2.0)), {}),
    "deepseek-dense": (
        without(DEEPSEEK, "n_routed_experts", "n_shared_experts", "num_experts_per_tok") | dict(
            n_routed_experts=None, n_shared_experts=None, num_experts_per_tok=None, num_key_value_heads=None), {}),
    "deepseek-v4": (V4, NEWEST | CORRECTION),
    # The fields of older files, their rope of one kind, and entries of all tokens.
    "deepseek-v4-yarn-f16": (
        without(V4, "layer_types", "compress_rates", "mlp_layer_types", "partial_rotary_factor") | dict(
            compress_ratios=[0, 0, 4, 128, 4], compress_rate_csa=2, compress_rate_hca=20, num_hash_layers=1, qk_rope_head_dim=4,
            num_hidden_layers=5, rope_scaling=dict(type="yarn", factor=16, beta_fast=32, beta_slow=1, original_max_position_embeddings=64),
            index_topk=512, scoring_func="sigmoid", swiglu_limit=0.3, sliding_window=6, torch_dtype="float16"),
        NEWEST | CORRECTION | {"shards": 2}),
    # Layers by default, which see entries of 128 tokens first, behind prompts that have some.
    "deepseek-v4-two-streams": (
        without(V4, "layer_types", "compress_rates", "mlp_layer_types") | dict(
            hc_mult=2, hc_sinkhorn_iters=3, hc_eps=1e-3, max_position_embeddings=512, index_topk=20, index_n_heads=2,
            o_groups=4, rms_norm_eps=1e-4, num_experts_per_tok=2, num_hidden_layers=3, sliding_window=33, tie_word_embeddings=True,
            rope_parameters=dict(
                main=dict(rope_type="default", rope_theta=5000.0, partial_rotary_factor=1 / 3),
                compress=dict(rope_type="linear", factor=4.0, rope_theta=20000.0, partial_rotary_factor=1 / 3))),
        NEWEST | CORRECTION | {"prompt_lengths": [130]}),
    "hy-v4-vl": (seeing("HYV4VL", "hy_v4_vl", HYV4_TEXT, VISION), NEWEST | CORRECTION),
    "hy-v4-vl-yarn-f16": (
        seeing("HYV4VL", "hy_v4_vl", HYV4_TEXT | dict(
            hc_mult=2, rms_norm_eps=1e-6, index_topk=33, index_n_heads=7, v_head_dim=11, qk_rope_head_dim=6,
            rope_parameters=dict(YARN | dict(rope_type="yarn", rope_theta=10000.0, mrope_section=[1, 1, 1]))), VISION,
            torch_dtype="float16"), NEWEST | CORRECTION | {"shards": 2}),
    "hy-v4-vl-three-streams": (
        seeing("HYV4VL", "hy_v4_vl", without(HYV4_TEXT, "mlp_layer_types", "indexer_types") | dict(
            hc_mult=3, num_hidden_layers=4, index_topk=2048, n_shared_experts=2, rms_norm_eps=1e-3), VISION), NEWEST | CORRECTION),
}
