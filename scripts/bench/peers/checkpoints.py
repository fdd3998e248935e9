"""Random checkpoints in the shapes of known models: the same files for every engine."""

import json

# max_position_embeddings is not that of the originals: it has to hold the longest prompt and its answer, and no more,
# because engines plan their caches by it.
COMMON = dict(hidden_act="silu", max_position_embeddings=8448, initializer_range=0.02, bos_token_id=1, eos_token_id=2,
              dtype="bfloat16")
SHAPES = {
    "tinyllama-1.1b": COMMON | dict(
        model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=2048, intermediate_size=5632,
        num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4, head_dim=64, vocab_size=32000,
        rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False),
    "qwen2.5-0.5b": COMMON | dict(
        model_type="qwen2", architectures=["Qwen2ForCausalLM"], hidden_size=896, intermediate_size=4864,
        num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, vocab_size=151936, rms_norm_eps=1e-6,
        rope_theta=1000000.0, tie_word_embeddings=True, use_sliding_window=False),
}
# Layers of larger models as they are, and fewer of them, with as much less of the vocabulary, so that one forward pass has the
# same parts and several engines fit into memory beside each other. Others are whole. Asked for by name.
PARTS = {
    # 4 of 16 layers
    "olmoe-1b-7b-quarter": COMMON | dict(
        model_type="olmoe", architectures=["OlmoeForCausalLM"], hidden_size=2048, intermediate_size=1024,
        num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=16, num_experts=64, num_experts_per_tok=8,
        norm_topk_prob=False, vocab_size=12576, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False),
    # 6 of 48 layers, 64 of their 128 experts
    "qwen3-30b-a3b-eighth": COMMON | dict(
        model_type="qwen3_moe", architectures=["Qwen3MoeForCausalLM"], hidden_size=2048, intermediate_size=6144,
        moe_intermediate_size=768, num_hidden_layers=6, num_attention_heads=32, num_key_value_heads=4, head_dim=128,
        num_experts=64, num_experts_per_tok=8, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[],
        vocab_size=18992, rms_norm_eps=1e-6, rope_theta=1000000.0, tie_word_embeddings=False, use_sliding_window=False),
    "gemma-3-1b": COMMON | dict(
        model_type="gemma3_text", architectures=["Gemma3ForCausalLM"], hidden_activation="gelu_pytorch_tanh",
        hidden_size=1152, intermediate_size=6912, num_hidden_layers=26, num_attention_heads=4, num_key_value_heads=1,
        head_dim=256, query_pre_attn_scalar=256, sliding_window=512, sliding_window_pattern=6, vocab_size=262144,
        rms_norm_eps=1e-6, rope_theta=1000000.0, rope_local_base_freq=10000.0, tie_word_embeddings=True),
    "mamba2-1.3b": COMMON | dict(
        model_type="mamba2", architectures=["Mamba2ForCausalLM"], hidden_size=2048, num_hidden_layers=48, num_heads=64,
        head_dim=64, state_size=128, expand=2, n_groups=1, conv_kernel=4, chunk_size=256, use_bias=False,
        use_conv_bias=True, layer_norm_epsilon=1e-5, rms_norm=True, residual_in_fp32=False, vocab_size=50288, tie_word_embeddings=True),
}
# For a look at whether a bench still works.
QUICK_SHAPES = {
    "tiny": COMMON | dict(
        model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=128, intermediate_size=256,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32, vocab_size=1000,
        rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False),
}
SEED = 0


def config_of(shape):
    return (SHAPES | PARTS | QUICK_SHAPES)[shape]


def embedding_values(config):
    return config["vocab_size"] * config["hidden_size"]


def make_tokenizer(folder):
    """Prompts are token ids; a tokenizer is there because loaders ask for one. Every id that it lacks has no text."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(["<unk>", "<s>", "</s>", *letters])}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
        "clean_up_tokenization_spaces": False}, indent=1) + "\n")


def make_config(shape, folder):
    """What an engine that makes random weights itself needs, without any package."""
    (folder / "config.json").write_text(json.dumps(config_of(shape)))


def make_checkpoint(shape, folder):
    import torch
    import transformers

    config = config_of(shape)
    # Through config.json, so that every field is read as it would be from a real checkpoint.
    (folder / "config.json").write_text(json.dumps(config))
    loaded = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_config(loaded, dtype=torch.bfloat16)
    generator = torch.Generator().manual_seed(SEED)
    for name, value in model.named_parameters():
        if "norm" in name:
            value.data.fill_(1)
        else:
            value.data.normal_(0, config["initializer_range"], generator=generator)
    model.save_pretrained(folder, max_shard_size="100GB")
    make_tokenizer(folder)
