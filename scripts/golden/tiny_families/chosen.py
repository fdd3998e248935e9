"""Models whose later tokens see a choice of those before them: see make_tiny_checkpoints."""

from .experts import CORRECTION, DEEPSEEK3
from .latent import YARN
from .spelling import new_rope, without

DSA = without(DEEPSEEK3, "aux_loss_alpha", "seq_aux") | dict(
    architectures=["DeepseekV32ForCausalLM"], model_type="deepseek_v32", index_topk=9, index_head_dim=10, index_n_heads=5)
GLM_DSA = without(DSA, "first_k_dense_replace", "scoring_func", "topk_method", "moe_layer_freq", "ep_size") | dict(
    architectures=["GlmMoeDsaForCausalLM"], model_type="glm_moe_dsa", n_group=1, topk_group=1)
NEWEST = {"needs": [5, 24]}

# name -> (config.json, storage)
MODELS = {
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
