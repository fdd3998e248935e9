"""The quantised layouts of scripts/golden/make_quantised_checkpoints, written from their descriptions:
a matrix (out, in) into arrays by suffix, and arrays back into a matrix in float32. compressed-tensors,
bitsandbytes and hqq do their own both ways; gptq and awq, whose packages want a GPU, are done here.
"""

import re

import torch

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def groups_of(cols, group_size):
    return torch.arange(cols) // (cols if group_size in (-1, None) else group_size)


def round_to_nearest(weight, bits, g_idx, symmetric, scale_dtype):
    """Unsigned codes (out, in), scales and unsigned zero points (out, groups)."""
    num_groups = int(g_idx.max()) + 1
    top, middle = 2**bits - 1, 2 ** (bits - 1)
    scales, zeros = [], []
    for group in range(num_groups):
        part = weight[:, g_idx == group]
        low, high = part.amin(1).clamp(max=0), part.amax(1).clamp(min=0)
        if symmetric:
            scale = torch.maximum(-low / middle, high / (middle - 1))
            zero = torch.full_like(scale, middle)
        else:
            scale = (high - low) / top
            zero = (-low / scale).round()
        scales.append(scale)
        zeros.append(zero)
    scales = torch.stack(scales, 1).to(scale_dtype)
    # The first gptq layout can't say 0.
    zeros = torch.stack(zeros, 1).clamp(1, top).int()
    codes = (weight / scales.float()[:, g_idx]).round() + zeros[:, g_idx]
    return codes.clamp(0, top).int(), scales, zeros


def pack(values, bits, dim, order=None):
    """Words of int32 along a dimension; the value at bits * i of a word is number order[i]. Where a value of 3 bits may be
    in two words, 32 of them are in three."""
    if bits == 3:
        return pack_3_bits(values, dim)
    per_word = 32 // bits
    values = values.long().movedim(dim, -1)
    values = values.reshape(*values.shape[:-1], -1, per_word)
    order = order or list(range(per_word))
    words = sum(values[..., number] << (bits * i) for i, number in enumerate(order))
    words = torch.where(words >= 2**31, words - 2**32, words)
    return words.int().movedim(-1, dim).contiguous()


def pack_3_bits(values, dim):
    values = values.long().movedim(dim, -1)
    bits = (values[..., None] >> torch.arange(3)) & 1
    bits = bits.flatten(-2).unflatten(-1, (-1, 32))
    words = (bits << torch.arange(32)).sum(-1)
    return torch.where(words >= 2**31, words - 2**32, words).int().movedim(-1, dim).contiguous()


def unpack_3_bits(words, dim):
    bits = (words.long().movedim(dim, -1)[..., None] >> torch.arange(32)) & 1
    return (bits.flatten(-2).unflatten(-1, (-1, 3)) << torch.arange(3)).sum(-1).movedim(-1, dim)


def unpack(words, bits, dim, order=None):
    if bits == 3:
        return unpack_3_bits(words, dim)
    per_word = 32 // bits
    words = words.long().movedim(dim, -1)
    order = order or list(range(per_word))
    out = torch.empty(*words.shape, per_word, dtype=torch.long)
    for i, number in enumerate(order):
        out[..., number] = (words >> (bits * i)) & (2**bits - 1)
    return out.flatten(-2).movedim(-1, dim)


def gptq_quantise(weight, config, dtype, generator):
    bits = config["bits"]
    g_idx = groups_of(weight.shape[1], config["group_size"])
    if config["desc_act"]:
        g_idx = g_idx[torch.randperm(len(g_idx), generator=generator)]
    codes, scales, zeros = round_to_nearest(weight, bits, g_idx, config["sym"], dtype)
    less = 1 if config.get("checkpoint_format", "gptq") == "gptq" else 0
    return {"qweight": pack(codes.T, bits, 0), "qzeros": pack(zeros.T - less, bits, 1),
            "scales": scales.T.contiguous(), "g_idx": g_idx.int()}


def gptq_dequantise(arrays, config):
    bits = config["bits"]
    less = 1 if config.get("checkpoint_format", "gptq") == "gptq" else 0
    codes = unpack(arrays["qweight"], bits, 0)
    zeros = unpack(arrays["qzeros"], bits, 1) + less
    g_idx = arrays["g_idx"].long()
    return ((codes - zeros[g_idx]) * arrays["scales"].float()[g_idx]).T.contiguous()


def awq_quantise(weight, config, dtype, _generator):
    g_idx = groups_of(weight.shape[1], config["group_size"])
    codes, scales, zeros = round_to_nearest(weight, 4, g_idx, False, dtype)
    return {"qweight": pack(codes.T, 4, 1, AWQ_ORDER), "qzeros": pack(zeros.T, 4, 1, AWQ_ORDER),
            "scales": scales.T.contiguous()}


def awq_dequantise(arrays, config):
    codes = unpack(arrays["qweight"], 4, 1, AWQ_ORDER)
    zeros = unpack(arrays["qzeros"], 4, 1, AWQ_ORDER)
    g_idx = groups_of(len(codes), config["group_size"])
    return ((codes - zeros[g_idx]) * arrays["scales"].float()[g_idx]).T.contiguous()


def fp8_blocks(config, shape):
    return config.get("weight_block_size") or list(shape)


def spread(scales, blocks, shape):
    out = scales.repeat_interleave(blocks[0], 0).repeat_interleave(blocks[1], 1)
    return out[: shape[0], : shape[1]]


def fp8_quantise(weight, config, _dtype, _generator):
    blocks = fp8_blocks(config, weight.shape)
    rows, cols = (-(-size // block) for size, block in zip(weight.shape, blocks))
    scales = torch.empty(rows, cols)
    for row in range(rows):
        for col in range(cols):
            part = weight[row * blocks[0]:, col * blocks[1]:][: blocks[0], : blocks[1]]
            scales[row, col] = part.abs().max() / 448
    values = (weight / spread(scales, blocks, weight.shape)).to(torch.float8_e4m3fn)
    single = not config.get("weight_block_size")
    return {"weight": values, "weight_scale_inv": scales.reshape(()) if single else scales}


def fp8_dequantise(arrays, config):
    weight = arrays["weight"].float()
    blocks = fp8_blocks(config, weight.shape)
    scales = arrays["weight_scale_inv"].float().reshape(1, 1) if (
        arrays["weight_scale_inv"].dim() == 0) else arrays["weight_scale_inv"].float()
    return weight * spread(scales, blocks, weight.shape)


def ct_scheme(config, module):
    from compressed_tensors.quantization import QuantizationScheme
    for group in config["config_groups"].values():
        if any(re.match(t[3:], module) if t.startswith("re:") else t in ("Linear", module)
               for t in group["targets"]):
            return QuantizationScheme(**group)
    raise ValueError(f"no scheme for {module}")


def ct_compressor(config):
    from compressed_tensors.compressors import BaseCompressor
    return BaseCompressor.get_value_from_registry(config["format"])


def ct_scales(weight, args, dtype):
    """Scale and zero point by minimum and maximum, in the shapes that the strategy wants."""
    rows, cols = weight.shape
    blocks = {"tensor": (rows, cols), "channel": (1, cols), "group": (1, args.group_size or cols),
              "block": tuple(args.block_structure or (1, 1))}[args.strategy]
    padded = torch.nn.functional.pad(weight, (0, -cols % blocks[1], 0, -rows % blocks[0]))
    tiles = padded.unfold(0, blocks[0], blocks[0]).unfold(1, blocks[1], blocks[1])
    low, high = tiles.amin((2, 3)).clamp(max=0), tiles.amax((2, 3)).clamp(min=0)
    if args.type == "float":
        return (torch.maximum(-low, high) / 448).to(dtype), None
    if args.symmetric:
        return (2 * torch.maximum(-low, high) / (2**args.num_bits - 1)).to(dtype), None
    scale = ((high - low) / (2**args.num_bits - 1)).to(dtype)
    lowest = -(2 ** (args.num_bits - 1))
    zero = (lowest - low / scale.float()).round().clamp(lowest, -lowest - 1)
    return scale, zero.to(torch.int8)


def ct_quantise(weight, config, dtype, module):
    scheme = ct_scheme(config, module)
    scale, zero = ct_scales(weight, scheme.weights, dtype)
    if scheme.weights.strategy == "tensor":
        scale = scale.reshape(1)
    state = {"weight": weight.to(dtype), "weight_scale": scale}
    if zero is not None:
        state["weight_zero_point"] = zero
    return ct_compressor(config).compress(state, scheme)


def ct_dequantise(arrays, config, module):
    scheme = ct_scheme(config, module)
    # In float32 from the scale on: the package computes in the scale's type.
    state = arrays | {"weight_scale": arrays["weight_scale"].float()}
    return ct_compressor(config).decompress(state, scheme)["weight"].float()


def bnb_quantise(weight, config, dtype, _generator):
    from bitsandbytes import functional
    if config["load_in_8bit"]:
        codes, largest, _ = functional.int8_vectorwise_quant(weight.half())
        return {"weight": codes, "SCB": largest, "weight_format": torch.tensor(0, dtype=torch.uint8)}
    codes, state = functional.quantize_4bit(
        weight.to(dtype).contiguous(), quant_type=config["bnb_4bit_quant_type"],
        compress_statistics=config["bnb_4bit_use_double_quant"],
        quant_storage=getattr(torch, config["bnb_4bit_quant_storage"]))
    return {"weight": codes} | {f"weight.{name}": array
                                for name, array in state.as_dict(packed=True).items()}


def bnb_dequantise(arrays, config):
    from bitsandbytes import functional
    if config["load_in_8bit"]:
        return functional.int8_vectorwise_dequant(arrays["weight"], arrays["SCB"])
    state = functional.QuantState.from_dict(
        {name.removeprefix("weight."): array for name, array in arrays.items() if name != "weight"},
        device="cpu")
    # As one row: the kernels for processors of 0.50 would begin a block with each row.
    shape, state.shape, state.dtype = state.shape, torch.Size((state.shape.numel(),)), torch.float32
    return functional.dequantize_4bit(arrays["weight"], state).reshape(shape)


def hqq_quantise(weight, config, dtype, _generator):
    from hqq.core.quantize import HQQLinear
    linear = torch.nn.Linear(*weight.T.shape, bias=False)
    linear.weight.data = weight.clone()
    return HQQLinear(linear, config["quant_config"], compute_dtype=dtype, device="cpu").state_dict()


def hqq_dequantise(arrays, _config):
    from hqq.core.quantize import HQQLinear
    layer = HQQLinear(None, None, compute_dtype=torch.float32, device="cpu", initialize=False)
    # Before it loads them: it makes floating numbers of all kinds those of compute_dtype.
    layer.load_state_dict(dict(arrays))
    layer.meta["compute_dtype"] = torch.float32
    for name in ("scale", "zero"):
        layer.meta[name] = layer.meta[name].float()
    return layer.dequantize().float()


QUANTISE = {"gptq": gptq_quantise, "awq": awq_quantise, "fp8": fp8_quantise,
            "bitsandbytes": bnb_quantise, "hqq": hqq_quantise}
DEQUANTISE = {"gptq": gptq_dequantise, "awq": awq_dequantise, "fp8": fp8_dequantise,
              "bitsandbytes": bnb_dequantise, "hqq": hqq_dequantise}
MARKS = {"gptq": ["qweight"], "awq": ["qweight"], "fp8": ["weight_scale_inv"],
         "compressed-tensors": ["weight_scale"], "bitsandbytes": ["weight.quant_map", "SCB"],
         "hqq": ["W_q"]}


def quantise(weight, config, dtype, module, generator):
    if config["quant_method"] == "compressed-tensors":
        return ct_quantise(weight, config, dtype, module)
    return QUANTISE[config["quant_method"]](weight, config, dtype, generator)


def dequantise_state(state, config):
    """All tensors of a quantised checkpoint as plain float32 ones."""
    method = config["quant_method"]
    modules = {name.removesuffix("." + mark) for mark in MARKS[method] for name in state
               if name.endswith("." + mark)}
    out = {}
    for name, value in state.items():
        module = name.partition(".weight.")[0] if ".weight." in name else name.rpartition(".")[0]
        if module not in modules or name.endswith(".bias"):
            out[name] = value.float()
    for module in modules:
        arrays = {name.removeprefix(module + "."): value for name, value in state.items()
                  if name.startswith(module + ".") and not name.endswith(".bias")}
        out[module + ".weight"] = (
            ct_dequantise(arrays, config, module) if method == "compressed-tensors"
            else DEQUANTISE[method](arrays, config))
    return out
