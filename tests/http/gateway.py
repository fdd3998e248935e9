"""Starts and ends the two processes under test, tgid and `tgi serve`, each with a home and a socket of its own.

Only processes that were started here are ever ended, by their own id; they also die with the test run.
"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TGI_BUILD_DIR", ROOT / "build" / "release")).resolve()
TGI = BUILD / "bin" / "tgi"
TGID = BUILD / "bin" / "tgid"
# What `tgi serve` says when it is ready, in words or with --json-output.
_SERVING = re.compile(r'serving (\S+) on http://(\S+):(\d+)|"serving",.*"model":"(.*?)","url":"http://(\S+):(\d+)"')
_LIBC = ctypes.CDLL("libc.so.6")
_PR_SET_PDEATHSIG = 1


def wait_until(holds, seconds=10.0, pause=0.02):
    """Polls until holds() is true; returns its value. Fails when it does not become true in time."""
    deadline = time.monotonic() + seconds
    while True:
        value = holds()
        if value:
            return value
        assert time.monotonic() < deadline, f"not so within {seconds} s: {holds}"
        time.sleep(pause)


class Home:
    """A temporary folder that plays $HOME and the XDG folders, and holds the socket and the logs."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="tgi-http-"))
        self.path.chmod(0o700)
        self.socket = self.path / "run" / "tgid.sock"
        (self.path / "run").mkdir(mode=0o700)

    def environment(self, **more):
        # Nothing is inherited but PATH: PORT, HOSTNAME, API_KEY and so on are flags of `tgi serve`.
        env = {name: str(self.path / folder) for name, folder in (
            ("HOME", ""), ("XDG_RUNTIME_DIR", "run"), ("XDG_CACHE_HOME", "cache"),
            ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"))}
        env.update(PATH=os.environ["PATH"], TGI_DAEMON=str(TGID), TGI_SOCKET=str(self.socket))
        # What a sanitizer build is told has to reach it.
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        env.update({k: v for k, v in more.items() if v is not None})
        return env

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Process:
    """A child whose stderr goes to a file; the end of this one is the end of the child."""

    def __init__(self, name, arguments, home, env=None, before_start=lambda: None):
        self.log_path = home.path / f"{name}-{time.monotonic_ns()}.log"
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                [str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=home.environment(**(env or {})),
                preexec_fn=lambda: (_LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL), before_start()))

    def log(self):
        return self.log_path.read_text(errors="replace")

    def alive(self):
        return self.child.poll() is None

    def send(self, number):
        self.child.send_signal(number)

    def wait(self, seconds=15):
        return self.child.wait(seconds)

    def end(self):
        if self.alive():
            self.child.send_signal(signal.SIGCONT)  # it may have been stopped by a test
            self.child.kill()
        self.child.wait()


class Daemon(Process):
    """tgid with a model, ready. Draws repeat, so that no test depends on luck; what wants others says so: --seed auto."""

    def __init__(self, home, model="demo", flags=()):
        seed = () if "--seed" in flags else ("--seed", "1")
        super().__init__("tgid", [TGID, "--model", model, "--socket", home.socket, *seed, *flags], home)
        self.home = home
        try:
            wait_until(lambda: not self.alive() or self.status().get("phase") == "ready", 60)
            assert self.alive(), self.log()
        except BaseException:
            self.end()
            raise

    def status(self):
        done = subprocess.run([TGI, "ps", "--json", "--socket", self.home.socket], timeout=20,
                              env=self.home.environment(), capture_output=True)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def blocks_used(self):
        return self.status()["model"]["num_blocks_used"]

    def is_idle(self):
        model = self.status()["model"]
        return not (model["num_running"] or model["num_waiting"] or model["num_blocks_used"])


class Gateway(Process):
    """`tgi serve` that has printed its address."""

    def __init__(self, home, flags=(), model="demo", env=None, http="127.0.0.1:0", before_start=lambda: None):
        where = [] if http is None else ["--http", http]
        super().__init__("serve", [TGI, "serve", *([model] if model else []), *where, "--socket", home.socket, *flags],
                         home, env, before_start)
        try:
            found = wait_until(lambda: not self.alive() or _SERVING.search(self.log()), 60)
            assert found is not True, f"tgi serve ended: {self.log()}"
        except BaseException:
            self.end()
            raise
        self.model_name, self.host, port = [text for text in found.groups() if text]
        self.port = int(port)
        self.url = f"http://{self.host}:{self.port}"


def model_variant(folder, context, eos_token_id):
    """A copy of the demo model with another context length and end token: made to run long."""
    source = ROOT / "assets" / "demo"
    for file in source.iterdir():
        shutil.copy(file, folder)
    for name in ("config.json", "generation_config.json"):
        path = pathlib.Path(folder) / name
        config = json.loads(path.read_text())
        config["eos_token_id"] = eos_token_id
        if "max_position_embeddings" in config:
            config["max_position_embeddings"] = context
        path.write_text(json.dumps(config))
    return folder


def with_template(folder, template):
    """The demo model with another chat template, or with none."""
    model_variant(folder, 1024, [1, 2])
    path = pathlib.Path(folder) / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config.pop("chat_template")
    if template is not None:
        config["chat_template"] = template
    path.write_text(json.dumps(config))
    return folder
