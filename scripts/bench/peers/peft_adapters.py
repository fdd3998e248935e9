"""transformers with peft, for bench_adapters: MODEL STREAMS TOKENS REPEATS THREADS ADAPTER...

Prints tokens/s of decoding as JSON: of the base model, and of a batch in which every row has an adapter of its own.
"""

import json
import statistics
import sys
import time

import torch
from peft import PeftModel
from transformers import AutoConfig, AutoModelForCausalLM


def speed(model, streams, num_tokens, names):
    ids = torch.randint(3, 200, (streams, 16))
    more = {} if names is None else {"adapter_names": names}
    with torch.no_grad():
        cache = model(ids, use_cache=True, **more)
        token = cache.logits[:, -1:].argmax(-1)
        began = time.monotonic()
        for _ in range(num_tokens - 1):
            cache = model(token, past_key_values=cache.past_key_values, use_cache=True, **more)
            token = cache.logits[:, -1:].argmax(-1)
        return streams * (num_tokens - 1) / (time.monotonic() - began)


def main():
    folder, streams, tokens, repeats, threads = sys.argv[1], *map(int, sys.argv[2:6])
    adapters = sys.argv[6:]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16)
    base.eval()
    plain = [speed(base, streams, tokens, None) for _ in range(repeats)]
    model = PeftModel.from_pretrained(base, adapters[0], adapter_name="a0")
    for i, adapter in enumerate(adapters[1:], 1):
        model.load_adapter(adapter, adapter_name=f"a{i}")
    model.eval()
    names = [f"a{i % len(adapters)}" for i in range(streams)]
    mixed = [speed(model, streams, tokens, names) for _ in range(repeats)]
    print(json.dumps({"base": statistics.median(plain), f"{len(adapters)} adapters": statistics.median(mixed)}))


main()
