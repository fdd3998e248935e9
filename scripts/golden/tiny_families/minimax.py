"""MiniMax M3, by itself and inside of the checkpoint that sees: see make_tiny_checkpoints."""

from .experts import CORRECTION
from .newest import ZERO, multimodal
from .spelling import architecture, new_rope, without

NEWEST = {"needs": [5, 24]} | CORRECTION | ZERO
M3 = architecture(
    "MiniMaxM3VLForCausalLM", "minimax_m3_vl_text", rms_norm_eps=1e-6, hidden_act="silu", head_dim=8, rotary_dim=4,
    num_hidden_layers=3, intermediate_size=10, dense_intermediate_size=22, shared_intermediate_size=14, num_local_experts=6,
    num_experts_per_tok=2, routed_scaling_factor=2.0, swiglu_alpha=1.702, swiglu_limit=7.0, index_n_heads=2, index_head_dim=8,
    index_block_size=4, index_topk_blocks=5, index_local_blocks=1, partial_rotary_factor=0.5,
    mlp_layer_types=["dense", "sparse", "sparse"], layer_types=["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"])
VISION = dict(model_type="minimax_m3_vl_vision", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
              image_size=8, patch_size=4)

# name -> (config.json, storage)
MODELS = {
    "minimax-m3": (M3, NEWEST),
    # Limits that cut, and another slope.
    "minimax-m3-all-experts-f16": (
        new_rope(without(M3, "mlp_layer_types", "layer_types", "partial_rotary_factor") | dict(
            swiglu_limit=0.5, swiglu_alpha=1.1, num_key_value_heads=1, num_experts_per_tok=3, torch_dtype="float16"),
            rope_type="default", partial_rotary_factor=0.75), NEWEST | {"shards": 2}),
    # As published: lists of numbers, an object of its own for the choice of blocks.
    "minimax-m3-seeing": (
        multimodal("MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl",
                   without(M3, "mlp_layer_types", "layer_types", "index_n_heads", "index_head_dim", "index_block_size",
                           "index_topk_blocks", "index_local_blocks") | dict(
                       tie_word_embeddings=False, hidden_act="swigluoai", num_attention_heads=3, num_key_value_heads=3,
                       moe_layer_freq=[0, 1, 1], use_gemma_norm=True, qk_norm_type="per_head", scoring_func="sigmoid",
                       use_routing_bias=True, n_shared_experts=1,
                       sparse_attention_config=dict(
                           use_sparse_attention=True, sparse_attention_freq=[0, 1, 1], sparse_num_index_heads=3,
                           sparse_index_dim=12, sparse_block_size=5, sparse_topk_blocks=4, sparse_local_block=2)),
                   VISION, image_token_index=60, video_token_index=59, projector_hidden_size=16), NEWEST),
}
