"""Several models in one daemon: `model` of each API's body picks one, and each API tells of all."""

import subprocess

import pytest

from gateway import TGI, model_variant

SMALL = ("--kv-cache-memory", "2MiB")


@pytest.fixture(scope="module")
def second_folder(tmp_path_factory):
    """The demo model with another context, so that it is known from its facts."""
    return model_variant(tmp_path_factory.mktemp("second"), 128, [1, 2])


@pytest.fixture
def two(pair, second_folder):
    """A gateway on a daemon with the demo model and, as `second`, a variant of it."""
    return pair("--model", f"second={second_folder}", daemon_flags=SMALL)


def tgi(pair, *words):
    return subprocess.run([str(TGI), *words], env=pair.daemon.home.environment(), capture_output=True, text=True,
                          timeout=60)


def chat(model, **more):
    return {"model": model, "messages": [{"role": "user", "content": "Once"}], "max_tokens": 3, **more}


# Path, body, and where the answer names the model.
BODIES = [
    ("/v1/chat/completions", chat("second"), "model"),
    ("/v1/completions", {"model": "second", "prompt": "Once", "max_tokens": 3}, "model"),
    ("/v1/responses", {"model": "second", "input": "Once", "max_output_tokens": 16}, "model"),
    ("/v1/messages", chat("second"), "model"),
    ("/api/chat", {"model": "second", "messages": [{"role": "user", "content": "Once"}], "stream": False,
                   "options": {"num_predict": 3}}, "model"),
    ("/api/generate", {"model": "second:latest", "prompt": "Once", "stream": False, "options": {"num_predict": 3}},
     "model"),
    ("/completion", {"model": "second", "prompt": "Once", "n_predict": 3}, "model"),
    ("/generate", {"model": "second", "inputs": "Once", "parameters": {"max_new_tokens": 3}}, None),
    ("/v2/models/second/infer", {"inputs": [{"name": "text_input", "shape": [1], "datatype": "BYTES",
                                             "data": ["Once"]}], "parameters": {"max_new_tokens": 3}}, "model_name"),
]


def test_no_adapter_is_loaded_by_the_name_of_a_model(pair, second_folder):
    two = pair("--model", f"second={second_folder}", "--allow-runtime-lora-updating", daemon_flags=SMALL)
    for name in ("demo", "second"):
        refused = two.api.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": "/none"})
        assert refused.status_code == 400, refused.text
        assert refused.json()["error"]["message"] == f"The name '{name}' is that of a model."


def test_the_model_of_a_body_answers(two):
    def requests_of(name):
        metrics = two.api.get("/metrics").text
        label = f'{{model="{name}"}}' if name else ""
        line = next(line for line in metrics.splitlines() if line.startswith(f"tgi_engine_requests{label} "))
        return int(line.split()[-1])

    for path, body, named_in in BODIES:
        before = requests_of(None), requests_of("second")
        answer = two.api.post(path, body)
        assert answer.status_code == 200, (path, answer.text)
        if named_in:
            assert answer.json()[named_in] in ("second", "second:latest"), path
        assert (requests_of(None), requests_of("second")) == (before[0], before[1] + 1), path
    before = requests_of(None)
    assert two.api.post("/v1/chat/completions", chat("demo")).json()["model"] == "demo"
    assert requests_of(None) == before + 1


def test_the_limits_are_those_of_the_model_that_is_named(two):
    too_long = two.api.post("/v1/completions", {"model": "second", "prompt": "Once", "max_tokens": 500})
    assert too_long.status_code == 422 and "128" in too_long.text
    assert two.api.post("/v1/completions", {"prompt": "Once", "max_tokens": 130}).status_code == 200


def test_each_api_tells_of_all_models(two):
    assert [one["id"] for one in two.api.get("/v1/models").json()["data"]] == ["demo", "second"]
    assert two.api.get("/v1/models/second").json()["id"] == "second"
    names = ["demo:latest", "second:latest"]
    assert [one["name"] for one in two.api.get("/api/tags").json()["models"]] == names
    running = two.api.get("/api/ps").json()["models"]
    assert [one["name"] for one in running] == names and running[1]["context_length"] == 128
    assert two.api.post("/api/show", {"model": "second"}).json()["parameters"] == "num_ctx 128"
    assert two.api.get("/info").json()["model_id"] == "demo"


def test_an_unknown_model_is_refused_with_those_there_are(two):
    for path, body, _ in BODIES[:6]:
        refused = two.api.post(path, body | {"model": "third"})
        assert refused.status_code == 404, (path, refused.text)
        assert "demo" in refused.text and "second" in refused.text, path


def test_models_that_come_and_go_are_seen_at_once(two):
    loaded = tgi(two, "load", "demo", "--name", "late")
    assert loaded.returncode == 0, loaded.stderr
    assert two.api.post("/v1/chat/completions", chat("late")).json()["model"] == "late"
    assert tgi(two, "unload", "late").returncode == 0
    assert "late" not in two.api.get("/v1/models").text
    assert two.api.post("/v1/chat/completions", chat("late")).status_code == 404
    assert tgi(two, "unload", "second").returncode == 0
    assert [one["id"] for one in two.api.get("/v1/models").json()["data"]] == ["demo"]


def test_a_model_that_does_not_fit_changes_nothing(two):
    refused = tgi(two, "load", "demo", "--name", "large", "--kv-cache-memory", "900000GiB")
    assert refused.returncode != 0 and "loaded beside it: demo " in refused.stderr
    assert two.api.post("/v1/chat/completions", chat("second")).status_code == 200
    assert two.api.post("/v1/chat/completions", chat("demo")).status_code == 200


def test_any_model(pair, second_folder):
    api = pair("--model", f"second={second_folder}", "--any-model", daemon_flags=SMALL).api
    assert api.post("/v1/chat/completions", chat("third")).json()["model"] == "demo"
    assert api.post("/v1/chat/completions", chat("second")).json()["model"] == "second"
