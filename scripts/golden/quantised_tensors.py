"""The quantised layouts of scripts/golden/make_quantised_checkpoints, written from their descriptions:
a matrix (out, in) into arrays by suffix, and arrays back into a matrix in float32. compressed-tensors,
bitsandbytes and hqq do their own both ways, torchao quantises its own; gptq, awq and exl2, whose packages want a GPU, Model Optimizer and
BitNet are done here.
"""

import fnmatch
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


FP4_VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
FP4_LEVELS = torch.cat((FP4_VALUES, -FP4_VALUES))
FP4_GROUPS = {"NVFP4": 16, "MXFP4": 32}


def fp4_pack(values):
    """(out, in) of numbers near the levels into bytes (out, in / 2)."""
    codes = (values[..., None] - FP4_LEVELS).abs().argmin(-1).to(torch.uint8)
    return codes[:, 0::2] | (codes[:, 1::2] << 4)


def fp4_unpack(packed):
    codes = torch.stack((packed & 15, packed >> 4), dim=-1).flatten(-2)
    return FP4_LEVELS[codes.long()]


def fp4_scales(weight, kind):
    """Of each group, as stored and in float32, and what all are multiplied with."""
    largest = weight.reshape(len(weight), -1, FP4_GROUPS[kind]).abs().amax(-1).clamp(min=2.0**-20)
    if kind == "MXFP4":
        exponent = torch.floor(torch.log2(largest)) - 2
        return (exponent + 127).to(torch.uint8), torch.exp2(exponent), torch.tensor(1.0)
    of_all = weight.abs().max() / (6 * 448)
    stored = (largest / 6 / of_all).clamp(2.0**-9, 448).to(torch.float8_e4m3fn)
    return stored, stored.float(), of_all


def modelopt_settings(config):
    return config.get("quantization", config)


def modelopt_excludes(config, module):
    settings = modelopt_settings(config)
    if settings["quant_algo"] == "MIXED_PRECISION":
        return module not in settings["quantized_layers"]
    return any(fnmatch.fnmatch(module, name) for name in settings.get("exclude_modules") or settings.get("ignore"))


def modelopt_algo(config, module):
    settings = modelopt_settings(config)
    if settings["quant_algo"] != "MIXED_PRECISION":
        return settings["quant_algo"]
    return settings["quantized_layers"][module]["quant_algo"]


def modelopt_quantise(weight, config, module):
    algo = modelopt_algo(config, module)
    if "FP4" not in algo:
        scale = weight.abs().amax(1 if "CHANNEL" in algo else (0, 1)) / 448
        values = weight / (scale[:, None] if scale.dim() else scale)
        return {"weight": values.to(torch.float8_e4m3fn), "weight_scale": scale, "input_scale": torch.tensor(0.02)}
    kind = "MXFP4" if "MXFP4" in algo else "NVFP4"
    stored, scales, of_all = fp4_scales(weight, kind)
    packed = fp4_pack(weight / (scales * of_all).repeat_interleave(FP4_GROUPS[kind], 1))
    arrays = {"weight": packed, "weight_scale": stored, "input_scale": torch.tensor(0.02)}
    return arrays | ({"weight_scale_2": of_all} if kind == "NVFP4" else {})


def modelopt_dequantise(arrays, config, module):
    scale = arrays["weight_scale"]
    if arrays["weight"].dtype == torch.float8_e4m3fn:
        return arrays["weight"].float() * (scale[:, None] if scale.dim() else scale)
    values = fp4_unpack(arrays["weight"])
    if scale.dtype == torch.uint8:
        scales = torch.exp2(scale.float() - 127)
    else:
        scales = scale.float() * arrays["weight_scale_2"]
    return values * scales.repeat_interleave(values.shape[1] // scales.shape[1], 1)


def bitnet_quantise(weight, config, dtype, _generator):
    if config.get("quantization_mode") == "online":
        return {"weight": weight.to(dtype)}
    scale = weight.abs().mean().clamp(min=1e-5)
    codes = (weight / scale).round().clamp(-1, 1)
    is_auto = config.get("linear_class") == "autobitlinear"
    factor = (scale if is_auto else 1 / scale).reshape(1).to(dtype)
    parts = (codes + 1).to(torch.uint8).reshape(4, -1, weight.shape[1])
    return {"weight": parts[0] | parts[1] << 2 | parts[2] << 4 | parts[3] << 6, "weight_scale": factor}


def bitnet_dequantise(arrays, config):
    packed = arrays["weight"]
    codes = torch.cat([(packed >> 2 * i & 3).float() - 1 for i in range(4)])
    scale = arrays["weight_scale"].float()
    return codes * scale if config.get("linear_class") == "autobitlinear" else codes / scale


def bitnet_round(weight):
    """What transformers makes of the plain weights of `online`."""
    scale = 1.0 / weight.float().abs().mean().clamp(min=1e-5)
    return (weight.float() * scale).round().clamp(-1, 1) / scale


def torchao_quantise(weight, config, dtype, _generator):
    """By the package itself, and into tensors of their own as it does for safetensors."""
    from torchao.core.config import config_from_dict
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
    from torchao.quantization import quantize_
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=dtype)
    linear.weight.data = weight.to(dtype)
    quantize_(linear, config_from_dict(config["quant_type"]["default"]))
    arrays, _ = flatten_tensor_state_dict({"of.weight": linear.weight})
    arrays = {name.removeprefix("of."): value.detach() for name, value in arrays.items()}
    ours = torchao_dequantise(arrays, config)
    assert torch.allclose(ours, linear.weight.dequantize().float(), rtol=2.0**-7, atol=1e-7)
    return arrays


def torchao_dequantise(arrays, _config):
    values, scale = arrays["_weight_qdata"].float(), arrays["_weight_scale"].float()
    times = values.shape[1] // scale.shape[-1] if scale.dim() == 2 else 1
    if "_weight_zero_point" in arrays:
        zeros = arrays["_weight_zero_point"].float()
        values = values - (zeros.repeat_interleave(times, 1) if zeros.dim() == 2 else zeros)
    return values * (scale.repeat_interleave(times, 1) if scale.dim() == 2 else scale)


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
    if scheme.weights.num_bits == 4 and scheme.weights.type == "float":
        _, scale, of_all = fp4_scales(weight, "NVFP4" if scheme.weights.group_size == 16 else "MXFP4")
        state = {"weight": weight, "weight_scale": scale}
        if scheme.weights.group_size == 16:
            state |= {"weight_global_scale": (1 / of_all).reshape(1), "input_global_scale": torch.tensor([50.0])}
        return ct_compressor(config).compress(state, scheme)
    scale, zero = ct_scales(weight, scheme.weights, dtype)
    if scheme.weights.strategy == "tensor":
        scale = scale.reshape(1)
    state = {"weight": weight.to(dtype), "weight_scale": scale}
    if zero is not None:
        state["weight_zero_point"] = zero
    return ct_compressor(config).compress(state, scheme)


def ct_dequantise(arrays, config, module):
    scheme = ct_scheme(config, module)
    if "weight_packed" in arrays and arrays["weight_packed"].dtype == torch.uint8:
        from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
        from compressed_tensors.quantization.lifecycle.forward import dequantize
        packed, scale = arrays["weight_packed"], arrays["weight_scale"]
        scale = torch.exp2(scale.float() - 127) if scale.dtype == torch.uint8 else scale.float()
        values = unpack_fp4_from_uint8(packed, packed.shape[0], 2 * packed.shape[1], torch.float32)
        out = dequantize(x_q=values, scale=scale, args=scheme.weights, dtype=torch.float32,
                         global_scale=arrays.get("weight_global_scale"))
        rounded = ct_compressor(config).decompress(arrays, scheme)["weight"].float()
        assert torch.allclose(out, rounded, rtol=2.0**-7, atol=0), module  # the package gives bfloat16
        return out
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


def exl2_pack(codes, bits):
    """(inputs, outputs) into words: of each output one string of bits, its end filled up."""
    string = ((codes.long()[:, None, :] >> torch.arange(bits)[None, :, None]) & 1).flatten(0, 1)
    string = torch.nn.functional.pad(string, (0, 0, 0, -len(string) % 32)).unflatten(0, (-1, 32))
    words = (string << torch.arange(32)[None, :, None]).sum(1)
    return torch.where(words >= 2**31, words - 2**32, words).int()


def exl2_unpack(words, bits, count):
    string = ((words.long()[:, None, :] >> torch.arange(32)[None, :, None]) & 1).flatten(0, 1)[: count * bits]
    return (string.unflatten(0, (count, bits)) << torch.arange(bits)[None, :, None]).sum(1)


def exl2_scales(codes, largest):
    """In f16, as ExLlamaV2 has them."""
    step = (largest.float() / 256).half()
    return ((codes.float() + 1) ** 2 * step.float()[:, None]).half().float()


def exl2_quantise(weight, config, _dtype, generator):
    """config["widths"]: (bits, inputs) of each group, the last ones for what is left."""
    outputs, inputs = weight.shape
    order = torch.randperm(inputs, generator=generator)
    rows = torch.nn.functional.pad(weight, (0, 0, 0, -outputs % 32)).T[order]
    words, groups, scales, largest = [], [], [], []
    at = 0
    while at < inputs:
        bits, count = config["widths"][min(len(largest), len(config["widths"]) - 1)]
        part = rows[at: at + count]
        each = part.abs().amax(0).clamp(min=1e-6) / (2 ** (bits - 1) - 0.5)
        largest.append(each.max().half())
        codes = ((each / each.max()).sqrt() * 16).round().clamp(1, 16) - 1
        scale = exl2_scales(codes[None], largest[-1:][0][None])[0]
        middle = 2 ** (bits - 1)
        groups += [bits, sum(map(len, words))]
        words.append(exl2_pack(((part / scale).round() + middle).clamp(0, 2 * middle - 1), bits))
        scales.append(codes)
        at += len(part)
    return {"q_weight": torch.cat(words), "q_scale": pack(torch.stack(scales), 4, 1), "q_scale_max": torch.stack(largest),
            "q_groups": torch.tensor(groups, dtype=torch.short), "q_invperm": order.argsort().int()}


def exl2_dequantise(arrays, config):
    groups = arrays["q_groups"].tolist()
    inputs, num_words = len(arrays["q_invperm"]), len(arrays["q_weight"])
    scales = exl2_scales(unpack(arrays["q_scale"], 4, 1), arrays["q_scale_max"])
    parts, at = [], 0
    for group in range(len(groups) // 2):
        bits, first = groups[2 * group: 2 * group + 2]
        end = groups[2 * group + 3] if 2 * group + 3 < len(groups) else num_words
        count = min((end - first) * 32 // bits, inputs - at)
        codes = exl2_unpack(arrays["q_weight"][first:end], bits, count)
        parts.append((codes - 2 ** (bits - 1)) * scales[group])
        at += count
    return torch.cat(parts)[arrays["q_invperm"].long()].T.contiguous()


QUANTISE = {"exl2": exl2_quantise, "gptq": gptq_quantise, "awq": awq_quantise, "fp8": fp8_quantise, "bitnet": bitnet_quantise,
            "torchao": torchao_quantise, "bitsandbytes": bnb_quantise, "hqq": hqq_quantise}
DEQUANTISE = {"exl2": exl2_dequantise, "gptq": gptq_dequantise, "awq": awq_dequantise, "fp8": fp8_dequantise, "bitnet": bitnet_dequantise,
              "torchao": torchao_dequantise, "bitsandbytes": bnb_dequantise, "hqq": hqq_dequantise}
MARKS = {"exl2": ["q_weight"], "gptq": ["qweight"], "awq": ["qweight"], "fp8": ["weight_scale_inv"],
         "compressed-tensors": ["weight_scale"], "modelopt": ["weight_scale"], "bitnet": ["weight_scale"],
         "torchao": ["_weight_qdata"], "bitsandbytes": ["weight.quant_map", "SCB"], "hqq": ["W_q"]}
# Whose arrays depend on the module.
BY_MODULE = {"compressed-tensors": ct_dequantise, "modelopt": modelopt_dequantise}


def quantise(weight, config, dtype, module, generator):
    if config["quant_method"] == "compressed-tensors":
        return ct_quantise(weight, config, dtype, module)
    if config["quant_method"] == "modelopt":
        return modelopt_quantise(weight, config, module)
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
        out[module + ".weight"] = (BY_MODULE[method](arrays, config, module) if method in BY_MODULE
                                   else DEQUANTISE[method](arrays, config))
    if config.get("quantization_mode") == "online":
        for name, value in out.items():
            if name.endswith("_proj.weight"):
                out[name] = bitnet_round(value)
    return out
