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

MINIMAX = architecture(
    "MiniMaxForCausalLM", "minimax", hidden_act="silu", rms_norm_eps=1e-5, hidden_size=24, head_dim=10, intermediate_size=14,
    num_hidden_layers=3, num_local_experts=4, num_experts_per_tok=2, output_router_logits=False, router_aux_loss_coef=0.001,
    router_jitter_noise=0.0, sliding_window=None, attention_dropout=0.0, block_size=8,
    layer_types=["linear_attention", "full_attention", "linear_attention"], full_attn_alpha_factor=3.5565588200778455,
    full_attn_beta_factor=1.0, linear_attn_alpha_factor=3.5565588200778455, linear_attn_beta_factor=1.0,
    mlp_alpha_factor=3.5565588200778455, mlp_beta_factor=1.0, rope_theta=1000000.0)
DECAYS = NEWEST | {"keep_float32": [".slope_rate", "_decay"]}

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
    # Where the first layer has no keys, the class takes what follows a text for a text of its own.
    "minimax": (MINIMAX, DECAYS | {"whole_texts": True}),
    # All factors apart, heads wider than a run of lanes, layers as the class has them by itself.
    "minimax-factors-tied-f16": (
        new_rope(without(MINIMAX, "layer_types", "sliding_window") | dict(
            num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=3, head_dim=22, full_attn_alpha_factor=1.7,
            full_attn_beta_factor=0.6, linear_attn_alpha_factor=0.8, linear_attn_beta_factor=1.3, mlp_alpha_factor=2,
            mlp_beta_factor=0.7, block_size=5, tie_word_embeddings=True, torch_dtype="float16"), rope_type="default"), DECAYS),
    "minimax-window-sharded": (
        new_dtype(without(MINIMAX, "head_dim", "full_attn_alpha_factor", "mlp_beta_factor") | dict(
            hidden_size=36, num_attention_heads=6, num_key_value_heads=2, num_local_experts=5, num_experts_per_tok=3,
            hidden_act="gelu", sliding_window=9, block_size=64, layer_types=["full_attention", "linear_attention", "full_attention"])),
        DECAYS | {"shards": 2}),
}
