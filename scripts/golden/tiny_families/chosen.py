"""Models whose later tokens see a choice of those before them: see make_tiny_checkpoints."""

from .experts import CORRECTION, DEEPSEEK3
from .latent import YARN
from .spelling import new_rope, without

DSA = without(DEEPSEEK3, "aux_loss_alpha", "seq_aux") | dict(
    architectures=["DeepseekV32ForCausalLM"], model_type="deepseek_v32", index_topk=9, index_head_dim=10, index_n_heads=5)
GLM_DSA = without(DSA, "first_k_dense_replace", "scoring_func", "topk_method", "moe_layer_freq", "ep_size") | dict(
    architectures=["GlmMoeDsaForCausalLM"], model_type="glm_moe_dsa", n_group=1, topk_group=1)
AXK2 = without(DSA, "first_k_dense_replace", "scoring_func", "topk_method", "moe_layer_freq", "ep_size", "n_group", "topk_group",
               "rope_scaling") | dict(
    architectures=["AXK2ForCausalLM"], model_type="axk2", gated_norm_rank=5, mlp_layer_types=["dense", "sparse"])
HYV4 = without(AXK2, "gated_norm_rank") | dict(
    architectures=["HYV4ForCausalLM"], model_type="hy_v4", hc_mult=4, hc_magnitude=2.0, hc_eps=1e-6, swiglu_limit=10.0,
    num_hidden_layers=3, mlp_layer_types=["dense", "sparse", "sparse"], indexer_types=["full", "full", "shared"],
    learnable_sink_init=0.0, n_group=1, topk_group=1, pad_token_id=0,
    index_topk=24, index_n_heads=8)
NEWEST = {"needs": [5, 24]}

# name -> (config.json, storage)
MODELS = {
    "axk2": (AXK2, NEWEST | CORRECTION),
    "axk2-groups-yarn-f16": (
        AXK2 | dict(rope_scaling=YARN, n_group=2, topk_group=1, n_routed_experts=6, attention_bias=True, index_topk=30,
                    index_n_heads=7, v_head_dim=11, mlp_layer_types=["sparse", "sparse"], torch_dtype="float16"),
        NEWEST | CORRECTION),
    "axk2-three-layers": (
        without(AXK2, "mlp_layer_types") | dict(num_hidden_layers=3, first_k_dense_replace=2, index_topk=2048, norm_topk_prob=False,
                                                tie_word_embeddings=True), NEWEST | CORRECTION | {"shards": 2}),
    "hy-v4": (HYV4, NEWEST | CORRECTION),
    "hy-v4-two-streams-f16": (
        without(HYV4, "indexer_types") | dict(
            hc_mult=2, hc_magnitude=1.3, hc_eps=1e-3, swiglu_limit=0.05, num_hidden_layers=4, index_topk=33, index_n_heads=7,
            mlp_layer_types=["sparse", "dense", "sparse", "sparse"], v_head_dim=11, qk_rope_head_dim=6, torch_dtype="float16"),
        NEWEST | CORRECTION),
    "hy-v4-five-streams": (
        without(HYV4, "mlp_layer_types") | dict(hc_mult=5, index_topk=2048, n_shared_experts=2, rope_parameters=dict(
            YARN | dict(rope_type="yarn", rope_theta=10000.0), type="yarn")), NEWEST | CORRECTION | {"shards": 2}),
    "deepseek-v32": (DSA, NEWEST | CORRECTION),
    "deepseek-v32-yarn-f16": (
        DSA | dict(rope_scaling=YARN, n_group=2, topk_group=1, attention_bias=True, norm_topk_prob=False,
                   max_position_embeddings=320, index_topk=40, index_n_heads=9, torch_dtype="float16"), NEWEST | CORRECTION),
    "deepseek-v32-three-layers": (
        DSA | dict(num_hidden_layers=3, mlp_layer_types=["sparse", "dense", "sparse"], n_shared_experts=2, index_topk=2048,
                   qk_rope_head_dim=6, index_n_heads=2, v_head_dim=11), NEWEST | CORRECTION | {"shards": 2}),
    "glm-moe-dsa": (
        GLM_DSA | dict(num_hidden_layers=3, first_k_dense_replace=1, indexer_types=["full", "shared", "full"]),
        NEWEST | CORRECTION),
    "glm-moe-dsa-rope-f16": (
        new_rope(without(GLM_DSA, "rope_scaling") | dict(
            num_hidden_layers=4, first_k_dense_replace=2, index_topk=33, index_n_heads=7, index_topk_freq=2, index_skip_topk_offset=1, num_nextn_predict_layers=0,
            tie_word_embeddings=True, torch_dtype="float16"), rope_type="default"), NEWEST | CORRECTION),
}
