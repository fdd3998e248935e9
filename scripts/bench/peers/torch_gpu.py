"""transformers on the GPU beside ours: static cache with torch.compile, and continuous batching; and a plain copy and
matmul as the ceiling. Random weights from a config.json. Prints Markdown tables.

    python3 torch_gpu.py FOLDER_WITH_CONFIG
"""
import inspect
import json
import pathlib
import statistics
import sys
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig


def timed(function, runs=3):
    function()
    times = []
    for _ in range(runs):
        torch.cuda.synchronize()
        began = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def ceilings():
    size = 2 << 30
    source = torch.empty(size, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    copy = 2 * size / timed(lambda: target.copy_(source), 10)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    matmul = 2 * 8192**3 / timed(lambda: a @ a, 10)
    print(f"copy {copy / 1e12:.2f} TB/s, bf16 matmul {matmul / 1e12:.0f} TFLOP/s\n")


def static_cache(model, batch, prompt, answer):
    """Seconds per token of one step, prefill taken off: two lengths of answer, their difference."""
    ids = torch.randint(10, 1000, (batch, prompt), device="cuda")

    def run(length):
        config = GenerationConfig(max_new_tokens=length, min_new_tokens=length, do_sample=False,
                                  cache_implementation="static", pad_token_id=0, eos_token_id=None)
        return timed(lambda: model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config))

    return (run(answer) - run(8)) / (answer - 8)


def continuous(model, batch, prompt, answer):
    """Generated tokens per second of `batch` requests at once, prefill included."""
    inputs = torch.randint(10, 1000, (batch, prompt)).tolist()
    config = GenerationConfig(max_new_tokens=answer, min_new_tokens=answer, do_sample=False, eos_token_id=-1)

    def run():
        answers = model.generate_batch(inputs, generation_config=config)
        lengths = [len(each.generated_tokens) for each in answers.values()]
        if lengths != [answer] * batch:
            raise RuntimeError(f"{len(lengths)} of {batch} requests were answered")

    return batch * answer / timed(run, 1)


def main():
    folder = pathlib.Path(sys.argv[1])
    ceilings()
    config = AutoConfig.from_pretrained(folder)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa").eval()
    print(f"transformers, {json.loads((folder / 'config.json').read_text())['model_type']} shape, bf16, random weights\n")
    print("| peer | streams | prompt | tokens/s |\n|---|---:|---:|---:|")
    with torch.inference_mode():
        for batch in (1, 64):
            try:
                seconds = static_cache(model, batch, 1024, 72)
                print(f"| static cache, torch.compile | {batch} | 1024 | {batch / seconds:,.0f} |", flush=True)
            except Exception as error:  # a peer that does not run is a row that says so
                print(f"| static cache, torch.compile | {batch} | 1024 | failed: {str(error)[:80]} |", flush=True)
    if not hasattr(model, "generate_batch") or "inputs" not in inspect.signature(model.generate_batch).parameters:
        print("| continuous batching | | | not in this version |")
        return
    for batch in (64, 256):  # its threads write to tensors that inference mode would have made read-only
        try:
            rate = continuous(model, batch, 1024, 64)
            print(f"| continuous batching | {batch} | 1024 | {rate:,.0f} |", flush=True)
        except Exception as error:
            print(f"| continuous batching | {batch} | 1024 | failed: {str(error)[:80]} |", flush=True)


if __name__ == "__main__":
    main()
