"""An engine in a process of its own: its memory is given back when it ends, and when it crashes only it does.

Requests and answers are JSON lines on stdin and on what was stdout; whatever the engine itself prints goes to a log.
"""

import json
import os
import pathlib
import select
import subprocess
import sys
import time
import traceback


class Failure(Exception):
    """Why an engine can't be measured, in one line. `code`: what its process ended with, if it did."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.code = code


def busy_processor_seconds():
    """Of the whole machine so far, with what the hypervisor gave to others."""
    user, nice, system, _, _, irq, softirq, steal = map(int, pathlib.Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


class Worker:
    def __init__(self, log, timeout_s, python=sys.executable):
        self.log = pathlib.Path(log)
        self.timeout_s = timeout_s
        scripts = str(pathlib.Path(__file__).resolve().parent.parent)
        with open(self.log, "wb") as err:
            self.process = subprocess.Popen(
                [python, "-m", "peers.worker"], cwd=scripts, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=err, env=os.environ | {"PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false"})

    def call(self, do, **arguments):
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.death() from None
        line = self.read_line()
        if not line:
            raise self.death()
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer["result"]

    def read_line(self):
        deadline = time.monotonic() + self.timeout_s
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.process.kill()
                raise Failure(f"no answer in {self.timeout_s} s")
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return b""
            line += part
        return line

    def processor_seconds(self):
        """Of the engine so far, with the daemon that it may have started and with programs that it has waited for."""
        pids = [self.process.pid]
        for children in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            pids += children.read_text().split()
        ticks = 0
        for pid in pids:
            # After the name, which is in brackets: 0 is the state, 11 and 12 are user and system time, 13 and 14 those of
            # children that have ended.
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def death(self):
        code = self.process.wait()
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return Failure(f"ended with {code}" + (f": {lines[-1].strip()[:200]}" if lines else ""), code)

    def close(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.close()
                self.process.wait(60)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()


def serve():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from peers import PEERS
    runner = None
    for line in sys.stdin:
        request = json.loads(line)
        do = request.pop("do")
        try:
            if do == "checkpoint":
                from peers import checkpoints
                result = checkpoints.make_checkpoint(request["shape"], pathlib.Path(request["folder"]))
            elif do == "config":
                from peers import checkpoints
                result = checkpoints.make_config(request["shape"], pathlib.Path(request["folder"]))
            elif do == "prepare":
                result = PEERS[request.pop("peer")].prepare(**request)
            elif do == "load":
                runner = PEERS[request.pop("peer")].Runner(**request)
                result = {"weight_bytes": runner.weight_bytes, "about": runner.about}
            else:
                result = getattr(runner, do)(**request)
            answer = {"result": result}
        except Exception as error:  # whatever an engine throws is a line in the table
            traceback.print_exc()
            text = " ".join(str(error).split())
            answer = {"error": f"{type(error).__name__}: {text[:300]}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()
    if runner:
        runner.close()


if __name__ == "__main__":
    serve()
