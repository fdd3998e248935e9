"""ollama's API, by its own Python client, by LangChain's, and by plain requests for what these never send."""

import datetime
import json
import threading

import ollama
import pytest
import requests
from langchain_ollama import ChatOllama

from client import Api
from gateway import ROOT, wait_until, with_template

MODEL = "demo"
GREEDY = {"temperature": 0, "num_predict": 12}
PROMPT = "Once upon a time"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}}, "required": ["n", "ok"]}
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a place.",
    "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}}}
# The whole list of ollama's own documentation.
EVERY_OPTION = {
    "num_keep": 5, "seed": 42, "num_predict": 8, "top_k": 20, "top_p": 0.9, "min_p": 0.0, "typical_p": 0.7, "repeat_last_n": 33,
    "temperature": 0.8, "repeat_penalty": 1.2, "presence_penalty": 1.5, "frequency_penalty": 1.0, "penalize_newline": True,
    "stop": ["\n", "user:"], "numa": False, "num_ctx": 1024, "num_batch": 2, "num_gpu": 1, "main_gpu": 0, "use_mmap": True,
    "num_thread": 8}


@pytest.fixture(scope="session")
def client(gateway):
    return ollama.Client(host=gateway.url)


def lines_of(response):
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.content.endswith(b"\n")
    return [json.loads(line) for line in response.content.decode("utf-8").splitlines()]


def error_of(response, status):
    assert response.status_code == status, response.text
    body = response.json()
    assert list(body) == ["error"]
    return body["error"]


def user(text):
    return [{"role": "user", "content": text}]


def test_a_chat_is_what_the_openai_route_gives(client, api):
    answer = client.chat(MODEL, user("What is tgi?"), options=GREEDY)
    same = api.chat("What is tgi?", temperature=0, max_tokens=12)
    assert answer.message.role == "assistant"
    assert answer.message.content == same["choices"][0]["message"]["content"]
    assert answer.prompt_eval_count == same["usage"]["prompt_tokens"]
    assert answer.eval_count == same["usage"]["completion_tokens"] == 12
    assert answer.done and answer.done_reason == "length"
    assert answer.model == MODEL
    datetime.datetime.fromisoformat(answer.created_at.replace("Z", "+00:00"))


def test_whole_numbers_may_be_written_as_real_ones(api):
    options = {"num_predict": 2.0, "top_k": 40.0, "seed": 1.0, "repeat_last_n": 64.0}
    answer = api.post("/api/generate", {"model": MODEL, "prompt": "Once", "stream": False, "options": options}).json()
    assert answer["eval_count"] == 2
    for name in options:
        refused = api.post("/api/generate", {"model": MODEL, "prompt": "Once", "options": {name: 2.5}})
        assert name in error_of(refused, 400)


def test_a_zero_byte_in_a_name_is_shown(api):
    assert r"a\x00b" in error_of(api.post("/api/generate", {"model": "a\0b", "prompt": "Once"}), 404)
    assert r"a\x00b" in api.get("/v1/models/a%00b").json()["error"]["message"]


def test_durations_are_nanoseconds_that_add_up(client):
    answer = client.chat(MODEL, user("What is tgi?"), options=GREEDY)
    parts = answer.load_duration + answer.prompt_eval_duration + answer.eval_duration
    assert 0 < answer.eval_duration and 0 < answer.prompt_eval_duration
    assert parts <= answer.total_duration < 60e9


def test_a_chat_in_pieces_is_the_chat(client):
    whole = client.chat(MODEL, user("What is tgi?"), options=GREEDY)
    pieces = list(client.chat(MODEL, user("What is tgi?"), options=GREEDY, stream=True))
    assert len(pieces) > 2
    assert "".join(p.message.content for p in pieces) == whole.message.content
    assert [p.done for p in pieces] == [False] * (len(pieces) - 1) + [True]
    assert pieces[-1].eval_count == whole.eval_count and pieces[-1].done_reason == "length"
    assert all(p.eval_count is None and p.done_reason is None for p in pieces[:-1])


def test_an_answer_that_ends_by_itself_or_by_a_stop_has_the_reason_stop(client):
    answer = client.generate(MODEL, PROMPT, raw=True, options={"temperature": 0, "stop": ["."]})
    assert answer.done_reason == "stop" and "." not in answer.response
    assert client.generate(MODEL, PROMPT, raw=True, options={"temperature": 0, "stop": "."}).response == answer.response


def test_a_raw_prompt_is_what_the_completions_route_gives(client, api):
    answer = client.generate(MODEL, PROMPT, raw=True, options=GREEDY)
    assert answer.response == api.complete(PROMPT, temperature=0, max_tokens=12)["choices"][0]["text"]
    pieces = list(client.generate(MODEL, PROMPT, raw=True, options=GREEDY, stream=True))
    assert "".join(p.response for p in pieces) == answer.response


def test_a_prompt_is_shown_by_the_chat_template_with_its_system(client):
    def chat(messages):
        return client.chat(MODEL, messages, options=GREEDY).message.content

    assert client.generate(MODEL, "What is tgi?", options=GREEDY).response == chat(user("What is tgi?"))
    system = [{"role": "system", "content": "Be short."}]
    assert (client.generate(MODEL, "What is tgi?", system="Be short.", options=GREEDY).response
            == chat(system + user("What is tgi?")))


def test_without_a_template_a_prompt_goes_as_it_is(pair, tmp_path):
    served = pair(model=with_template(tmp_path, None))
    mine = ollama.Client(host=served.gateway.url)
    name = mine.list().models[0].model
    assert mine.generate(name, PROMPT, options=GREEDY).response == mine.generate(name, PROMPT, raw=True, options=GREEDY).response
    with pytest.raises(ollama.ResponseError, match="system"):
        mine.generate(name, PROMPT, system="Be short.", options=GREEDY)


def test_the_stream_is_the_default(gateway):
    body = {"model": MODEL, "prompt": PROMPT, "options": GREEDY}
    lines = lines_of(requests.post(gateway.url + "/api/generate", data=json.dumps(body)))  # without a content type, as curl -d
    assert len(lines) > 2 and lines[-1]["done"] and not lines[0]["done"]
    chat = lines_of(requests.post(gateway.url + "/api/chat", json={"model": MODEL, "messages": user("hi"), "options": GREEDY}))
    assert chat[0]["message"]["role"] == "assistant"


def test_every_option_of_the_documentation_is_taken(client):
    first = client.generate(MODEL, PROMPT, options=EVERY_OPTION)
    assert first.response == client.generate(MODEL, PROMPT, options=EVERY_OPTION).response
    assert client.chat(MODEL, user("hi"), options=ollama.Options(num_predict=3, top_k=0, seed=-1)).eval_count <= 3


def test_samplers_are_those_of_the_options(client, api):
    mine = client.generate(MODEL, PROMPT, raw=True, options={"num_predict": 16, "seed": 5}).response
    same = api.complete(PROMPT, max_tokens=16, seed=5, temperature=0.8, top_k=40, top_p=0.9)["choices"][0]["text"]
    assert mine == same, "the defaults are ollama's"
    given = {"num_predict": 16, "seed": 5, "temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0.1, "repeat_penalty": 1.3}
    mine = client.generate(MODEL, PROMPT, raw=True, options=given).response
    same = api.complete(PROMPT, max_tokens=16, seed=5, temperature=1.5, min_p=0.1, repetition_penalty=1.3)["choices"][0]["text"]
    assert mine == same
    greedy = client.generate(MODEL, PROMPT, raw=True, options={"num_predict": 16, "temperature": 0}).response
    assert client.generate(MODEL, PROMPT, raw=True, options={"num_predict": 16, "top_p": 0, "seed": 9}).response == greedy
    loud = {"num_predict": 16, "temperature": 0, "repeat_penalty": 5.0, "presence_penalty": 2.0}
    assert client.generate(MODEL, PROMPT, raw=True, options=loud).response != greedy
    assert client.generate(MODEL, PROMPT, raw=True, options=loud | {"repeat_last_n": 0}).response == greedy


def test_an_answer_has_the_form_that_is_asked_for(client):
    options = {"temperature": 0, "num_predict": 60}
    answer = client.chat(MODEL, user("Count."), format=SCHEMA, options=options)
    assert set(json.loads(answer.message.content)) == {"n", "ok"}
    text = "".join(p.response for p in client.generate(MODEL, "Count.", format=SCHEMA, options=options, stream=True))
    assert set(json.loads(text)) == {"n", "ok"}
    assert isinstance(json.loads(client.generate(MODEL, "Count.", format="json", options=options).response), dict)
    assert client.generate(MODEL, PROMPT, format="", options=options).response


def test_tools_are_called_with_objects_and_their_results_go_back(client):
    asked = user("What is the weather in Rome? Call the tool.")
    options = {"seed": 1, "num_predict": 200}
    for stream in (False, True):
        answers = client.chat(MODEL, asked, tools=[WEATHER], options=options, stream=stream)
        answers = list(answers) if stream else [answers]
        calls = [c for a in answers for c in a.message.tool_calls or []]
        for call in calls:
            assert call.function.name == "get_weather"
            assert call.function.arguments["city"] in ("Rome", "Oslo")
        assert answers[-1].done
    call = {"function": {"name": "get_weather", "arguments": {"city": "Rome"}}}
    history = asked + [{"role": "assistant", "content": "", "tool_calls": [call]},
                       {"role": "tool", "tool_name": "get_weather", "content": "sunny"}]
    assert client.chat(MODEL, history, tools=[WEATHER], options=GREEDY).message.content is not None


def test_log_probabilities(client, api):
    answer = client.generate(MODEL, PROMPT, raw=True, options=GREEDY, logprobs=True, top_logprobs=2)
    assert len(answer.logprobs) == 12 and all(len(each.top_logprobs) == 2 for each in answer.logprobs)
    assert "".join(each.token for each in answer.logprobs) == answer.response
    same = api.complete(PROMPT, temperature=0, max_tokens=12, logprobs=2)["choices"][0]["logprobs"]["token_logprobs"]
    assert [each.logprob for each in answer.logprobs] == pytest.approx(same)
    pieces = list(client.chat(MODEL, user("hi"), options=GREEDY, logprobs=True, stream=True))
    assert sum(len(p.logprobs or []) for p in pieces) == len(client.chat(MODEL, user("hi"), options=GREEDY, logprobs=True).logprobs)


def test_no_prompt_asks_whether_the_model_is_here(client, api):
    assert client.generate(MODEL).done_reason == "load"
    assert client.chat(MODEL).done_reason == "load"
    assert client.chat(MODEL, [], keep_alive="10m").message.content == ""
    assert lines_of(api.post("/api/generate", {"model": MODEL}))[0]["done"]
    with pytest.raises(ollama.ResponseError, match="keep_alive"):
        client.generate(MODEL, keep_alive="soon")


def test_models_are_told(client, api):
    (one,) = client.list().models
    assert one.model == "demo:latest" and one.size > 1_000_000 and len(one.digest) == 64
    assert one.details.family == "llama" and one.details.parameter_size.endswith("M")
    for name in (MODEL, one.model):
        shown = client.show(name)
        assert shown.modelinfo["general.parameter_count"] > 1_000_000
        assert shown.modelinfo["llama.context_length"] == api.total_tokens()
        assert shown.modelinfo["llama.block_count"] > 0
        assert "completion" in shown.capabilities
    (running,) = client.ps().models
    assert running.model == "demo:latest" and running.context_length == api.total_tokens() and running.size >= one.size
    assert api.ok_get("/api/version")["version"].split("+")[1].startswith("tgi.")


def test_models_are_told_at_every_moment_of_a_change(pair):
    """One that goes to give its memory back is there before, meanwhile and afterwards."""
    api, answers, over = Api(pair().gateway.url), [], threading.Event()

    def watch():
        while not over.is_set():
            answers.extend(api.get(path) for path in ("/api/tags", "/v1/models"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _ in range(8):
            api.ok("/api/chat", {"model": MODEL, "messages": user("hi"), "stream": False, "keep_alive": 0, "options": GREEDY})
            wait_until(lambda: api.ok_get("/api/ps")["models"] == [])
    finally:
        over.set()
        watcher.join()
    assert len(answers) > 16
    assert [(a.url, a.status_code, a.text) for a in answers if a.status_code != 200] == []


def test_names(client, api):
    for name in ("demo", "demo:latest"):
        assert client.generate(name, PROMPT, options=GREEDY).model == name
    assert lines_of(api.post("/api/pull", {"model": MODEL}))[-1] == {"status": "success"}
    assert client.pull("demo:latest").status == "success"
    assert list(client.pull(MODEL, stream=True))[-1].status == "success"
    for path, body in [("/api/chat", {"messages": user("hi")}), ("/api/generate", {"prompt": "a"}), ("/api/generate", {}),
                       ("/api/show", {}), ("/api/embed", {"input": "a"}), ("/api/embeddings", {"prompt": "a"})]:
        text = error_of(api.post(path, {"model": "llama3.2", **body}), 404)
        assert "model 'llama3.2' not found" in text and "demo" in text
        assert "model" in error_of(api.post(path, body), 400)
    assert "demo:7b" in error_of(api.post("/api/show", {"name": "demo:7b"}), 404)
    assert api.ok("/api/show", {"name": MODEL})["details"]


@pytest.mark.parametrize("call, command", [
    (lambda c: c.delete(MODEL), "tgi rm"), (lambda c: c.copy(MODEL, "b"), "tgi serve"), (lambda c: c.push(MODEL), "tgi ls"),
    (lambda c: c.pull("llama3.2"), "tgi load")])
def test_what_a_gateway_cannot_do_is_refused_with_the_command_that_does(client, call, command):
    with pytest.raises(ollama.ResponseError, match=command) as refused:
        call(client)
    assert refused.value.status_code == 501


BAD = [
    ({"suffix": "b"}, "suffix"), ({"template": "{{ .Prompt }}"}, "template"), ({"context": [1]}, "context"),
    ({"images": ["AAAA"]}, "images"), ({"width": 64}, "width"), ({"frmat": "json"}, "frmat"), ({"format": 3}, "format"),
    ({"format": "xml"}, "format"), ({"think": True}, "does not support thinking"), ({"think": "very"}, "think"), ({"think": 3}, "think"),
    ({"options": {"mirostat": 1}}, "options.mirostat"), ({"options": {"tfs_z": 0.5}}, "options.tfs_z"),
    ({"options": {"temprature": 1}}, "options.temprature"), ({"options": {"temperature": -1}}, "temperature"),
    ({"options": {"temperature": "hot"}}, "options.temperature"), ({"options": {"top_p": 2}}, "top_p"),
    ({"options": {"top_k": 1.5}}, "options.top_k"), ({"options": {"min_p": -1}}, "min_p"),
    ({"options": {"typical_p": 0}}, "typical_p"), ({"options": {"repeat_penalty": 0}}, "repeat_penalty"),
    ({"options": {"repeat_last_n": -2}}, "repeat_last_n"), ({"options": []}, "options"),
    ({"options": {"presence_penalty": 9}}, "presence_penalty"), ({"options": {"stop": [""]}}, "stop"),
    ({"prompt": 3}, "prompt"), ({"stream": "yes"}, "stream"), ({"top_logprobs": 99}, "logprobs")]


@pytest.mark.parametrize("more, named", BAD, ids=[json.dumps(m) for m, _ in BAD])
def test_what_is_wrong_is_refused_by_name(api, more, named):
    assert named in error_of(api.post("/api/generate", {"model": MODEL, "prompt": PROMPT, **more}), 400)


def test_bad_conversations_are_refused(api):
    for messages, named in [("hi", "messages"), (["hi"], r"messages[0]"), ([{"content": "a"}], "role"),
                            ([{"role": "user", "content": "a", "images": ["AAAA"]}], "messages[0].images"),
                            ([{"role": "user", "content": 3}], "content"),
                            ([{"role": "assistant", "tool_calls": 3}], "tool_calls")]:
        assert named in error_of(api.post("/api/chat", {"model": MODEL, "messages": messages}), 400)
    assert "JSON" in error_of(api.post_bytes("/api/chat", b"{"), 400)
    assert "no route" in error_of(api.post("/api/nope", {}), 404)
    assert "takes POST" in error_of(api.get("/api/chat"), 405)
    assert "embed" in error_of(api.post("/api/embed", {"model": MODEL, "input": "a"}), 400)


def test_keys_guard_what_generates(serve):
    served = serve("--api-key", "secret", env={"HOSTNAME": "127.0.0.1"})
    url = f"http://127.0.0.1:{served.port}"
    with pytest.raises(ollama.ResponseError) as refused:
        ollama.Client(host=url).generate(MODEL, PROMPT)
    assert refused.value.status_code == 401
    named = ollama.Client(host=url, headers={"Authorization": "Bearer secret"})
    assert named.generate(MODEL, PROMPT, options=GREEDY).response
    assert ollama.Client(host=url).list().models


def test_vectors(pair):
    served = pair(model=str(ROOT / "tests/golden/vectors/bert-cls"))
    mine = ollama.Client(host=served.gateway.url)
    name = mine.list().models[0].model
    texts = ["a small fox", "the sea"]
    answer = mine.embed(name, texts)
    assert len(answer.embeddings) == 2 and answer.prompt_eval_count > 2
    assert [sum(x * x for x in v) for v in answer.embeddings] == pytest.approx([1, 1], abs=1e-4)
    assert mine.embed(name, texts[0]).embeddings[0] == answer.embeddings[0]
    assert mine.embed(name, []).embeddings == []
    old = mine.embeddings(name, texts[0]).embedding
    assert len(old) == len(answer.embeddings[0])
    assert mine.show(name).capabilities == ["embedding"]
    assert mine.embed(name, texts, options={"num_ctx": 64}, keep_alive=-1, truncate=True).embeddings == answer.embeddings
    assert "input" in error_of(Api(served.gateway.url).post("/api/embed", {"model": name, "input": 3}), 400)


def test_langchain(gateway):
    chat = ChatOllama(model=MODEL, base_url=gateway.url, temperature=0, num_predict=12, validate_model_on_init=True,
                      repeat_last_n=64, top_k=10, keep_alive="5m")
    whole = chat.invoke("What is tgi?")
    assert whole.content == "".join(piece.content for piece in chat.stream("What is tgi?"))
    assert whole.usage_metadata["output_tokens"] == 12 and whole.response_metadata["done_reason"] == "length"
    longer = ChatOllama(model=MODEL, base_url=gateway.url, temperature=0, num_predict=60)
    form = longer.with_structured_output(SCHEMA, method="json_schema")
    assert set(form.invoke("Count.")) == {"n", "ok"}
    assert chat.bind_tools([WEATHER]).invoke("hi").response_metadata["done"]
