"""A plain checkpoint with the linears of its layers as bitsandbytes stores them in 4 bits, or as the numbers that it makes of those."""

import json
import shutil

BLOCK = 64
TABLES = {
    "nf4": [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
            -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
            0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0],
    "fp4": [sign * value / 12 for sign in (1, -1) for value in (0, 0.0625, 8, 12, 4, 6, 2, 3)],
}


def quantise(weight, table):
    """Codes and the scale of each block, to the nearest number of the table."""
    import torch

    blocks = weight.float().reshape(-1, BLOCK)
    scales = blocks.abs().amax(1)
    parts = blocks / scales.clamp(min=1e-30)[:, None]
    codes = torch.cat([(part[..., None] - table).abs().argmin(-1) for part in parts.split(4096)])
    return codes.flatten().to(torch.uint8), scales


def write(source, target, kind, decoded):
    import torch
    from safetensors.torch import load_file, save_file

    table = torch.tensor(TABLES[kind])
    target.mkdir()
    tensors = {}
    for name, weight in load_file(source / "model.safetensors").items():
        is_linear = ".layers." in name and name.endswith("_proj.weight")
        if not is_linear or weight.numel() % BLOCK:
            tensors[name] = weight
            continue
        codes, scales = quantise(weight, table)
        if decoded:
            tensors[name] = (table[codes.long()].reshape(-1, BLOCK) * scales[:, None]).reshape(weight.shape)
            continue
        state = {"quant_type": kind, "blocksize": BLOCK, "dtype": "bfloat16", "shape": list(weight.shape)}
        tensors[name] = (codes[::2] << 4 | codes[1::2])[:, None].contiguous()
        tensors[f"{name}.absmax"], tensors[f"{name}.quant_map"] = scales, table.clone()
        tensors[f"{name}.quant_state.bitsandbytes__{kind}"] = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    if not decoded:
        config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind}
    (target / "config.json").write_text(json.dumps(config))
    for file in source.glob("tokenizer*"):
        shutil.copy(file, target)
