"""Layers that only see, and what else came last: see make_tiny_checkpoints."""

from .dense_layernorm import COHERE2
from .first import GPT2, LLAMA
from .fourth import PERSIMMON
from .newest import QWEN3_VISION, multimodal
from .spelling import new_rope, without

NEWEST = {"needs": [5, 24]}
MLLAMA = without(LLAMA, "attention_bias", "mlp_bias", "head_dim") | dict(
    architectures=["MllamaForCausalLM"], model_type="mllama_text_model", num_hidden_layers=4, cross_attention_layers=[1],
    pad_token_id=0,
    rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 32})
MLLAMA_VISION = dict(
    model_type="mllama_vision_model", hidden_size=16, attention_heads=2, num_hidden_layers=2, num_global_layers=1,
    intermediate_size=16, image_size=8, patch_size=4, vision_output_dim=32, intermediate_layers_indices=[0],
    supported_aspect_ratios=[[1, 1]], max_num_tiles=1)

EMU3 = without(LLAMA, "head_dim") | dict(
    architectures=["Emu3ForCausalLM"], model_type="emu3_text_model", pad_token_id=0, attention_bias=False, mlp_bias=False)
EMU3_PARTS = dict(
    vq_config=dict(codebook_size=4, embed_dim=4, latent_channels=4, base_channels=32, channel_multiplier=[1], num_res_blocks=1,
                   hidden_size=32, num_attention_heads=1, attn_resolutions=[]),
    vocabulary_map={"<image>": 96, **{f"<|visual token {i:06}|>": 80 + i for i in range(4)}})

# The class keeps nothing between steps.
WHOLE = NEWEST | {"whole_texts": True}
OPENAI = without(GPT2, "activation_function") | dict(
    architectures=["OpenAIGPTLMHeadModel"], model_type="openai-gpt", afn="gelu", torch_dtype="float32", tie_word_embeddings=True)
COMPASS = without(
    COHERE2, "sliding_window_pattern", "rotary_pct", "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
    "use_parallel_embedding", "position_embedding_type", "order_of_interleaved_layers", "rope_theta", "rope_scaling") | dict(
        architectures=["CohereCompassForCausalLM"], model_type="cohere_compass_text",
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 50000.0}, "full_attention": None})

# name -> (config.json, storage)
MODELS = {
    "mllama": (
        multimodal("MllamaForConditionalGeneration", "mllama", MLLAMA, MLLAMA_VISION, image_token_index=97),
        NEWEST | {"whole_texts": True}),
    # Of the layers that the class names itself the model has one.
    "mllama-text": (
        without(MLLAMA, "cross_attention_layers") | dict(
            num_attention_heads=3, num_key_value_heads=3, hidden_size=30, rope_scaling=None, num_hidden_layers=5),
        NEWEST | {"shards": 2, "whole_texts": True}),
    # It says that it is tied, which the class never does.
    "mllama-text-first-f16": (
        new_rope(without(MLLAMA, "rope_scaling") | dict(
            num_key_value_heads=1, cross_attention_layers=[0, 2, 9], tie_word_embeddings=True, torch_dtype="float16"),
            rope_type="default"), NEWEST | {"keep_tied_head": True, "whole_texts": True}),
    "emu3": (
        without(multimodal("Emu3ForConditionalGeneration", "emu3", EMU3, **EMU3_PARTS), "vision_config"), NEWEST),
    "emu3-text-biases": (
        EMU3 | dict(num_attention_heads=3, num_key_value_heads=3, attention_bias=True, mlp_bias=True), NEWEST | {"shards": 2}),
    # As published: the text model's fields beside those of what sees.
    "fuyu": (
        PERSIMMON | dict(architectures=["FuyuForCausalLM"], model_type="fuyu", image_size=8, patch_size=4, num_channels=3,
                         image_token_id=60), NEWEST),
    # As published: without the outer name.
    "openai-gpt": (OPENAI, WHOLE | {"strip": "transformer.", "causal_masks": True}),
    "openai-gpt-untied-f16": (
        OPENAI | dict(tie_word_embeddings=False, n_head=5, n_layer=3, afn="silu", torch_dtype="float16"), WHOLE),
    "openai-gpt-relu-bf16": (
        OPENAI | dict(n_embd=24, n_head=4, afn="relu", torch_dtype="bfloat16"), WHOLE | {"shards": 2}),
    # With what published ones have beside the rotations.
    "cohere-compass": (
        multimodal("CohereCompassForConditionalGeneration", "cohere_compass", COMPASS | dict(
            rope_parameters=COMPASS["rope_parameters"] | {"rope_type": "default", "rope_theta": 10000.0}),
            QWEN3_VISION | dict(model_type="cohere_compass_vision"), image_token_id=60),
        NEWEST | {"embedding_scale": 0.25}),
    "cohere-compass-text-f16": (
        COMPASS | dict(num_key_value_heads=1, attention_bias=True, logit_scale=None, torch_dtype="float16",
                       tie_word_embeddings=False, pooling="mean", rope_parameters={
                           "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                           "full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 4.0}}), NEWEST),
    # Without windows.
    "cohere-compass-three-heads": (
        without(COMPASS, "layer_types") | dict(
            num_attention_heads=3, num_key_value_heads=3, hidden_size=30, num_hidden_layers=2,
            rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 70000.0}}),
        NEWEST | {"shards": 2, "embedding_scale": 0.25}),
}
