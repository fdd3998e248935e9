"""What depends on the model's folder: chat templates that fail or are missing, limits by flags, unloading and loading."""

import json
import subprocess

import pytest

from client import Api, chat_body
from gateway import TGI, Gateway, wait_until, with_template

RAISES = ("{% if messages[0]['role'] != 'user' %}{{ raise_exception('begin with the user') }}{% endif %}"
          "{{ bos_token }}{{ messages[0]['content'] }}")


def template_error(response, openai=True):
    assert response.status_code == 422
    body = response.json()
    message = body["error"]["message"] if openai else body["error"]
    assert message.startswith("Template error: ") and body["error_type"] == "template_error"
    return message


@pytest.mark.parametrize("stream", [False, True])
def test_a_template_that_refuses(pair, tmp_path, stream):
    api = pair(model=with_template(tmp_path, RAISES)).api
    body = {"messages": [{"role": "system", "content": "x"}], "stream": stream, "max_tokens": 2}
    assert "begin with the user" in template_error(api.post("/v1/chat/completions", body))
    template_error(api.post("/chat_tokenize", body), openai=False)
    assert api.chat("Once upon a time", max_tokens=4, temperature=0)["choices"][0]["message"]["content"] == \
        api.generate("Once upon a time", max_new_tokens=4)["generated_text"]
    assert 'tgi_request_failure{err="template"} 1' in api.get("/metrics").text


SHOWS = ("{% for m in messages %}{% if m.tool_calls %}<calls {% for c in m.tool_calls %}{{ c.function.name }}{{ c.function.arguments "
         "| tojson }}{% endfor %}>{% elif m.content is string %}<{{ m.content }}>{% else %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endif %}{% endfor %}"
         "{% if tools %}{{ tools[0].function.name }}{% endif %}{{ '!' if enable_thinking is defined and not enable_thinking }}")


def test_what_a_template_is_given(pair, tmp_path):
    api = pair(model=with_template(tmp_path, SHOWS)).api
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                         {"role": "assistant", "content": None, "tool_calls": [
                             {"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
                         {"role": "user", "content": "c"}]}
    text = '[a][b]<calls f{"a": 1}><c>'
    assert api.ok("/chat_tokenize", body)["templated_text"] == text
    tools = [{"type": "function", "function": {"name": "look"}}]
    kwargs = {"enable_thinking": False}
    whole = body | {"tools": tools, "chat_template_kwargs": kwargs}
    assert api.ok("/chat_tokenize", whole)["templated_text"] == text + "look!"
    assert api.ok("/chat_tokenize", whole | {"tool_choice": "none"})["templated_text"] == text + "!"
    tokens = [len(api.ok("/chat_tokenize", one)["tokenize_response"]) for one in (body, body | {"chat_template_kwargs": kwargs})]
    chats = [api.ok("/v1/chat/completions", one | {"max_tokens": 1})["usage"]["prompt_tokens"]
             for one in (body, body | {"chat_template_kwargs": kwargs})]
    assert chats == tokens and tokens[1] > tokens[0]
    reserved = body | {"chat_template_kwargs": {"messages": []}}
    assert "'messages' is reserved" in template_error(api.post("/v1/chat/completions", reserved))
    template_error(api.post("/chat_tokenize", reserved), openai=False)
    image = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}
    assert api.post("/chat_tokenize", image).status_code == 422


def test_a_model_without_a_template(pair, tmp_path):
    api = pair(model=with_template(tmp_path, None)).api
    template_error(api.post("/v1/chat/completions", chat_body("hi")))
    template_error(api.post("/v1/chat/completions", chat_body("hi", stream=True)))
    assert api.complete("Once", max_tokens=2)["choices"]


def test_the_name_of_a_folder_is_the_models(pair, tmp_path):
    folder = tmp_path / "my-model"
    folder.mkdir()
    one = pair(model=with_template(folder, None))
    name = one.api.ok_get("/info")["model_id"]
    assert "my-model" in name
    assert one.api.complete("a", max_tokens=1, model=name)["model"] == name


def test_limits_of_tokens_by_flags(serve):
    api = Api(serve("--max-input-tokens", "10", "--max-total-tokens", "20").url)
    info = api.ok_get("/info")
    assert (info["max_input_tokens"], info["max_total_tokens"]) == (10, 20)
    too_long = api.post("/generate", {"inputs": "a b c d e f g h i j k l", "parameters": {"max_new_tokens": 1}})
    assert too_long.status_code == 422 and "`inputs` must have less than 10 tokens" in too_long.json()["error"]
    past = api.post("/generate", {"inputs": "a", "parameters": {"max_new_tokens": 19}})
    assert past.status_code == 422 and "must be <= 20" in past.json()["error"]
    assert api.generate("Once", details=True)["details"]["generated_tokens"] <= 18
    past = api.post("/v1/chat/completions", chat_body("word " * 30))
    assert past.status_code == 422


def test_a_model_is_unloaded_and_loaded_again(pair):
    one = pair()
    tgi = lambda *words: subprocess.run([TGI, *words, "--socket", one.daemon.home.socket], timeout=60, check=True,
                                        env=one.daemon.home.environment(), capture_output=True)
    tgi("unload")
    assert one.api.get("/health").status_code == 503
    for path, body in (("/generate", {"inputs": "a"}), ("/v1/chat/completions", chat_body("a")),
                       ("/v1/completions", {"prompt": "a", "stream": True})):
        response = one.api.post(path, body)
        assert response.status_code in (500, 502, 503), path
        assert response.json()["error"]
    tgi("load", "demo")
    wait_until(lambda: one.api.get("/health").status_code == 200)
    assert one.api.generate("Once", max_new_tokens=2)["generated_text"]


def test_a_model_that_is_not_there_is_an_error(home_of_its_own):
    done = subprocess.run([TGI, "serve", "/nowhere/at/all", "--http", "127.0.0.1:0"], timeout=30,
                          env=home_of_its_own.environment(), capture_output=True)
    assert done.returncode in (3, 4) and b"/nowhere/at/all" in done.stderr


def test_flags_from_the_environment_as_containers_set_them(home, daemon):
    env = {"MODEL_ID": "demo", "PORT": "0", "HOSTNAME": "127.0.0.1", "MAX_CONCURRENT_REQUESTS": "7",
           "MAX_BEST_OF": "3", "JSON_OUTPUT": "true", "MAX_CLIENT_BATCH_SIZE": "2"}
    gateway = Gateway(home, env=env, model=None, http=None)
    try:
        info = Api(gateway.url).ok_get("/info")
        assert (info["max_concurrent_requests"], info["max_best_of"], info["max_client_batch_size"]) == (7, 3, 2)
    finally:
        gateway.end()


def test_prompts_and_keys_are_not_logged_even_when_it_says_more(serve):
    gateway = serve(env={"LOG_LEVEL": "debug", "API_KEY": "a-key-to-keep"})
    api = Api(gateway.url, "a-key-to-keep")
    api.generate("a prompt to keep", max_new_tokens=3, stop=["a stop to keep"])
    api.chat("a prompt to keep", max_tokens=3)
    api.post("/generate", {"inputs": "a prompt to keep", "parameters": {"top_k": 0}})
    api.post_bytes("/generate", b'{"inputs": "a prompt to keep"')
    Api(gateway.url, "a-key-to-keep-not").post("/generate", {"inputs": "a prompt to keep"})
    wait_until(lambda: gateway.log().count("/generate") >= 4)
    assert "to keep" not in gateway.log() and "a-key" not in gateway.log()


def test_ids_and_traces_of_clients_do_no_harm(api):
    good = {"X-Request-Id": "abc-123", "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}
    body = {"inputs": "a", "parameters": {"max_new_tokens": 1}}
    assert api.post("/generate", body, headers=good).headers["x-request-id"] == "abc-123"
    for value in ("", "x", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "ff-" + "a" * 60, "é", "a" * 5000, "%s%n{}", "../.."):
        headers = {"X-Request-Id": value.encode(), "traceparent": value.encode(), "tracestate": value.encode()}
        assert api.post("/generate", body, headers=headers).status_code == 200


def test_a_query_is_passed_over_and_a_slash_is_not(api):
    assert api.get("/info?x=1&y=%20").status_code == 200
    assert api.post("/generate?stream=true", {"inputs": "a", "parameters": {"max_new_tokens": 1}}).status_code == 200
    assert api.get("/info/").status_code == 404
    assert api.get("//info").status_code == 404
