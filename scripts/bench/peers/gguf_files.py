"""A Hugging Face folder of some families as GGUF, and its quantised forms. Without a vocabulary: callers speak token ids."""

import json
import re
from dataclasses import dataclass


def rope_theta(config):
    rope = config.get("rope_parameters", {})
    return config.get("rope_theta") or rope.get("full_attention", rope)["rope_theta"]


def write_attention(writer, config):
    num_heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // num_heads
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(num_heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(rope_theta(config))


def write_experts(writer, config):
    write_attention(writer, config)
    writer.add_expert_count(config.get("num_experts") or config["num_local_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    if "moe_intermediate_size" in config:
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])


def write_windowed(writer, config):
    """Of Gemma 3: every sixth layer sees all, which llama.cpp knows by itself."""
    write_attention(writer, config)
    writer.add_sliding_window(config["sliding_window"])


def write_mamba2(writer, config):
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_ssm_conv_kernel(config["conv_kernel"])
    writer.add_ssm_inner_size(config["expand"] * config["hidden_size"])
    writer.add_ssm_state_size(config["state_size"])
    writer.add_ssm_time_step_rank(config["num_heads"])
    writer.add_ssm_group_count(config["n_groups"])
    writer.add_layer_norm_rms_eps(config["layer_norm_epsilon"])


def state_tensor(name, value, config):
    """(end of the name in GGUF, value) of what stands otherwise there, of Mamba 2; None: as it is."""
    kind = name.split(".mixer.")[-1]
    if kind == "A_log":
        return "ssm_a", -value.float().exp()[:, None]
    if kind == "D":
        return "ssm_d", value.float()[:, None]
    if kind == "dt_bias":
        return "ssm_dt.bias", value.float()
    if kind == "conv1d.weight":
        return "ssm_conv1d.weight", value.float().squeeze(1)
    if kind == "norm.weight":
        return "ssm_norm.weight", value.float().reshape(config["n_groups"], -1)
    return None


def as_it_is(name, value, config):
    return None


@dataclass
class Architecture:
    name: str
    write_metadata: callable = write_attention
    other_tensor: callable = as_it_is
    interleaved: bool = False  # whether llama.cpp rotates neighbours where transformers rotates the two halves of a head


ARCHITECTURES = {
    "LlamaForCausalLM": Architecture("llama", interleaved=True),
    "Qwen2ForCausalLM": Architecture("qwen2"),
    "OlmoeForCausalLM": Architecture("olmoe", write_experts),
    "Qwen3MoeForCausalLM": Architecture("qwen3moe", write_experts),
    "Gemma3ForCausalLM": Architecture("gemma3", write_windowed),
    "Mamba2ForCausalLM": Architecture("mamba2", write_mamba2, state_tensor),
}


def interleave_pairs(value, num_heads):
    return value.reshape(num_heads, 2, -1, *value.shape[1:]).transpose(1, 2).reshape(value.shape)


def read_tensors(folder):
    """name -> value; the matrices of a layer's experts as one, [experts, rows, columns], under the name without a number."""
    import torch
    from safetensors.torch import load_file

    tensors, experts = {}, {}
    for file in sorted(folder.glob("*.safetensors")):
        for name, value in load_file(file).items():
            expert = re.fullmatch(r"(.*\.experts)\.(\d+)\.(.*)", name)
            if expert:
                experts.setdefault(f"{expert[1]}.{expert[3]}", {})[int(expert[2])] = value
            else:
                tensors[name] = value
    for name, of_each in experts.items():
        tensors[name] = torch.stack([of_each[i] for i in range(len(of_each))])
    return tensors


def write_gguf(folder, path):
    """Matrices as bf16, all else as f32, as llama.cpp's own converter does it."""
    import gguf
    import torch

    config = json.loads((folder / "config.json").read_text())
    architecture = ARCHITECTURES.get(config["architectures"][0])
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if architecture is None or scaling.get("rope_type", scaling.get("type", "default")) != "default":
        raise ValueError(f"{folder}: only {', '.join(ARCHITECTURES)} without rope scaling are written as GGUF here")
    ids = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(ids[architecture.name], config["num_hidden_layers"])
    writer = gguf.GGUFWriter(path, architecture.name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    architecture.write_metadata(writer, config)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    for name, value in read_tensors(folder).items():
        if name == "lm_head.weight" and config.get("tie_word_embeddings"):
            continue
        projection = name.split(".")[-2]
        if architecture.interleaved and projection in ("q_proj", "k_proj"):
            heads = "num_attention_heads" if projection == "q_proj" else "num_key_value_heads"
            value = interleave_pairs(value, config[heads])
        other = architecture.other_tensor(name, value, config)
        if other:
            writer.add_tensor(f"blk.{name.split('.')[2]}.{other[0]}", other[1].contiguous().numpy())
            continue
        new_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if new_name is None:
            raise ValueError(f"{folder}: {name} has no name in GGUF's {architecture.name}")
        if value.dim() == 1 or new_name.endswith("ffn_gate_inp.weight"):
            writer.add_tensor(new_name, value.to(torch.float32).contiguous().numpy())
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
