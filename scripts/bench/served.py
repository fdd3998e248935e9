"""A gateway and a daemon of a script's own, or a daemon alone, ended with it; and models of random weights for them."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def machine():
    """The processor and how busy it is, in words."""
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return f"{line.split(':')[1].strip()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    return "unknown"


def build():
    """Of the release preset; returns the folder of its programs."""
    subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", "tgi", "tgid"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return ROOT / "build/release/bin"


def shape_of(name):
    """The config.json of scripts/bench/shapes, or of a folder elsewhere."""
    folder = ROOT / "scripts/bench/shapes" / name
    return json.loads(((folder if folder.exists() else pathlib.Path(name)) / "config.json").read_text())


def model_folder(shape, place):
    """A folder for --load-format dummy with the demo model's tokenizer."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(ROOT / "assets/demo" / name, place / name)
    tokenizer = json.loads((place / "tokenizer.json").read_text())
    ids = [*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"])]
    size = max(max(ids) + 1, shape.get("vocab_size", 32000))
    (place / "config.json").write_text(json.dumps(shape | {"vocab_size": -(-size // 64) * 64}))
    return place


class Server:
    def __init__(self, bin_dir, model, flags=(), **settings):
        """`settings` are variables of tgid: TGI_LOAD_FORMAT="dummy"."""
        self.folder = tempfile.TemporaryDirectory(prefix="tgi-served-")
        place = pathlib.Path(self.folder.name)
        env = dict(os.environ, TGI_DAEMON=str(bin_dir / "tgid"), TGI_SOCKET=str(place / "s.sock"), XDG_STATE_HOME=str(place), **settings)
        with open(place / "log", "wb") as log:
            self.process = subprocess.Popen([bin_dir / "tgi", "serve", model, "--http", "127.0.0.1:0", *flags], env=env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        self.stop_command = [bin_dir / "tgi", "stop", "--socket", place / "s.sock"]
        for _ in range(600):
            found = re.search(r"http://127\.0\.0\.1:\d+", (place / "log").read_text())
            if found:
                self.url = found[0]
                return
            time.sleep(0.1)
        sys.exit("error: tgi serve did not start:\n" + (place / "log").read_text())

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        subprocess.run(self.stop_command, check=False, capture_output=True)


class Daemon:
    """tgid alone, asked over its socket."""

    def __init__(self, bin_dir, model, flags):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tgi-daemon-"))
        self.socket = str(self.folder / "s")
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [bin_dir / "tgid", "--socket", self.socket, "--model", model, *flags], stdout=log, stderr=log,
                env=dict(os.environ, XDG_STATE_HOME=str(self.folder)))
        for _ in range(12000):
            with contextlib.suppress(OSError):
                if self.call("status", {})["result"]["phase"] == "ready":
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        sys.exit("error: tgid did not start:\n" + (self.folder / "log").read_text())

    def lines(self, method, params):
        """What it answers, as it comes."""
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(self.socket)
            file = link.makefile("rw", encoding="utf-8")
            file.readline()
            file.write(json.dumps({"method": method, "params": params}) + "\n")
            file.flush()
            for line in file:
                yield json.loads(line)

    def call(self, method, params):
        return list(self.lines(method, params))[-1]

    def end(self):
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.folder)
