"""Gemma 3n (text): streams of hidden states, a low-rank branch, gates of which few numbers are kept, keys and values that
layers share, rows for each layer."""

from .spelling import architecture, new_dtype, without

ROPES = {"sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
         "full_attention": {"rope_type": "default", "rope_theta": 200000.0}}
LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]
GEMMA3N = architecture(
    "Gemma3nForCausalLM", "gemma3n_text", num_key_value_heads=2, head_dim=10, rms_norm_eps=1e-6,
    hidden_activation="gelu_pytorch_tanh", attention_bias=False, tie_word_embeddings=True, sliding_window=8,
    num_hidden_layers=3, layer_types=LAYERS, vocab_size_per_layer_input=64, hidden_size_per_layer_input=14,
    final_logit_softcapping=9.0, altup_num_inputs=4, altup_active_idx=0, altup_coef_clip=120.0, altup_correct_scale=True,
    num_kv_shared_layers=0, laurel_rank=5, activation_sparsity_pattern=[0.8, 0.0, 0.5])
NEW = new_dtype(without(GEMMA3N, "rope_theta")) | dict(rope_parameters=ROPES)
SHARED = dict(
    num_hidden_layers=7, num_kv_shared_layers=3, num_key_value_heads=1, intermediate_size=[150, 97, 56, 40, 40, 24, 31],
    layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention",
                 "sliding_attention", "sliding_attention", "full_attention"],
    activation_sparsity_pattern=[0.95, 0.9, 0.3, 0.0, 0.0, 0.7, 0.0])
# Of few columns next to nothing may be left, and what the norm behind makes of that is only noise: sparse MLPs are wide,
# and so are the rows of layers.
# Embeddings are multiplied by the root of their width; what a row for each layer reads is scaled by about 1.
SMALL = {"embedding_scale": 0.12}

# name -> (config.json, storage)
MODELS = {
    # As the published ones: the old spelling, layers that share and differ in size, and fewer rows for layers than tokens.
    "gemma3n-shared-kv": (
        GEMMA3N | SHARED | dict(rope_theta=100000.0, rope_local_base_freq=3000.0, rope_scaling=None,
                                query_pre_attn_scalar=256, altup_lr_multiplier=1.0, vocab_size_per_layer_input=50), SMALL),
    # Of three streams layers work on the last; its columns are not scaled.
    "gemma3n-three-streams-f32": (
        NEW | dict(dtype="float32", altup_num_inputs=3, altup_active_idx=2, altup_correct_scale=False, laurel_rank=17,
                   attention_bias=True, tie_word_embeddings=False, num_key_value_heads=4), SMALL),
    # What has no default layout of layers: the pattern, the ropes and the sparse layers of the class, one size of all MLPs.
    "gemma3n-class-defaults-f16": (
        without(NEW, "layer_types", "rope_parameters", "activation_sparsity_pattern", "altup_num_inputs",
                "altup_active_idx", "altup_coef_clip", "altup_correct_scale", "final_logit_softcapping") | dict(
            num_hidden_layers=11, num_kv_shared_layers=4, dtype="float16", hidden_size=20, intermediate_size=202), SMALL | {"shards": 2}),
    # Dense MLPs, of which ranks take a part each.
    "gemma3n-dense": (
        NEW | dict(activation_sparsity_pattern=[0.0, 0.0, 0.0], altup_num_inputs=2, altup_active_idx=1,
                   intermediate_size=[40, 24, 40], sliding_window=19), SMALL),
    # The text part of a model that sees and hears.
    "gemma3n-multimodal": (
        dict(architectures=["Gemma3nForConditionalGeneration"], model_type="gemma3n", boi_token_id=65, eoi_token_id=66,
             image_token_id=67, boa_token_id=68, eoa_token_id=69, audio_token_id=70, audio_soft_tokens_per_image=3,
             vision_soft_tokens_per_image=4, tie_word_embeddings=True, dtype="bfloat16",
             text_config=without(NEW, "architectures", "dtype") | SHARED),
        SMALL | {"extra": "unread_parts", "rename": [
            (f"model.{part}", f"model.language_model.{part}") for part in ("layers", "embed_tokens", "per_layer", "norm", "altup")]}),
}
