"""Anthropic's Messages: what the official client reads and sends, its types held to the letter, and what is refused."""

import json
from typing import Literal

import anthropic
import pytest
import requests
from anthropic.types import ErrorResponse, Message, RawMessageStreamEvent
from pydantic import BaseModel, TypeAdapter

from client import Api
from gateway import with_template
from test_tools import CITY, THINKS

WEATHER = {"name": "get_weather", "description": "The weather.", "input_schema": CITY, "cache_control": {"type": "ephemeral"}}
PING = {"name": "ping", "type": "custom", "input_schema": {"type": "object"}}
TOOLS = [WEATHER, PING]
HELLO = [{"role": "user", "content": "What is tgi?"}]
EVENT = TypeAdapter(RawMessageStreamEvent)


def client_of(gateway, **more):
    return anthropic.Anthropic(base_url=gateway.url, api_key="-", max_retries=0, **more)


@pytest.fixture(scope="module")
def client(gateway):
    return client_of(gateway)


def body_of(**more):
    return {"model": "tgi", "max_tokens": 20, "messages": HELLO} | more


def ask(api, **more):
    """A whole answer, which is what the official type says."""
    answer = api.ok("/v1/messages", body_of(**more))
    return TypeAdapter(Message).validate_json(json.dumps(answer))


def collect(api, **more):
    """The events of a stream, in their order, and the message they come to."""
    answer = api.post("/v1/messages", body_of(stream=True, **more))
    assert answer.status_code == 200, answer.text
    events = []
    for block in answer.text.split("\n\n")[:-1]:
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == "event: " + events[-1]["type"]
        if events[-1]["type"] != "ping":
            EVENT.validate_json(data.removeprefix("data: "))
    assert [e["type"] for e in events[:2]] == ["message_start", "ping"]
    assert [e["type"] for e in events[-2:]] == ["message_delta", "message_stop"]
    message, is_open = events[0]["message"], False
    assert message["content"] == [] and message["stop_reason"] is None
    for event in events[2:-2]:
        if event["type"] == "content_block_start":
            assert not is_open and event["index"] == len(message["content"])
            message["content"].append(event["content_block"])
            is_open, written = True, ""
        elif event["type"] == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            assert is_open and event["index"] == len(message["content"]) - 1
            if delta["type"] == "input_json_delta":
                written += delta["partial_json"]
                continue
            name = delta["type"].removesuffix("_delta")
            block[name] += delta[name]
        else:
            assert event["type"] == "content_block_stop" and is_open
            if message["content"][-1]["type"] == "tool_use":
                message["content"][-1]["input"] = json.loads(written or "{}")
            is_open = False
    assert not is_open
    return events, message | events[-2]["delta"] | {"usage": message["usage"] | events[-2]["usage"]}


def same(whole, streamed):
    """Ids are drawn anew; what was in the cache depends on who asked before."""
    def bare(message):
        message = json.loads(json.dumps(message))
        for block in message["content"]:
            block.pop("id", None)
        usage = message.pop("usage")
        message["tokens"] = [usage["input_tokens"] + usage["cache_read_input_tokens"], usage["output_tokens"]]
        message.pop("id")
        return message
    return bare(whole) == bare(streamed)


@pytest.mark.parametrize("more, reason", [
    ({"max_tokens": 5}, "max_tokens"), ({"max_tokens": 400}, "end_turn"),
    ({"max_tokens": 100, "stop_sequences": ["zzz", "."]}, "stop_sequence")], ids=str)
def test_a_text_whole_and_streamed(api, client, more, reason):
    more = more | {"temperature": 0}
    whole = api.ok("/v1/messages", body_of(**more))
    assert ask(api, **more).stop_reason == reason == whole["stop_reason"]
    assert whole["stop_sequence"] == ("." if reason == "stop_sequence" else None)
    assert same(whole, collect(api, **more)[1])
    chat = api.ok("/v1/chat/completions", {"messages": HELLO, "max_tokens": more["max_tokens"], "temperature": 0,
                                           "stop": more.get("stop_sequences")})
    assert whole["content"] == [{"type": "text", "text": chat["choices"][0]["message"]["content"]}]
    usage = whole["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] == chat["usage"]["prompt_tokens"]
    assert usage["output_tokens"] == chat["usage"]["completion_tokens"]
    extra = {"temperature": 0}
    theirs = client.messages.create(**body_of(**{k: v for k, v in more.items() if k != "temperature"}), extra_body=extra)
    assert theirs.content[0].text == whole["content"][0]["text"] and theirs.role == "assistant" and theirs._request_id


def test_the_official_client_streams(client):
    with client.messages.stream(max_tokens=12, messages=HELLO, model="tgi") as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert final.content[0].text == text and final.stop_reason == "max_tokens"
    assert final.usage.output_tokens == 12 and final.usage.input_tokens >= 0


def test_more_tokens_than_there_is_room_for(api):
    """Anthropic's clients always say how many; where the model ends first, the answer says so."""
    room = api.total_tokens()
    text = "tgi is. " * (room // 4)
    for stream in (False, True):
        more = {"max_tokens": 32_000, "temperature": 0, "system": "Once"}
        message = collect(api, **more)[1] if stream else api.ok("/v1/messages", body_of(**more))
        assert message["stop_reason"] in ("end_turn", "model_context_window_exceeded")
        answer = api.post("/v1/messages", body_of(messages=[{"role": "user", "content": text * 8}], stream=stream))
        assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"


def test_the_context_ends(pair, endless_model):
    api = pair(model=endless_model, daemon_flags=("--max-total-tokens", "60")).api
    assert api.ok("/v1/messages", body_of(max_tokens=32_000))["stop_reason"] == "model_context_window_exceeded"
    assert collect(api, max_tokens=32_000)[1]["stop_reason"] == "model_context_window_exceeded"
    assert api.ok("/v1/messages", body_of(max_tokens=4))["stop_reason"] == "max_tokens"


def test_too_few_tokens_for_a_form_are_refused(api):
    must = {"tools": [PING], "tool_choice": {"type": "any"}}
    form = {"output_config": {"format": {"type": "json_schema", "schema": {"enum": ["a text that takes some tokens"]}}}}
    for more in (must, form):
        for stream in (False, True):
            answer = api.post("/v1/messages", body_of(max_tokens=1, stream=stream, **more))
            assert answer.status_code == 400, answer.text
            assert "`max_tokens` is too few for the form" in answer.json()["error"]["message"]
    assert api.ok("/v1/messages", body_of(max_tokens=32_000, **must))["stop_reason"] == "tool_use"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_tools_are_called_and_their_results_read(api, client, stream):
    for seed in range(4):
        more = {"tools": TOOLS, "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "seed": seed,
                "temperature": 1.3, "max_tokens": 250}
        message = collect(api, **more)[1] if stream else api.ok("/v1/messages", body_of(**more))
        assert message["stop_reason"] == "tool_use" and len(message["content"]) == 1
        call = message["content"][0]
        assert call["type"] == "tool_use" and call["name"] in ("get_weather", "ping") and isinstance(call["input"], dict)
        assert call["name"] == "ping" or len(call["input"]["city"]) <= 12
        history = [*HELLO, {"role": "assistant", "content": message["content"]}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "sunny"}]},
            {"type": "text", "text": "And tomorrow?"}]}]
        after = client.messages.create(model="tgi", max_tokens=8, messages=history, tools=TOOLS)
        assert after.content
    one = ask(api, tools=TOOLS, tool_choice={"type": "tool", "name": "ping"}, max_tokens=100)
    assert [block.name for block in one.content] == ["ping"]
    assert ask(api, tools=TOOLS, tool_choice={"type": "none"}, max_tokens=5).content[0].type == "text"


def test_the_official_client_collects_a_streamed_call(client):
    with client.messages.stream(model="tgi", max_tokens=250, messages=HELLO, tools=TOOLS,
                                tool_choice={"type": "tool", "name": "get_weather"}) as stream:
        final = stream.get_final_message()
    assert final.stop_reason == "tool_use" and len(final.content[0].input["city"]) <= 12


class Place(BaseModel):
    is_house: bool
    kind: Literal["a", "b"]


def test_the_official_tool_runner(client):
    """It asks for a conversation that the server holds, and goes on without where that is refused as it knows it."""
    calls = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather of a city.

        Args:
            city: its name
        """
        calls.append(city)
        return "sunny"

    messages = [{"role": "user", "content": "The weather in Rome?"}]
    asked = {"model": "tgi", "max_tokens": 120, "tools": [get_weather], "messages": messages, "max_iterations": 3,
             "tool_choice": {"type": "tool", "name": "get_weather"}}
    for seed in range(4):
        replies = list(client.beta.messages.tool_runner(**asked, extra_body={"seed": seed, "temperature": 1.2}))
        assert len(replies) == 3 and all(reply.content for reply in replies)
    assert len(calls) >= 8
    with pytest.raises(anthropic.BadRequestError, match="`thread` is not supported") as refused:
        client.beta.messages.create(model="tgi", max_tokens=5, messages=messages, thread={"type": "create"})
    assert refused.value.body["error"]["details"] == {"error_code": "thread_unsupported_request"}


def test_structured_answers(api, client):
    schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"], "additionalProperties": False}
    form = {"type": "json_schema", "schema": schema}
    for more in ({"output_config": {"format": form}}, {"output_format": form}, {"output_config": {"format": form, "effort": "low"}}):
        assert set(json.loads(ask(api, max_tokens=60, **more).content[0].text)) == {"yes"}
    parsed = client.messages.parse(model="tgi", max_tokens=200, messages=HELLO, output_format=Place)
    assert isinstance(parsed.parsed_output, Place)


def test_thinking(pair, tmp_path):
    running = pair(model=with_template(tmp_path, THINKS))
    client = client_of(running.gateway)
    more = {"thinking": {"type": "enabled", "budget_tokens": 7}, "max_tokens": 60, "seed": 5}
    whole = running.api.ok("/v1/messages", body_of(**more))
    assert [block.type for block in ask(running.api, **more).content] == ["thinking", "text"]
    assert whole["content"][0]["thinking"] and whole["content"][0]["signature"]
    assert whole["usage"]["output_tokens_details"]["thinking_tokens"] >= 7
    events, streamed = collect(running.api, **more)
    assert same(whole, streamed)
    deltas = [e["delta"]["type"] for e in events if e["type"] == "content_block_delta" and e["index"] == 0]
    assert set(deltas[:-1]) == {"thinking_delta"} and deltas[-1] == "signature_delta"
    # Passed back, it is part of the prompt.
    history = [*HELLO, {"role": "assistant", "content": whole["content"]}, {"role": "user", "content": "And?"}]
    after = client.messages.create(model="tgi", max_tokens=60, messages=history, thinking={"type": "enabled", "budget_tokens": 7},
                                   extra_body={"seed": 5})
    assert after.content[0].type == "thinking"
    off = ask(running.api, thinking={"type": "disabled"})
    assert [block.type for block in off.content] == ["text"]
    on = ask(running.api, thinking={"type": "adaptive"}, seed=5)
    assert on.content[0].type == "thinking"
    count = {"model": "tgi", "messages": HELLO}
    told = [running.api.ok("/v1/messages/count_tokens", count | more)["input_tokens"]
            for more in ({}, {"output_config": {"effort": "high"}})]
    assert told[0] < told[1]  # the template writes it
    hidden = running.api.ok("/v1/messages", body_of(**more | {"thinking": {"type": "enabled", "budget_tokens": 7, "display": "omitted"}}))
    assert hidden["content"][0]["thinking"] == "" and hidden["content"][0]["signature"] and hidden["content"][1] == whole["content"][1]


def test_blocks_are_the_conversation(pair, tmp_path):
    show = ("{% for m in messages %}<{{ m.role }}|{{ m.reasoning_content }}|{{ m.content }}|{% for c in m.tool_calls or [] %}"
            "{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}>{% endfor %}{{ tools }}")
    api = pair(model=with_template(tmp_path, show)).api
    blocks = {"system": [{"type": "text", "text": "be", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "brief"}],
              "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                           {"role": "user", "content": "c"},
                           {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "x"},
                                                             {"type": "text", "text": "d"},
                                                             {"type": "tool_use", "id": "t1", "name": "ping", "input": {"x": 1}},
                                                             {"type": "tool_use", "id": "t2", "name": "ping", "input": {}}]},
                           {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "one"},
                                                        {"type": "tool_result", "tool_use_id": "t2", "content": "two", "is_error": True},
                                                        {"type": "text", "text": "e"}]}]}
    messages = [{"role": "system", "content": "be\nbrief"}, {"role": "user", "content": "a\nb\nc"},
                {"role": "assistant", "content": "d", "reasoning_content": "hm", "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "ping", "arguments": '{"x": 1}'}},
                    {"id": "t2", "type": "function", "function": {"name": "ping", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "t1", "content": "one"},
                {"role": "tool", "tool_call_id": "t2", "content": "Error: two"}, {"role": "user", "content": "e"}]
    ours = api.ok("/v1/messages", {"model": "tgi", "max_tokens": 8, "temperature": 0} | blocks)
    chat = api.ok("/v1/chat/completions", {"messages": messages, "max_tokens": 8, "temperature": 0})
    count = api.ok("/v1/messages/count_tokens", {"model": "tgi"} | blocks)["input_tokens"]
    assert ours["usage"]["input_tokens"] + ours["usage"]["cache_read_input_tokens"] == chat["usage"]["prompt_tokens"] == count
    assert "".join(b["text"] for b in ours["content"]) == chat["choices"][0]["message"]["content"]


def test_what_the_system_says_before_the_first_answer_is_its_prompt(pair, tmp_path):
    """Many templates take the system's message in the first place alone."""
    first_alone = ("{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('not first') }}{% endif %}"
                   "<{{ m.role }}|{{ m.content }}>{% endfor %}")
    api = pair(model=with_template(tmp_path, first_alone)).api

    def count(**more):
        return api.ok("/v1/messages/count_tokens", {"model": "tgi", **more})["input_tokens"]

    late = [{"role": "user", "content": "a"}, {"role": "system", "content": "c"}, {"role": "user", "content": "b"}]
    said = [{"role": "user", "content": "a\nb"}]
    assert count(messages=late, system="s") == count(messages=said, system="s\nc")
    assert count(messages=late) == count(messages=said, system="c")
    refused = api.post("/v1/messages/count_tokens", {"model": "tgi", "messages": [
        *said, {"role": "assistant", "content": "d"}, {"role": "system", "content": "c"}, {"role": "user", "content": "e"}]})
    assert refused.status_code == 400 and "not first" in refused.text


def test_an_answer_that_was_begun_is_gone_on_with(api):
    begun = [*HELLO, {"role": "assistant", "content": "tgi is"}]
    chat = api.ok("/v1/chat/completions", {"messages": begun, "max_tokens": 10, "temperature": 0})
    assert ask(api, messages=begun, max_tokens=10, temperature=0).content[0].text == chat["choices"][0]["message"]["content"]


def test_tokens_are_counted(api, client):
    count = client.messages.count_tokens(model="tgi", messages=HELLO, system="Be brief.", tools=TOOLS).input_tokens
    usage = ask(api, system="Be brief.", tools=TOOLS, max_tokens=1).usage
    assert count == usage.input_tokens + usage.cache_read_input_tokens
    assert client.messages.count_tokens(model="tgi", messages=HELLO).input_tokens < count


# The shape of what Claude Code sends, shortened.
CLAUDE_CODE = {
    "model": "tgi", "max_tokens": 32000, "stream": True, "temperature": 1,
    "metadata": {"user_id": "user_abc_account__session_def"},
    "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1"},
               {"type": "text", "text": "You are a coding agent.", "cache_control": {"type": "ephemeral"}},
               {"type": "text", "text": "Use the tools.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "tools": [{"name": "Bash", "description": "Runs a command.", "input_schema": {
                  "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": False,
                  "properties": {"command": {"type": "string", "description": "what"}, "timeout": {"type": "number"}},
                  "required": ["command"]}},
              {"name": "Read", "description": "Reads a file.", "eager_input_streaming": True, "input_schema": {
                  "type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}},
              {"name": "mcp__ide__getDiagnostics", "description": "", "defer_loading": True, "cache_control": {"type": "ephemeral"},
               "input_schema": {"type": "object", "properties": {}}}],
    "thinking": {"type": "enabled", "budget_tokens": 31999},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "medium"},
    "messages": [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nToday.\n</system-reminder>"},
                                              {"type": "text", "text": "What is tgi?", "cache_control": {"type": "ephemeral"}}]},
                 {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "unsigned"},
                                                   {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"},
                                                    "caller": {"type": "direct"}}]},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "README.md", "is_error": False,
                                               "cache_control": {"type": "ephemeral"}}]}]}


def test_models_in_the_form_of_the_official_client(gateway, api):
    strict = client_of(gateway, _strict_response_validation=True)
    (listed,) = strict.models.list(limit=5)
    assert strict.models.retrieve(listed.id) == listed
    assert listed.id == listed.display_name == gateway.model_name and listed.max_input_tokens == api.total_tokens() - 1
    with pytest.raises(anthropic.NotFoundError):
        strict.models.retrieve("another")
    # Without Anthropic's header it is OpenAI's form.
    assert api.ok_get("/v1/models")["data"][0]["object"] == "model"


def test_what_claude_code_sends(gateway, api):
    headers = {"x-api-key": "-", "anthropic-version": "2023-06-01", "content-type": "application/json",
               "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14", "x-app": "cli"}
    answer = requests.post(gateway.url + "/v1/messages?beta=true", json=CLAUDE_CODE, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    assert answer.text.startswith("event: message_start\n") and '"type":"message_stop"' in answer.text
    counted = {k: v for k, v in CLAUDE_CODE.items() if k in ("model", "messages", "system", "tools", "thinking")}
    assert api.ok("/v1/messages/count_tokens?beta=true", counted)["input_tokens"] > 50


def test_the_key_comes_in_either_header(serve):
    url = serve("--api-key", "secret").url
    for headers, status in (({"x-api-key": "secret"}, 200), ({"Authorization": "Bearer secret"}, 200), ({"x-api-key": "wrong"}, 401),
                            ({}, 401), ({"x-api-key": "Bearer secret"}, 401)):
        answer = Api(url).post("/v1/messages", body_of(max_tokens=3), headers=headers)
        assert answer.status_code == status, headers
        if status == 401:
            assert answer.json()["type"] == "error" and answer.json()["error"]["type"] == "authentication_error"
    assert anthropic.Anthropic(base_url=url, api_key="secret").messages.create(**body_of(max_tokens=3)).content
    with pytest.raises(anthropic.AuthenticationError):
        anthropic.Anthropic(base_url=url, api_key="no", max_retries=0).messages.create(**body_of())


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
DOCUMENT = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}}


def document(source, **more):
    return {"type": "document", "source": source} | more


def test_documents_that_are_texts_are_read_as_text(api, client):
    """As the official client sends them: the prompt has as many tokens as that of the text they become, and the same answer."""
    plain = document({"type": "text", "media_type": "text/plain", "data": "tgi is a server."}, title="Facts", context="From us.",
                     citations={"enabled": False}, cache_control={"type": "ephemeral"})
    parts = document({"type": "content", "content": [{"type": "text", "text": "It is fast."}, {"type": "text", "text": "And small."}]})
    short = document({"type": "content", "content": "It is free."})
    text = ("<document>\n<title>Facts</title>\n<context>From us.</context>\n<content>\ntgi is a server.\n</content>\n</document>\n"
            "<document>\n<content>\nIt is fast.\nAnd small.\n</content>\n</document>\n"
            "<document>\n<content>\nIt is free.\n</content>\n</document>\nWhat is tgi?")
    asked = {"model": "tgi", "messages": [{"role": "user", "content": [plain, parts, short, {"type": "text", "text": "What is tgi?"}]}]}
    same = {"model": "tgi", "messages": [{"role": "user", "content": text}]}
    more = {"max_tokens": 12, "extra_body": {"temperature": 0}}
    ours, theirs = (client.messages.create(**body, **more) for body in (asked, same))
    assert ours.content == theirs.content
    count = client.messages.count_tokens(**asked).input_tokens
    assert count == client.messages.count_tokens(**same).input_tokens
    # A tool may return one too.
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "read", "input": {}}]}
    turns = [{"role": "user", "content": "a"}, call]
    counts = [client.messages.count_tokens(model="tgi", messages=turns + [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]}]).input_tokens
        for content in ([{"type": "text", "text": "see"}, short], "see\n<document>\n<content>\nIt is free.\n</content>\n</document>")]
    assert counts[0] == counts[1]


def said(*blocks, role="user"):
    return {"messages": [{"role": role, "content": list(blocks)}]}


@pytest.mark.parametrize("more, text", [
    ({"max_tokens": None}, "max_tokens: missing field"),
    ({"max_tokens": "many"}, "max_tokens: invalid type"),
    ({"messages": []}, "`messages` cannot be empty"),
    ({"messages": [{"role": "user"}]}, "messages[0].content: missing field"),
    ({"messages": [{"role": "poet", "content": "a"}]}, "messages[0].role: unknown role"),
    ({"mesages": []}, "unknown field `mesages`"),
    ({"top_k": -1}, "top_k"),
    (said(IMAGE), "blocks of type image are not supported"),
    (said(DOCUMENT), "`messages[0].content[0].source`: documents of type base64 are not supported"),
    (said({"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}}), "documents of type url"),
    (said({"type": "document", "source": {"type": "file", "file_id": "file_1"}}), "documents of type file"),
    (said({"type": "document"}), "messages[0].content[0].source: missing field"),
    (said({"type": "document", "source": {"type": "text", "media_type": "text/html", "data": "a"}}), "source.media_type"),
    (said({"type": "document", "source": {"type": "text", "data": 3}}), "source.data: invalid type"),
    (said({"type": "document", "source": {"type": "content", "content": [IMAGE]}}), "blocks of type image are not supported"),
    (said({"type": "document", "source": {"type": "text", "data": "a"}, "citations": {"enabled": True}}), "citations` is not supported"),
    (said({"type": "document", "source": {"type": "text", "data": "a"}, "pages": 2}), "messages[0].content[0].pages"),
    ({"system": [{"type": "document", "source": {"type": "text", "data": "a"}}]}, "blocks of type document are not supported"),
    (said({"type": "text", "text": 3}), "messages[0].content[0].text: invalid type"),
    (said({"type": "text", "text": "a", "mood": "good"}), "messages[0].content[0].mood"),
    (said({"type": "tool_result", "tool_use_id": "nope", "content": "a"}), "unexpected `tool_use_id`"),
    (said({"type": "tool_use", "id": "a", "name": "b", "input": "c"}, role="assistant"), "content[0].input: invalid type"),
    (said({"type": "redacted_thinking", "data": "x"}, role="assistant"), "blocks of type redacted_thinking"),
    ({"system": [IMAGE]}, "system[0]"),
    ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]`: tools of type \"web_search_20250305\""),
    ({"tools": [{"name": "a"}]}, "tools[0].input_schema: missing field"),
    ({"tools": [{"name": "a b", "input_schema": {}}]}, "tools[0].name"),
    ({"tools": [PING, PING]}, "tools[1].name"),
    ({"tools": [PING], "tool_choice": {"type": "tool", "name": "pong"}}, "Tool with name pong not found"),
    ({"tools": [PING], "tool_choice": "any"}, "tool_choice: invalid type"),
    ({"tools": [PING], "tool_choice": {"type": "some"}}, "tool_choice.type: unknown type"),
    ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens: missing field"),
    ({"thinking": {"type": "enabled", "budget_tokens": 20}}, "must be greater than `thinking.budget_tokens`"),
    ({"thinking": {"type": "wild"}}, "thinking.type: unknown type"),
    ({"output_config": {"effort": "a lot"}}, "output_config.effort: unknown effort"),
    ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type"),
    ({"stop_sequences": "."}, "stop_sequences: invalid type"),
    ({"stop_sequences": [str(i) for i in range(9)]}, "`stop_sequences` supports up to"),
    ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_management.edits[0]"),
    ({"mcp_servers": [{"name": "a"}]}, "`mcp_servers` is not supported"),
    ({"container": "c"}, "`container` is not supported"),
    ({"speed": "fast"}, "`speed` is not supported"),
], ids=str)
def test_what_is_refused(api, more, text):
    for stream in (False, True):
        answer = api.post("/v1/messages", body_of(stream=stream, **more))
        assert answer.status_code == 400, answer.text
        error = ErrorResponse.model_validate_json(answer.text, strict=True).error
        assert error.type == "invalid_request_error" and text in error.message, error
    assert api.alive()


def test_other_refusals(api, client):
    with pytest.raises(anthropic.NotFoundError, match="does not exist"):
        client.messages.create(**body_of(model="claude-nope"))
    with pytest.raises(anthropic.NotFoundError):
        client.messages.count_tokens(model="claude-nope", messages=HELLO)
    with pytest.raises(anthropic.BadRequestError, match="blocks of type image"):
        client.messages.create(**body_of(**said(IMAGE)))
    assert api.get("/v1/messages").json()["error"]["type"] == "invalid_request_error"
    assert api.post_bytes("/v1/messages", b"{").json()["type"] == "error"
    assert api.post_bytes("/v1/messages", b"{}", content_type="text/plain").status_code == 400


def test_a_stream_that_fails_says_so(slow_pair):
    running = slow_pair()
    with pytest.raises(anthropic.APIStatusError) as failed:
        with client_of(running.gateway).messages.stream(model="tgi", max_tokens=3000, messages=HELLO) as stream:
            for event in stream:
                if event.type == "text":
                    running.daemon.end()
    assert failed.value.body["error"]["type"] == "api_error"
