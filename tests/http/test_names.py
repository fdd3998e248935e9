"""Names of routes and models: OpenAI's routes without /v1, and models that are not here."""

import openai
import pytest

from client import Api, chat_body

GREEDY = {"temperature": 0, "max_tokens": 6}


def test_openai_clients_work_without_v1(gateway, api):
    client = openai.OpenAI(base_url=gateway.url, api_key="none")
    answer = client.chat.completions.create(model="demo", messages=chat_body("hi")["messages"], **GREEDY)
    assert answer.choices[0].message.content == api.chat("hi", **GREEDY)["choices"][0]["message"]["content"]
    assert [m.id for m in client.models.list()] == ["demo"]
    with pytest.raises(openai.APIStatusError, match="embed"):
        client.embeddings.create(model="demo", input="a")


def test_any_model_is_the_one_that_is_served(serve):
    api = Api(serve("--any-model").url)
    wanted = api.chat("hi", **GREEDY)["choices"][0]["message"]["content"]
    for name in ("gpt-4o", "meta-llama/Llama-3-8B", "demo", ""):
        answer = api.chat("hi", model=name, **GREEDY)
        assert answer["model"] == "demo" and answer["choices"][0]["message"]["content"] == wanted
    assert api.complete("a", model="gpt-4o", **GREEDY)["model"] == "demo"
    body = {"model": "llama3.2", "messages": chat_body("hi")["messages"], "stream": False, "options": {"temperature": 0, "num_predict": 6}}
    assert api.ok("/api/chat", body)["message"]["content"] == wanted


def test_without_it_a_name_that_is_not_here_is_404(api):
    for path, body in [("/v1/chat/completions", chat_body("a")), ("/chat/completions", chat_body("a")), ("/v1/completions", {"prompt": "a"})]:
        assert api.post(path, {"model": "gpt-4o", **body}).status_code == 404


@pytest.mark.parametrize("top_k", [0, -1])
def test_no_top_k_is_all_tokens(api, top_k):
    body = {"max_tokens": 8, "temperature": 1.2, "seed": 5}
    assert api.complete("Once", top_k=top_k, **body)["choices"] == api.complete("Once", **body)["choices"]
    assert api.post("/v1/completions", {"prompt": "Once", "top_k": -2}).status_code == 422
