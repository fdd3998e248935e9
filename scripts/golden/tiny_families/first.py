"""Llama, Mistral, Qwen and GPT-2: the checkpoints of tests/golden/models."""

from .spelling import new_rope, without

LLAMA = dict(
    model_type="llama", architectures=["LlamaForCausalLM"], vocab_size=97, hidden_size=36,
    intermediate_size=38, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
    head_dim=10, hidden_act="silu", max_position_embeddings=256, rms_norm_eps=1e-5,
    rope_theta=10000.0, attention_bias=False, mlp_bias=False, tie_word_embeddings=False,
    bos_token_id=1, eos_token_id=2, torch_dtype="bfloat16")
# One KV head, a head_dim that is not hidden_size / num_heads.
MQA = dict(num_attention_heads=3, num_key_value_heads=1, head_dim=24)

MISTRAL = {k: v for k, v in LLAMA.items() if k not in ("attention_bias", "mlp_bias")} | dict(
    model_type="mistral", architectures=["MistralForCausalLM"], vocab_size=101)

QWEN2 = {k: v for k, v in MISTRAL.items() if k not in ("head_dim",)} | dict(
    model_type="qwen2", architectures=["Qwen2ForCausalLM"], hidden_size=36, num_attention_heads=3,
    num_key_value_heads=1, rope_theta=1000000.0, rms_norm_eps=1e-6, use_sliding_window=False,
    sliding_window=8, max_window_layers=2)

QWEN3 = QWEN2 | dict(
    model_type="qwen3", architectures=["Qwen3ForCausalLM"], head_dim=24, num_attention_heads=3,
    num_key_value_heads=3, attention_bias=False)

GPT2 = dict(
    model_type="gpt2", architectures=["GPT2LMHeadModel"], vocab_size=97, n_positions=112, n_ctx=112,
    n_embd=30, n_layer=2, n_head=3, activation_function="gelu_new", layer_norm_epsilon=1e-5,
    bos_token_id=96, eos_token_id=96)


# name -> (config.json, how it is stored, seed)
MODELS = {
    "llama": (LLAMA, {}, 0),
    "llama-tied-mqa-f32": (
        LLAMA | MQA | dict(hidden_size=30, tie_word_embeddings=True, torch_dtype="float32",
                           eos_token_id=[2, 5]),
        {}, 1),
    "llama-bias-f16": (
        LLAMA | dict(attention_bias=True, mlp_bias=True, hidden_act="gelu_pytorch_tanh",
                     torch_dtype="float16"), {}, 4),
    "llama-derived-sizes": (
        without(LLAMA, "num_key_value_heads", "head_dim", "torch_dtype") |
        dict(hidden_size=30, num_attention_heads=3), {"dtype": "float32"}, 2),
    "llama-linear": (
        LLAMA | dict(rope_scaling={"type": "linear", "factor": 2.5}, hidden_act="relu2"), {}, 1),
    "llama-dynamic": (
        LLAMA | MQA | dict(max_position_embeddings=24,
                           rope_scaling={"type": "dynamic", "factor": 4.0}), {}, 6),
    "llama-llama3": (
        new_rope(LLAMA | MQA | dict(rope_theta=500000.0), rope_type="llama3", factor=8.0,
                 low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32),
        {}, 0),
    "llama-yarn": (
        LLAMA | MQA | dict(max_position_embeddings=128, rope_scaling={
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}), {}, 13),
    "llama-yarn-mscale": (
        new_rope(LLAMA | MQA, rope_type="yarn", factor=8.0, beta_fast=16.0, beta_slow=2.0,
                 mscale=1.2, mscale_all_dim=0.7, truncate=False,
                 original_max_position_embeddings=32), {}, 3),
    "llama-sharded": (
        LLAMA | dict(tie_word_embeddings=True), {"shards": 3, "keep_tied_head": True}, 0),
    "llama-old-names": (
        LLAMA | dict(architectures=["LLaMAForCausalLM"]),
        {"strip": "model.", "rotary_tables": True}, 0),
    "mistral-window": (MISTRAL | dict(sliding_window=8), {}, 9),
    "mistral-no-window-f16": (
        MISTRAL | MQA | dict(sliding_window=None, hidden_act="gelu", torch_dtype="float16"), {}, 1),
    # transformers takes it for a Ministral, whose layers differ.
    "mistral-layer-types": (
        MISTRAL | dict(sliding_window=8, num_hidden_layers=3, layer_types=[
            "sliding_attention", "full_attention", "sliding_attention"]), {}, 0),
    # Without the field there are 8 KV heads.
    "ministral-f16": (
        without(MISTRAL, "num_key_value_heads") |
        dict(model_type="ministral", architectures=["MinistralForCausalLM"], sliding_window=8,
             num_attention_heads=16, head_dim=4, torch_dtype="float16",
             layer_types=["full_attention", "sliding_attention"]), {}, 56),
    "qwen2": (QWEN2 | dict(tie_word_embeddings=True), {}, 0),
    "qwen2-window": (
        QWEN2 | dict(use_sliding_window=True, max_window_layers=1), {}, 8),
    "qwen2-layer-types": (
        QWEN2 | dict(use_sliding_window=True, layer_types=["sliding_attention", "full_attention"]),
        {}, 13),
    "qwen3": (QWEN3 | dict(tie_word_embeddings=True), {}, 1),
    "qwen3-bias-layer-types": (
        new_rope(QWEN3 | dict(num_key_value_heads=1, attention_bias=True, use_sliding_window=True,
                              layer_types=["sliding_attention", "full_attention"]),
                 rope_type="default"), {}, 7),
    "gpt2-old-names-f32": (
        GPT2, {"dtype": "float32", "strip": "transformer.", "gamma_beta": True,
               "causal_masks": True}, 0),
    "gpt2-untied-f16": (
        GPT2 | dict(n_inner=50, activation_function="relu", scale_attn_weights=False,
                    tie_word_embeddings=False, torch_dtype="float16"), {}, 6),
}
