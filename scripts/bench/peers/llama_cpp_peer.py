"""llama.cpp through the C interface of llama-cpp-python, in the way of llama-bench and llama-batched-bench.

Built for a processor with AMX, llama-cpp-python 0.3.36 dies of an illegal instruction in its own int8 path for AMX, with
Q8_0 and with Q4_0. It is to be built without that path, as scripts/bench/bench_peers says; what it was built with is in `about`.
"""

import ctypes
import pathlib
import signal
import time

from . import gguf_files

NAME = "llama.cpp"
PACKAGES = ("llama-cpp-python", "gguf")
PRECISIONS = {"bf16": "BF16", "int8": "Q8_0", "int4": "Q4_0"}


AMX_INT8 = "AMX_INT8"
REBUILD = 'CMAKE_ARGS="-DGGML_AMX_INT8=OFF" pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python llama-cpp-python'


def describe_build(system_info, processor_flags):
    """What llama_print_system_info says, in short, and whether the int8 path for AMX is left out of a build for a processor
    that has it."""
    flags = [flag.split("=")[0].strip() for flag in system_info.split(":", 1)[1].split("|")
             if "= 1" in flag and "SSE" not in flag]
    left_out = "amx_int8" in processor_flags and AMX_INT8 not in flags
    return f"built with {' '.join(flags)}" + (f", without {AMX_INT8} (-DGGML_AMX_INT8=OFF)" if left_out else "")


def processor_flags():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return line.split(":", 1)[1].split()
    return []


def advice(code):
    if code == -signal.SIGILL and "amx_int8" in processor_flags():
        return f"an illegal instruction: if it was built with {AMX_INT8}, build it without: {REBUILD}"
    return ""


def prepare(checkpoint, folder, precision, settings):
    folder = pathlib.Path(folder)
    plain = folder / "BF16.gguf"
    gguf_files.write_gguf(pathlib.Path(checkpoint), plain)
    kind = PRECISIONS[precision]
    if kind != "BF16":
        gguf_files.quantize(plain, folder / f"{kind}.gguf", kind, settings["threads"])
        plain.unlink()
    return f"{kind}.gguf"


def load_model(path):
    import llama_cpp

    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
    if not model:
        raise RuntimeError(f"llama.cpp can't load {path}")
    return model


class Context:
    """A KV cache for `num_streams` sequences, and the batch that is decoded into it."""

    def __init__(self, model, num_streams, context_length, batch_tokens, num_threads):
        import llama_cpp

        self.lib = llama_cpp
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = num_streams * context_length
        params.n_seq_max = num_streams
        params.n_batch = batch_tokens
        params.n_threads = params.n_threads_batch = num_threads
        params.no_perf = True
        self.ctx = llama_cpp.llama_init_from_model(model, params)
        if not self.ctx:
            raise RuntimeError(f"llama.cpp makes no context for {num_streams} sequences")
        self.batch = llama_cpp.llama_batch_init(batch_tokens, 0, 1)
        self.batch_tokens = batch_tokens

    def clear(self):
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.ctx), True)

    def decode(self, rows):
        """rows: (token, position, sequence, whether its logits are wanted)."""
        for start in range(0, len(rows), self.batch_tokens):
            part = rows[start:start + self.batch_tokens]
            self.batch.n_tokens = len(part)
            for i, (token, position, sequence, wanted) in enumerate(part):
                self.batch.token[i] = token
                self.batch.pos[i] = position
                self.batch.n_seq_id[i] = 1
                self.batch.seq_id[i][0] = sequence
                self.batch.logits[i] = wanted
            code = self.lib.llama_decode(self.ctx, self.batch)
            if code != 0:
                raise RuntimeError(f"llama_decode: {code}")
        self.lib.llama_synchronize(self.ctx)

    def logits(self, row, vocab_size):
        pointer = self.lib.llama_get_logits_ith(self.ctx, row)
        return ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float * vocab_size)).contents


def prompt_rows(prompts):
    return [(token, i, sequence, i + 1 == len(prompt))
            for sequence, prompt in enumerate(prompts) for i, token in enumerate(prompt)]


class Runner:
    def __init__(self, path, shape, precision, settings):
        import llama_cpp

        self.settings = settings
        self.model = load_model(path)
        self.weight_bytes = gguf_files.weight_bytes(path)
        build = describe_build(llama_cpp.llama_print_system_info().decode(), processor_flags())
        self.about = f"{PRECISIONS[precision]}, {settings['threads']} threads, {build}"
        self.contexts = {}

    def context(self, num_streams):
        if num_streams not in self.contexts:
            tokens = self.settings["context_one" if num_streams == 1 else "context_many"]
            # Sequence lengths are rounded up as llama.cpp's own benchmarks do.
            self.contexts[num_streams] = Context(self.model, num_streams, -(-tokens // 256) * 256, 2048,
                                                 self.settings["threads"])
        context = self.contexts[num_streams]
        context.clear()
        return context

    def prefill(self, prompt):
        context = self.context(1)
        begin = time.perf_counter()
        context.decode(prompt_rows([prompt]))
        return time.perf_counter() - begin

    def decode(self, prompts, num_new_tokens):
        context = self.context(len(prompts))
        context.decode(prompt_rows(prompts))
        begin = time.perf_counter()
        for i in range(num_new_tokens - 1):
            # Any token will do: choosing one is not part of what llama-bench measures either.
            context.decode([(prompt[i % len(prompt)], len(prompt) + i, sequence, True)
                            for sequence, prompt in enumerate(prompts)])
        return len(prompts) * (num_new_tokens - 1) / (time.perf_counter() - begin)

    def close(self):
        pass  # the process ends with it
