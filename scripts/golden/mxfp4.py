"""MXFP4 as gpt-oss publishes it: rows of blocks of 32 numbers, each 4 bits of e2m1 (two in a byte, the first in the low
half) times a power of two, one byte e8m0 with bias 127. NAME_blocks is (experts, rows, blocks, 16), NAME_scales
(experts, rows, blocks); transformers wants (experts, columns, rows) of it."""

import torch

BLOCK = 32
PARTS = ("gate_up_proj", "down_proj")
VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
LEVELS = torch.cat((VALUES, -VALUES))


def is_packed(name):
    return name.endswith(PARTS) and ".experts." in name


def encode(value):
    """(experts, columns, rows) -> blocks, scales."""
    rows = value.transpose(1, 2).float()
    parts = rows.reshape(*rows.shape[:2], -1, BLOCK)
    largest = parts.abs().amax(-1).clamp(min=2.0**-20)
    exponent = torch.floor(torch.log2(largest)) - 2
    scaled = parts / torch.exp2(exponent)[..., None]
    codes = (scaled[..., None] - LEVELS).abs().argmin(-1).to(torch.uint8)
    return codes[..., 0::2] | (codes[..., 1::2] << 4), (exponent + 127).to(torch.uint8)


def decode(blocks, scales):
    codes = torch.stack((blocks & 15, blocks >> 4), dim=-1).flatten(-2)
    values = LEVELS[codes.long()] * torch.exp2(scales.float() - 127)[..., None]
    return values.flatten(-2).transpose(1, 2).contiguous()


def round_values(name, value):
    if is_packed(name):
        value.copy_(decode(*encode(value)))


def store(tensors, config):
    out = {}
    for name, value in tensors.items():
        if is_packed(name):
            out[name + "_blocks"], out[name + "_scales"] = (x.contiguous() for x in encode(value))
        else:
            out[name] = value
    return out


def load(tensors):
    out = {}
    for name, value in tensors.items():
        if name.endswith("_blocks"):
            name = name.removesuffix("_blocks")
            out[name] = decode(value, tensors[name + "_scales"])
        elif not name.endswith("_scales"):
            out[name] = value
    return out
