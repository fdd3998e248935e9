"""Folders that name their special tokens in all the ways there are, and those that transformers finds in each: behind
tests/chat_template/golden/tokens.json, see make_chat_template_goldens."""

import json
import pathlib
import tempfile

COMMON = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
GENERIC = {"tokenizer_class": "PreTrainedTokenizerFast"}
OBJECT = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
LISTED = {"added_tokens_decoder": {"0": {"content": "<s>", "special": True, **OBJECT}}}
NAMES = [f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")]
CLASSES = ["GPT2Tokenizer", "LlamaTokenizer", "LlamaTokenizerFast", "CodeLlamaTokenizer", "GemmaTokenizer", "GemmaTokenizerFast", "Qwen2Tokenizer",
           "Qwen3_5Tokenizer", "CohereTokenizerFast", "GPTNeoXTokenizer", "RobertaTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"]
# Whose config class takes nothing but the type.
TYPES = ["gpt2", "codegen", "gptj", "opt", "phi", "starcoder2", "gemma", "gemma2", "gemma3_text", "recurrent_gemma", "qwen2", "qwen2_moe", "qwen3",
         "qwen3_moe", "qwen3_next", "qwen3_5_text", "cohere", "cohere2", "gpt_neox", "mamba", "mpt", "olmo", "olmoe", "roberta", "bart", "llama",
         "mistral", "granite", "phi3"]


def token(content):
    return {"content": content, **OBJECT}


def folders():
    config, special = "tokenizer_config.json", "special_tokens_map.json"
    yield {config: {**GENERIC, **COMMON}}
    yield {config: {**GENERIC, **COMMON, "image_token": "<image>", "boi_token": token("<boi>") | {"__type": "AddedToken"}, "other_token": 5}}
    yield {config: {**GENERIC, **COMMON, "extra_special_tokens": {"image_token": "<image>", "eot": "<eot>"}}}
    yield {config: {**GENERIC, **COMMON, "extra_special_tokens": ["<image>"]}}
    yield {config: {**GENERIC, **COMMON}, special: {"eos_token": "<end>", "pad_token": token("<pad>")}}
    yield {config: {**GENERIC, **COMMON, **LISTED}, special: {"eos_token": "<end>", "pad_token": "<pad>"}}
    yield {config: {**GENERIC, "bos_token": None}, special: {"bos_token": token("<s>"), "eos_token": "</s>"}}
    yield {config: {**GENERIC}, special: {"image_token": "<image>", "extra_special_tokens": {"audio_token": "<audio>"}}}
    yield {special: {"bos_token": "<s>"}}
    yield {}
    yield {config: {"tokenizer_class": "LlamaTokenizer", "bos_token": None, "eos_token": "<end>"}}
    yield {config: {"tokenizer_class": "LlamaTokenizer"}, special: {"eos_token": "<end>"}}
    yield {config: {"tokenizer_class": "GPT2Tokenizer", "pad_token": "<pad>", "eos_token": {"__type": "AddedToken", **token("<end>")}}}
    for name in CLASSES:
        yield {config: {"tokenizer_class": name}}
    for name in TYPES:
        yield {config: {"model_max_length": 1024}, "config.json": {"model_type": name}}


def tokenizer_json():
    names = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "<bos>", "<eos>", "<end>", "<image>", "<audio>", "<boi>", "<eot>", "<|endoftext|>",
             "<|padding|>", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>", "<SEP>", "<PAD>", "<CLS>", "<MASK_TOKEN>", "a", "b"]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
            "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": {name: i for i, name in enumerate(names)}, "merges": []}}


def tokens_of(files):
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
        for file, content in files.items():
            (folder / file).write_text(json.dumps(content))
        if "config.json" not in files:  # only with one does AutoTokenizer open a folder
            (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
        return AutoTokenizer.from_pretrained(folder).special_tokens_map


def token_cases():
    """Without what a class has beside them, as CodeLlama's prefix_token: no template reads it."""
    cases = []
    for files in folders():
        said = json.dumps(files)
        tokens = {name: token for name, token in tokens_of(files).items() if name in NAMES or f'"{name}"' in said}
        cases.append({"files": files, "tokens": tokens})
    return cases
