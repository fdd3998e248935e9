"""One engine beside bench_vectors: ENGINE FOLDER DTYPE THREADS REPEATS SECONDS CASES

Prints texts a second of each case as JSON: token ids in, the mean of the hidden states out, of length 1.
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import tempfile

import numpy
import torch
from transformers import AutoConfig, AutoModel

BENCH = pathlib.Path(__file__).resolve().parents[1] / "bench_vectors"


class Pooled(torch.nn.Module):
    """All texts of a batch are of one length here: nothing is padded, nothing masked."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        hidden = self.model.encoder(self.model.embeddings(input_ids=ids)).last_hidden_state
        return torch.nn.functional.normalize(hidden.float().mean(1))


def torch_engine(model, dtype, threads):
    model = Pooled(model.to({"f32": torch.float32, "bf16": torch.bfloat16}[dtype]))

    def embed(texts):
        with torch.inference_mode():
            return model(torch.tensor(texts)).numpy()

    return embed


def export(model, path):
    model.config._attn_implementation = "eager"
    torch.onnx.export(Pooled(model), (torch.ones(2, 8, dtype=torch.int64),), path, input_names=["ids"], output_names=["vectors"],
                      dynamic_axes={"ids": {0: "batch", 1: "length"}}, dynamo=False, opset_version=17)


def onnx_engine(model, dtype, threads):
    import onnxruntime
    from onnxruntime.transformers import optimizer
    if dtype != "f32":
        sys.exit("its CPU kernels compute in f32")
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/model.onnx"
        export(model, path)
        # Its own fusions of such models, which a session alone does not make.
        fused = optimizer.optimize_model(path, model_type="bert", num_heads=model.config.num_attention_heads,
                                         hidden_size=model.config.hidden_size)
        fused.save_model_to_file(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda texts: session.run(None, {"ids": numpy.array(texts, dtype=numpy.int64)})[0]


def openvino_engine(model, dtype, threads):
    import openvino
    import openvino.properties.hint as hint
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/model.onnx"
        export(model, path)
        compiled = openvino.compile_model(openvino.Core().read_model(path), "CPU", {
            "INFERENCE_NUM_THREADS": threads,
            hint.inference_precision: openvino.Type.f32 if dtype == "f32" else openvino.Type.bf16})
    return lambda texts: compiled(numpy.array(texts, dtype=numpy.int64))[0]


def main():
    engine, folder, dtype = sys.argv[1:4]
    threads, repeats, seconds, cases = int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6]), json.loads(sys.argv[7])
    loader = importlib.machinery.SourceFileLoader("bench_vectors", str(BENCH))
    bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_vectors", loader))
    loader.exec_module(bench)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(folder)
    model = AutoModel.from_config(config, dtype=torch.float32).eval()
    make = {"torch": torch_engine, "onnxruntime": onnx_engine, "openvino": openvino_engine}[engine]
    embed = make(model, dtype, threads)
    print(json.dumps(bench.rates_of(embed, config.vocab_size, [tuple(case) for case in cases], repeats, seconds)))


main()
