"""What the tests of downloads share. TGI_BUILD_DIR names the build under test; scripts/test_hub sets it."""

import os
import pathlib
import random
import shutil
import signal
import struct
import json as json_module
import subprocess
import tempfile

import pytest

from hub import Hub

BUILD = pathlib.Path(os.environ.get("TGI_BUILD_DIR", "build/release")).resolve()
TGI = BUILD / "bin" / "tgi"


# A shell has what it starts in the background ignore Ctrl-C, and programs pass that on. Those of the tests must heed it.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Ran:
    def __init__(self, process, out, err):
        self.status, self.out, self.err = process.returncode, out, err

    @property
    def path(self):
        assert self.status == 0, self.err
        return pathlib.Path(self.out.strip().splitlines()[-1])

    def refused(self, status, *words):
        """With this exit status, one line of error that has all the words, and nothing on stdout."""
        assert self.status == status, (self.status, self.err)
        last = next(line for line in reversed(self.err.splitlines()) if line.startswith("error:"))  # advice may follow
        for word in words:
            assert word in last, (word, last)
        assert self.out == ""
        return self


class Place:
    """A home of its own: cache, environment, and the programs that use them."""

    def __init__(self, hub):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tgi-hub-"))
        self.hf_home = self.folder / "hf"
        self.cache = self.hf_home / "hub"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "HF_HOME": str(self.hf_home),
                    "TGI_SOCKET": str(self.folder / "tgid.sock"), "HF_HUB_DOWNLOAD_TIMEOUT": "2", "HF_ENDPOINT": hub.url,
                    "XDG_CACHE_HOME": str(self.folder / "cache"), "XDG_STATE_HOME": str(self.folder / "state")}

    def popen(self, *arguments, env=None, **more):
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        return subprocess.Popen([str(TGI), *map(str, arguments)], env={**self.env, **(env or {})}, cwd=self.folder, **more)

    def tgi(self, *arguments, env=None, timeout=60, **more):
        process = self.popen(*arguments, env=env, **more)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"tgi {arguments} did not end: {err}")
        return Ran(process, out, err)

    def download(self, name, *arguments, **more):
        return self.tgi("download-weights", name, *arguments, **more)

    def python(self, code, env=None):
        """Runs code with huggingface_hub in a process of its own (it reads the environment once); what it prints."""
        import sys
        env = {**self.env, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", **(env or {})}
        process = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
        assert process.returncode == 0, process.stderr
        return process.stdout.strip()

    def repo(self, name):
        return self.cache / ("models--" + name.replace("/", "--"))

    def leftovers(self, name):
        return sorted(p.name for p in (self.repo(name) / "blobs").glob("*") if "incomplete" in p.name or p.name.endswith(".tmp"))


@pytest.fixture
def hub():
    hub = Hub()
    yield hub
    hub.close()


@pytest.fixture
def place(hub):
    place = Place(hub)
    yield place
    shutil.rmtree(place.folder, ignore_errors=True)


def noise(num_bytes, seed=1):
    return random.Random(seed).randbytes(num_bytes)


def safetensors(num_bytes, seed=1):
    """A file with one tensor of about that size."""
    num = num_bytes // 4
    header = json_module.dumps({"w": {"dtype": "F32", "shape": [num], "data_offsets": [0, 4 * num]}}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + noise(4 * num, seed)


def small_model(weights_bytes=300_000, seed=1):
    return {
        "config.json": b'{"architectures": ["LlamaForCausalLM"]}\n',
        "tokenizer.json": b"{}" + b" " * 10_000,
        "tokenizer_config.json": b"{}\n",
        "README.md": b"---\nlicense: mit\n---\n# A model\n",
        "model.safetensors": safetensors(weights_bytes, seed),
        "training_args.bin": b"not for us",
        "optimizer.pt": b"nor this",
        "original/params.json": b"{}",
        ".gitattributes": b"*.bin filter=lfs\n",
    }


CHOSEN = ["README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


def check_snapshot(path, files, names=CHOSEN):
    """The folder has these files and no others, each with its bytes, each a relative link to a blob."""
    found = sorted(str(p.relative_to(path)) for p in path.rglob("*") if not p.is_dir())
    assert found == sorted(names)
    for name in names:
        assert (path / name).read_bytes() == files[name], name
        target = os.readlink(path / name)
        assert target.startswith("../../") and "/blobs/" in target, target


def interrupt(process):
    process.send_signal(signal.SIGINT)
