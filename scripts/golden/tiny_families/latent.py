"""Families with latent attention, beside DeepSeek's own."""

from .experts import CORRECTION, DEEPSEEK3
from .more import GLM_LITE, MINICPM3, NEWER
from .spelling import architecture, new_rope, without

YARN = dict(type="yarn", factor=8, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=0.8,
            original_max_position_embeddings=32)
YOUTU = architecture(
    "YoutuForCausalLM", "youtu", rms_norm_eps=1e-6, hidden_act="silu", num_key_value_heads=4,
    kv_lora_rank=18, q_lora_rank=10, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=8,
    attention_bias=False, mlp_bias=False, rope_interleave=True, tie_word_embeddings=True)
MISTRAL4 = architecture(
    "Mistral4ForCausalLM", "mistral4", rms_norm_eps=1e-6, hidden_act="silu", num_key_value_heads=4,
    intermediate_size=30, moe_intermediate_size=10, kv_lora_rank=14, q_lora_rank=10,
    qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=8, n_routed_experts=6, n_shared_experts=1,
    num_experts_per_tok=2, first_k_dense_replace=0, n_group=1, topk_group=1, norm_topk_prob=True,
    routed_scaling_factor=1.0, attention_bias=False, rope_interleave=True)
MISTRAL4_YARN = dict(rope_type="yarn", factor=8.0, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
                     mscale_all_dim=1.0, original_max_position_embeddings=24,
                     llama_4_scaling_beta=0.3, rope_theta=10000.0)


def mistral4(partial, **changes):
    return without(MISTRAL4, "rope_theta") | dict(
        rope_parameters=MISTRAL4_YARN | dict(partial_rotary_factor=partial)) | changes


# Layers that are two; two of eight experts give what they read.
LONGCAT = without(architecture(
    "LongcatFlashForCausalLM", "longcat_flash", rms_norm_eps=1e-5, hidden_act="silu", num_layers=2, ffn_hidden_size=30,
    expert_ffn_hidden_size=10, moe_topk=3, n_routed_experts=6, zero_expert_num=2, routed_scaling_factor=2.5, kv_lora_rank=14,
    q_lora_rank=10, qk_nope_head_dim=6, qk_rope_head_dim=4, head_dim=4, v_head_dim=8, attention_bias=False),
    "num_hidden_layers", "intermediate_size", "num_key_value_heads")
LONGCAT_STORAGE = {"needs": [5, 24], "keep_float32": ["classifier.weight", "e_score_correction_bias"]}

# name -> (config.json, storage)
MODELS = {
    # Ranks and parts of a head that are no multiples of anything, and wider than a block.
    "deepseek3-odd-sizes": (
        DEEPSEEK3 | dict(
            num_attention_heads=5, num_key_value_heads=5, hidden_size=35, kv_lora_rank=45,
            q_lora_rank=19, qk_nope_head_dim=7, qk_rope_head_dim=10, v_head_dim=17,
            n_routed_experts=7, n_group=1, topk_group=1, num_hidden_layers=3,
            first_k_dense_replace=2), CORRECTION),
    "glm4-moe-lite-yarn-f16": (
        without(GLM_LITE, "first_k_dense_replace") | dict(
            rope_scaling=YARN, rope_interleave=False, q_lora_rank=None, n_group=2, topk_group=1,
            attention_bias=True, torch_dtype="float16"), CORRECTION),
    "glm4-moe-lite-layer-types": (
        new_rope(without(GLM_LITE, "first_k_dense_replace", "rope_scaling", "partial_rotary_factor") | dict(
            mlp_layer_types=["sparse", "dense", "sparse"], num_hidden_layers=3, v_head_dim=11,
            kv_lora_rank=33, norm_topk_prob=False, n_shared_experts=2), rope_type="default"),
        CORRECTION),
    "minicpm3-no-q-lora-f16": (
        MINICPM3 | dict(q_lora_rank=None, attention_bias=True, kv_lora_rank=35, v_head_dim=5,
                        qk_rope_head_dim=6, torch_dtype="float16"),
        NEWER | {"embedding_scale": 0.1}),
    "longcat-flash": (LONGCAT, LONGCAT_STORAGE),
    # As published, with more experts that give what they read than others.
    "longcat-flash-published-f16": (
        LONGCAT | dict(zero_expert_num=5, n_routed_experts=4, moe_topk=4, zero_expert_type="identity", attention_method="MLA",
                       mla_scale_q_lora=True, mla_scale_kv_lora=True, router_bias=False, rope_theta=10000000.0,
                       attention_bias=True, torch_dtype="float16"), LONGCAT_STORAGE),
    "longcat-flash-odd-sizes": (
        new_rope(LONGCAT | dict(
            num_layers=3, num_attention_heads=5, hidden_size=35, kv_lora_rank=33, q_lora_rank=19, qk_nope_head_dim=7,
            qk_rope_head_dim=10, head_dim=10, v_head_dim=17, zero_expert_num=0, tie_word_embeddings=True, moe_topk=2),
            **without(YARN, "type"), rope_type="yarn"), LONGCAT_STORAGE | {"shards": 2}),
    "youtu": (YOUTU, {}),
    "youtu-no-q-lora-f16": (
        new_rope(YOUTU | dict(
            q_lora_rank=None, tie_word_embeddings=False, rope_interleave=False, attention_bias=True,
            v_head_dim=11, qk_rope_head_dim=6, torch_dtype="float16"), rope_type="default"), {}),
    "youtu-yarn": (YOUTU | dict(rope_scaling=YARN, tie_word_embeddings=False), {}),
    "mistral4": (mistral4(0.4), NEWER),
    "mistral4-groups-f16": (
        mistral4(0.4, n_group=3, topk_group=2, q_lora_rank=None, norm_topk_prob=False,
                 routed_scaling_factor=2.0, first_k_dense_replace=1, num_hidden_layers=3,
                 torch_dtype="float16"), NEWER),
    "mistral4-halves-biases": (
        mistral4(0.5, rope_interleave=False, attention_bias=True, qk_rope_head_dim=6,
                 kv_lora_rank=37, v_head_dim=5, n_shared_experts=2), NEWER),
}
