"""tgi: a private daemon, driven over its socket as docs/protocol.md says, one thread for each stream."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from .measure import TimedRunner

NAME = "tgi"
PACKAGES = ()
PRECISIONS = {"bf16": "bf16", "int8": "int8", "int4": "int4"}


def prepare(checkpoint, folder, precision, settings):
    return None  # weights are quantised while they load


def is_token(line):
    """Of a reply's line: whether it is one of a token. Throws ValueError for one that is no JSON object."""
    reply = json.loads(line)
    if not isinstance(reply, dict):
        raise ValueError(f"tgid sent {line[:100]!r}")
    return "token" in reply


class Runner(TimedRunner):
    def __init__(self, path, shape, precision, settings):
        self.bin = pathlib.Path(settings["tgi_bin"])
        # A socket's path is short by law (107 bytes), so it is not under --work-dir.
        self.folder = tempfile.mkdtemp(prefix="tgi_peer_")
        self.socket = f"{self.folder}/s"
        # Prompts at full speed, as the others take them: by default they are cut small while other streams decode.
        command = [str(self.bin / "tgid"), "--model", path, "--threads", str(settings["threads"]), "--socket", self.socket,
                   "--target-step-ms", "0", "--max-running", "128"]
        if precision != "bf16":
            command += ["--quantize", precision]
            if settings["group_size"]:
                command += ["--quantize-group-size", str(settings["group_size"])]
        if settings["dummy"]:
            command += ["--load-format", "dummy"]
        self.log = pathlib.Path(self.folder, "log")
        with open(self.log, "wb") as err:
            self.daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=err)
        try:
            status = self.wait_ready()
        except BaseException:
            self.close()
            raise
        model = status["model"]
        self.weight_bytes = model["weight_bytes_per_token"]
        self.about = f"{model['backend']} {model['isa']}, {model['num_threads']} threads, --target-step-ms 0"
        if settings["dummy"]:
            self.about += ", random weights of its own (--load-format dummy)"

    def wait_ready(self):
        while True:
            if self.daemon.poll() is not None:
                lines = self.log.read_text(errors="replace").strip().splitlines()
                raise RuntimeError(f"tgid ended with {self.daemon.returncode}: {lines[0] if lines else ''}")
            try:
                with Connection(self.socket, {"method": "status"}) as connection:
                    status = json.loads(connection.read())["result"]
            except OSError:
                status = {"phase": "starting"}
            if status["phase"] == "ready":
                return status
            if status["phase"] == "failed":
                raise RuntimeError(status["phase_detail"])
            time.sleep(0.1)

    def run(self, prompts, num_new_tokens):
        """When the tokens of every prompt came, and when all were asked for."""
        times = [[] for _ in prompts]
        failures = []
        asked = threading.Barrier(len(prompts) + 1)

        def stream(i):
            line = request(prompts[i], num_new_tokens)
            asked.wait()
            try:
                with Connection(self.socket, line) as connection:
                    while reply := connection.read():
                        now = time.perf_counter()
                        if not is_token(reply):
                            break
                        times[i].append(now)
                if len(times[i]) != num_new_tokens:
                    failures.append(f"{len(times[i])} tokens of {num_new_tokens}, then: {reply.decode()[:300]}")
            except (OSError, ValueError) as error:
                failures.append(str(error))

        threads = [threading.Thread(target=stream, args=(i,)) for i in range(len(prompts))]
        for thread in threads:
            thread.start()
        begin = time.perf_counter()
        asked.wait()
        for thread in threads:
            thread.join()
        if failures:
            raise RuntimeError(failures[0])
        return times, begin

    def read_bandwidth(self):
        """Bytes per second that threads which only read reach; `tgi bench` measures it beside a model."""
        out = subprocess.run(
            [str(self.bin / "tgi"), "bench", "--json", "--prompt-length", "1", "--decode-length", "2", "--batch-sizes", "1",
             "--runs", "1"], env=os.environ | {"TGI_SOCKET": self.socket}, stdout=subprocess.PIPE, check=True)
        return json.loads(out.stdout)["plain_read_bytes_per_s"]

    def close(self):
        self.daemon.terminate()
        self.daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def request(prompt, num_new_tokens):
    return {"method": "generate", "params": {
        "prompt_ids": prompt, "max_new_tokens": num_new_tokens, "stream": True, "ignore_eos": True,
        "use_prefix_cache": False}}


class Connection:
    """One request, as a context: its lines without the daemon's greeting."""

    def __init__(self, path, line):
        self.socket = socket.socket(socket.AF_UNIX)
        self.line = json.dumps(line).encode() + b"\n"
        self.path = path

    def __enter__(self):
        self.socket.connect(self.path)
        self.lines = self.socket.makefile("rb")
        self.socket.sendall(self.line)
        self.lines.readline()
        return self

    def read(self):
        return self.lines.readline()

    def __exit__(self, *_):
        self.lines.close()
        self.socket.close()
