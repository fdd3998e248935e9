"""GPT-NeoX Japanese: see make_tiny_checkpoints."""

from .spelling import architecture, new_dtype, new_rope, without

NEWEST = {"needs": [5, 24]}
NEOX = without(architecture(
    "GPTNeoXJapaneseForCausalLM", "gpt_neox_japanese", hidden_act="gelu", layer_norm_eps=1e-5, intermediate_multiple_size=2,
    rotary_pct=1.0, rotary_emb_base=10000, num_hidden_layers=3),
    "intermediate_size", "num_key_value_heads", "head_dim", "rms_norm_eps", "rope_theta", "rope_scaling")

# name -> (config.json, storage)
MODELS = {
    "gpt-neox-japanese": (NEOX, NEWEST),
    "gpt-neox-japanese-partly-rotated-f16": (
        new_rope(without(NEOX, "rotary_pct", "rotary_emb_base") | dict(
            num_attention_heads=3, hidden_act="relu", intermediate_multiple_size=3, rope_theta=10000.0, torch_dtype="float16"),
            rope_type="default", partial_rotary_factor=0.5), NEWEST | {"shards": 2}),
    "gpt-neox-japanese-tied-f32": (
        new_dtype(NEOX | dict(rotary_emb_base=500, tie_word_embeddings=True, layer_norm_eps=1e-3, hidden_size=20, num_attention_heads=2,
                              num_hidden_layers=2, torch_dtype="float32")), NEWEST | {"embedding_scale": 0.1}),
}
