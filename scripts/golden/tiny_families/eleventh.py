"""Further shapes of families that had one or two: see make_tiny_checkpoints."""

from .dense_rms import EXAONE4
from .experts import CORRECTION
from .first import QWEN3
from .latest import PHI4_MULTIMODAL
from .more import DOTS1, MINIMAX_M2
from .newest import BITNET, NEWER, multimodal
from .ninth import NEWEST
from .spelling import new_dtype

EXAONE_VISION = dict(model_type="exaone4_5_vision", hidden_size=16, intermediate_size=16, depth=1, num_heads=2,
                     num_key_value_heads=1, out_hidden_size=24, patch_size=4)

# name -> (config.json, storage)
MODELS = {
    "dots1-groups-tied-f16": (
        DOTS1 | dict(n_group=3, topk_group=2, num_experts_per_tok=3, attention_bias=True, tie_word_embeddings=True,
                     num_key_value_heads=1, torch_dtype="float16"), CORRECTION),
    "dots1-all-sparse-sharded": (
        new_dtype(DOTS1 | dict(first_k_dense_replace=0, num_attention_heads=3, num_key_value_heads=3, head_dim=10, n_shared_experts=1,
                               norm_topk_prob=False, routed_scaling_factor=1.0, num_hidden_layers=3)), CORRECTION | {"shards": 2}),
    "minimax-m2-three-heads-f16": (
        MINIMAX_M2 | dict(num_attention_heads=3, num_key_value_heads=1, head_dim=12, rotary_dim=6, num_local_experts=6,
                          num_experts_per_tok=3, tie_word_embeddings=True, torch_dtype="float16"), NEWER | CORRECTION),
    "minimax-m2-all-experts": (
        new_dtype(MINIMAX_M2 | dict(num_local_experts=3, num_experts_per_tok=3, num_hidden_layers=3, rotary_dim=8)),
        NEWER | CORRECTION | {"shards": 2}),
    "qwen3-one-kv-head-tied-yarn-f16": (
        QWEN3 | dict(num_attention_heads=5, num_key_value_heads=1, head_dim=10, tie_word_embeddings=True, num_hidden_layers=3,
                     rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24},
                     torch_dtype="float16"), {}),
    "bitnet-three-heads": (
        new_dtype(BITNET | dict(num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=3, intermediate_size=30)),
        {"needs": [5, 23], "shards": 2}),
    "phi4-multimodal-one-kv-head": (
        new_dtype(PHI4_MULTIMODAL | dict(num_key_value_heads=1, num_hidden_layers=3)),
        NEWEST | {"prompt_lengths": (30, 33, 40), "shards": 2}),
    "exaone4_5-one-kv-head-f16": (
        multimodal("Exaone4_5_ForConditionalGeneration", "exaone4_5",
                   EXAONE4 | dict(tie_word_embeddings=False, num_key_value_heads=1, sliding_window_pattern=2, sliding_window=5),
                   EXAONE_VISION, torch_dtype="float16"), NEWER),
    "exaone4_5-three-heads": (
        multimodal("Exaone4_5_ForConditionalGeneration", "exaone4_5",
                   EXAONE4 | dict(tie_word_embeddings=False, num_attention_heads=3, num_key_value_heads=3, head_dim=10,
                                  num_hidden_layers=4, layer_types=["sliding_attention", "full_attention"] * 2), EXAONE_VISION),
        NEWER | {"shards": 2}),
}
