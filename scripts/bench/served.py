"""A gateway and a daemon of a script's own, ended with it."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time


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
