"""Adapters that clients of a gateway name: brought from the hub and from buckets on demand, with a client's own token, and what
becomes of them when a download fails or a client is killed."""

import json
import pathlib
import re
import signal
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/torch/adapter"
FILES = {"adapter_config.json": (GOLDEN / "adapter_config.json").read_bytes(),
         "adapter_model.safetensors": (GOLDEN / "expected.safetensors").read_bytes()}


@pytest.fixture
def serve(place):
    """Starts `tgi serve demo`; what asks it, and the file of its log."""
    running = []

    def start(*flags, env=None):
        path = place.folder / f"serve{len(running)}.log"
        with open(path, "w") as log:
            process = place.popen("serve", "demo", "--http", "127.0.0.1:0", *flags, env=env, stdout=log, stderr=log)
        running.append(process)
        deadline = time.monotonic() + 60
        while not (found := re.search(r"on (http://\S+:\d+)", path.read_text())):
            assert process.poll() is None and time.monotonic() < deadline, path.read_text()
            time.sleep(0.05)

        def ask(**parameters):
            body = json.dumps({"inputs": "Once upon a time", "parameters": {"max_new_tokens": 8, "do_sample": False} | parameters})
            request = urllib.request.Request(found.group(1) + "/generate", body.encode(), {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    return response.status, json.load(response)["generated_text"]
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)["error"]

        return ask, path

    yield start
    for process in running:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    place.tgi("stop")


def test_adapters_of_the_hub_and_of_buckets_come_on_demand(hub, place, serve):
    hub.model("org/lora", FILES)
    hub.buckets["weights"] = {"loras/x/" + name: data for name, data in FILES.items()}
    ask, _ = serve(env={"AWS_ENDPOINT_URL": hub.storage_url})
    base = ask()[1]
    status, text = ask(adapter_id="org/lora")
    assert status == 200 and text != base
    num = len(hub.requests)
    assert ask(adapter_id="org/lora") == (200, text) and len(hub.requests) == num
    assert ask(adapter_id="weights/loras/x", adapter_source="s3") == (200, text)
    status, error = ask(adapter_id="org/none")
    assert status == 424 and "org/none" in error
    # An address is no name that clients may give.
    assert ask(adapter_id=hub.storage_url + "/x")[0] in (422, 424)


def test_a_private_adapter_is_for_requests_with_a_token_that_may_read_it(hub, place, serve):
    hub.model("org/private", FILES).private = True
    ask, log = serve()
    base = ask()[1]
    status, text = ask(adapter_id="org/private", api_token="hf_good")
    assert status == 200 and text != base
    for more in ({}, {"api_token": "hf_bad"}, {"api_token": "hf_other"}):
        status, error = ask(adapter_id="org/private", **more)
        assert status == 424 and "hf_" not in error, error
    # Whoever comes first does not open it for others, nor does a restart spare the question.
    assert ask(adapter_id="org/private", api_token="hf_good") == (200, text)
    hub.models["org/private"].readers.clear()
    ask, _ = serve()
    assert ask(adapter_id="org/private", api_token="hf_good")[0] == 424
    assert "hf_" not in log.read_text()
    assert not [p for p in place.folder.rglob("*") if p.is_file() and b"hf_good" in p.read_bytes()]


def test_a_download_that_fails_midway_fails_its_requests_alone(hub, place, serve):
    hub.model("org/lora", FILES)
    hub.fault("status", r"resolve/.*safetensors", status=500)
    ask, _ = serve()
    base = ask()[1]
    status, error = ask(adapter_id="org/lora")
    assert status == 424 and "org/lora" in error
    assert ask() == (200, base)
    hub.faults.clear()
    status, text = ask(adapter_id="org/lora")
    assert status == 200 and text != base


def test_a_client_that_is_killed_while_its_adapter_is_on_the_way_leaves_nothing(hub, place, serve):
    hub.model("org/lora", FILES)
    slow = hub.fault("slow", r"safetensors", delay=0.2, piece=256)
    ask, _ = serve()
    base = ask()[1]
    client = place.popen("generate", "--adapter", "org/lora", "--max-new-tokens", "8", "Once upon a time")
    deadline = time.monotonic() + 20
    while slow.used == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    client.kill()
    client.wait(10)
    hub.faults.clear()
    assert ask() == (200, base)
    assert ask(adapter_id="org/lora")[0] == 200
    assert json.loads(place.tgi("ps", "--json").out)["model"]["num_running"] == 0
