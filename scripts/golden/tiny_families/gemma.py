"""Gemma 1, 2 and 3."""

from .spelling import architecture, new_dtype, new_rope, without

GEMMA = architecture(
    "GemmaForCausalLM", "gemma", num_key_value_heads=1, head_dim=10, rms_norm_eps=1e-6,
    hidden_act="gelu_pytorch_tanh", attention_bias=False, tie_word_embeddings=True)
GEMMA2 = without(GEMMA, "hidden_act") | dict(
    architectures=["Gemma2ForCausalLM"], model_type="gemma2", num_key_value_heads=2,
    hidden_activation="gelu_pytorch_tanh", num_hidden_layers=3, intermediate_size=30,
    sliding_window=8, query_pre_attn_scalar=7, attn_logit_softcapping=4.0,
    final_logit_softcapping=9.0)
GEMMA3 = without(GEMMA2, "attn_logit_softcapping", "final_logit_softcapping") | dict(
    architectures=["Gemma3ForCausalLM"], model_type="gemma3_text", rope_theta=1000000.0,
    query_pre_attn_scalar=11)
TWO_ROPES = {"sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
             "full_attention": {"rope_type": "linear", "rope_theta": 200000.0, "factor": 4.0}}
VISION = dict(model_type="siglip_vision_model", hidden_size=8, intermediate_size=10,
              num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4,
              vision_use_head=False)
# Embeddings are multiplied by the root of their width.
ZERO = {"zero_centred_norms": True, "embedding_scale": 0.12}

# name -> (config.json, storage)
MODELS = {
    "gemma-mqa": (GEMMA, ZERO),
    "gemma-bias-untied-f16": (
        new_rope(GEMMA | dict(num_key_value_heads=4, head_dim=8, attention_bias=True,
                              tie_word_embeddings=False,
                              torch_dtype="float16"), rope_type="default"), ZERO),
    # What the first checkpoints say and do not mean: it is gelu_pytorch_tanh all the same.
    "gemma-legacy-act-f32": (
        GEMMA | dict(hidden_act="gelu", num_key_value_heads=2, head_dim=6, torch_dtype="float32"),
        ZERO | {"needs": [5, 23]}),
    "gemma2": (GEMMA2, ZERO),
    "gemma2-no-softcap-f32": (
        new_rope(GEMMA2 | dict(
            attn_logit_softcapping=None, final_logit_softcapping=None, num_hidden_layers=2,
            num_key_value_heads=1, head_dim=6, torch_dtype="float32", attention_bias=True,
            layer_types=["full_attention", "sliding_attention"]), rope_type="default"), ZERO),
    "gemma2-sharded": (
        GEMMA2 | dict(num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
                      query_pre_attn_scalar=10), ZERO | {"shards": 2}),
    "gemma3-pattern": (
        GEMMA3 | dict(sliding_window_pattern=3, rope_local_base_freq=10000.0,
                      rope_scaling={"rope_type": "linear", "factor": 8.0}), ZERO),
    "gemma3-two-ropes-f16": (
        new_dtype(without(GEMMA3, "rope_theta") | dict(
            rope_parameters=TWO_ROPES, torch_dtype="float16", num_key_value_heads=1, head_dim=8,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"])), ZERO),
    "gemma3-softcaps-f32": (
        GEMMA3 | dict(num_hidden_layers=2, layer_types=["full_attention", "sliding_attention"],
                      attn_logit_softcapping=5.0, final_logit_softcapping=8.0, head_dim=6,
                      torch_dtype="float32", rope_local_base_freq=3000.0), ZERO),
    # The text part of a model that sees: all tensors of the language under language_model.
    "gemma3-multimodal": (
        dict(architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3",
             boi_token_index=58, eoi_token_index=59, image_token_index=60, mm_tokens_per_image=4,
             eos_token_id=[1, 3], torch_dtype="bfloat16", vision_config=VISION,
             text_config=without(GEMMA3, "architectures", "torch_dtype", "bos_token_id",
                                 "eos_token_id") | dict(
                 sliding_window_pattern=2, num_hidden_layers=2)), ZERO | {"strip": "model."}),
}
