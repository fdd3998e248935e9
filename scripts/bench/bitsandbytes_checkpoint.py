"""A plain checkpoint with the linears of its layers as bitsandbytes stores them in 4 bits, or as the numbers that it makes of those."""

import json
import shutil
import struct

import numpy

BLOCK = 64
TABLES = {
    "nf4": [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
            -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
            0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0],
    "fp4": [sign * value / 12 for sign in (1, -1) for value in (0, 0.0625, 8, 12, 4, 6, 2, 3)],
}


def quantise(numbers, table):
    """Codes and the scale of each block, to the nearest number of the table."""
    blocks = numbers.reshape(-1, BLOCK)
    scales = numpy.abs(blocks).max(1)
    parts = blocks / numpy.maximum(scales, 1e-30)[:, None]
    order = numpy.argsort(table)
    borders = (table[order][1:] + table[order][:-1]) / 2
    return order[numpy.searchsorted(borders, parts)].astype(numpy.uint8).ravel(), scales


def read(path):
    """Name, dtype, shape and bytes of each tensor."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    for name, tensor in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            yield name, tensor["dtype"], tensor["shape"], data[8 + size + begin : 8 + size + end]


def numbers_of(dtype, data):
    if dtype != "BF16":
        return numpy.frombuffer(data, {"F32": "<f4", "F16": "<f2"}[dtype]).astype(numpy.float32)
    return (numpy.frombuffer(data, "<u2").astype(numpy.uint32) << 16).view(numpy.float32)


def save(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(b"".join([struct.pack("<Q", len(text)), text, *(tensor[3] for tensor in tensors)]))


def write(source, target, kind, decoded):
    table = numpy.array(TABLES[kind], numpy.float32)
    target.mkdir()
    tensors = []
    for name, dtype, shape, data in read(source / "model.safetensors"):
        is_linear = ".layers." in name and name.endswith("_proj.weight")
        if not is_linear or shape[0] * shape[1] % BLOCK:
            tensors.append((name, dtype, shape, data))
            continue
        codes, scales = quantise(numbers_of(dtype, data), table)
        if decoded:
            tensors.append((name, "F32", shape, (table[codes].reshape(-1, BLOCK) * scales[:, None]).tobytes()))
            continue
        state = json.dumps({"quant_type": kind, "blocksize": BLOCK, "dtype": "bfloat16", "shape": shape}).encode()
        packed = codes[::2] << 4 | codes[1::2]
        tensors += [(name, "U8", [len(packed), 1], packed.tobytes()),
                    (f"{name}.absmax", "F32", [len(scales)], scales.tobytes()),
                    (f"{name}.quant_map", "F32", [len(table)], table.tobytes()),
                    (f"{name}.quant_state.bitsandbytes__{kind}", "U8", [len(state)], state)]
    save(target / "model.safetensors", tensors)
    config = json.loads((source / "config.json").read_text())
    if not decoded:
        config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind}
    (target / "config.json").write_text(json.dumps(config))
    for file in source.glob("tokenizer*"):
        shutil.copy(file, target)
