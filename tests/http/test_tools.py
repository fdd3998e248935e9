"""Calls of tools and reasoning, over HTTP: whole and streamed, in every dialect, with histories, and what is refused."""

import json
import re

import pytest

from client import chat_body
from gateway import ROOT, with_template

CITY = {"type": "object", "required": ["city"], "properties": {
    "city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 9},
    "unit": {"enum": ["C", "F"]}}}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": CITY}}
PING = {"type": "function", "function": {"name": "ping"}}
TOOLS = [WEATHER, PING]
NAMES = re.search(r"kToolDialectNames =\s*names\((.*?)\);", (ROOT / "base/known_names.h").read_text(), re.S).group(1)
DIALECTS = re.findall(r'"(\w+)"', NAMES)

HERMES = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": "
          "\"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}{% endfor %}"
          "{% if tools %}{{ tools | tojson }}{% endif %}<assistant>")
THINKS = ("{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] }}{% endfor %}<assistant>"
          "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}"
          "{{ reasoning_effort }}")


# As Functionary 3.2 has it: the prompt ends with ">>>", and a text begins with "all" on a line of its own.
MESSAGES = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{# >>>all #}{{ '>>>' }}"


def check_call(call, names=("get_weather", "ping")):
    assert set(call) - {"index"} == {"id", "type", "function"} and call["type"] == "function"
    assert call["id"] and isinstance(call["id"], str)
    assert call["function"]["name"] in names
    arguments = json.loads(call["function"]["arguments"])
    if call["function"]["name"] == "ping":
        assert arguments == {}
        return
    assert set(arguments) <= {"city", "days", "unit"} and len(arguments["city"]) <= 12
    assert 1 <= arguments.get("days", 1) <= 9 and arguments.get("unit", "C") in ("C", "F")


def collect(api, body):
    """A stream as the message it comes to, and why it ended."""
    message, finish = {"role": None, "content": "", "reasoning_content": "", "tool_calls": []}, None
    events = api.events("/v1/chat/completions", body | {"stream": True})
    assert events[-1] == "[DONE]"
    for event in events[:-1]:
        for choice in json.loads(event)["choices"]:
            delta = choice["delta"]
            message["role"] = delta["role"]
            message["content"] += delta.get("content") or ""
            message["reasoning_content"] += delta.get("reasoning_content") or ""
            for part in delta.get("tool_calls", []):
                if part["index"] == len(message["tool_calls"]):
                    assert part["id"] and part["type"] == "function" and part["function"]["name"]
                    message["tool_calls"].append(part)
                else:
                    assert "id" not in part and "name" not in part["function"]
                    message["tool_calls"][part["index"]]["function"]["arguments"] += part["function"]["arguments"]
            assert finish is None
            finish = choice["finish_reason"]
    return message, finish


def ask(api, body, stream):
    if stream:
        return collect(api, body)
    choice = api.ok("/v1/chat/completions", body)["choices"][0]
    return choice["message"], choice["finish_reason"]


@pytest.mark.parametrize("stream", [False, True], ids=["21_whole", "22_streamed"])
@pytest.mark.parametrize("choice", ["get_weather", {"type": "function", "function": {"name": "get_weather"}},
                                    {"type": "function", "name": "get_weather"}], ids=str)
def test_21_22_23_one_function(api, choice, stream):
    for seed in range(4):
        body = chat_body("The weather?", max_tokens=120, temperature=1.5, seed=seed, tools=TOOLS, tool_choice=choice)
        message, finish = ask(api, body, stream)
        assert len(message["tool_calls"]) == 1 and finish == "tool_calls"
        check_call(message["tool_calls"][0], ["get_weather"])
        assert not message["content"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_24_a_call_is_required(api, stream):
    names = set()
    for seed in range(8):
        body = chat_body("Describe sea creatures.", max_tokens=120, temperature=1.5, seed=seed, tools=TOOLS,
                         tool_choice="required", parallel_tool_calls=False)
        message, finish = ask(api, body, stream)
        assert len(message["tool_calls"]) == 1 and finish == "tool_calls"
        check_call(message["tool_calls"][0])
        names.add(message["tool_calls"][0]["function"]["name"])
    assert names == {"get_weather", "ping"}


def test_24_auto_answers_in_words_where_no_call_begins(api):
    body = chat_body("Describe sea creatures.", max_tokens=30, temperature=0, tools=TOOLS)
    whole, finish = ask(api, body, False)
    assert whole["content"] and "tool_calls" not in whole and finish in ("stop", "length")
    assert collect(api, body)[0]["content"] == whole["content"]
    assert api.ok("/v1/chat/completions", body | {"tool_choice": "auto"})["choices"][0]["message"] == whole


def test_ids_are_unique_and_answers_with_several_calls_are_complete(api):
    ids = []
    for seed in range(6):
        body = chat_body("Go!", max_tokens=300, temperature=1.5, seed=seed, tools=TOOLS, tool_choice="required", n=2)
        for choice in api.ok("/v1/chat/completions", body)["choices"]:
            for call in choice["message"]["tool_calls"]:
                check_call(call)
                ids.append(call["id"])
    assert len(set(ids)) == len(ids) >= 12


def test_allowed_tools(api):
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "ping"}}]}
    for choice in ({"type": "allowed_tools", "allowed_tools": allowed}, {"type": "allowed_tools"} | allowed):
        body = chat_body("Go!", max_tokens=60, temperature=1.5, tools=TOOLS, tool_choice=choice)
        for call in api.ok("/v1/chat/completions", body)["choices"][0]["message"]["tool_calls"]:
            check_call(call, ["ping"])


def test_none_is_as_if_there_were_no_tools(api):
    body = chat_body("What is tgi?", max_tokens=10, temperature=0)
    plain = api.ok("/v1/chat/completions", body)
    none = api.ok("/v1/chat/completions", body | {"tools": TOOLS, "tool_choice": "none"})
    assert none["choices"] == plain["choices"] and none["usage"] == plain["usage"]
    empty = api.ok("/v1/chat/completions", body | {"tools": [], "tool_choice": "auto"})
    assert empty["choices"] == plain["choices"]


def test_20_a_form_for_what_is_no_call(api):
    """TGI refuses both together; agents of OpenAI's kind send both."""
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "integer", "minimum": 0, "maximum": 9}}}
    seen = set()
    for seed in range(12):
        body = chat_body("Go!", max_tokens=150, temperature=2.0, seed=seed, tools=TOOLS, response_format=form)
        message, _ = ask(api, body, False)
        if message.get("tool_calls"):
            seen.add("call")
            assert not message["content"]
            for call in message["tool_calls"]:
                check_call(call)
        else:
            seen.add("form")
            assert json.loads(message["content"]) in range(10)
    assert seen == {"call", "form"}


@pytest.mark.parametrize("field, message", [
    ({"tools": [WEATHER], "tool_choice": "ping"}, "Tool error: Tool with name ping not found"),
    ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "ping"}}}, "Tool with name ping not found"),
    ({"tool_choice": "required"}, "there are no tools"),
    ({"tools": [WEATHER, WEATHER]}, "tools[1].function.name: another tool is called get_weather"),
    ({"tools": [{"type": "retrieval"}]}, "tools[0].type: only functions"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    ({"tools": [{"type": "function", "function": {"name": "a", "params": {}}}]}, "tools[0].function.params: unknown field"),
    ({"tools": [{"type": "function"}]}, "tools[0].function: missing"),
    ({"tools": {}}, "tools"),
    ({"tools": [{"type": "function", "function": {"name": "a", "strict": True, "parameters": {
        "type": "object", "properties": {"x": {"type": "string", "format": "dateTime"}}}}}]}, "tool a"),
    ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "some", "tools": []}}, "mode"),
    ({"reasoning_effort": "a lot"}, "reasoning_effort: unknown effort"),
    ({"reasoning": {"budget": 3}}, "reasoning.budget: unknown field"),
    ({"functions": [{"name": "a"}]}, "functions"),
], ids=str)
def test_what_is_refused(api, field, message):
    response = api.post("/v1/chat/completions", chat_body("hi", max_tokens=5, **field))
    assert response.status_code == 422, response.text
    body = response.json()
    text = body["error"]["message"] if isinstance(body, dict) else body
    assert message.lower() in text.lower(), text
    if "not found" in message:
        assert body["error_type"] == "tool_error"


def test_a_schema_that_cant_be_enforced_leaves_its_arguments_open_unless_strict(api):
    tool = {"type": "function", "function": {"name": "a", "parameters": {
        "type": "object", "properties": {"x": {"type": "string", "format": "dateTime"}}}}}
    body = chat_body("hi", max_tokens=200, temperature=1.0, tools=[tool], tool_choice="a")
    call = api.ok("/v1/chat/completions", body)["choices"][0]["message"]["tool_calls"][0]
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_26_a_history_with_results(api):
    history = [{"role": "user", "content": "The weather in Rome?"},
               {"role": "assistant", "content": None, "tool_calls": [
                   {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}},
                   {"id": "b", "type": "function", "function": {"name": "ping", "arguments": ""}}]},
               {"role": "tool", "tool_call_id": "a", "name": "get_weather", "content": [{"type": "text", "text": "sunny"}]},
               {"role": "tool", "tool_call_id": "b", "content": "pong"},
               {"role": "user", "content": "And tomorrow?"}]
    for more in ({}, {"tools": TOOLS}, {"tools": TOOLS, "tool_choice": "none"}):
        answer = api.ok("/v1/chat/completions", {"messages": history, "max_tokens": 8, "temperature": 0} | more)
        assert answer["choices"][0]["message"]["content"]
    shown = api.ok("/chat_tokenize", {"messages": history, "tools": TOOLS})["templated_text"]
    for text in ('{"name": "get_weather", "arguments": {"city": "Rome"}}', "Result of get_weather: sunny", "pong", "And tomorrow?",
                 "The weather."):
        assert text in shown
    broken = json.loads(json.dumps(history))
    broken[1]["tool_calls"][0]["function"]["arguments"] = "{"
    response = api.post("/v1/chat/completions", {"messages": broken, "max_tokens": 8})
    assert response.status_code == 422 and "messages[1].tool_calls[0].function.arguments" in response.text


def test_tool_prompt_takes_the_place_of_ours(api):
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [PING]}
    assert "These functions can be called" in api.ok("/chat_tokenize", body)["templated_text"]
    shown = api.ok("/chat_tokenize", body | {"tool_prompt": "Call, please!"})["templated_text"]
    assert "Call, please!" in shown and "These functions" not in shown


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_calls(pair, dialect):
    api = pair(daemon_flags=("--tool-parser", dialect)).api
    for seed, stream in ((1, False), (2, True), (3, False)):
        body = chat_body("Go!", max_tokens=250, temperature=1.3, seed=seed, tools=TOOLS, tool_choice="required",
                         parallel_tool_calls=seed == 3)
        message, finish = ask(api, body, stream)
        assert message["tool_calls"] and not message["content"] and finish in ("tool_calls", "length")
        for call in message["tool_calls"]:
            check_call(call)
    # The mark before a text takes some tokens of this vocabulary.
    text = api.ok("/v1/chat/completions", chat_body("Go!", max_tokens=60, temperature=0, tools=TOOLS))["choices"][0]["message"]
    assert text["content"] or text["tool_calls"]
    # No form was asked for that a token could be too few for.
    assert api.ok("/v1/chat/completions", chat_body("Go!", max_tokens=1, temperature=0, tools=TOOLS))["usage"]["completion_tokens"] == 1


def test_the_mark_before_a_text_is_written_and_not_told(pair, tmp_path):
    api = pair(model=with_template(tmp_path, MESSAGES)).api
    body = chat_body("Why?", max_tokens=60, temperature=0.9, seed=5)
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {
        "type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}}}
    for stream in (False, True):
        message, _ = ask(api, body | {"response_format": form}, stream)
        assert set(json.loads(message["content"])) == {"yes"}
        message, _ = ask(api, body | {"tools": TOOLS, "tool_choice": "required", "max_tokens": 200}, stream)
        assert message["tool_calls"] and not message["content"]
        message, _ = ask(api, body | {"tools": TOOLS}, stream)
        assert message.get("tool_calls") or message["content"] and not message["content"].startswith("all\n")


def test_a_template_that_shows_calls_is_given_objects(pair, tmp_path):
    api = pair(model=with_template(tmp_path, HERMES)).api
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "ping", "arguments": '{"x": {"y": [1, null]}}'}}]},
        {"role": "tool", "tool_call_id": "1", "content": "b"}]
    shown = api.ok("/chat_tokenize", {"messages": history})["templated_text"]
    assert '<tool_call>\n{"name": "ping", "arguments": {"x": {"y": [1, null]}}}\n</tool_call>' in shown
    message, finish = ask(api, {"messages": history, "tools": TOOLS, "tool_choice": "required", "max_tokens": 200}, True)
    assert message["tool_calls"] and finish in ("tool_calls", "length")


def test_reasoning_is_told_apart_ended_by_its_budget_and_followed_by_the_form(pair, tmp_path):
    api = pair(model=with_template(tmp_path, THINKS)).api
    body = chat_body("Why?", max_tokens=60, temperature=0.9, seed=5)
    # Without an end the whole answer is reasoning.
    message, _ = ask(api, body, False)
    assert message["reasoning_content"] and message["content"] == ""
    for budget in ({"thinking_token_budget": 7}, {"reasoning": {"max_tokens": 7}}):
        whole = api.ok("/v1/chat/completions", body | budget)
        message = whole["choices"][0]["message"]
        assert message["reasoning_content"] and message["content"]
        assert 7 <= whole["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 20
        streamed, _ = collect(api, body | budget)
        assert {name: streamed[name] for name in ("content", "reasoning_content")} == \
            {name: message[name] for name in ("content", "reasoning_content")}
    silent, _ = ask(api, body | {"thinking_token_budget": 7, "include_reasoning": False}, False)
    assert "reasoning_content" not in silent and silent["content"] == message["content"]
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {
        "type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}}}
    for stream in (False, True):
        message, finish = ask(api, body | {"response_format": form}, stream)
        assert message["reasoning_content"] and set(json.loads(message["content"])) == {"yes"}
        message, finish = ask(api, body | {"tools": TOOLS, "tool_choice": "get_weather", "max_tokens": 120,
                                           "thinking_token_budget": 9}, stream)
        assert message["reasoning_content"] and finish == "tool_calls"
        check_call(message["tool_calls"][0], ["get_weather"])
    plain, _ = ask(api, body | {"reasoning_effort": "none"}, False)
    assert "reasoning_content" not in plain and plain["content"]
    shown = api.ok("/chat_tokenize", {"messages": body["messages"], "reasoning_effort": "high"})["templated_text"]
    assert shown.endswith("<think>\nhigh")


def test_parsers_can_be_turned_off(pair, tmp_path):
    api = pair(model=with_template(tmp_path, THINKS),
               daemon_flags=("--tool-parser", "none", "--reasoning-parser", "none")).api
    message, _ = ask(api, chat_body("Why?", max_tokens=20), False)
    assert "reasoning_content" not in message and message["content"]
    response = api.post("/v1/chat/completions", chat_body("hi", tools=TOOLS, max_tokens=5))
    assert response.status_code == 422 and "--tool-parser none" in response.text


def test_without_grammars_there_are_no_tools(serve):
    from client import Api
    api = Api(serve("--disable-grammar-support").url)
    response = api.post("/v1/chat/completions", chat_body("hi", tools=TOOLS, max_tokens=5))
    assert response.status_code == 422 and "tools" in response.text


DEMANDS = ("{% for m in messages %}{% if m.role == 'tool' %}{% if m.name is not defined %}{{ raise_exception('a name, please') }}"
           "{% endif %}<{{ m.name }}: {{ m.content }}>{% else %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments "
           "| tojson }}{% endfor %}{% endif %}{% endfor %}{% for t in tools or [] %}{% for n, p in t.function.parameters.properties"
           ".items() %}{{ n + p.description }};{% endfor %}{% endfor %}")


def test_a_template_gets_the_names_and_descriptions_that_it_cant_do_without(pair, tmp_path):
    api = pair(model=with_template(tmp_path, DEMANDS)).api
    body = {"tools": TOOLS, "messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "type": "function", "function": {
            "name": "get_weather", "arguments": '{"city": "Rome"}'}}]},
        {"role": "tool", "tool_call_id": "x", "content": "sunny"}]}
    assert api.ok("/chat_tokenize", body)["templated_text"] == 'a{"city": "Rome"}<get_weather: sunny>city;days;unit;'
    body["messages"][2]["tool_call_id"] = "unknown"
    response = api.post("/chat_tokenize", body)
    assert response.status_code == 422 and "a name, please" in response.text


# As DeepSeek's: what a call is beside is null, and arguments are put together as texts.
BESIDE_NULL = ("{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}<{{ c.function.name + ':' + c.function.arguments }}>"
               "{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}{{ tools }}")


def test_a_template_that_shows_calls_beside_null_as_texts(pair, tmp_path):
    api = pair(model=with_template(tmp_path, BESIDE_NULL)).api
    for content in (None, ""):
        body = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": content, "tool_calls": [
            {"id": "x", "type": "function", "function": {"name": "get_weather", "arguments": '{ "city": "Rome" }'}}]}]}
        assert api.ok("/chat_tokenize", body)["templated_text"].startswith('a<get_weather:{"city":"Rome"}>')
