"""transformers on PyTorch, eager: what most people try first. Batches of equal lengths, so there is no padding."""

import time

NAME = "transformers"
PACKAGES = ("transformers", "torch")
PRECISIONS = {"bf16": "bf16"}  # its quantised formats want packages and kernels made for GPUs


def prepare(checkpoint, folder, precision, settings):
    return None


class Runner:
    def __init__(self, path, shape, precision, settings):
        import torch
        import transformers

        torch.set_num_threads(settings["threads"])
        self.torch = torch
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.bfloat16, attn_implementation="sdpa").eval()
        head = self.model.get_output_embeddings().weight
        table = self.model.get_input_embeddings().weight
        total = sum(value.numel() * value.element_size() for value in self.model.parameters())
        self.weight_bytes = total - (0 if head is table else table.numel() * table.element_size())
        self.about = f"eager, sdpa, {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"

    def forward(self, ids, cache):
        with self.torch.inference_mode():
            out = self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return out.past_key_values, out.logits[:, -1]

    def prefill(self, prompt):
        begin = time.perf_counter()
        _, logits = self.forward(self.torch.tensor([prompt]), None)
        logits.argmax(-1)
        return time.perf_counter() - begin

    def decode(self, prompts, num_new_tokens):
        ids = self.torch.tensor(prompts)
        cache, _ = self.forward(ids, None)
        begin = time.perf_counter()
        for i in range(num_new_tokens - 1):
            # Which token follows changes nothing about the time; choosing one is not this peer's loop.
            cache, _ = self.forward(ids[:, i % ids.shape[1], None], cache)
        return len(prompts) * (num_new_tokens - 1) / (time.perf_counter() - begin)

    def close(self):
        pass
