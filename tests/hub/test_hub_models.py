"""Models by name in serve, load, generate and chat, and torch checkpoints: from the hub to an answer."""

import http.client
import json
import pathlib
import re
import threading
import time
import urllib.error
import urllib.request

import pytest

from conftest import check_snapshot

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def model(hub, place):
    """The demo model behind the hub."""
    files = {p.name: p.read_bytes() for p in (ROOT / "assets/demo").iterdir()}
    hub.model("tiny/demo", files)
    yield "tiny/demo"
    place.tgi("stop")


def test_load_downloads_what_is_not_there(hub, place, model):
    place.tgi("load", model, "--offline").refused(4, "--offline", "tgi download-weights")
    ran = place.tgi("load", model)
    assert ran.status == 0, ran.err
    assert ran.out.startswith("loaded tiny/demo (")
    num = len(hub.requests)
    assert place.tgi("load", model).status == 0
    assert len(hub.requests) == num  # what is in the cache is taken without asking
    assert "tiny/demo" in place.tgi("ps").out


def test_load_of_a_revision(hub, place, model):
    place.tgi("load", model, "--revision", "v2").refused(4, "no revision v2")
    hub.models[model].refs["v2"] = hub.models[model].refs["main"]
    assert place.tgi("load", model, "--revision", "v2").status == 0


def test_generate_downloads_and_answers(hub, place, model):
    ran = place.tgi("generate", "--model", model, "--max-new-tokens", "4", "Once upon a time")
    assert ran.status == 0 and ran.out.strip(), ran.err
    assert "4 files" in ran.err or "files," in ran.err
    again = place.tgi("generate", "--model", model, "--offline", "--max-new-tokens", "4", "Once upon a time")
    assert again.out == ran.out
    # Another model is loaded beside it, and both stay.
    assert place.tgi("generate", "--model", "demo", "--max-new-tokens", "4", "x").status == 0
    told = place.tgi("ps").out
    assert re.search(r"^model +tiny/demo$", told, re.M) and re.search(r"^model +demo\b", told, re.M), told


def test_chat_takes_a_model_too(hub, place, model):
    ran = place.tgi("chat", "--model", model, "--max-new-tokens", "4", stdin=__import__("subprocess").DEVNULL)
    assert ran.status == 0, ran.err
    assert place.repo(model).exists()


def test_serve_downloads_and_names_the_model(hub, place, model):
    process = place.popen("serve", "--model-id", model, "--http", "127.0.0.1:0")
    try:
        for line in process.stderr:
            found = re.search(r"serving (\S+) on (http://\S+)", line)
            if found:
                break
        assert found.group(1) == model
        with urllib.request.urlopen(found.group(2) + "/info") as answer:
            assert json.load(answer)["model_id"] == model
    finally:
        process.terminate()
        process.communicate(timeout=20)


def served_at(process):
    for line in process.stderr:
        if found := re.search(r"serving \S+ on (http://\S+)", line):
            return found.group(1)
    raise AssertionError("tgi serve ended")


def asked(url, body):
    """The lines of an answer, and its status."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, [json.loads(line) for line in answer.read().splitlines()]
    except urllib.error.HTTPError as error:
        return error.code, [json.loads(error.read())]


def test_clients_pull_where_the_server_allows_it(hub, place, model):
    process = place.popen("serve", "demo", "--http", "127.0.0.1:0", "--allow-pull")
    try:
        url = served_at(process)
        status, lines = asked(url + "/api/pull", {"model": "hf.co/tiny/demo"})
        assert status == 200 and lines[0] == {"status": "pulling manifest"} and lines[-1] == {"status": "success"}, lines
        told = [line for line in lines if "total" in line]
        assert told and all(0 <= line["completed"] <= line["total"] > 1_000_000 for line in told)
        assert place.repo(model).exists()
        chat = {"messages": [{"role": "user", "content": "hi"}], "stream": False}
        status, lines = asked(url + "/api/chat", chat | {"model": "hf.co/tiny/demo"})
        assert status == 200 and lines[0]["message"]["content"]
        status, lines = asked(url + "/api/pull", {"model": "tiny/demo", "stream": False})
        assert (status, lines) == (200, [{"status": "success"}])
        status, lines = asked(url + "/v1/chat/completions", chat | {"model": "tiny/demo"})
        assert status == 200 and lines[0]["model"] == "tiny/demo", lines
        num = len(hub.requests)
        assert asked(url + "/api/pull", {"model": "tiny/demo"})[1][-1] == {"status": "success"}
        assert len(hub.requests) == num  # it is served: nobody is asked
        for bad in ("nope", "tiny/none", "/etc/passwd", "../x/y", "https://example.com/a.gguf", str(place.folder)):
            status, lines = asked(url + "/api/pull", {"model": bad})
            assert status == 200 and "error" in lines[-1], (bad, lines)
            assert asked(url + "/api/pull", {"model": bad, "stream": False})[0] == 404, bad
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_a_client_that_leaves_ends_its_pull(hub, place, model):
    files = {p.name: p.read_bytes() for p in (ROOT / "assets/demo").iterdir()}
    hub.model(model, files | {"extra.bin.safetensors": bytes(96 << 20)})
    slow = hub.fault("slow", "storage ", delay=0.03)
    process = place.popen("serve", "demo", "--http", "127.0.0.1:0", "--allow-pull")
    try:
        url = served_at(process)
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        connection.request("POST", "/api/pull", json.dumps({"model": model}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        while b"total" not in answer.readline():
            pass
        connection.sock.close()
        answer.close()
        time.sleep(4)  # it is told of each second
        slow.times = 0
        time.sleep(2)  # time enough for all of it, were it still wanted
        with urllib.request.urlopen(url + "/api/tags") as tags:
            assert [each["name"] for each in json.load(tags)["models"]] == ["demo:latest"]
        assert asked(url + "/api/pull", {"model": model})[1][-1] == {"status": "success"}
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_leaves_while_the_hub_lists_ends_its_pull(hub, place, model, streams):
    gate = threading.Event()
    hub.on_request = lambda asked: gate.wait(60) if "/api/models/" in asked.path else None
    process = place.popen("serve", "demo", "--http", "127.0.0.1:0", "--allow-pull")
    try:
        url = served_at(process)
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        body = json.dumps({"model": model, "stream": streams})
        connection.request("POST", "/api/pull", body, {"Content-Type": "application/json"})
        wait_until = time.monotonic() + 30
        while not hub.requests and time.monotonic() < wait_until:
            time.sleep(0.01)
        assert hub.requests
        assert "another model" in asked(url + "/api/pull", {"model": model})[1][-1]["error"]
        connection.sock.close()
        hub.on_request = None
        # The hub has not answered yet, and the place is free.
        wait_until = time.monotonic() + 5
        while (last := asked(url + "/api/pull", {"model": model})[1][-1]) != {"status": "success"}:
            assert "another model" in last["error"] and time.monotonic() < wait_until, last
            time.sleep(0.05)
    finally:
        gate.set()
        process.terminate()
        process.communicate(timeout=20)


def test_clients_pull_nothing_by_themselves(hub, place, model):
    process = place.popen("serve", "demo", "--http", "127.0.0.1:0")
    try:
        status, lines = asked(served_at(process) + "/api/pull", {"model": model})
        assert status == 501 and "--allow-pull" in lines[0]["error"] and not hub.requests
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_ls_knows_what_was_downloaded(hub, place, model):
    place.download(model)
    hub.models[model].refs["v2"] = hub.models[model].refs["main"]
    place.download(model + "@v2")
    listed = json.loads(place.tgi("ls", "--json").out)
    listed = listed["models"] if isinstance(listed, dict) else listed
    mine = {m["name"]: m for m in listed}
    assert mine["tiny/demo"]["format"] == "safetensors" and mine["tiny/demo"]["state"] == "ready"
    assert mine["tiny/demo@v2"]["revision"] == "v2"
    assert mine["tiny/demo"]["source"] == hub.url


def test_an_unknown_name_says_that_there_is_no_folder_either(hub, place):
    place.tgi("load", "no/model").refused(4, "no model no/model", "no folder no/model here either")


def test_a_torch_checkpoint_is_converted_once(hub, place):
    folder = ROOT / "tests/golden/torch/qwen2"
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    if "config.json" not in files:
        files["config.json"] = b'{"architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": true}'
    assert not any(name.endswith(".safetensors") for name in files)
    commit = hub.model("old/torch").commit(files)
    ran = place.download("old/torch")
    assert ran.path == place.folder / "cache/tgi/converted/old--torch" / commit
    assert list(ran.path.glob("*.safetensors")) and (ran.path / "config.json").exists()
    # The snapshot is as the hub has it.
    assert not list((place.repo("old/torch") / "snapshots" / commit).glob("*.safetensors"))
    stamp = (ran.path / "config.json").stat().st_mtime_ns
    again = place.download("old/torch")
    assert again.path == ran.path and (ran.path / "config.json").stat().st_mtime_ns == stamp
    assert place.download("old/torch", "--offline").path == ran.path


def test_an_adapter_of_torch_is_converted_and_answers(hub, place, model):
    golden = ROOT / "tests/golden/torch/adapter"
    files = {name: (golden / name).read_bytes() for name in ("adapter_config.json", "adapter_model.bin")}
    commit = hub.model("old/lora").commit(files | {"training_args.bin": b"x"})
    base = place.tgi("generate", "--model", model, "--max-new-tokens", "12", "Once upon a time")
    ran = place.tgi("generate", "--adapter", "old/lora", "--max-new-tokens", "12", "Once upon a time")
    assert ran.status == 0, ran.err
    assert ran.out and ran.out != base.out
    folder = place.folder / "cache/tgi/converted/old--lora" / commit
    assert sorted(p.name for p in folder.iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]
    shown = json.loads(place.tgi("show", "old/lora", "--json").out)
    assert shown["adapter"]["rank"] == 2 and shown["format"] == "lora", shown
    num = len(hub.requests)
    again = place.tgi("generate", "--adapter", "old/lora", "--max-new-tokens", "12", "Once upon a time")
    assert again.out == ran.out and len(hub.requests) == num


def test_a_pickle_with_code_in_it_is_refused(hub, place):
    import pickle
    import zipfile
    import io

    class Evil:
        def __reduce__(self):
            return (__import__("os").system, ("touch " + str(place.folder / "pwned"),))
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"w": Evil()}, protocol=2))
        archive.writestr("archive/version", "3")
    hub.model("old/evil", {"config.json": b"{}", "pytorch_model.bin": data.getvalue()})
    ran = place.download("old/evil")
    assert ran.status in (3, 5) and "system" in ran.err, ran.err
    assert not (place.folder / "pwned").exists()
    assert not (place.folder / "cache/tgi/converted/old--evil").exists() or not list((place.folder / "cache/tgi/converted/old--evil").iterdir())
