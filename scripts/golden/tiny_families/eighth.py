"""Families that came after those of seventh: see make_tiny_checkpoints."""

from .spelling import architecture, new_dtype, new_rope, without

NEWEST = {"needs": [5, 24]}

# As published: recurrent layers, then one of attention, in turns.
RECURRENT_GEMMA = without(architecture(
    "RecurrentGemmaForCausalLM", "recurrent_gemma", hidden_size=40, num_hidden_layers=5, num_attention_heads=5,
    num_key_value_heads=1, head_dim=8, intermediate_size=50, lru_width=40, conv1d_width=4, attention_window_size=7,
    logits_soft_cap=30.0, hidden_activation="gelu_pytorch_tanh", rms_norm_eps=1e-6, partial_rotary_factor=0.5,
    attention_bias=False, attention_dropout=0.0, embeddings_scale_by_sqrt_dim=True, w_init_variance_scale=0.01,
    final_w_init_variance_scale=0.08, block_types=["recurrent", "recurrent", "attention"], bos_token_id=2, eos_token_id=1,
    pad_token_id=0), "max_position_embeddings", "tie_word_embeddings")
# Its head is that of the embedding, whose numbers are multiplied. The class keeps its states in itself, where no step finds them.
GEMMA_STORAGE = NEWEST | {"zero_centred_norms": True, "embedding_scale": 0.1, "whole_texts": True}

# name -> (config.json, storage)
MODELS = {
    "recurrent-gemma": (RECURRENT_GEMMA, GEMMA_STORAGE),
    # Units wider than the stream, in heads wider than a run of lanes, and attention first.
    "recurrent-gemma-wide-units-f16": (
        new_rope(without(RECURRENT_GEMMA, "partial_rotary_factor", "embeddings_scale_by_sqrt_dim") | dict(
            num_attention_heads=2, num_key_value_heads=2, head_dim=10, lru_width=46, conv1d_width=3, attention_bias=True,
            block_types=["attention", "recurrent"], num_hidden_layers=4, attention_window_size=33, logits_soft_cap=5.0,
            tie_word_embeddings=False, torch_dtype="float16"), partial_rotary_factor=1.0, rope_type="default"),
        GEMMA_STORAGE | {"shards": 2}),
    "recurrent-gemma-odd-sizes": (
        new_dtype(without(RECURRENT_GEMMA, "block_types", "lru_width", "head_dim", "attention_window_size", "partial_rotary_factor") | dict(
            hidden_size=36, num_attention_heads=3, num_key_value_heads=3, intermediate_size=43, conv1d_width=2,
            num_hidden_layers=3, hidden_activation="silu", sliding_window=12, rms_norm_eps=1e-5, rope_theta=500.0,
            torch_dtype="float32")), GEMMA_STORAGE),
}
