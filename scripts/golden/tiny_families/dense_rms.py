"""Dense families beside Llama that norm by root mean square."""

from .spelling import architecture, new_rope, without

PHI3 = architecture(
    "Phi3ForCausalLM", "phi3", hidden_size=32, rms_norm_eps=1e-5, hidden_act="silu",
    original_max_position_embeddings=256, rope_scaling=None, sliding_window=None, pad_token_id=0,
    attention_bias=False)
SHORT = [1.0, 1.3, 1.7]
LONG = [1.5, 4.0, 9.0]
LONGROPE = PHI3 | dict(
    partial_rotary_factor=0.75, max_position_embeddings=512,
    rope_scaling={"type": "longrope", "short_factor": SHORT, "long_factor": LONG})
OLMO2 = architecture(
    "Olmo2ForCausalLM", "olmo2", rms_norm_eps=1e-6, hidden_act="silu", attention_bias=False,
    rope_theta=500000.0)
OLMO3 = OLMO2 | dict(
    architectures=["Olmo3ForCausalLM"], model_type="olmo3", num_hidden_layers=3, sliding_window=8,
    intermediate_size=30)
GRANITE = architecture(
    "GraniteForCausalLM", "granite", rms_norm_eps=1e-5, hidden_act="silu", attention_bias=False,
    mlp_bias=False, tie_word_embeddings=True, embedding_multiplier=7.0, logits_scaling=2.5,
    residual_multiplier=0.7, attention_multiplier=0.21)
# Embeddings are multiplied by much.
SMALL = {"embedding_scale": 0.05}
GLM = architecture(
    "GlmForCausalLM", "glm", rms_norm_eps=1.5625e-07, hidden_act="silu", head_dim=12,
    attention_bias=True, partial_rotary_factor=0.5, num_key_value_heads=2, pad_token_id=0,
    eos_token_id=[2, 5])
SMOLLM3 = architecture(
    "SmolLM3ForCausalLM", "smollm3", rms_norm_eps=1e-6, hidden_act="silu", attention_bias=False,
    mlp_bias=False, tie_word_embeddings=True, num_hidden_layers=3, intermediate_size=30,
    rope_theta=2000000.0, use_sliding_window=False, sliding_window=None, max_window_layers=28,
    no_rope_layer_interval=2, pretraining_tp=1, pad_token_id=0)
SEED_OSS = architecture(
    "SeedOssForCausalLM", "seed_oss", rms_norm_eps=1e-6, hidden_act="silu", head_dim=10,
    attention_bias=True, attention_out_bias=False, mlp_bias=False, residual_dropout=0.1,
    attention_dropout=0.1, rope_theta=10000000.0, rope_scaling={"rope_type": "default"})
EXAONE4 = architecture(
    "Exaone4ForCausalLM", "exaone4", rms_norm_eps=1e-5, hidden_act="silu", head_dim=8,
    rope_theta=1000000.0, num_hidden_layers=3, intermediate_size=30, sliding_window=8,
    sliding_window_pattern=3, tie_word_embeddings=True)
ERNIE = architecture(
    "Ernie4_5ForCausalLM", "ernie4_5", rms_norm_eps=1e-5, hidden_act="silu", head_dim=10,
    rope_theta=500000.0, use_bias=False, tie_word_embeddings=True)
HUNYUAN = architecture(
    "HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", rms_norm_eps=1e-5, hidden_act="silu",
    head_dim=10, attention_bias=False, tie_word_embeddings=True, pad_token_id=0)
HELIUM = architecture(
    "HeliumForCausalLM", "helium", rms_norm_eps=1e-8, hidden_act="silu", head_dim=6,
    rope_theta=100000.0, attention_bias=False, mlp_bias=False, num_key_value_heads=4)
ARCEE = architecture(
    "ArceeForCausalLM", "arcee", rms_norm_eps=1e-5, hidden_act="relu2", attention_bias=False,
    mlp_bias=False, head_dim=8)
MINISTRAL3 = architecture(
    "Ministral3ForCausalLM", "ministral3", rms_norm_eps=1e-5, hidden_act="silu", head_dim=8,
    sliding_window=None)

# name -> (config.json, storage)
MODELS = {
    "phi3-window": (PHI3 | dict(sliding_window=8), {}),
    "phi3-partial-tied-f16": (
        new_rope(without(PHI3, "rope_scaling") | dict(
            tie_word_embeddings=True, num_attention_heads=2, num_key_value_heads=1, hidden_size=24,
            torch_dtype="float16"), rope_type="default", partial_rotary_factor=0.5), {}),
    # Never longer than the original length, and always longer. What goes from one to the other has no
    # golden: transformers computes all keys anew at that step, a server decides once.
    "phi3-longrope-short": (
        LONGROPE | dict(original_max_position_embeddings=128, max_position_embeddings=128,
                        rope_scaling=LONGROPE["rope_scaling"] | {"factor": 4.0}), {}),
    "phi3-longrope-long": (
        LONGROPE | dict(original_max_position_embeddings=24, num_key_value_heads=4,
                        tie_word_embeddings=True),
        {"prompt_lengths": (30, 33, 40)}),
    "olmo2": (OLMO2, {}),
    "olmo2-gqa-tied-f32": (
        new_rope(OLMO2 | dict(num_attention_heads=6, num_key_value_heads=3, tie_word_embeddings=True,
                              torch_dtype="float32"), rope_type="default"), {}),
    "olmo2-bias-mqa": (
        OLMO2 | dict(num_key_value_heads=1, attention_bias=True, rope_scaling={
            "type": "linear", "factor": 3.0}), {"shards": 2}),
    "olmo3": (
        OLMO3 | dict(layer_types=["sliding_attention", "full_attention", "sliding_attention"]), {}),
    "olmo3-mqa-tied-f16": (
        new_rope(OLMO3 | dict(torch_dtype="float16", num_key_value_heads=1, attention_bias=True,
                              tie_word_embeddings=True, num_hidden_layers=4, intermediate_size=20),
                 rope_type="default"), {}),
    # Only the layers that see everything have the scaled rope; transformers 5.5 scales it in all.
    "olmo3-yarn-f16": (
        OLMO3 | dict(torch_dtype="float16", num_key_value_heads=1,
                     layer_types=["sliding_attention", "sliding_attention", "full_attention"],
                     rope_scaling=dict(rope_type="yarn", factor=8.0, attention_factor=1.2079,
                                       beta_fast=32.0, beta_slow=1.0,
                                       original_max_position_embeddings=32)),
        {"needs": [5, 23]}),
    "granite": (GRANITE, SMALL),
    "granite-bias-untied-f16": (
        new_rope(GRANITE | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=False,
                                num_key_value_heads=4, torch_dtype="float16"),
                 rope_type="default"), SMALL),
    "granite-mqa-f32": (
        GRANITE | dict(num_key_value_heads=1, embedding_multiplier=12.0, logits_scaling=0.8,
                       residual_multiplier=0.22, attention_multiplier=0.0625,
                       torch_dtype="float32"), {"embedding_scale": 0.02, "matrix_scale": 2.5}),
    "glm": (GLM, {}),
    "glm-mqa-no-bias-f16": (
        new_rope(without(GLM, "partial_rotary_factor") | dict(
            attention_bias=False, num_key_value_heads=1, head_dim=8, tie_word_embeddings=True,
            torch_dtype="float16"), rope_type="default", partial_rotary_factor=0.75), {}),
    "glm4": (
        GLM | dict(architectures=["Glm4ForCausalLM"], model_type="glm4"), {}),
    "glm4-no-bias-f32": (
        new_rope(without(GLM, "partial_rotary_factor") | dict(
            architectures=["Glm4ForCausalLM"], model_type="glm4", attention_bias=False,
            num_key_value_heads=4, head_dim=8, intermediate_size=10, torch_dtype="float32"),
            rope_type="default", partial_rotary_factor=0.5), {}),
    "smollm3": (SMOLLM3, {}),
    "smollm3-list-untied-f16": (
        new_rope(SMOLLM3 | dict(no_rope_layers=[0, 1, 1], tie_word_embeddings=False,
                                num_key_value_heads=1, attention_bias=True, mlp_bias=True,
                                torch_dtype="float16"), rope_type="default"), {}),
    "smollm3-window": (
        SMOLLM3 | dict(use_sliding_window=True, sliding_window=8, num_key_value_heads=4), {}),
    "seed-oss": (SEED_OSS, {}),
    "seed-oss-all-biases-f16": (
        new_rope(without(SEED_OSS, "rope_scaling") | dict(
            attention_out_bias=True, mlp_bias=True, num_key_value_heads=1, head_dim=6,
            tie_word_embeddings=True, torch_dtype="float16"), rope_type="default"), {}),
    "exaone4-hybrid": (EXAONE4, {}),
    "exaone4-global-untied-f16": (
        new_rope(EXAONE4 | dict(
            sliding_window=None, sliding_window_pattern=None, num_hidden_layers=2,
            tie_word_embeddings=False, head_dim=10, torch_dtype="float16",
            layer_types=["full_attention", "full_attention"]),
            rope_type="llama3", factor=16.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=32), {}),
    "exaone4-layer-types-f32": (
        EXAONE4 | dict(num_hidden_layers=2, num_key_value_heads=1, head_dim=6,
                       sliding_window_pattern="LG", torch_dtype="float32",
                       layer_types=["sliding_attention", "full_attention"]), {}),
    "ernie4_5": (ERNIE, {}),
    "ernie4_5-bias-untied-f32": (
        new_rope(ERNIE | dict(use_bias=True, tie_word_embeddings=False, num_key_value_heads=1,
                              head_dim=6, intermediate_size=20, torch_dtype="float32"),
                 rope_type="default"), {}),
    "hunyuan-dense": (HUNYUAN, {}),
    "hunyuan-dense-bias-untied-f16": (
        new_rope(HUNYUAN | dict(attention_bias=True, tie_word_embeddings=False, head_dim=8,
                                num_key_value_heads=4, torch_dtype="float16"),
                 rope_type="default"), {}),
    "hunyuan-dense-alpha": (
        HUNYUAN | dict(num_key_value_heads=1, rope_scaling={
            "type": "dynamic", "alpha": 50.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1,
            "mscale": 1.0, "mscale_all_dim": 1.0}), {}),
    "helium": (HELIUM, {}),
    "helium-gqa-bias-tied-f16": (
        new_rope(HELIUM | dict(num_attention_heads=6, num_key_value_heads=2, head_dim=4, mlp_bias=True,
                               attention_bias=True, tie_word_embeddings=True,
                               torch_dtype="float16"), rope_type="default"), {}),
    "arcee": (ARCEE, {}),
    "arcee-bias-tied-yarn-f16": (
        new_rope(ARCEE | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
                              num_key_value_heads=1, torch_dtype="float16"),
                 rope_type="yarn", factor=8.0, original_max_position_embeddings=32,
                 mscale=1.0, beta_fast=32.0, beta_slow=1.0), {}),
    "ministral3-yarn-scaled": (
        new_rope(MINISTRAL3 | dict(tie_word_embeddings=True),
                 rope_type="yarn", type="yarn", factor=16.0, original_max_position_embeddings=16,
                 max_position_embeddings=256, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
                 mscale_all_dim=1.0, llama_4_scaling_beta=0.1), {}),
    "ministral3-window-f16": (
        new_rope(MINISTRAL3 | dict(sliding_window=8, num_key_value_heads=1, head_dim=6,
                                   torch_dtype="float16"),
                 rope_type="default", original_max_position_embeddings=8,
                 llama_4_scaling_beta=0.3), {}),
}
