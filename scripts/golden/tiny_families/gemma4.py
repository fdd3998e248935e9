"""Gemma 4 (text): heads of two sizes, keys and values that layers share, rows for each layer, experts beside the MLP."""

from .spelling import architecture, new_dtype, without

ROPES = {"sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
         "full_attention": {"rope_type": "proportional", "rope_theta": 200000.0, "partial_rotary_factor": 0.25}}
GEMMA4 = new_dtype(without(architecture(
    "Gemma4ForCausalLM", "gemma4_text", num_key_value_heads=2, head_dim=8, global_head_dim=12, rms_norm_eps=1e-6,
    hidden_activation="gelu_pytorch_tanh", attention_bias=False, tie_word_embeddings=True, sliding_window=8,
    num_hidden_layers=3, layer_types=["sliding_attention", "full_attention", "full_attention"],
    rope_parameters=ROPES, hidden_size_per_layer_input=0, vocab_size_per_layer_input=61, attention_k_eq_v=False,
    num_kv_shared_layers=0, enable_moe_block=False, use_double_wide_mlp=False), "rope_theta"))
SHARED = dict(
    num_hidden_layers=7, num_kv_shared_layers=4, use_double_wide_mlp=True, num_key_value_heads=1,
    layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention",
                 "sliding_attention", "sliding_attention", "full_attention"])
EXPERTS = dict(enable_moe_block=True, num_experts=5, top_k_experts=2, moe_intermediate_size=10)
VISION = dict(model_type="gemma4_vision", hidden_size=8, intermediate_size=10, num_hidden_layers=1,
              num_attention_heads=2, num_key_value_heads=2, head_dim=4, patch_size=4, position_embedding_size=16)
# Embeddings are multiplied by the root of their width.
SMALL = {"embedding_scale": 0.12, "needs": [5, 24]}

# name -> (config.json, storage)
MODELS = {
    # As the small ones: half of the layers read the keys and values of others.
    "gemma4-shared-kv": (
        GEMMA4 | SHARED | dict(hidden_size_per_layer_input=6, vocab_size_per_layer_input=64), SMALL),
    # As the large dense ones: no matrix of v where a layer sees everything, and another count of KV heads. The class
    # makes the last layer one that sees everything.
    "gemma4-keys-as-values-f32": (
        GEMMA4 | dict(attention_k_eq_v=True, num_global_key_value_heads=1, dtype="float32", attention_bias=True,
                      tie_word_embeddings=False, final_logit_softcapping=7.0, num_hidden_layers=4,
                      layer_types=["sliding_attention", "full_attention", "sliding_attention",
                                   "sliding_attention"]), SMALL),
    "gemma4-experts": (
        GEMMA4 | EXPERTS | dict(attention_k_eq_v=True, num_key_value_heads=4, num_global_key_value_heads=2,
                                sliding_window=19), SMALL | {"shards": 2}),
    # What has no default layout of layers: the pattern and the ropes of the class, its own spelling of what differs.
    "gemma4-class-defaults-f16": (
        without(GEMMA4, "layer_types", "rope_parameters", "global_head_dim") | EXPERTS | dict(
            num_hidden_layers=7, dtype="float16", num_experts=3, top_k_experts=3, num_kv_shared_layers=0,
            per_layer_config={str(i): {"head_dim": 16, "num_key_value_heads": 1} for i in (5, 6)},
            hidden_size_per_layer_input=5), SMALL),
    # All at once, and heads that do not differ.
    "gemma4-everything": (
        GEMMA4 | SHARED | EXPERTS | dict(
            attention_k_eq_v=True, num_key_value_heads=2, num_global_key_value_heads=2, global_head_dim=8,
            num_kv_shared_layers=3, hidden_size_per_layer_input=7, final_logit_softcapping=9.0), SMALL),
    # The text part of a model that sees and hears. Tokens that stand for images are none of text: their rows are not used.
    "gemma4-multimodal": (
        dict(architectures=["Gemma4ForConditionalGeneration"], model_type="gemma4", boi_token_id=65, eoi_token_id=66,
             image_token_id=67, video_token_id=68, boa_token_id=69, eoa_token_index=70, audio_token_id=64,
             tie_word_embeddings=True, audio_config=None, dtype="bfloat16", vision_config=VISION,
             text_config=without(GEMMA4, "architectures", "dtype") | SHARED | dict(
                 hidden_size_per_layer_input=4)), SMALL),
}
