"""A Hugging Face folder of the Llama or Qwen2 family as GGUF, and its quantised forms. Without a vocabulary: callers speak
token ids."""

import json

ARCHITECTURES = {"LlamaForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2"}


def rope_theta(config):
    return config.get("rope_theta") or config["rope_parameters"]["rope_theta"]


def interleave_pairs(value, num_heads):
    """llama.cpp rotates neighbours in the Llama family, transformers the two halves of a head."""
    return value.reshape(num_heads, 2, -1, *value.shape[1:]).transpose(1, 2).reshape(value.shape)


def write_metadata(writer, config):
    num_heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // num_heads
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(num_heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(rope_theta(config))
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")


def write_gguf(folder, path):
    """Matrices as bf16, vectors as f32, as llama.cpp's own converter does it."""
    import gguf
    import torch
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    architecture = ARCHITECTURES.get(config["architectures"][0])
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if architecture is None or scaling.get("rope_type", scaling.get("type", "default")) != "default":
        raise ValueError(f"{folder}: only {' and '.join(ARCHITECTURES)} without rope scaling are written as GGUF here")
    ids = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(ids[architecture], config["num_hidden_layers"])
    writer = gguf.GGUFWriter(path, architecture)
    write_metadata(writer, config)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors |= load_file(file)
    for name, value in tensors.items():
        if name == "lm_head.weight" and config.get("tie_word_embeddings"):
            continue
        projection = name.split(".")[-2]
        if architecture == "llama" and projection in heads:
            value = interleave_pairs(value, heads[projection])
        new_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if value.dim() == 1:
            writer.add_tensor(new_name, value.to(torch.float32).numpy())
        else:
            stored = value.to(torch.bfloat16).contiguous().view(torch.uint8).numpy()
            writer.add_tensor(new_name, stored, raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def quantize(source, target, kind, num_threads):
    """`kind`: Q8_0 or Q4_0, with llama-quantize's own choice of what stays finer."""
    import llama_cpp

    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.nthread = num_threads
    if llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(), params) != 0:
        raise RuntimeError(f"llama.cpp can't make {kind} of {source}")


def weight_bytes(path):
    """Of every tensor but the embedding table, unless that is also the head."""
    import gguf

    sizes = {tensor.name: int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors}
    table = sizes["token_embd.weight"] if "output.weight" in sizes else 0
    return sum(sizes.values()) - table
