"""Families that came after those of sixth: see make_tiny_checkpoints."""

from .spelling import architecture, new_dtype, without

NEWEST = {"needs": [5, 24]}
SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "rope_theta")
XGLM = without(architecture(
    "XGLMForCausalLM", "xglm", d_model=24, ffn_dim=38, num_layers=2, attention_heads=4, activation_function="gelu",
    scale_embedding=True, add_cross_attention=False, decoder_start_token_id=2, layerdrop=0.0, dropout=0.1, activation_dropout=0.0,
    attention_dropout=0.1, init_std=0.02, tie_word_embeddings=True, bos_token_id=0, pad_token_id=1), *SIZES)
CTRL = without(architecture(
    "CTRLLMHeadModel", "ctrl", n_embd=24, dff=38, n_layer=2, n_head=4, n_positions=256, resid_pdrop=0.1, embd_pdrop=0.1,
    layer_norm_epsilon=1e-6, tie_word_embeddings=True), *SIZES, "max_position_embeddings")

# name -> (config.json, storage)
MODELS = {
    "xglm": (XGLM, NEWEST | {"embedding_scale": 0.08}),
    "xglm-own-head-f16": (
        XGLM | dict(tie_word_embeddings=False, scale_embedding=False, activation_function="relu", torch_dtype="float16"), NEWEST),
    # An odd width, whose last column has no wave.
    "xglm-three-heads": (
        new_dtype(without(XGLM, "tie_word_embeddings", "scale_embedding", "activation_function") | dict(
            d_model=33, attention_heads=3, num_layers=3, ffn_dim=29, max_position_embeddings=200)),
        NEWEST | {"shards": 2, "embedding_scale": 0.15, "matrix_scale": 1.8}),
    "ctrl": (CTRL, NEWEST | {"embedding_scale": 0.15, "matrix_scale": 2.5}),
    "ctrl-own-head-f16": (
        without(CTRL, "layer_norm_epsilon") | dict(
            tie_word_embeddings=False, n_layer=3, n_head=2, torch_dtype="float16"), NEWEST | {"shards": 2, "embedding_scale": 0.2}),
}
