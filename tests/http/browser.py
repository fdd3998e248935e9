"""Headless Chromium (Debian's), driven over a pipe by the DevTools protocol: no driver and no package beside it."""

import base64
import contextlib
import itertools
import json
import os
import queue
import shutil
import subprocess
import threading

from gateway import wait_until

CHROMIUM = shutil.which("chromium")

KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Space": 32}


class Browser:
    """A process of Chromium. Messages are JSON with a zero byte behind each; it reads descriptor 3 and writes 4."""

    def __init__(self, folder):
        to_it, self._to_it = os.pipe()
        self._from_it, from_it = os.pipe()
        self._log = open(folder / "chromium.log", "wb")

        def place():  # as 3 and 4, whatever they were
            os.dup2(to_it, 103), os.dup2(from_it, 104)
            os.dup2(103, 3), os.dup2(104, 4)

        self.child = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--remote-debugging-pipe", "--disable-background-networking", "--force-color-profile=srgb",
             f"--user-data-dir={folder / 'profile'}", "about:blank"],
            preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        os.close(to_it), os.close(from_it)
        self._ids = itertools.count(1)
        self._answers = {}
        self._pages = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        rest = b""
        while True:
            part = os.read(self._from_it, 1 << 20)
            if not part:
                return
            *messages, rest = (rest + part).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]].put(message)
                elif page := self._pages.get(message.get("sessionId")):
                    page.on_event(message["method"], message["params"])

    def call(self, method, session=None, **parameters):
        number = next(self._ids)
        self._answers[number] = queue.Queue()
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        with self._lock:
            os.write(self._to_it, json.dumps(message).encode() + b"\0")
        answer = self._answers[number].get(timeout=30)
        del self._answers[number]
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def page(self, url=None, width=1280, height=800, dark=False):
        """A tab with storage of its own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self._pages[session] = page
        for domain in ("Page", "Runtime", "Network", "Log", "DOM", "Accessibility"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.set_theme(dark)
        if url:
            page.open(url)
        return page

    def end(self):
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self._log.close()


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.problems = []   # what the console says of errors, refusals of the policy, and exceptions
        self.requests = []   # addresses asked for
        self.responses = {}  # address -> headers
        self.num_bytes = 0   # as they came over the wire

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def on_event(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Network.responseReceived":
            self.responses[params["response"]["url"]] = {k.lower(): v for k, v in params["response"]["headers"].items()}
        elif method == "Network.loadingFinished":
            self.num_bytes += params["encodedDataLength"]

    def resize(self, width, height=800):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def set_theme(self, dark):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def js(self, expression):
        """The value of an expression, which may await."""
        answer = self.call("Runtime.evaluate", expression=f"(async () => ({expression}))()", awaitPromise=True,
                           returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression, seconds=20):
        return wait_until(lambda: self.js(f"Boolean({expression})"), seconds, pause=0.03)

    def text(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)})?.innerText")

    def count(self, selector):
        return self.js(f"document.querySelectorAll({json.dumps(selector)}).length")

    def click(self, selector):
        """With the mouse, where the element is."""
        self.wait(f"document.querySelector({json.dumps(selector)})")
        box = self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'nearest'}}); "
                      "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def move(self, selector):
        box = self.js(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getClientRects()[0]; "
                      "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])

    def key(self, key, *, code=None, alt=False, shift=False, ctrl=False):
        modifiers = (1 if alt else 0) | (2 if ctrl else 0) | (8 if shift else 0)
        number = KEYS.get(key, ord(key.upper()[0]))
        text = {"Enter": "\r", "Space": " "}.get(key, key if len(key) == 1 else None)
        if alt or ctrl:
            text = None
        common = {"key": " " if key == "Space" else key, "code": code or key, "modifiers": modifiers,
                  "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def set_value(self, selector, text):
        """As if it had been typed into an empty field."""
        self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.select?.(); }})()")
        self.type(text)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def focused(self):
        """The accessible name of what has the focus."""
        return self.js("(() => { const e = document.activeElement; return e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || e.id; })()")
