"""litellm as people use it before a server of their own: chats, streams, tools, embeddings, and its exceptions, by several of its
providers. Not among what scripts/test_http installs, as it has 230 MB with what it needs; `pip install litellm pytest requests` into
any environment, and TGI_BUILD_DIR=build/release python -m pytest tests/http/test_litellm.py there."""

import json

import pytest

from client import Api
from gateway import ROOT

litellm = pytest.importorskip("litellm")

MESSAGES = [{"role": "user", "content": "What is tgi?"}]
TOOLS = [{"type": "function", "function": {
    "name": "weather", "description": "The weather of a place.",
    "parameters": {"type": "object", "properties": {"place": {"enum": ["Rome", "Oslo"]}}, "required": ["place"],
                   "additionalProperties": False}}}]


def of_provider(provider, url):
    """What names the demo model to a provider, and where that finds the server."""
    base = {"openai": "/v1", "hosted_vllm": "/v1", "openrouter": "/v1", "anthropic": "", "ollama_chat": ""}[provider]
    return {"model": f"{provider}/demo", "api_base": url + base, "api_key": "-", "max_retries": 0}


@pytest.fixture(scope="module", params=["openai", "hosted_vllm", "openrouter", "anthropic", "ollama_chat"])
def asked(request, gateway):
    return of_provider(request.param, gateway.url)


@pytest.fixture(scope="module")
def openai_way(gateway):
    return of_provider("openai", gateway.url)


def test_a_chat(asked, api):
    answer = litellm.completion(**asked, messages=MESSAGES, temperature=0, max_tokens=12)
    same = api.chat("What is tgi?", temperature=0, max_tokens=12)["choices"][0]["message"]["content"]
    assert answer.choices[0].message.content.strip() == same.strip() and answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 12 and answer.usage.prompt_tokens > 0


def test_a_stream(asked):
    whole = litellm.completion(**asked, messages=MESSAGES, temperature=0, max_tokens=40).choices[0].message.content
    chunks = list(litellm.completion(**asked, messages=MESSAGES, temperature=0, max_tokens=40, stream=True))
    assert len(chunks) > 5 and "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole


def test_openrouters_own_fields(gateway):
    way = of_provider("openrouter", gateway.url)
    plain = litellm.completion(**way, messages=MESSAGES, temperature=0, max_tokens=12)
    routed = litellm.completion(**way, messages=MESSAGES, temperature=0, max_tokens=12, route="fallback", models=["a/b"],
                                extra_body={"provider": {"order": ["x"], "data_collection": "deny"}})
    assert routed.choices[0].message.content == plain.choices[0].message.content
    chunks = list(litellm.completion(**way, messages=MESSAGES, temperature=0, max_tokens=12, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == plain.choices[0].message.content
    with pytest.raises(litellm.BadRequestError, match="transforms"):
        litellm.completion(**way, messages=MESSAGES, transforms=["middle-out"])


@pytest.mark.parametrize("stream", [False, True])
def test_tools(openai_way, stream):
    body = {"messages": [{"role": "user", "content": "Weather in Rome?"}], "tools": TOOLS, "tool_choice": "required",
            "parallel_tool_calls": False, "temperature": 0, "max_tokens": 100}
    answer = litellm.completion(**openai_way, **body, stream=stream)
    if stream:
        answer = litellm.stream_chunk_builder(list(answer), messages=body["messages"])
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "weather" and json.loads(call.function.arguments)["place"] in ("Rome", "Oslo")
    assert answer.choices[0].finish_reason == "tool_calls"


def test_embeddings(pair):
    model = ROOT / "tests/golden/vectors/bert"
    api = pair(model=str(model)).api
    answer = litellm.embedding(model="openai/tgi", api_base=api.url + "/v1", api_key="-", input=["a", "b c"], encoding_format="float")
    same = api.ok("/v1/embeddings", {"input": ["a", "b c"]})["data"]
    assert [each["embedding"] for each in answer.data] == [each["embedding"] for each in same]


def test_what_is_wrong_has_its_exception(openai_way, serve):
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(**openai_way | {"model": "openai/nope"}, messages=MESSAGES)
    with pytest.raises(litellm.BadRequestError, match="`max_tokens` must be <="):
        litellm.completion(**openai_way, messages=MESSAGES, max_tokens=10**6)
    key = serve("--api-key", "secret")
    assert Api(key.url, key="secret").get("/v1/models").status_code == 200
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(**of_provider("openai", key.url), messages=MESSAGES)
