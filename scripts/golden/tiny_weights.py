"""Random weights of a tiny checkpoint, and how they lie on disk: names, types and files as published checkpoints of the
family have them. Used by make_tiny_checkpoints."""

import json
import math
import re

import mxfp4
import torch
from safetensors.torch import save_file
from transformers.core_model_loading import revert_weight_conversion

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
EMBEDDINGS = ("embed", "wte", "wpe")
# Factors, of about 1.
FACTORS = (".layer_scalar", ".router.scale", ".per_expert_scale", ".correct_output_scale", ".softmax_scaling.bias")
# Neither matrices nor norms, whatever their shape.
SMALL = ("_bias", ".A_log", ".D", ".e_score_correction_bias", "sinks")
CHOICE_BIAS = ".mlp.gate.e_score_correction_bias"


def is_norm(name):
    return name.endswith("weight") and any(
        part in name for part in ("norm", ".ln_"))


def random_values(name, value, generator, storage, is_gpt2):
    """Larger than a real initialisation: the logits should say something."""
    noise = torch.randn(value.shape, generator=generator)
    if storage.get("extra") == "no_choice_bias" and name.endswith(CHOICE_BIAS):
        return torch.zeros_like(noise)
    if name.endswith(FACTORS):
        return 1.0 + 0.2 * noise
    if name.endswith(".act_fn.beta"):
        return 0.5 + 0.1 * noise
    if name.endswith(".act_fn.eps"):  # far enough below 0 to be seen
        return -0.1 * noise.abs()
    if name.endswith((".slope_rate", "_decay")):  # follow from the sizes
        return value.clone()
    if name.endswith(".recurrent_param"):  # states that remember some tokens, and some less
        return 0.7 * noise - 3.0
    centre = 1.0 if is_norm(name) and not (
        storage.get("zero_centred_norms") and not any(part in name for part in storage.get("plain_norms", ["linear_attn"]))) else 0.0
    if (value.dim() == 1 and not name.endswith(SMALL)) or is_norm(name):
        return centre + 0.2 * noise
    if name.endswith("A_log"):
        return 0.3 * noise - 1.5  # states that remember some tokens
    if name.endswith(SMALL):
        return 0.3 * noise.abs() if name.endswith("correction_bias") else 0.3 * noise
    if any(part in name for part in EMBEDDINGS):
        return storage.get("embedding_scale", 0.7) * noise
    if name.endswith("modality_router.weight"):  # what it gives is divided by the width
        return 0.8 * noise * math.sqrt(value.shape[-1])
    if name.endswith("_coefs.weight"):  # or streams would grow from layer to layer
        return 0.3 * noise / math.sqrt(value.shape[-1])
    # Conv1D keeps (in, out), Linear (out, in).
    is_conv = is_gpt2 and any(part in name for part in ("c_attn", "c_proj", "c_fc"))
    return storage.get("matrix_scale", 1.3) * noise / math.sqrt(value.shape[0 if is_conv else -1])


def randomise(model, seed, storage=None):
    generator = torch.Generator().manual_seed(seed)
    persistent = model.state_dict().keys()
    named = list(model.named_parameters())
    named += [(name, value) for name, value in model.named_buffers() if name in persistent and value.is_floating_point()]
    is_gpt2 = model.config.model_type == "gpt2"
    for name, value in named:
        value.data.copy_(random_values(name, value, generator, storage or {}, is_gpt2))
    for name, value in model.named_buffers():
        if name.endswith(".tid2eid"):  # experts of a token, each another
            scores = torch.rand(value.shape[0], model.config.n_routed_experts, generator=generator)
            value.copy_(scores.topk(value.shape[1]).indices)


def stored_dtype(name, config, storage):
    if any(part in name for part in storage.get("keep_float32", ())):
        return torch.float32
    return DTYPES[storage.get("dtype") or config.get("dtype") or config["torch_dtype"]]


def round_to_stored(model, config, storage):
    """The weights become what will be read back from the files."""
    for name, value in model.state_dict().items():
        if not value.is_floating_point():
            continue
        value.copy_(value.to(stored_dtype(name, config, storage)))
        if storage.get("extra") == "mxfp4":
            mxfp4.round_values(name, value)


def stored_tensors(model, config, storage):
    out = {}
    state = model.state_dict()
    tied = set(model.all_tied_weights_keys) if model.config.tie_word_embeddings else set()
    if not storage.get("keep_tied_head"):
        state = {name: value for name, value in state.items() if name not in tied}
    state = {name: (value.detach().to(stored_dtype(name, config, storage)) if value.is_floating_point() else value).clone()
             for name, value in state.items()}
    out = {name: value.contiguous().clone()
           for name, value in revert_weight_conversion(model, state).items()}
    if storage.get("rotary_tables"):
        half = config["head_dim"] // 2
        for layer in range(config["num_hidden_layers"]):
            out[f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"] = torch.ones(half)
    if storage.get("causal_masks"):
        size = config["n_positions"] // 8
        for layer in range(config["n_layer"]):
            out[f"transformer.h.{layer}.attn.bias"] = torch.ones(1, 1, size, size).tril().byte()
            out[f"transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    if storage.get("extra"):
        out = STORE[storage["extra"]](out, config)
    return {old_name(name, storage): value for name, value in out.items()}


def old_name(name, storage):
    name = storage.get("prefix", "") + name.removeprefix(storage.get("strip", ""))
    if storage.get("gamma_beta") and "ln_" in name:
        name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
    for here, published in storage.get("rename", ()):
        name = name.replace(here, published)
    return name


def with_neox_tables(tensors, config):
    """What Pythia's files carry along."""
    rotary = int(config["hidden_size"] // config["num_attention_heads"] * config["rotary_pct"])
    for layer in range(config["num_hidden_layers"]):
        attention = f"gpt_neox.layers.{layer}.attention."
        tensors[attention + "rotary_emb.inv_freq"] = torch.ones(rotary // 2)
        tensors[attention + "bias"] = torch.ones(1, 1, 9, 9).tril().bool()
        tensors[attention + "masked_bias"] = torch.tensor(-1e9)
    return tensors


def with_stacked_experts(tensors, config):
    """The matrices of a layer's experts as one tensor each: gate and up in one, one expert behind the other."""
    out = dict(tensors)
    for layer in range(config["num_hidden_layers"]):
        experts = f"model.layers.{layer}.mlp.experts."
        parts = {kind: [out.pop(f"{experts}{e}.{kind}_proj.weight") for e in range(config["num_experts"])]
                 for kind in ("gate", "up", "down")}
        both = [torch.cat(pair) for pair in zip(parts["gate"], parts["up"])]
        out[experts + "gate_up_proj"] = torch.stack(both)
        out[experts + "down_proj"] = torch.stack(parts["down"])
    return out


def with_unread_parts(tensors, config):
    """What a checkpoint that sees and hears has beside its text model, and matrices of k and v where nothing reads them."""
    out = dict(tensors)
    for part in ("vision_tower.timm_model.conv_stem.conv", "audio_tower.conformer.0.norm", "embed_vision.embedding",
                 "embed_audio.embedding_projection"):
        out[f"model.{part}.weight"] = torch.ones(2, 3)
    text = config["text_config"]
    for layer in range(text["num_hidden_layers"] - text["num_kv_shared_layers"], text["num_hidden_layers"]):
        for name in ("k_proj", "v_proj", "k_norm"):
            out[f"model.layers.{layer}.self_attn.{name}.weight"] = torch.ones(2, 3)
    return out


def without_unread_parts(state):
    return {name: value for name, value in state.items() if value.shape != (2, 3)}


def with_transposed_experts(tensors, config):
    """As Qwen3-VL's files have them: x is multiplied from the left."""
    return {name: value.transpose(1, 2).contiguous() if ".experts." in name else value for name, value in tensors.items()}


def without_choice_bias(tensors, config):
    return {name: value for name, value in tensors.items() if not name.endswith(CHOICE_BIAS)}


def with_choice_bias(state):
    """What is not stored is 0."""
    routers = [name for name in state if name.endswith(".mlp.gate.weight")]
    return state | {name.replace(".weight", ".e_score_correction_bias"): torch.zeros(len(state[name])) for name in routers}


def with_published_names(tensors, config):
    """transformers reads the published names of OLMo Hybrid and Kimi Linear, and writes others: three parts of a convolution
    that are as large as each other, dense MLPs and norms under names that only other layers have."""
    out = {}
    for name, value in tensors.items():
        layer = re.match(r"model\.layers\.\d+\.", name)
        if layer and layer.group() + "post_feedforward_layernorm.weight" in tensors:
            name = name.replace("feedforward_layer_norm", "post_attention_layernorm")
        name = re.sub(r"block_sparse_moe\.(gate|up|down)_proj", r"mlp.\1_proj", name)
        if not name.endswith("_conv1d.weight"):
            out[name] = value
    for name in [name for name in tensors if name.endswith("q_conv1d.weight")]:
        mixer = name.removesuffix("q_conv1d.weight")
        whole = torch.cat([tensors[f"{mixer}{part}_conv1d.weight"] for part in "qkv"])
        sizes = [len(tensors[f"{mixer}{part}_proj.weight"]) for part in "qkv"]
        for part, value in zip("qkv", whole.split(sizes)):
            out[f"{mixer}{part}_conv1d.weight"] = value.contiguous().clone()
    return out


# storage["extra"] -> what is stored instead, what is read instead.
STORE = {"neox_tables": with_neox_tables, "mxfp4": mxfp4.store, "stacked_experts": with_stacked_experts,
         "transposed_experts": with_transposed_experts, "unread_parts": with_unread_parts,
         "no_choice_bias": without_choice_bias, "published_names": with_published_names}
LOAD = {"mxfp4": mxfp4.load, "unread_parts": without_unread_parts, "no_choice_bias": with_choice_bias}


def save_weights(tensors, folder, num_shards):
    if num_shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(tensors)
    weight_map = {}
    for shard in range(num_shards):
        file = f"model-{shard + 1:05d}-of-{num_shards:05d}.safetensors"
        part = {name: tensors[name] for name in names[shard::num_shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        weight_map |= {name: file for name in part}
    total = sum(value.numel() * value.element_size() for value in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
