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


def test_unknown_fields_are_ignored(api):
    body = {"inputs": "Once", "parameters": {"max_new_tokens": 2, "num_beams": 4, "x": {"y": []}}, "options":
            {"use_cache": False}, "model": "anything"}
    assert api.ok("/generate", body)["generated_text"]


def test_unknown_paths_and_methods(api):
    response = api.get("/nowhere")
    assert response.status_code == 404 and response.content == b""
    assert api.post("/v1/nowhere", {}).status_code == 404
    for path in ("/generate", "/generate_stream", "/v1/chat/completions", "/v1/completions", "/tokenize"):
        assert api.get(path).status_code == 405, path
    for path in ("/info", "/health", "/metrics", "/v1/models"):
        assert api.post(path, {}).status_code == 405, path


def test_an_unknown_model_is_a_404_on_openai_routes(api, gateway):
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    for stream in (False, True):
        error = openai_error(api.post("/v1/chat/completions",
                                      chat | {"model": "gpt-4", "stream": stream}), 404)
        assert error["code"] == "model_not_found" and "gpt-4" in error["message"]
    openai_error(api.post("/v1/completions", {"prompt": "a", "model": "gpt-4"}), 404)
    for name in (None, "", "tgi", gateway.model_name):
        assert api.ok("/v1/chat/completions", chat | {"model": name})["choices"]
