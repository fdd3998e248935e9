"""Models that are loaded when requests ask for them, over HTTP: who is loaded, who gives way, what is told.

The random load over many models runs for a moment; TGI_MANY_MODELS_SECONDS=600 makes it ten minutes.
"""

import collections
import datetime
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time

import pytest

from client import Api
from gateway import ROOT, TGI, Daemon, Gateway, Home, model_variant, wait_until
from test_adapters import write_adapter

SMALL = ("--kv-cache-memory", "2MiB")
DEMO = ROOT / "assets" / "demo"


@pytest.fixture(scope="module")
def short_folder(tmp_path_factory):
    """The demo model with another context, so that it is known from its facts."""
    return model_variant(tmp_path_factory.mktemp("short"), 128, [1, 2])


@pytest.fixture
def on_demand(pair, short_folder):
    """A daemon that has the demo model, and knows two more."""
    return lambda *flags: pair(daemon_flags=(*SMALL, "--on-demand", f"short={short_folder}", "--on-demand",
                                             f"other={DEMO}", *flags))


def phases(pair):
    status = pair.daemon.status()
    return {"demo": status["phase"]} | {one["name"]: one["phase"] for one in status["others"]}


def tgi(pair, *words):
    return subprocess.run([str(TGI), *words], env=pair.daemon.home.environment(), capture_output=True, text=True,
                          timeout=60)


def complete(pair, model, **more):
    return pair.api.post("/v1/completions", {"model": model, "prompt": "Once", "max_tokens": 3, **more})


def test_a_request_loads_the_model_that_it_names(on_demand):
    both = on_demand()
    listed = both.api.get("/v1/models").json()["data"]
    assert [(one["id"], one["status"]["value"]) for one in listed] == [
        ("demo", "loaded"), ("other", "unloaded"), ("short", "unloaded")]
    # Its own limits hold for the first request already.
    too_long = complete(both, "short", max_tokens=500)
    assert too_long.status_code == 422 and "128" in too_long.text
    answer = complete(both, "short")
    assert answer.status_code == 200 and answer.json()["model"] == "short"
    assert phases(both) == {"demo": "ready", "short": "ready", "other": "not loaded"}
    assert complete(both, "nobody").status_code == 404
    metrics = both.api.get("/metrics").text
    assert 'tgi_model_loaded{model="short"} 1' in metrics and 'tgi_model_loaded{model="other"} 0' in metrics
    states = {one["model_id"]: one["state"] for one in both.api.get("/info").json()["models"]}
    assert states == {"demo": "loaded", "short": "loaded", "other": "not loaded"}


def test_the_one_unused_for_longest_gives_way_when_its_stream_has_ended(on_demand):
    one = on_demand("--max-models", "1")
    stream = one.api.post("/v1/completions", {"model": "demo", "prompt": "Once", "max_tokens": 200, "stream": True,
                                              "ignore_eos": True}, stream=True)
    events = stream.iter_lines()
    next(events)
    answer = complete(one, "short")
    assert answer.status_code == 200, answer.text
    rest = [line for line in events if line]
    assert rest[-1] == b"data: [DONE]" and len(rest) > 190, "the stream lost something"
    assert phases(one) == {"demo": "not loaded", "short": "ready", "other": "not loaded"}
    # The default model comes back as any other.
    assert one.api.generate("Once", max_new_tokens=2)["generated_text"]
    assert phases(one)["demo"] == "ready" and phases(one)["short"] == "not loaded"
    assert one.api.get("/health").status_code == 200


def test_ollamas_keep_alive(on_demand):
    both = on_demand("--keep-alive", "2h")
    chat = {"model": "short", "messages": [{"role": "user", "content": "Once"}], "stream": False,
            "options": {"num_predict": 2}}
    assert both.api.post("/api/chat", chat).status_code == 200
    running = {one["name"]: one for one in both.api.get("/api/ps").json()["models"]}
    assert set(running) == {"demo:latest", "short:latest"}
    assert len(both.api.get("/api/tags").json()["models"]) == 3
    expires = datetime.datetime.fromisoformat(running["short:latest"]["expires_at"][:26] + "+00:00")
    left = (expires - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    assert 7000 < left <= 7200
    # Nothing is answered but that it is there, or that it goes.
    asked = both.api.post("/api/generate", {"model": "other", "stream": False}).json()
    assert asked["done_reason"] == "load" and phases(both)["other"] == "ready"
    asked = both.api.post("/api/generate", {"model": "other", "stream": False, "keep_alive": 0}).json()
    assert asked["done_reason"] == "unload"
    wait_until(lambda: phases(both)["other"] == "not loaded")
    assert both.api.post("/api/chat", chat | {"keep_alive": "1ms"}).status_code == 200
    wait_until(lambda: phases(both)["short"] == "not loaded")
    assert both.api.post("/api/chat", chat | {"keep_alive": -1}).status_code == 200
    running = {one["name"]: one for one in both.api.get("/api/ps").json()["models"]}
    assert running["short:latest"]["expires_at"].startswith("9999")
    refused = both.api.post("/api/chat", chat | {"keep_alive": "soon"})
    assert refused.status_code == 400 and "keep_alive" in refused.text


def test_a_request_of_openais_routes_says_how_long_its_model_stays(on_demand):
    both = on_demand("--keep-alive", "2h")
    asks = [("/v1/completions", {"prompt": "Once", "max_tokens": 2}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Once"}], "max_tokens": 2}),
            ("/v1/responses", {"input": "Once", "max_output_tokens": 2})]
    for path, body in asks:
        answer = both.api.post(path, body | {"model": "short", "keep_alive": "1ms"})
        assert answer.status_code == 200, answer.text
        wait_until(lambda: phases(both)["short"] == "not loaded")
        refused = both.api.post(path, body | {"model": "short", "keep_alive": "soon"})
        assert refused.status_code in (400, 422) and "keep_alive" in refused.text, path


def test_pins_names_and_the_command_line(on_demand):
    one = on_demand("--max-models", "1")
    assert tgi(one, "load", "demo", "--pin").returncode == 0
    refused = complete(one, "short")
    assert refused.status_code >= 400 and "pinned: demo" in refused.text
    assert phases(one)["demo"] == "ready"
    assert tgi(one, "unload", "--keep-name").returncode == 0
    answered = tgi(one, "generate", "-m", "short", "Once", "--max-new-tokens", "2")
    assert answered.returncode == 0, answered.stderr
    assert phases(one) == {"demo": "not loaded", "short": "ready", "other": "not loaded"}
    shown = tgi(one, "ps").stdout
    assert "not loaded" in shown and "last used" in shown and "1 loaded at once" in shown
    added = tgi(one, "load", "demo", "--name", "late", "--on-demand", "--keep-alive", "5m")
    assert added.returncode == 0 and "when a request asks" in added.stdout
    assert complete(one, "late").json()["model"] == "late"
    assert tgi(one, "unload", "late").returncode == 0
    assert "late" not in one.api.get("/v1/models").text
    assert complete(one, "late").status_code == 404
    assert tgi(one, "load", "demo", "--keep-alive", "soon").returncode != 0


def test_a_model_that_fails_is_its_own_failure(pair, short_folder, tmp_path):
    folder = model_variant(tmp_path, 128, [1, 2])
    one = pair(daemon_flags=(*SMALL, "--on-demand", f"broken={folder}", "--on-demand", f"short={short_folder}"))
    (folder / "config.json").write_text("{")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(complete(one, "broken"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answer.status_code >= 400 and "config.json" in answer.text for answer in answers), answers[0].text
    assert complete(one, "short").status_code == 200 and complete(one, "demo").status_code == 200


def test_a_new_version_takes_over_without_a_dropped_stream(slow_pair, short_folder):
    one = slow_pair()
    stream = one.api.post("/v1/completions", {"prompt": "Once", "max_tokens": 600, "stream": True}, stream=True)
    events = stream.iter_lines()
    next(events)
    # In the default model's place, by a load that names none.
    loaded = tgi(one, "load", str(short_folder))
    assert loaded.returncode == 0, loaded.stderr
    assert one.daemon.status()["stay"]["num_uses_before"] == 1, "the stream has ended too early to show anything"
    assert one.api.post("/v1/completions", {"prompt": "Once", "max_tokens": 500}).status_code == 422  # the new one's limit
    assert one.api.post("/v1/completions", {"prompt": "Once", "max_tokens": 3}).status_code == 200
    rest = [line for line in events if line]
    assert rest[-1] == b"data: [DONE]" and len(rest) > 590, len(rest)
    wait_until(lambda: one.daemon.status()["stay"]["num_uses_before"] == 0)
    wait_until(lambda: "that was replaced is gone" in one.daemon.log())


def test_routes_without_a_body_tell_of_the_model_that_is_named(on_demand):
    both = on_demand()
    assert complete(both, "short").status_code == 200
    assert both.api.get("/props?model=short").json()["default_generation_settings"]["n_ctx"] == 128
    assert both.api.get("/props").json()["default_generation_settings"]["n_ctx"] > 128
    assert both.api.get("/slots?model=short").json()[0]["n_ctx"] == 128
    assert both.api.get("/info?model=short").json()["max_total_tokens"] == 128
    assert both.api.get("/health?model=short").status_code == 200
    for path in ("/props", "/slots", "/health", "/info"):
        assert both.api.get(f"{path}?model=nobody").status_code == 404, path
    assert phases(both)["other"] == "not loaded"  # to tell of one loads none


def ask_daemon(pair, method, **params):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(pair.daemon.home.socket))
        lines = connection.makefile("rwb")
        lines.readline()  # who it is
        lines.write(json.dumps({"method": method, "params": params}).encode() + b"\n")
        lines.flush()
        return json.loads(lines.readline())["result"]


def test_adapters_are_of_the_model_that_is_named_and_come_back_with_it(pair, short_folder, tmp_path):
    one = pair("--allow-runtime-lora-updating", daemon_flags=(*SMALL, "--max-models", "1", "--on-demand",
                                                              f"short={short_folder}"))
    folder = write_adapter(tmp_path / "mine")
    loaded = one.api.post("/v1/load_lora_adapter?model=short", {"lora_name": "mine", "lora_path": str(folder)})
    assert loaded.status_code == 200, loaded.text
    names = lambda **of: [each["name"] for each in ask_daemon(one, "adapters", **of)["adapters"]]
    assert names(model="short") == ["mine"]
    assert complete(one, "demo").status_code == 200
    assert phases(one)["short"] == "not loaded"
    assert names(model="short") == ["mine"] and names() == []
    assert phases(one)["short"] == "not loaded"  # to list them loads no model
    assert complete(one, "short").status_code == 200
    assert names(model="short") == ["mine"]
    body = {"model": "short", "inputs": "Once", "parameters": {"max_new_tokens": 8, "adapter_id": "mine"}}
    with_it = one.api.post("/generate", body)
    assert with_it.status_code == 200, with_it.text
    body["parameters"].pop("adapter_id")
    assert with_it.json()["generated_text"] != one.api.post("/generate", body).json()["generated_text"]


def test_models_that_were_loaded_by_name_come_back_with_the_daemon(home_of_its_own, short_folder):
    home = home_of_its_own
    gateway = Gateway(home)
    try:
        environment = home.environment()
        words = lambda *more: subprocess.run([str(TGI), *more], env=environment, capture_output=True, text=True, timeout=60)
        status = lambda: json.loads(words("ps", "--json").stdout or "{}")
        assert words("load", str(short_folder), "--name", "late", *SMALL).returncode == 0
        assert words("load", "demo", "--name", "later", "--on-demand").returncode == 0
        api = Api(gateway.url)
        assert api.post("/v1/completions", {"model": "late", "prompt": "Once", "max_tokens": 3}).status_code == 200
        time.sleep(1)  # for the gateway to see both
        before = status()["pid"]
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: status().get("pid", before) != before and len(status().get("others", [])) == 2, 30)
        wait_until(lambda: {one["name"]: one["phase"] for one in status()["others"]} == {
            "late": "ready", "later": "not loaded"}, 30)
        wait_until(lambda: api.get("/health").status_code == 200)
        assert api.post("/v1/completions", {"model": "late", "prompt": "Once", "max_tokens": 3}).json()["model"] == "late"
        assert api.post("/v1/completions", {"model": "later", "prompt": "Once", "max_tokens": 3}).status_code == 200
    finally:
        gateway.send(signal.SIGTERM)
        gateway.wait()
        subprocess.run([TGI, "stop", "--socket", home.socket], env=home.environment(), timeout=20, check=False)
        gateway.end()


class ManyModels:
    """Clients that each ask a random model, again and again, and check every answer."""

    def __init__(self, api, names):
        self.api, self.names = api, names
        self.answered = collections.Counter()
        self.longest = collections.defaultdict(float)
        self.wrong = []

    def run(self, seconds, num_clients):
        self.end = time.monotonic() + seconds
        threads = [threading.Thread(target=self.client, args=(random.Random(seed),)) for seed in range(num_clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def client(self, draw):
        while time.monotonic() < self.end:
            name = draw.choice(self.names)
            length = draw.choice([1, 5, 40])
            body = {"model": name, "prompt": "Once", "max_tokens": length, "ignore_eos": True}
            began = time.monotonic()
            try:
                if draw.random() < 0.5:
                    answer = self.api.post("/v1/completions", body, timeout=120)
                    text = answer.json()
                    good = answer.status_code == 200 and text["model"] == name \
                        and text["usage"]["completion_tokens"] == length
                else:
                    events = self.api.events("/v1/completions", body | {"stream": True})
                    good = events[-1] == "[DONE]" and len(events) > length
            except Exception as error:
                good = False
                self.wrong.append((name, repr(error)))
            if not good:
                self.wrong.append((name, length))
            self.answered[name] += 1
            self.longest[name] = max(self.longest[name], time.monotonic() - began)


def test_many_models_under_a_random_load():
    seconds = float(os.environ.get("TGI_MANY_MODELS_SECONDS", "8"))
    num_models, num_loaded, num_clients = 24, 2, 12
    names = [f"m{i}" for i in range(1, num_models)]
    home = Home()
    flags = [word for name in names for word in ("--on-demand", f"{name}={DEMO}")]
    daemon = gateway = None
    try:
        daemon = Daemon(home, "demo", (*SMALL, "--max-models", str(num_loaded), *flags))
        gateway = Gateway(home)
        api = Api(gateway.url)
        many = ManyModels(api, ["demo", *names])
        held, loaded = [], []
        over = threading.Event()

        def watch():
            while not over.wait(0.1):
                status = daemon.status()
                models = [one["model"] for one in [status, *status["others"]] if one.get("model")]
                loaded.append(len(models))
                held.append(status["rss_bytes"])

        watcher = threading.Thread(target=watch)
        watcher.start()
        many.run(seconds, num_clients)
        over.set()
        watcher.join()
        assert not many.wrong, many.wrong[:5]
        assert set(many.answered) == {"demo", *names}, "some model was never answered"
        assert max(loaded) <= num_loaded
        # Fair: everybody waits for about a round of all models at most.
        assert max(many.longest.values()) < max(20.0, seconds / 2), many.longest
        # Memory is that of what is loaded at once: it does not grow with what came and went.
        early = max(held[:max(5, len(held) // 3)])
        assert max(held) < early * 1.5 + 50_000_000, (early, max(held))
        status = daemon.status()
        assert status["stay"]["num_uses"] == 0 and all(one["stay"]["num_uses"] == 0 for one in status["others"])
        print(f"{sum(many.answered.values())} requests, longest {max(many.longest.values()):.2f} s")
    finally:
        for process in (gateway, daemon):
            if process:
                process.end()
        home.remove()
