"""Checkpoints that are published in a storage format of their own: they lie beside the quantised ones."""

from .experts import GPT_OSS

MODELS = {
    "gpt-oss-mxfp4": (
        GPT_OSS | dict(hidden_size=32, intermediate_size=32, num_local_experts=3,
                       quantization_config=dict(
                           quant_method="mxfp4", modules_to_not_convert=[
                               "model.layers.*.self_attn", "model.layers.*.mlp.router",
                               "model.embed_tokens", "lm_head"])),
        {"extra": "mxfp4"}),
    # Two ranks cut the columns of down within a block.
    "gpt-oss-mxfp4-six-heads": (
        GPT_OSS | dict(hidden_size=64, intermediate_size=96, num_local_experts=3,
                       num_attention_heads=6, num_key_value_heads=2, tie_word_embeddings=True,
                       num_experts_per_tok=1, experts_per_token=1, sliding_window=3,
                       quantization_config=dict(quant_method="mxfp4")),
        {"extra": "mxfp4"}),
}
