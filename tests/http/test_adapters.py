"""LoRA adapters over HTTP: by TGI's and LoRAX's fields, by OpenAI's `model`, given at the start or named later. A tiny adapter of the demo
model is written here; that its numbers are PEFT's is what tests/promises shows."""

import concurrent.futures
import json
import pathlib
import shutil
import struct
import subprocess
import time

import pytest
import requests

from client import Api, chat_body
from gateway import ROOT, TGI, Daemon, Gateway, Home, wait_until

CONFIG = json.loads((ROOT / "assets/demo/config.json").read_text())


def write_adapter(folder, rank=4, seed=1, value=0.2, **config):
    """An adapter of q and o of every layer."""
    hidden = CONFIG["hidden_size"]
    q = CONFIG["num_attention_heads"] * (CONFIG.get("head_dim") or hidden // CONFIG["num_attention_heads"])
    header, data = {}, b""
    state = seed
    for layer in range(CONFIG["num_hidden_layers"]):
        for name, inputs, outputs in (("q_proj", hidden, q), ("o_proj", q, hidden)):
            for part, shape in (("lora_A", (rank, inputs)), ("lora_B", (outputs, rank))):
                numbers = []
                for _ in range(shape[0] * shape[1]):
                    state = (state * 1103515245 + 12345) % 2**31
                    numbers.append(value * (state / 2**30 - 1))
                blob = struct.pack(f"<{len(numbers)}f", *numbers)
                header[f"base_model.model.model.layers.{layer}.self_attn.{name}.{part}.weight"] = {
                    "dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(blob)]}
                data += blob
    text = json.dumps(header).encode()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "r": rank, "lora_alpha": 8 * rank, "target_modules": ["q_proj", "o_proj"],
        "base_model_name_or_path": "demo", **config}))
    return folder


@pytest.fixture(scope="module")
def adapters(tmp_path_factory):
    place = tmp_path_factory.mktemp("adapters")
    return [write_adapter(place / "one", seed=1), write_adapter(place / "two", seed=2)]


@pytest.fixture(scope="module")
def home():
    """Its daemon lists adapters that other tests must not meet."""
    home = Home()
    yield home
    home.remove()


@pytest.fixture(scope="module")
def daemon(home):
    daemon = Daemon(home)
    yield daemon
    daemon.end()


@pytest.fixture
def start(home, daemon):
    started = []

    def run(*flags):
        started.append(Gateway(home, flags))
        return Api(started[-1].url)

    yield run
    for gateway in started:
        gateway.end()


@pytest.fixture
def with_adapters(start, adapters):
    return start("--lora-adapters", f"first={adapters[0]},{adapters[1]}")


def text_of(api, **parameters):
    return api.ok("/generate", {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 12, "do_sample": False} | parameters})["generated_text"]


def test_adapter_id_answers_by_the_adapter(with_adapters, adapters):
    base = text_of(with_adapters)
    first, second = text_of(with_adapters, adapter_id="first"), text_of(with_adapters, adapter_id=str(adapters[1]))
    assert len({base, first, second}) == 3
    # Again, when prefixes are cached; and the base model under its names.
    assert text_of(with_adapters, adapter_id="first") == first
    assert text_of(with_adapters, adapter_id="") == base == text_of(with_adapters, adapter_id="demo")
    response = with_adapters.post("/generate", {"inputs": "a", "parameters": {"max_new_tokens": 1, "adapter_id": "first"}})
    assert response.headers["x-adapter-id"] == "first" and response.headers["x-model-id"] == "demo"
    assert response.headers["x-adapter-source"] == "hub"
    local = with_adapters.post("/generate", {"inputs": "a", "parameters": {
        "max_new_tokens": 1, "adapter_id": str(adapters[1]), "adapter_source": "local"}})
    assert local.headers["x-adapter-source"] == "local" and "x-adapter-source" not in with_adapters.post("/generate", {"inputs": "a"}).headers


def test_the_model_of_openai_is_an_adapter(with_adapters):
    native = text_of(with_adapters, adapter_id="first")
    body = {"model": "first", "prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}
    answer = with_adapters.ok("/v1/completions", body)
    assert answer["choices"][0]["text"] == native and answer["model"] == "first"
    chat = with_adapters.ok("/v1/chat/completions", chat_body("hi", model="first", max_tokens=4))
    assert chat["model"] == "first"
    listed = {model["id"]: model for model in with_adapters.get("/v1/models").json()["data"]}
    assert listed["first"]["parent"] == "demo" and "parent" not in listed["demo"]
    assert with_adapters.get("/v1/models/first").json()["id"] == "first"
    assert with_adapters.get("/v1/models/third").status_code == 404


def test_streams_have_adapters_too(with_adapters):
    native = text_of(with_adapters, adapter_id="first")
    events = with_adapters.generate_stream("Once upon a time", max_new_tokens=12, do_sample=False, adapter_id="first")
    assert events[-1]["generated_text"] == native


@pytest.mark.parametrize("name", ["third", "org/third", "/tmp", "../x", "first/../x", "x/../../tmp", "https://127.0.0.1:1/x", "s3://bucket/x", "x" * 2000])
def test_an_unknown_adapter_is_an_error(with_adapters, name):
    response = with_adapters.post("/generate", {"inputs": "a", "parameters": {"adapter_id": name}})
    assert response.status_code in (422, 424), response.text
    if response.status_code == 424:
        assert response.json()["error_type"] == "generation"
        assert response.json()["error"].startswith("Request failed during generation: adapter ")


def test_a_blast_of_requests_for_adapters_that_are_there_and_that_are_not(with_adapters, adapters, tmp_path):
    """As LoRAX's script of dynamic adapter loading asks: all at once, and whoever can be answered is."""
    nan = str(write_adapter(tmp_path / "nan", value=float("nan")))
    asked = [{}, {"adapter_id": "first"}, {"adapter_id": str(adapters[1])}, {"adapter_id": nan, "adapter_source": "local"},
             {"adapter_id": "a"}, {"adapter_id": "/tmp", "adapter_source": "local"}]
    expected = [text_of(with_adapters, **parameters) for parameters in asked[:3]]

    def ask(i):
        body = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 12, "do_sample": False} | asked[i % len(asked)]}
        return with_adapters.post("/generate", body, timeout=60)

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(ask, range(96)))
    for i, answer in enumerate(answers):
        kind = i % len(asked)
        if kind < 3:
            assert answer.status_code == 200 and answer.json()["generated_text"] == expected[kind]
        else:
            assert answer.status_code == 424 and answer.json()["error_type"] == "generation"


def test_a_folder_is_named_only_as_local(with_adapters, adapters, tmp_path):
    third = write_adapter(tmp_path / "third", seed=3)
    assert with_adapters.post("/generate", {"inputs": "a", "parameters": {"adapter_id": str(third)}}).status_code == 424
    assert text_of(with_adapters, adapter_id=str(third), adapter_source="local") != text_of(with_adapters)
    unknown = with_adapters.post("/generate", {"inputs": "a", "parameters": {"adapter_id": "x", "adapter_source": "pbase"}})
    assert unknown.status_code == 422 and "adapter_source" in unknown.text
    for known in ("first", "", None):  # whatever the adapter is
        asked = {"inputs": "a", "parameters": {"adapter_id": known, "adapter_source": "zzz"}}
        refused = with_adapters.post("/generate", asked)
        assert refused.status_code == 422 and "`adapter_source` must be hub, local or s3" in refused.text


def test_an_adapter_that_does_not_fit_says_why(with_adapters, tmp_path):
    wide = write_adapter(tmp_path / "saved", modules_to_save=["embed_tokens"])
    response = with_adapters.post("/generate", {"inputs": "a", "parameters": {"adapter_id": str(wide), "adapter_source": "local"}})
    assert response.status_code == 424 and "modules_to_save" in response.text
    cut = write_adapter(tmp_path / "cut")
    file = cut / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    response = with_adapters.post("/generate", {"inputs": "a", "parameters": {"adapter_id": str(cut), "adapter_source": "local"}})
    assert response.status_code == 424 and "adapter_model.safetensors" in response.text
    nan = write_adapter(tmp_path / "nan", value=float("nan"))
    response = with_adapters.post("/generate", {"inputs": "a", "parameters": {"adapter_id": str(nan), "adapter_source": "local"}})
    assert response.status_code == 424 and "finite" in response.text
    assert text_of(with_adapters)  # the server goes on


def test_an_adapter_whose_files_change_is_another_one(with_adapters, tmp_path):
    folder = write_adapter(tmp_path / "changing", seed=5)
    asked = {"adapter_id": str(folder), "adapter_source": "local"}
    before = text_of(with_adapters, **asked)
    (folder / "adapter_model.safetensors").unlink()
    write_adapter(folder, seed=6)
    after = text_of(with_adapters, **asked)
    assert after != before
    (folder / "adapter_model.safetensors").unlink()
    write_adapter(folder, seed=5)
    assert text_of(with_adapters, **asked) == before


def test_files_that_vanish_or_are_cut_under_a_running_server(with_adapters, tmp_path):
    folder = write_adapter(tmp_path / "vanishing", seed=5)
    asked = {"adapter_id": str(folder), "adapter_source": "local"}
    before = text_of(with_adapters, **asked)
    base = text_of(with_adapters)
    file = folder / "adapter_model.safetensors"
    data = file.read_bytes()
    with open(file, "r+b") as opened:  # the file that is mapped
        opened.truncate(len(data) // 2)
    for vanish in (lambda: None, file.unlink, lambda: shutil.rmtree(folder)):
        vanish()
        response = with_adapters.post("/generate", {"inputs": "a", "parameters": asked})
        assert response.status_code == 424 and str(folder) in response.json()["error"], response.text
        assert text_of(with_adapters) == base
    write_adapter(folder, seed=5)
    assert text_of(with_adapters, **asked) == before


def test_clients_that_are_killed_while_their_adapters_load_leave_nothing(home, daemon, tmp_path):
    def listed():
        done = subprocess.run([TGI, "adapters", "--json"], env=home.environment(), capture_output=True, timeout=60, check=True)
        return json.loads(done.stdout)["adapters"]

    for i in range(12):
        folder = write_adapter(tmp_path / f"killed{i}", seed=20 + i)
        client = subprocess.Popen([TGI, "generate", "--adapter", folder, "--max-new-tokens", "500", "Once"],
                                  env=home.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.004 * i)
        client.kill()
        client.wait(10)
    wait_until(daemon.is_idle)
    wait_until(lambda: not any(one["num_running"] or one["num_waiting"] or one["state"] == "loading" for one in listed()))
    for one in listed():
        if "killed" in one["name"]:
            subprocess.run([TGI, "adapters", "--unload", one["name"]], env=home.environment(), timeout=60, check=True, capture_output=True)
    assert not any("killed" in one["name"] for one in listed())


def test_vllm_routes_load_and_unload_adapters(start, adapters, tmp_path):
    api = start("--allow-runtime-lora-updating")

    def load(name, path, status=200, **more):
        response = api.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(path)} | more)
        assert response.status_code == status, response.text
        return response.text if status == 200 else response.json()["error"]

    def unload(name, status=200, **more):
        response = api.post("/v1/unload_lora_adapter", {"lora_name": name} | more)
        assert response.status_code == status, response.text
        return response.text if status == 200 else response.json()["error"]

    def complete(model, status=200):
        response = api.post("/v1/completions", {"model": model, "prompt": "Once upon a time", "max_tokens": 12, "temperature": 0})
        assert response.status_code == status, response.text
        return response.json()["choices"][0]["text"] if status == 200 else response.json()["error"]

    assert load("late", adapters[0]) == "Success: LoRA adapter 'late' added successfully."
    first = complete("late")
    assert first == text_of(api, adapter_id="late") == text_of(api, adapter_id=str(adapters[0]), adapter_source="local") != complete("demo")
    assert "late" in [model["id"] for model in api.get("/v1/models").json()["data"]]
    assert "has already been loaded" in load("late", adapters[1], 400)["message"]
    load("late", adapters[1], load_inplace=True)
    assert complete("late") == text_of(api, adapter_id=str(adapters[1]), adapter_source="local") != first
    # A name with a slash is no less one.
    load("org/late", adapters[0])
    assert complete("org/late") == first
    assert unload("org/late", lora_int_id=7) == "Success: LoRA adapter 'org/late' removed successfully."
    assert unload("late") == "Success: LoRA adapter 'late' removed successfully."
    assert complete("late", 404)["code"] == "model_not_found"
    assert "cannot be found" in unload("late", 404)["message"]
    assert text_of(api)

    assert load("", adapters[0], 400)["message"] == "Both 'lora_name' and 'lora_path' must be provided."
    assert load("x", "", 400)["message"] == "Both 'lora_name' and 'lora_path' must be provided."
    assert "needs to be provided" in unload("", 400)["message"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"No adapter found for {empty}" in load("x", empty, 404)["message"]
    for path in ("../x", "x", "/adapters/../../x", "https://127.0.0.1:1/x"):
        load("x", path, 404)
    assert "modules_to_save" in load("x", write_adapter(tmp_path / "saved", modules_to_save=["embed_tokens"]), 400)["message"]
    assert "model" in load("demo", adapters[0], 400)["message"]
    assert load("x" * 5000, adapters[0], 400)
    assert api.post("/v1/load_lora_adapter", {"lora_name": "x", "path": "y"}).status_code == 422


def test_unloading_waits_for_a_running_stream(start, adapters, home):
    api = start("--allow-runtime-lora-updating", "--lora-adapters", f"busy={adapters[0]}")
    asked = {"max_new_tokens": 1000, "do_sample": True, "seed": 3, "ignore_eos_token": True}
    expected = api.ok("/generate", {"inputs": "Once", "parameters": asked | {"adapter_id": "busy"}})["generated_text"]
    with requests.post(f"{api.url}/generate_stream", json={"inputs": "Once", "parameters": asked | {"adapter_id": "busy", "seed": 4}}, stream=True, timeout=60) as other:
        lines = other.iter_lines()
        first = next(line for line in lines if line.startswith(b"data:"))
        assert b'"index":1' in first
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            unloading = pool.submit(lambda: (api.post("/v1/unload_lora_adapter", {"lora_name": "busy"}, timeout=60), time.monotonic()))
            # The name is gone long before the adapter is.
            wait_until(lambda: "busy" not in subprocess.run([TGI, "adapters", "--quiet"], env=home.environment(), capture_output=True, text=True, timeout=60, check=True).stdout.split())
            refused = api.post("/generate", {"inputs": "a", "parameters": {"adapter_id": "busy"}})
            was_running = not unloading.done()
            rest = [line for line in lines if line.startswith(b"data:")]
            ended = time.monotonic()
            response, answered = unloading.result()
    assert refused.status_code == 424 and "busy" in refused.text
    assert response.status_code == 200, response.text
    assert json.loads(rest[-1][5:])["generated_text"], rest[-1]
    assert len(rest) == 999
    assert was_running and answered > ended - 0.5
    assert api.post("/v1/load_lora_adapter", {"lora_name": "busy", "lora_path": str(adapters[0])}).status_code == 200
    assert api.ok("/generate", {"inputs": "Once", "parameters": asked | {"adapter_id": "busy"}})["generated_text"] == expected


def test_one_that_was_given_can_be_unloaded_by_vllm_routes(start, adapters):
    api = start("--allow-runtime-lora-updating", "--api-key", "secret", "--lora-adapters", f"given={adapters[0]}")
    assert api.post("/v1/unload_lora_adapter", {"lora_name": "given"}).status_code == 401
    key = {"Authorization": "Bearer secret"}
    assert api.post("/v1/unload_lora_adapter", {"lora_name": "given"}, headers=key).status_code == 200
    response = api.post("/generate", {"inputs": "a", "parameters": {"adapter_id": "given"}}, headers=key)
    assert response.status_code == 424


def test_vllm_routes_are_off_unless_asked_for(with_adapters, adapters):
    for route, body in (("load", {"lora_name": "x", "lora_path": str(adapters[0])}), ("unload", {"lora_name": "first"})):
        response = with_adapters.post(f"/v1/{route}_lora_adapter", body)
        assert response.status_code == 404 and "--allow-runtime-lora-updating" in response.json()["error"]["message"]
    assert text_of(with_adapters, adapter_id="first")


def test_adapters_that_torch_saved(start, home, adapters, tmp_path):
    golden = ROOT / "tests/golden/torch/adapter"
    for name, files in (("bin", ["adapter_model.bin"]), ("safe", ["expected.safetensors"])):
        (tmp_path / name).mkdir()
        for file in files + ["adapter_config.json"]:
            (tmp_path / name / file.replace("expected", "adapter_model")).write_bytes((golden / file).read_bytes())
    api = start("--allow-runtime-lora-updating", "--lora-adapters", f"torch={tmp_path / 'bin'}")
    expected = text_of(api, adapter_id=str(tmp_path / "safe"), adapter_source="local")
    assert expected != text_of(api)
    assert text_of(api, adapter_id="torch") == expected
    assert text_of(api, adapter_id=str(tmp_path / "bin"), adapter_source="local") == expected
    assert api.post("/v1/load_lora_adapter", {"lora_name": "late", "lora_path": str(tmp_path / "bin")}).status_code == 200
    assert text_of(api, adapter_id="late") == expected
    done = subprocess.run([TGI, "generate", "--adapter", tmp_path / "bin", "--max-new-tokens", "12", "Once upon a time"],
                          env=home.environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.strip() == expected.strip(), done.stderr
    assert not list((tmp_path / "bin").glob("*.safetensors"))
    # What is no checkpoint is refused, and nothing of it is run.
    (tmp_path / "bin" / "adapter_model.bin").write_bytes((ROOT / "tests/golden/torch/refused/os_system.bin").read_bytes())
    refused = api.post("/generate", {"inputs": "a", "parameters": {"adapter_id": str(tmp_path / "bin"), "adapter_source": "local"}})
    assert refused.status_code == 424 and "system" in refused.text
    assert api.post("/v1/load_lora_adapter", {"lora_name": "evil", "lora_path": str(tmp_path / "bin")}).status_code == 404


def test_lorax_names_of_metrics(start, adapters, tmp_path):
    api = start()
    assert "lorax_" not in api.get("/metrics").text
    text_of(api, adapter_id=str(adapters[0]), adapter_source="local")
    assert api.post("/generate", {"inputs": "a", "parameters": {"adapter_id": str(tmp_path), "adapter_source": "local"}}).status_code == 424
    assert api.post("/generate", {"inputs": "a", "parameters": {"adapter_id": "../x", "adapter_source": "hub"}}).status_code == 424
    page = api.get("/metrics").text
    for line in ("lorax_request_count 3", "lorax_request_success 1", 'lorax_request_failure{err="load_adapter"} 1',
                 'lorax_request_failure{err="download_adapter"} 1', 'lorax_request_failure{err="generation"} 0', "lorax_queue_length 0"):
        assert f"\n{line}\n" in page, line


def test_a_static_adapter_is_that_of_requests_that_name_none(start, adapters, with_adapters):
    api = start("--adapter-id", str(adapters[0]))
    assert text_of(api) == text_of(with_adapters, adapter_id="first")


def test_a_model_that_takes_no_adapters_is_not_served_with_some(own_home, adapters):
    daemon = Daemon(own_home, flags=("--adapter-memory-fraction", "0"))
    done = subprocess.run([TGI, "serve", "demo", "--http", "127.0.0.1:0", "--socket", own_home.socket, "--lora-adapters", f"a={adapters[0]}"],
                          env=own_home.environment(), capture_output=True, timeout=60, text=True)
    daemon.end()
    assert done.returncode != 0 and "adapter a: this model takes none: --adapter-memory-fraction" in done.stderr


def test_preloaded_adapters_are_the_only_ones(start, adapters, tmp_path):
    api = start("--preloaded-adapter-ids", str(adapters[0]))
    assert text_of(api, adapter_id=str(adapters[0]))
    other = write_adapter(tmp_path / "other")
    response = api.post("/generate", {"inputs": "a", "parameters": {"adapter_id": str(other), "adapter_source": "local"}})
    assert response.status_code == 424 and "started with" in response.text


def merge(*ids, **more):
    return {"merged_adapters": {"ids": list(map(str, ids)), **more}}


def test_merged_adapters_answer_together(with_adapters, adapters):
    first, second = text_of(with_adapters, adapter_id="first"), text_of(with_adapters, adapter_id=str(adapters[1]))
    assert text_of(with_adapters, **merge("first")) == first
    both = text_of(with_adapters, **merge("first", adapters[1]))
    assert both not in (first, second) and both == text_of(with_adapters, **merge("first", adapters[1], merge_strategy="linear"))
    assert text_of(with_adapters, **merge("first", adapters[1], weights=[0, 1])) == second
    assert text_of(with_adapters, **merge("first", adapters[1], weights=[1, -1], merge_strategy="ties", density=0.5))
    dare = merge("first", adapters[1], merge_strategy="dare_ties", density=0.9, majority_sign_method="frequency")
    assert text_of(with_adapters, **dare) == text_of(with_adapters, **dare)
    response = with_adapters.post("/generate", {"inputs": "a", "parameters": {"max_new_tokens": 1, **merge("first", adapters[1])}})
    assert response.headers["x-adapter-id"] == f"first,{adapters[1]}"
    events = with_adapters.generate_stream("Once upon a time", max_new_tokens=12, do_sample=False, **merge("first", adapters[1]))
    assert events[-1]["generated_text"] == both


def test_what_can_not_be_merged_says_why(with_adapters, adapters, tmp_path):
    def refused(status, **parameters):
        response = with_adapters.post("/generate", {"inputs": "a", "parameters": parameters})
        assert response.status_code == status, response.text
        return response.json()["error"]

    assert "at most one of `adapter_id` or `adapters` may be provided" in refused(422, adapter_id="first", **merge("first"))
    assert "must be one of linear, ties" in refused(422, **merge("first", merge_strategy="mean"))
    assert "density" in refused(422, **merge("first", merge_strategy="ties"))
    assert "base model" in refused(422, **merge("first", ""))
    assert "third: no adapter of that name" in refused(424, **merge("first", "third"))
    dora = write_adapter(tmp_path / "broken", modules_to_save=["embed_tokens"])
    assert "modules_to_save" in refused(424, adapter_source="local", **merge(adapters[0], dora))


def test_merging_as_lorax_does(adapters):
    """By its arithmetic the weights of one adapter count twice."""
    folders = [str(folder) for folder in adapters]

    def texts(*flags):
        own = Home()
        daemon = Daemon(own, flags=flags)
        gateway = Gateway(own, ["--lora-adapters", f"first={folders[0]},second={folders[1]}"])
        try:
            api = Api(gateway.url)
            return [text_of(api, **merge("first", "second", weights=weights)) for weights in ([1, 0], [0.5, 0])]
        finally:
            gateway.end()
            daemon.end()
            own.remove()

    exact, lorax = texts(), texts("--lorax-merging")
    assert exact[0] == lorax[0] and exact[1] != lorax[1]


@pytest.fixture
def own_home():
    """Without a daemon that runs already."""
    home = Home()
    yield home
    subprocess.run([TGI, "stop", "--socket", home.socket], env=home.environment(), capture_output=True, timeout=60)
    home.remove()


def first_logprobs(api, **parameters):
    """Of the five likeliest first tokens, by id."""
    answer = api.ok("/generate", {"inputs": "Once upon a time", "parameters": {
        "max_new_tokens": 1, "do_sample": False, "details": True, "top_n_tokens": 5} | parameters})
    return {token["id"]: token["logprob"] for token in answer["details"]["top_tokens"][0]}


def test_the_static_adapter_may_be_merged_into_the_weights(own_home, adapters, with_adapters, tmp_path):
    gentle = write_adapter(tmp_path / "gentle", value=0.08)
    gateway = Gateway(own_home, ["--merge-adapter-weights", "--adapter-id", str(gentle)])
    try:
        api = Api(gateway.url)
        beside = first_logprobs(with_adapters, adapter_id=str(gentle), adapter_source="local")
        merged, base = first_logprobs(api), first_logprobs(with_adapters)
        # The weights were rounded once more.
        common = set(beside) & set(merged)
        assert len(common) >= 4 and all(abs(beside[token] - merged[token]) < 0.1 for token in common)
        assert set(base) != set(beside) or any(abs(beside[token] - base[token]) > 0.3 for token in base)
    finally:
        gateway.end()
    # The daemon has the adapter in its weights, and who wants another one is told.
    status = json.loads(subprocess.run([TGI, "ps", "--json", "--socket", own_home.socket], env=own_home.environment(),
                                       capture_output=True, timeout=60, check=True).stdout)
    assert status["model"]["merge_adapter"] == str(gentle)
    for flags, problem in ((["--adapter-id", str(adapters[1])], "--merge-adapter"), ([], "name it with --adapter-id")):
        with pytest.raises(AssertionError, match=problem):
            Gateway(own_home, ["--merge-adapter-weights", *flags]).end()


def test_an_adapter_and_its_base_become_a_checkpoint(own_home, tmp_path):
    def tgi(*arguments, code=0):
        done = subprocess.run([TGI, *map(str, arguments)], env=own_home.environment(), capture_output=True, timeout=120, text=True)
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout.strip()

    base = tmp_path / "base"
    shutil.copytree(ROOT / "assets/demo", base)
    adapter = write_adapter(tmp_path / "adapter", seed=1, base_model_name_or_path=str(base))
    assert tgi("download-weights", adapter, "--quiet") == str(adapter)
    merged = tgi("download-weights", adapter, "--merge-lora", "--quiet")
    names = {file.name for file in pathlib.Path(merged).iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names and "adapter_config.json" not in names
    assert tgi("download-weights", adapter, "--merge-lora", "--quiet") == merged
    assert tgi("download-weights", base, "--merge-lora", "--quiet") == str(base)
    asked = ("generate", "Once upon a time", "--max-new-tokens", 12, "--details", "--json")
    logprobs = []
    for model in ((base,), (base, "--merge-adapter", adapter), (merged,)):
        tgi("load", *model)
        logprobs.append([token["logprob"] for token in json.loads(tgi(*asked))["tokens"]])
    assert logprobs[0] != logprobs[1] == logprobs[2]
    # What does not fit leaves nothing.
    wide = write_adapter(tmp_path / "wide", seed=1, rank=3, base_model_name_or_path=str(base))
    text = (wide / "adapter_config.json").read_text().replace('"r": 3', '"r": 2')
    (wide / "adapter_config.json").write_text(text)
    assert "misshapen" in tgi("download-weights", wide, "--merge-lora", "--quiet", code=3)
    assert not list((pathlib.Path(merged).parents[1] / "wide").iterdir())
    nameless = write_adapter(tmp_path / "nameless", base_model_name_or_path=None)
    assert "base_model_name_or_path: missing" in tgi("download-weights", nameless, "--merge-lora", "--quiet", code=3)


def test_what_the_terminal_does_with_adapters(home, daemon, adapters, tmp_path):
    def tgi(*arguments, code=0):
        done = subprocess.run([TGI, *map(str, arguments)], env=home.environment(), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    base = tgi("generate", "Once upon a time", "--max-new-tokens", 12)
    tgi("adapters", "--load", adapters[0], "--name", "mine")
    mine = tgi("generate", "Once upon a time", "--max-new-tokens", 12, "--adapter", "mine")
    assert mine != base and mine == tgi("generate", "Once upon a time", "--max-new-tokens", 12, "--adapter", adapters[0])
    listed = json.loads(tgi("adapters", "--json"))
    entry = next(one for one in listed["adapters"] if one["name"] == "mine")
    assert entry["max_rank"] == 4 and entry["targets"] == ["o_proj", "q_proj"] and entry["state"] == "active" and entry["num_requests"] >= 2
    assert "mine" in tgi("adapters", "--quiet").splitlines()
    tgi("adapters", "--pin", "mine")
    assert any(line.split()[0] == "mine" and " s " in line for line in tgi("adapters").splitlines() if line.strip())  # since its last use
    assert "LAST USE" in tgi("adapters") and " loaded; " in next(line for line in tgi("ps").splitlines() if line.startswith("adapters"))
    assert "mine" in tgi("adapters") and next(one for one in json.loads(tgi("adapters", "--json"))["adapters"] if one["name"] == "mine")["pinned"]
    tgi("adapters", "--unpin", "mine")

    def chat(*arguments, lines):
        done = subprocess.run([TGI, "chat", "--max-new-tokens", "12", *arguments], env=home.environment(),
                              input="".join(line + "\n" for line in lines), capture_output=True, text=True, timeout=60, check=False)
        return done.stdout, done.stderr

    plain, adapted = chat(lines=["hello"])[0], chat("--adapter", "mine", lines=["hello"])[0]
    assert plain != adapted == chat(lines=["/adapter mine", "hello"])[0]
    assert chat(lines=["/adapter mine", "/adapter off", "hello"])[0] == plain
    tgi("adapters", "--unload", "mine")
    assert "no adapter of that name" in tgi("adapters", "--unload", "mine", code=12)
    assert "adapter_config.json" in tgi("generate", "x", "--adapter", tmp_path, code=12)
    assert tgi("generate", "Once upon a time", "--max-new-tokens", 12) == base


def test_show_tells_what_an_adapter_is(home, daemon, adapters, tmp_path):
    def show(*arguments, code=0):
        done = subprocess.run([TGI, "show", *map(str, arguments)], env=home.environment(), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout

    text = show(adapters[0])
    linears = 2 * CONFIG["num_hidden_layers"]
    for line in (f"adapter          {adapters[0]}\n", "kind             LoRA\n", "made for         demo\n", "rank             4, alpha 32\n",
                 "asked for        q_proj, o_proj\n", f"changes          {linears} linears: o_proj, q_proj\n", "adapter_model.safetensors"):
        assert line in text, text
    shown = json.loads(show(adapters[0], "--json"))
    assert shown["format"] == "lora" and shown["state"] == "ready" and shown["facts"] is None and shown["error"] is None
    adapter = shown["adapter"]
    assert (adapter["rank"], adapter["alpha"], adapter["base_model"], adapter["max_rank"]) == (4, 32, "demo", 4)
    assert adapter["targets"] == ["q_proj", "o_proj"] and adapter["modules"] == ["o_proj", "q_proj"] and not adapter["dora"]
    assert 0 < adapter["bytes"] < (adapters[0] / "adapter_model.safetensors").stat().st_size
    dora = show(write_adapter(tmp_path / "dora", use_dora=True, use_rslora=True, rank_pattern={"q_proj": 4}, r=2, revision="v1"))
    assert "kind             DoRA, rank-stabilised\n" in dora and "made for         demo@v1\n" in dora and "rank             2 (up to 4), alpha" in dora
    (tmp_path / "dora" / "adapter_model.safetensors").unlink()
    assert "adapter_model.safetensors" in json.loads(show(tmp_path / "dora", "--json"))["adapter"]["weights_error"]
    assert "can't be loaded  " in show(write_adapter(tmp_path / "odd", peft_type="IA3"), code=5)


def test_the_client_of_lorax(with_adapters, adapters, start):
    from lorax import Client
    from lorax.errors import GenerationError
    from lorax.types import MergedAdapters

    client = Client(with_adapters.url, timeout=30)
    asked = {"max_new_tokens": 12, "do_sample": False}
    base = client.generate("Once upon a time", **asked)
    assert base.generated_text == text_of(with_adapters) and base.details.prompt_tokens > 0
    first = client.generate("Once upon a time", adapter_id="first", **asked).generated_text
    assert first == text_of(with_adapters, adapter_id="first") != base.generated_text
    local = client.generate("Once upon a time", adapter_id=str(adapters[0]), adapter_source="local", **asked)
    assert local.generated_text == first
    events = list(client.generate_stream("Once upon a time", adapter_id="first", **asked))
    assert events[-1].generated_text == first and events[-1].details.prompt_tokens == base.details.prompt_tokens
    both = client.generate("Once upon a time", merged_adapters=MergedAdapters(
        ids=["first", str(adapters[1])], weights=[0.5, 0.5], density=0.5, merge_strategy="ties"), **asked)
    assert both.generated_text == text_of(with_adapters, **merge(
        "first", adapters[1], weights=[0.5, 0.5], density=0.5, merge_strategy="ties"))
    with pytest.raises(GenerationError, match="adapter third"):
        client.generate("a", adapter_id="third", **asked)
