"""Gemma 4 without rows for each layer and VaultGemma; Granite and Mellum with windows; Cohere 2 and Hunyuan 3 with experts; GPT-Neo; Apertus."""

from .gemma import GEMMA2, ZERO
from .gemma4 import GEMMA4, SHARED, SMALL
from .spelling import architecture, new_dtype, new_rope, without

NO_ROWS = ("hidden_size_per_layer_input", "vocab_size_per_layer_input", "enable_moe_block")
UNIFIED = without(GEMMA4, *NO_ROWS) | dict(
    architectures=["Gemma4UnifiedForCausalLM"], model_type="gemma4_unified_text", use_bidirectional_attention="vision")
VISION = dict(model_type="gemma4_unified_vision", patch_size=4, mm_embed_dim=8, mm_posemb_size=16, num_soft_tokens=4,
              pooling_kernel_size=1, output_proj_dims=24)
VAULT = GEMMA2 | dict(architectures=["VaultGemmaForCausalLM"], model_type="vaultgemma")
GRANITE_SWA = without(architecture(
    "GraniteSWAForCausalLM", "granite_swa", rms_norm_eps=1e-5, hidden_act="silu", attention_bias=False, mlp_bias=False,
    tie_word_embeddings=True, embedding_multiplier=7.0, logits_scaling=2.5, residual_multiplier=0.7,
    attention_multiplier=0.21, num_hidden_layers=5, sliding_window=8, layer_rope_theta=None,
    rope_parameters={"rope_type": "default", "rope_theta": 10000.0}), "rope_theta")
GRANITE_MOE_SWA = without(GRANITE_SWA, "mlp_bias") | dict(
    architectures=["GraniteMoeSWAForCausalLM"], model_type="granitemoe_swa", intermediate_size=10, num_local_experts=6,
    num_experts_per_tok=2, shared_intermediate_size=14, output_router_logits=False, router_aux_loss_coef=0.001)
MELLUM = without(architecture(
    "MellumForCausalLM", "mellum", hidden_act="silu", rms_norm_eps=1e-6, head_dim=8, num_local_experts=6,
    num_experts_per_tok=2, moe_intermediate_size=10, norm_topk_prob=True, attention_bias=False, sliding_window=8,
    num_hidden_layers=3, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    mlp_layer_types=["dense", "sparse", "sparse"], num_nextn_predict_layers=0, mtp_layer_types=None,
    mtp_mlp_layer_types=None, output_router_logits=False, router_aux_loss_coef=0.001,
    rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                     "full_attention": {"rope_type": "yarn", "rope_theta": 500000.0, "factor": 4.0, "beta_fast": 32.0,
                                        "beta_slow": 1.0, "original_max_position_embeddings": 64,
                                        "attention_factor": 1.1}}), "rope_theta")
HY3 = architecture(
    "HYV3ForCausalLM", "hy_v3", hidden_act="silu", rms_norm_eps=1e-5, head_dim=8, num_experts=6, num_experts_per_tok=2,
    num_shared_experts=1, moe_intermediate_size=10, router_scaling_factor=2.3, enable_moe_fp32_combine=True,
    attention_bias=False, mlp_bias=False, num_hidden_layers=3, output_router_logits=False, pad_token_id=0)
COHERE2_MOE = architecture(
    "Cohere2MoeForCausalLM", "cohere2_moe", hidden_act="silu", layer_norm_eps=1e-5, head_dim=8, logit_scale=0.3,
    intermediate_size=10, num_experts=5, num_experts_per_tok=2, num_shared_experts=2, sliding_window=8,
    shared_expert_combination_strategy="average", expert_selection_fn="softmax", norm_topk_prob=True,
    num_hidden_layers=4, sliding_window_pattern=3, attention_bias=False, tie_word_embeddings=True, rope_scaling=None,
    output_router_logits=False)
GPT_NEO = dict(
    model_type="gpt_neo", architectures=["GPTNeoForCausalLM"], vocab_size=61, hidden_size=24, num_layers=3, num_heads=4,
    intermediate_size=None, max_position_embeddings=256, window_size=8, attention_types=[[["global", "local"], 1], [["local"], 1]],
    attention_layers=["global", "local", "local"], activation_function="gelu_new", layer_norm_epsilon=1e-5,
    tie_word_embeddings=True, resid_dropout=0.0, embed_dropout=0.0, attention_dropout=0.0, bos_token_id=1, eos_token_id=2,
    torch_dtype="float32")
LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}
# As published, with fields that the class no longer has.
APERTUS = architecture(
    "ApertusForCausalLM", "apertus", hidden_act="xielu", rms_norm_eps=1e-5, attention_bias=False, mlp_bias=False,
    qk_norm=True, post_norm=False, hidden_dropout=0.0, attention_dropout=0.0, rope_theta=12000000.0,
    rope_scaling=LLAMA3_ROPE, num_hidden_layers=3, pad_token_id=3)
RECENT = {"needs": [5, 24]}
TIED = RECENT | {"embedding_scale": 0.25}
# Embeddings are multiplied by much.
GRANITE = RECENT | {"embedding_scale": 0.05}
BIAS = RECENT | {"keep_float32": ["expert_bias"]}

# name -> (config.json, storage)
MODELS = {
    # As the one of 12B: no matrix of v where a layer sees everything.
    "gemma4-unified": (
        UNIFIED | dict(attention_k_eq_v=True, num_global_key_value_heads=1, final_logit_softcapping=9.0), SMALL),
    "gemma4-unified-shared-kv-f16": (UNIFIED | SHARED | dict(dtype="float16"), SMALL | {"shards": 2}),
    # The pattern and the ropes of the class.
    "gemma4-unified-class-defaults": (
        without(UNIFIED, "layer_types", "rope_parameters", "sliding_window") | dict(
            num_hidden_layers=7, tie_word_embeddings=False, attention_bias=True), SMALL),
    "gemma4-unified-multimodal": (
        dict(architectures=["Gemma4UnifiedForConditionalGeneration"], model_type="gemma4_unified", boi_token_id=65,
             eoi_token_id=66, image_token_id=67, video_token_id=68, boa_token_id=69, eoa_token_index=70,
             audio_token_id=64, tie_word_embeddings=True, audio_config=None, dtype="bfloat16", vision_config=VISION,
             text_config=without(UNIFIED, "architectures", "dtype") | SHARED), SMALL),
    "vaultgemma": (VAULT, ZERO | RECENT),
    "vaultgemma-layer-types-bias-f16": (
        new_dtype(VAULT | dict(layer_types=["full_attention", "sliding_attention", "full_attention"],
                               attention_bias=True, num_key_value_heads=4, torch_dtype="float16",
                               attn_logit_softcapping=None, tie_word_embeddings=False)), ZERO | RECENT),
    "vaultgemma-three-heads": (
        VAULT | dict(num_attention_heads=3, num_key_value_heads=1, head_dim=10, final_logit_softcapping=None,
                     hidden_size=21), ZERO | RECENT | {"shards": 2}),
    # The class's pattern of layers.
    "granite-swa": (GRANITE_SWA, GRANITE),
    # A base for each layer, and none for some.
    "granite-swa-bases-untied-f16": (
        new_dtype(GRANITE_SWA | dict(layer_rope_theta=[0, 5000.0, 20000.0, 0.0, 5000.0], tie_word_embeddings=False,
                                     layer_types=["sliding_attention", "full_attention", "full_attention",
                                                  "sliding_attention", "sliding_attention"],
                                     attention_bias=True, mlp_bias=True, torch_dtype="float16")), GRANITE),
    "granite-swa-three-heads": (
        GRANITE_SWA | dict(num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=2, sliding_window=3,
                           rope_parameters={"rope_type": "linear", "rope_theta": 50000.0, "factor": 2.0}),
        GRANITE | {"shards": 2}),
    "granitemoe-swa": (GRANITE_MOE_SWA, GRANITE),
    "granitemoe-swa-no-shared-bases": (
        GRANITE_MOE_SWA | dict(shared_intermediate_size=0, layer_rope_theta=[0, 5000.0, 20000.0, 0, 5000.0],
                               attention_bias=True, num_key_value_heads=1, tie_word_embeddings=False), GRANITE),
    "mellum": (MELLUM, RECENT),
    # The class's layers and ropes.
    "mellum-class-defaults-f16": (
        new_dtype(without(MELLUM, "layer_types", "mlp_layer_types", "rope_parameters") | dict(
            norm_topk_prob=False, attention_bias=True, num_attention_heads=3, num_key_value_heads=1,
            torch_dtype="float16")), RECENT | {"shards": 2}),
    "mellum-tied-windows": (
        MELLUM | dict(layer_types=["sliding_attention"] * 3, mlp_layer_types=["sparse", "dense", "sparse"],
                      tie_word_embeddings=True, num_local_experts=3, num_experts_per_tok=3), TIED),
    "hy3": (HY3, BIAS),
    "hy3-all-sparse-tied-f16": (
        HY3 | dict(mlp_layer_types=["sparse", "dense", "sparse"], num_shared_experts=2, tie_word_embeddings=True,
                   num_attention_heads=3, num_key_value_heads=1, torch_dtype="float16",
                   rope_scaling={"rope_type": "dynamic", "factor": 2.0}), BIAS | {"embedding_scale": 0.25}),
    "hy3-biases": (
        HY3 | dict(attention_bias=True, num_key_value_heads=4, head_dim=10, num_experts=4,
                   num_experts_per_tok=4, enable_moe_fp32_combine=False), BIAS | {"shards": 2}),
    "hy3-mlp-bias": (HY3 | dict(mlp_bias=True, num_shared_experts=2), BIAS),
    "cohere2-moe": (COHERE2_MOE, TIED),
    # Sums, and a dense layer first that is rotated though it has no window.
    "cohere2-moe-dense-first-f16": (
        COHERE2_MOE | dict(first_k_dense_replace=1, prefix_dense_intermediate_size=20, num_shared_experts=1,
                           shared_expert_combination_strategy="sum", expert_selection_fn="sigmoid", rms_norm_eps=1e-6,
                           tie_word_embeddings=False, num_attention_heads=3, num_key_value_heads=1,
                           torch_dtype="float16"), RECENT),
    "cohere2-moe-lists": (
        without(COHERE2_MOE, "sliding_window_pattern") | dict(
            num_shared_experts=0, expert_selection_fn="sigmoid", norm_topk_prob=False, attention_bias=True,
            layer_types=["full_attention", "sliding_attention", "full_attention", "sliding_attention"],
            mlp_layer_types=["dense", "sparse", "sparse", "sparse"], prefix_dense_intermediate_size=14,
            prefix_dense_sliding_window_pattern=2), TIED | {"shards": 2}),
    "gpt-neo": (GPT_NEO, RECENT | {"embedding_scale": 0.25}),
    "gpt-neo-three-heads-untied-bf16": (
        GPT_NEO | dict(num_heads=3, intermediate_size=22, tie_word_embeddings=False, torch_dtype="bfloat16",
                       attention_types=[[["local"], 3]], window_size=5, activation_function="relu",
                       attention_layers=["local"] * 3), RECENT | {"shards": 2}),
    "gpt-neo-class-defaults-f16": (
        without(GPT_NEO, "attention_types", "attention_layers", "window_size", "intermediate_size") | dict(
            hidden_size=12, num_layers=24, num_heads=2, torch_dtype="float16"), RECENT | {"embedding_scale": 0.25}),
    "apertus": (APERTUS, RECENT),
    # The class's rope.
    "apertus-class-defaults-tied-f16": (
        new_dtype(without(APERTUS, "rope_theta", "rope_scaling", "hidden_act", "qk_norm", "post_norm", "mlp_bias") | dict(
            torch_dtype="float16", tie_word_embeddings=True, num_attention_heads=3, num_key_value_heads=1, head_dim=10,
            intermediate_size=21)), TIED | {"shards": 2}),
    "apertus-biases-f32": (
        APERTUS | dict(attention_bias=True, num_key_value_heads=4, torch_dtype="float32", hidden_size=28, head_dim=6,
                       rope_scaling={"rope_type": "linear", "factor": 2.0}), RECENT),
    # No numbers of the layers.
    "apertus-relu2": (
        new_rope(without(APERTUS, "rope_scaling") | dict(hidden_act="relu2", num_attention_heads=6, rope_theta=50000.0),
                 rope_type="default"), RECENT),
}
