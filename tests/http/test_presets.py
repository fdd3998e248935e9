"""Presets over HTTP: made, shown and removed by ollama's client, loaded when asked for, below what requests say."""

import json
import subprocess

import ollama
import pytest

from gateway import TGI

SYSTEM = "You are Mario."
GREEDY = {"temperature": 0, "num_predict": 8}
DRAWN = {"temperature": 3, "seed": 7, "top_k": 40, "top_p": 0.9, "num_predict": 8}
ASKED = [{"role": "user", "content": "Who are you?"}]


@pytest.fixture
def both(pair):
    return pair(daemon_flags=("--kv-cache-memory", "2MiB"))


@pytest.fixture
def client(both):
    return ollama.Client(host=both.gateway.url)


def tgi(both, *words, text=""):
    return subprocess.run([str(TGI), *words], env=both.daemon.home.environment(), input=text, capture_output=True,
                          text=True, timeout=60)


def test_a_preset_is_made_and_answers_by_its_name(both, client):
    statuses = [each.status for each in client.create("mario", from_="demo", system=SYSTEM, parameters=DRAWN, stream=True)]
    assert statuses[-1] == "success"
    assert {one.model for one in client.list().models} == {"demo:latest", "mario:latest"}
    answer = client.chat("mario", ASKED)
    # The same as asked for by hand.
    by_hand = client.chat("demo", [{"role": "system", "content": SYSTEM}] + ASKED, options=DRAWN)
    assert answer.message.content == by_hand.message.content and answer.eval_count == by_hand.eval_count == 8
    # What a request says wins.
    greedy = client.chat("mario", ASKED, options=GREEDY)
    assert greedy.message.content == client.chat(
        "demo", [{"role": "system", "content": SYSTEM}] + ASKED, options=GREEDY).message.content
    other = [{"role": "system", "content": "You are Luigi."}] + ASKED
    assert client.chat("mario", other, options=GREEDY).prompt_eval_count == client.chat(
        "demo", other, options=GREEDY).prompt_eval_count
    assert client.chat("mario", ASKED, options={"num_predict": 3}).eval_count == 3
    same = both.api.ok("/v1/chat/completions", {"model": "mario", "messages": ASKED})
    assert same["usage"]["completion_tokens"] == 8
    assert same["choices"][0]["message"]["content"] == answer.message.content


def test_it_is_shown_made_anew_and_removed(both, client):
    client.create("mario", from_="demo", system=SYSTEM, parameters={"temperature": 0, "stop": ["a", "b"]},
                  messages=[ollama.Message(role="user", content="hi")], license="MIT")
    assert client.chat("mario", ASKED, options={"num_predict": 2}).done
    shown = client.show("mario")
    assert "SYSTEM You are Mario." in shown.modelfile and 'stop "b"' in shown.parameters
    assert shown.license == "MIT" and shown.modelinfo["general.parameter_count"] > 1_000_000
    assert both.api.ok("/api/show", {"model": "mario"})["system"] == SYSTEM
    assert "mario" in tgi(both, "ls", "-q").stdout.split()
    # Of the preset: its lines hold where the new one says nothing else. And in its own place.
    client.create("luigi", from_="mario", parameters={"top_k": 5})
    text = tgi(both, "show", "--modelfile", "luigi").stdout
    assert "PARAMETER top_k 5" in text and "SYSTEM You are Mario." in text and "FROM demo" in text
    client.create("mario", from_="demo", system="You are someone else, as all can see.")
    assert "someone else" in client.show("mario").modelfile
    longer = client.chat("mario", ASKED, options={"num_predict": 2}).prompt_eval_count
    assert longer != client.chat("luigi", ASKED, options={"num_predict": 2}).prompt_eval_count
    client.delete("mario")
    with pytest.raises(ollama.ResponseError, match="mario"):  # the gateway may not have noticed yet
        client.chat("mario", ASKED)
    assert "mario" not in tgi(both, "ls", "-q").stdout.split()
    with pytest.raises(ollama.ResponseError, match="tgi rm"):
        client.delete("mario")


@pytest.mark.parametrize("body, says", [
    ({"from": "nothing"}, "from"), ({}, "from"), ({"from": "/etc/passwd"}, "not found"), ({"from": "demo", "model": "a/b"}, "model"),
    ({"from": "demo", "model": "demo"}, "other than demo"), ({"from": "demo", "parameters": {"mirostat": 1}}, "mirostat"),
    ({"from": "demo", "parameters": {"top_p": 2}}, "parameters.top_p"), ({"from": "demo", "parameters": {"stop": [1]}}, "parameters.stop"),
    ({"from": "demo", "parameters": []}, "parameters"), ({"from": "demo", "template": "{{ .Prompt }}"}, "Go's notation"),
    ({"from": "demo", "messages": [{"role": "tool", "content": "a"}]}, "messages[0].role"),
    ({"from": "demo", "messages": [{"role": "user", "content": "a", "images": ["b"]}]}, "messages[0].images"),
    ({"from": "demo", "quantize": "q4_K_M"}, "quantize"), ({"from": "demo", "files": {"a": "b"}}, "files"), ({"from": "demo", "renderer": "x"}, "renderer")])
def test_what_cannot_be_kept_is_refused_by_name(both, body, says):
    answer = both.api.post("/api/create", {"model": "mario", **body})
    assert answer.status_code in (400, 404), answer.text
    assert says in json.loads(answer.text)["error"]
    assert not (both.daemon.home.path / "state" / "tgi" / "presets").exists()
