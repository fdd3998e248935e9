"""OpenVINO GenAI's continuous batching on its CPU plugin; files by optimum-intel and nncf."""

import pathlib
import time

from .checkpoints import config_of, embedding_values
from .measure import TimedRunner, check_all_came

NAME = "OpenVINO"
PACKAGES = ("openvino", "openvino-genai", "optimum-intel", "nncf")
# int4: what optimum-intel's command line makes by default, but symmetric, which the CPU plugin runs faster; embeddings and
# head are int8 then.
PRECISIONS = {"bf16": "bf16", "int8": "int8", "int4": "int4, groups of 128"}
INT4 = dict(bits=4, sym=True, group_size=128, ratio=1.0)


def prepare(checkpoint, folder, precision, settings):
    from openvino import save_model
    from openvino_tokenizers import convert_tokenizer
    from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig
    from transformers import AutoTokenizer

    quantization = {"bf16": None, "int8": OVWeightQuantizationConfig(bits=8, sym=True),
                    "int4": OVWeightQuantizationConfig(**INT4)}[precision]
    model = OVModelForCausalLM.from_pretrained(checkpoint, export=True, compile=False, load_in_8bit=False,
                                               quantization_config=quantization)
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    for part, name in zip(convert_tokenizer(tokenizer, with_detokenizer=True), ("tokenizer", "detokenizer")):
        save_model(part, str(pathlib.Path(folder, f"openvino_{name}.xml")))
    return "."


class Runner(TimedRunner):
    def __init__(self, path, shape, precision, settings):
        import openvino
        import openvino_genai

        self.openvino = openvino
        self.genai = openvino_genai
        # Ours is bf16; on processors without instructions for it OpenVINO takes none but f32.
        has_bf16 = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        cache = "bf16" if has_bf16 else "f32"
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.enable_prefix_caching = False
        scheduler.max_num_seqs = 128
        scheduler.max_num_batched_tokens = settings["openvino_batch_tokens"]
        scheduler.cache_size = 2
        self.pipe = openvino_genai.ContinuousBatchingPipeline(
            path, scheduler, "CPU", {"INFERENCE_NUM_THREADS": settings["threads"], "KV_CACHE_PRECISION": cache})
        config = config_of(shape)
        table = 0 if config["tie_word_embeddings"] else embedding_values(config) * (2 if precision == "bf16" else 1)
        self.weight_bytes = pathlib.Path(path, "openvino_model.bin").stat().st_size - table
        self.about = f"{PRECISIONS[precision]}, {settings['threads']} threads, KV cache {cache}"
        self.last_id = 0

    def run(self, prompts, num_new_tokens):
        """When the tokens of every prompt came, and when all were asked for."""
        config = self.genai.GenerationConfig(max_new_tokens=num_new_tokens, ignore_eos=True, do_sample=False)
        times = [[] for _ in prompts]
        begin = time.perf_counter()
        handles = []
        for prompt in prompts:
            self.last_id += 1
            ids = self.openvino.Tensor(self.as_row(prompt))
            handles.append(self.pipe.add_request(self.last_id, ids, config))
        while self.pipe.has_non_finished_requests():
            self.pipe.step()
            now = time.perf_counter()
            for handle, stream in zip(handles, times):
                while handle.can_read():
                    for output in handle.read().values():
                        stream.extend([now] * len(output.generated_ids))
        check_all_came(times, num_new_tokens)
        return times, begin

    def as_row(self, prompt):
        import numpy
        return numpy.array([prompt], dtype=numpy.int64)

    def close(self):
        pass  # the process ends with it
