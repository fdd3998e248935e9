"""What is wrong with the body rather than with its values: statuses, and who answers in which form."""

import json

import pytest

NATIVE = ["/generate", "/generate_stream", "/"]
OPENAI = ["/v1/chat/completions", "/v1/completions"]
MALFORMED = [b"", b"{", b"nonsense", b'{"inputs": "a"', b'{"inputs": "a"} x', b"{'inputs': 'a'}", b'{"inputs": "a",}',
             b"\xff\xfe", b'{"inputs": "\xff"}', b'{"inputs": "\n"}', b'{"inputs": NaN}', b"\x00"]
WRONG_TYPE = [
    {}, [], "text", 3, None, {"inputs": None}, {"inputs": 3}, {"inputs": ["a"]}, {"inputs": {}},
    {"inputs": "a", "parameters": []}, {"inputs": "a", "parameters": "x"},
    {"inputs": "a", "parameters": {"temperature": "hot"}}, {"inputs": "a", "parameters": {"top_k": 1.5}},
    {"inputs": "a", "parameters": {"top_k": 2147483648}}, {"inputs": "a", "parameters": {"best_of": -1}},
    {"inputs": "a", "parameters": {"max_new_tokens": -1}}, {"inputs": "a", "parameters": {"max_new_tokens": 4294967296}},
    {"inputs": "a", "parameters": {"max_new_tokens": 2.5}}, {"inputs": "a", "parameters": {"seed": -1}},
    {"inputs": "a", "parameters": {"seed": 18446744073709551616}}, {"inputs": "a", "parameters": {"stop": "x"}},
    {"inputs": "a", "parameters": {"stop": [1]}}, {"inputs": "a", "parameters": {"do_sample": "yes"}},
    {"inputs": "a", "parameters": {"details": 1}},
    {"inputs": "a", "parameters": {"watermark": []}}, {"inputs": "a", "parameters": {"truncate": -1}},
    {"inputs": "a", "parameters": {"top_n_tokens": -1}}, {"inputs": "a", "parameters": {"adapter_id": 1}},
]


def plain(response, status):
    """Body errors of the native routes are the web framework's: text, not the JSON error object."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"].startswith("text/plain")
    assert len(response.text) > 10


def openai_error(response, status):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error.keys() >= {"message", "type", "param", "code"}
    assert error["message"]
    return error


@pytest.mark.parametrize("path", NATIVE)
@pytest.mark.parametrize("body", MALFORMED, ids=repr)
def test_malformed_json_is_a_400(api, path, body):
    plain(api.post_bytes(path, body), 400)


@pytest.mark.parametrize("path", NATIVE)
@pytest.mark.parametrize("body", WRONG_TYPE, ids=json.dumps)
def test_a_wrong_type_or_a_missing_field_is_a_422(api, path, body):
    plain(api.post_bytes(path, json.dumps(body)), 422)


@pytest.mark.parametrize("path", NATIVE + ["/tokenize"])
def test_another_content_type_is_a_415(api, path):
    for content_type in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                         "application/jsonp", "json"):
        plain(api.post_bytes(path, b'{"inputs": "a"}', content_type), 415)


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8",
                                          "Application/JSON", "application/json;charset=UTF-8",
                                          "application/vnd.api+json", "application/cloudevents+json"])
def test_what_counts_as_json(api, content_type):
    body = b'{"inputs": "Once", "parameters": {"max_new_tokens": 1}}'
    assert api.post_bytes("/generate", body, content_type).status_code == 200


@pytest.mark.parametrize("path", NATIVE)
def test_a_body_over_the_limit_is_a_413(api, path):
    plain(api.post(path, {"inputs": "a" * 2_000_001}), 413)


def test_a_body_up_to_the_limit_is_read(api):
    empty = json.dumps({"inputs": ""})
    response = api.post_bytes("/generate", json.dumps({"inputs": "a" * (2_000_000 - len(empty))}))
    assert response.status_code == 422 and response.json()["error_type"] == "validation"


def test_the_limit_is_a_flag(serve):
    from client import Api
    api = Api(serve("--payload-limit", "300").url)
    assert api.post("/generate", {"inputs": "a" * 400}).status_code == 413
    assert api.generate("a", max_new_tokens=1)["generated_text"]


@pytest.mark.parametrize("path", OPENAI)
def test_openai_routes_answer_in_their_own_shape(api, path):
    for body in (b"", b"{", b"nonsense", b'{"model": "\xff"}', b'{"prompt": "a", "messages": []} x'):
        openai_error(api.post_bytes(path, body), 400)
    for body in ({}, [], "a", {"messages": "a"}, {"prompt": 3}, {"prompt": [], "messages": []},
                 {"prompt": "a", "messages": [{"role": "user", "content": "a"}], "max_tokens": "x"},
                 {"prompt": "a", "messages": [{"role": "user", "content": "a"}], "temperature": "x"},
                 {"prompt": "a", "messages": [{"content": "a"}], "max_tokens": -1},
                 {"prompt": "a", "messages": [{"role": "user"}], "max_tokens": 1.5}):
        openai_error(api.post(path, body), 422)
    openai_error(api.post_bytes(path, b'{"prompt": "a"}', "text/plain"), 415)
    openai_error(api.post(path, {"prompt": "a" * 2_000_001}), 413)


def test_invocations_looks_at_the_shape(api):
    parameters = {"max_new_tokens": 3}
    native = api.ok("/invocations", {"inputs": "Once", "parameters": parameters})
    assert native == api.ok("/", {"inputs": "Once", "parameters": parameters})
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
    assert api.ok("/invocations", chat)["object"] == "chat.completion"
    assert api.ok("/invocations", {"prompt": "Once", "max_tokens": 3})["object"] == "text_completion"
    assert api.events("/invocations", chat | {"stream": True})[-1] == "[DONE]"
    assert api.post("/invocations", {"nothing": 1}).status_code == 422


NATIVE_EXTRAS = [
    ({"options": {"use_cache": False}, "model": "anything"}, {"num_beams": 1, "pad_token_id": 0}, None),
    ({"unknown": None}, {"min_new_tokens": None, "api_token": "x"}, None),
    ({}, {"num_beams": 4}, "parameters.num_beams"), ({}, {"min_new_tokens": 3}, "min_new_tokens"), ({}, {"min_new_tokens": 2}, None),
    ({}, {"max_tokens": 3}, "parameters.max_tokens"), ({"max_new_tokens": 3}, {}, "max_new_tokens"),
    ({}, {"stop_sequences": ["a"]}, "parameters.stop_sequences"), ({"input": "a"}, {}, "input"),
]


@pytest.mark.parametrize("extra, parameters, name", NATIVE_EXTRAS, ids=repr)
def test_a_field_is_read_or_harmless_or_refused_by_name(api, extra, parameters, name):
    response = api.post("/generate", {"inputs": "Once", "parameters": {"max_new_tokens": 2} | parameters} | extra)
    if name is None:
        assert response.status_code == 200, response.text
    else:
        assert response.status_code == 422 and response.json()["error_type"] == "validation"
        assert f"`{name}`" in response.json()["error"]


OPENAI_EXTRAS = [
    ({"user": "me", "store": True, "metadata": {"a": "b"}, "service_tier": "auto"}, None),
    ({"stream_options": {"include_usage": True, "include_obfuscation": False}}, None),
    ({"min_tokens": 0, "guided_json": None, "skip_special_tokens": True, "use_beam_search": False}, None),
    ({"guided_choice": ["a"], "structured_outputs": None}, None), ({"structural_tag": {"type": "x"}}, "structural_tag"),
    ({"guided_whitespace_pattern": "[ \n]*"}, "guided_whitespace_pattern"), ({"min_tokens": 2}, None),
    ({"stop_token_ids": [1]}, "stop_token_ids"), ({"use_beam_search": True}, "use_beam_search"),
    ({"rid": "x", "no_stop_trim": False, "regex": "[ab]{2}"}, None), ({"ebnf": "root ::= \"a\""}, None),
    ({"no_stop_trim": True}, "no_stop_trim"), ({"return_hidden_states": True}, "return_hidden_states"),
    ({"max_token": 4}, "max_token"), ({"stream_options": {"usage": True}}, "stream_options.usage"),
]


@pytest.mark.parametrize("path, body", [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}), ("/v1/completions", {"prompt": "a"})])
@pytest.mark.parametrize("extra, name", OPENAI_EXTRAS, ids=repr)
def test_fields_of_other_servers_are_harmless_or_refused_by_name(api, path, body, extra, name):
    response = api.post(path, body | {"max_tokens": 2} | extra)
    if name is None:
        assert response.status_code == 200, response.text
    else:
        error = openai_error(response, 422)
        assert f"`{name}`" in error["message"]
        assert error["code"] in ("unsupported_feature", "unknown_parameter")


def test_unknown_paths_and_methods(api):
    response = api.get("/nowhere")
    assert response.status_code == 404 and "there is no route GET /nowhere" in response.json()["error"]
    assert "did you mean /v1/completions" in openai_error(api.post("/v1/completion", {}), 404)["message"]
    assert "did you mean /v1/chat/completions?" in openai_error(api.post("/v1/v1/chat/completions", {}), 404)["message"]
    assert "did you mean /generate" in api.post("/genrate", {}).json()["error"]
    for path in ("/generate", "/generate_stream", "/v1/chat/completions", "/v1/completions", "/tokenize"):
        response = api.get(path)
        assert response.status_code == 405 and response.headers["allow"] == "POST", path
        assert "this route takes POST" in response.text
    for path in ("/info", "/health", "/metrics", "/v1/models"):
        response = api.post(path, {})
        assert response.status_code == 405 and response.headers["allow"] == "GET, HEAD", path


def test_an_unknown_model_is_a_404_on_openai_routes(api, gateway):
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    for stream in (False, True):
        error = openai_error(api.post("/v1/chat/completions",
                                      chat | {"model": "gpt-4", "stream": stream}), 404)
        assert error["code"] == "model_not_found" and "gpt-4" in error["message"]
    openai_error(api.post("/v1/completions", {"prompt": "a", "model": "gpt-4"}), 404)
    for name in (None, "", "tgi", gateway.model_name):
        assert api.ok("/v1/chat/completions", chat | {"model": name})["choices"]
