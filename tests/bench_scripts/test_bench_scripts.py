"""Every bench script, in short and on ours alone: figures that nobody has made for a year must still be there to be made.
No speed is asserted. scripts/test_http runs this; the build under test needs its bench programs too (target all)."""

import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ["TGI_BUILD_DIR"]).resolve() / "bin"
NUMBER = r"\d[\d,]*(\.\d+)?"

sys.path.insert(0, str(ROOT / "scripts/bench"))


def program(name):
    path = BIN / name
    assert path.exists(), f"{path} is not there: build the target all"
    return path


def run(script, *arguments, python=True):
    """What it printed; its tables are looked at by the caller."""
    command = [*([sys.executable] if python else []), str(ROOT / "scripts/bench" / script), *map(str, arguments)]
    out = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    assert out.returncode == 0, f"{script}: status {out.returncode}\n{out.stdout[-2000:]}\n{out.stderr[-3000:]}"
    return out.stdout


def rows(text, start):
    """Cells of the table rows whose first cell matches `start`."""
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    return [row for row in cells if re.fullmatch(start, row[0])]


def is_positive(text):
    found = re.match(NUMBER, text)
    return found is not None and float(found[0].replace(",", "")) > 0


def test_bench_readme():
    for name in ("tgi", "tgid", "bench_sched"):
        program(name)
    text = run("bench_readme", "--quick", "--bin-dir", BIN, python=False)
    assert re.search(r"^machine: ", text, re.M)
    assert re.search(rf"sequences.*{NUMBER}", text), text
    assert re.search(r"^loaded .* in ", text, re.M), text
    assert re.search(r"^resident +\d", text, re.M), text
    assert "tokens/s" in text, text


def test_bench_peers(tmp_path):
    text = run("bench_peers", "--quick", "--tgi-bin", BIN, "--work-dir", tmp_path, "--json", tmp_path / "out.json")
    table = [row for row in rows(text, "tiny") if len(row) == 4 and not is_positive(row[2])]
    assert {(row[1], row[2]) for row in table} == {
        (precision, workload) for precision in ("bf16", "int8", "int4")
        for workload in ("prefill-128", "decode-1", "quick-decode")}
    for row in table:
        assert is_positive(row[3]), row
    assert (tmp_path / "out.json").stat().st_size > 0


def test_bench_gguf():
    table = rows(run("bench_gguf", "--quick", "--bin-dir", BIN), r"model\.gguf")
    assert len(table) == 1
    assert all(is_positive(cell) for cell in table[0][2:]), table


def test_bench_gguf_quality():
    table = rows(run("bench_gguf_quality", "--quick", "--bin-dir", BIN), r"[a-z]+\d.*")
    assert [row[0] for row in table] == ["q4_k_m", "q5_k_m", "q6_k", "q4_0", "iq4_xs", "q8_0", "mxfp4"]
    for row in table:
        assert row[1] == "tgi" and is_positive(row[2]) and is_positive(row[3]) and is_positive(row[5]), row


def test_bench_peers_fails_when_ours_does(tmp_path):
    (tmp_path / "tgid").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "tgid").chmod(0o755)
    out = subprocess.run([sys.executable, str(ROOT / "scripts/bench/bench_peers"), "--quick", "--precisions", "bf16", "--tgi-bin",
                          str(tmp_path), "--work-dir", str(tmp_path / "work")],
                         capture_output=True, text=True, timeout=300, check=False)
    assert out.returncode == 1
    assert "tgid ended with 3" in out.stdout


def test_tgi_peer_reads_tokens_wherever_their_field_is():
    tgi_peer = importlib.import_module("peers.tgi_peer")
    assert tgi_peer.is_token(b'{"token":{"id":1},"text":"a"}')
    assert tgi_peer.is_token(b'{"index":0,"token":{"id":1},"text":"a"}')
    assert not tgi_peer.is_token(b'{"done":{"index":0,"text":"token"}}')
    assert not tgi_peer.is_token(b'{"error":{"code":"internal","message":"{\\"token\\""}}')
    with pytest.raises(ValueError):
        tgi_peer.is_token(b"[1]")
    with pytest.raises(ValueError):
        tgi_peer.is_token(b"")


def test_llama_cpp_peer_tells_how_it_was_built():
    peer = importlib.import_module("peers.llama_cpp_peer")
    info = "CPU : SSE3 = 1 | AVX512 = 1 | AMX_INT8 = 1 | OPENMP = 1 | LLAMAFILE = 0 | "
    assert peer.describe_build(info, ["amx_int8"]) == "built with AVX512 AMX_INT8 OPENMP"
    without = info.replace("AMX_INT8 = 1 | ", "")
    assert peer.describe_build(without, ["amx_int8"]) == (
        "built with AVX512 OPENMP, without AMX_INT8 (-DGGML_AMX_INT8=OFF)")
    assert peer.describe_build(without, ["avx2"]) == "built with AVX512 OPENMP"


def test_llama_cpp_peer_advises_a_build_that_does_not_die(monkeypatch):
    peer = importlib.import_module("peers.llama_cpp_peer")
    monkeypatch.setattr(peer, "processor_flags", lambda: ["amx_int8"])
    assert "GGML_AMX_INT8=OFF" in peer.advice(-4)
    assert peer.advice(1) == ""
    monkeypatch.setattr(peer, "processor_flags", lambda: ["avx2"])
    assert peer.advice(-4) == ""


def test_bench_gateway():
    program("bench_gateway")
    text = run("bench_gateway", "--quick", "--bin-dir", BIN)
    streams = rows(text, r"\d+")
    assert {row[0] for row in streams} == {"1", "50"}
    for row in streams:
        assert row[3] == "0" and is_positive(row[4]), row
    for start in (r".* streams at once.*", r".* requests of 8 tokens.*", r".* clients that leave.*"):
        assert rows(text, start), text


def test_bench_client_cost():
    program("sse_server")
    table = rows(run("bench_client_cost", "--quick", "--bin-dir", BIN), r"\d+")
    assert [row[0] for row in table] == ["1", "8", "4"]
    for row in table:
        assert is_positive(row[2]) and is_positive(row[4]), row


def test_bench_first_byte():
    table = rows(run("bench_first_byte", "--quick", "--bin-dir", BIN), ".* daemon runs")
    assert len(table) == 2
    assert all(is_positive(cell) for row in table for cell in row[1:]), table


def test_bench_page():
    for name in ("tgi", "tgid"):
        program(name)
    table = rows(run("bench_page", "--quick", "--bin-dir", BIN), "/.*")
    assert [row[:2] for row in table] == [[page, visit] for page in ("/ui", "/docs") for visit in ("first", "again")]
    for row in table:
        assert len(row) == 7 and all(is_positive(cell) or cell == "0" for cell in row[2:]) and is_positive(row[3]), row


def test_bench_download(tmp_path):
    text = run("bench_download", "--quick", "--bin-dir", BIN, "--dir", tmp_path)
    for name in ("curl", "curl, then sha256sum", "tgi download-weights"):
        (row,) = rows(text, name)
        assert is_positive(row[1]), row


def test_bench_quality():
    program("dump_logits")
    table = rows(run("bench_quality", "--quick", "--bitsandbytes", "nf4", "--tgi-bin", BIN), "tgi")
    assert [row[1] for row in table] == ["bf16", "int8", "int4", "bf16, KV cache int8", "bf16, KV cache f8e4m3",
                                        "int8 checkpoint", "bitsandbytes nf4", "bitsandbytes nf4, decoded"]
    for row in table:
        assert is_positive(row[2]) and is_positive(row[3]), row


def test_bench_tokenizer(tmp_path):
    text = tmp_path / "text"
    text.write_text((ROOT / "README.md").read_text()[:4000])
    folder = ROOT / "assets/demo"
    for alone in (False, True):
        command = [sys.executable, str(ROOT / "scripts/bench/bench_tokenizer"), str(program("bench_tokenizer")), str(text), str(folder)]
        if alone:  # as where the library is not installed
            command[1:1] = ["-c", "import runpy, sys; sys.modules['tokenizers'] = None; sys.argv.pop(0); "
                                  "runpy.run_path(sys.argv[0], run_name='__main__')"]
        out = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert out.returncode == 0, out.stderr
        line = out.stdout.splitlines()[-1]
        assert line.startswith("demo"), out.stdout
        assert ("ours alone" in line) == alone, line
        assert alone or re.search(rf"{NUMBER} / +{NUMBER} = +{NUMBER}x", line), line


def test_bench_masks():
    text = run("bench_masks", program("bench_masks"), ROOT / "assets/demo", "--quick")
    assert re.search(rf"^ours +\d+ compiled, mean +{NUMBER} ms.*masks, mean +{NUMBER} us", text, re.M), text


def test_bench_guided():
    text = run("bench_guided", "--quick", "--bin-dir", BIN)
    forms = rows(text, "none.*|any text.*|lines of.*|a chat that.*")
    assert len(forms) == 5
    for row in forms:
        assert is_positive(row[1]) and is_positive(row[2]), row
    for row in rows(text, "alone|beside.*"):  # tokens of a small model may come several at a time
        assert is_positive(row[1]) and all(re.fullmatch(NUMBER, cell) for cell in row[1:]), row
    assert len(rows(text, "alone|beside.*")) == 3


@pytest.mark.parametrize("flags", [(), ("--draft-model", "demo", "--speculate", "3")], ids=["n-gram", "draft-model"])
def test_bench_speculation(flags):
    table = rows(run("bench_speculation", "--quick", *flags, "--bin-dir", BIN), "code of.*|goes round.*|never repeats.*")
    assert [row[1] for row in table] == ["1", "3"] * 3
    for row in table:
        assert all(is_positive(cell) for cell in row[2:5]), row


def test_bench_kv_cache():
    table = rows(run("bench_kv_cache", "--quick", "--bin-dir", BIN), r"\d+")
    assert [row[:2] for row in table] == [[context, dtype] for context in ("64", "512") for dtype in ("bf16", "f8e4m3", "int8")]
    for row in table:
        assert is_positive(row[2]) and is_positive(row[4]), row
        assert row[1] != "bf16" or row[4] == "1.00", row


def test_bench_needle():
    table = rows(run("bench_needle", "--quick", "--bin-dir", BIN), r"\d+")
    assert [row[:2] for row in table] == [[length, dtype] for length in ("128", "400") for dtype in ("bf16", "f8e4m3", "int8")]
    for row in table:
        assert re.fullmatch(r"[0-4] of 4", row[2]) and re.fullmatch(r"[0-4] of 4", row[3]), row
        assert (float(row[4]) == 0) == (row[1] == "bf16"), row
    assert table[0][3] == "4 of 4"


FAKE_NCU = r"""#!/usr/bin/env python3
import os, sys
log = sys.argv[sys.argv.index("--log-file") + 1]
with open(log, "w") as out:
    out.write('==PROF== Connected\n"ID","Kernel Name","Grid Size","Block Size","Metric Name","Metric Unit","Metric Value"\n')
    for microseconds in ("1,000.50", "2,000.50"):
        out.write(f'"0","void tgi::cuda::<unnamed>::norm<bf16, 8>(int)","(1, 1, 1)","(256, 1, 1)","gpu__time_duration.sum","us","{microseconds}"\n')
first = next(i for i, each in enumerate(sys.argv) if each.endswith("tgid"))
os.execv(sys.argv[first], sys.argv[first:])
"""


def test_bench_adapters():
    program("tgid")
    text = run("bench_adapters", "--quick", "--bin-dir", BIN)
    table = rows(text, "tgi, .*")
    assert [row[0] for row in table] == ["tgi, base", "tgi, one adapter", "tgi, 4 adapters"]
    assert all(is_positive(row[2]) and is_positive(row[3]) for row in table), text
    assert re.search(r"^24 requests of 4 adapters in turn, 2 places: all answered", text, re.M), text
    assert re.search(r"^16 adapters that come and go, one after the other, beside 4 streams", text, re.M), text
    assert all(is_positive(cell) for row in rows(text, "no adapter comes|adapters come") for cell in row[2:]), text


def test_bench_vectors():
    program("tgid")
    text = run("bench_vectors", "--quick", "--bin-dir", BIN)
    table = rows(text, "tgi, .*")
    assert [row[0] for row in table] == ["tgi, f32", "tgi, bf16"]
    assert all(is_positive(cell) for row in table for cell in row[1:]), text


def test_profile_kernels(tmp_path):
    program("tgid")
    if not (BIN.parent / "emulated/libtgi-cuda.so").exists():
        pytest.skip("this build has no emulated GPU: scripts/test tries it in that of the address sanitizer")
    (tmp_path / "bin").symlink_to(BIN)
    ncu = tmp_path / "ncu"
    ncu.write_text(FAKE_NCU)
    ncu.chmod(0o755)
    shape = tmp_path / "shape"
    shape.mkdir()
    (shape / "config.json").write_text("""{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
        "intermediate_size": 64, "num_hidden_layers": 9, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 320,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16"}""")
    out = subprocess.run([sys.executable, str(ROOT / "scripts/gpu/profile_kernels"), str(shape), "--layers", "2", "--prompt", "24",
                          "--decode", "2", "--", "--max-batch-tokens", "16", "--max-running", "2"],
                         env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TGI_EMULATED_GPUS": "1",
                              "TGI_PLUGIN_DIR": str(BIN.parent / "emulated")},
                         cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    assert out.returncode == 0, f"{out.stdout}\n{out.stderr}"
    assert "cut to 2 layers" in out.stdout
    assert ["<unnamed>::norm<bf16, 8>", "(1,1,1)", "(256,1,1)", "2", "1500.5", "3001"] in rows(out.stdout, "<unnamed>.*")
