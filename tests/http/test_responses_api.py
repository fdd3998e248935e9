"""OpenAI's Responses: what the official client reads and sends, its types held to the letter, and what is refused."""

import json
import signal

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_item import ResponseItem
from pydantic import BaseModel, Field, TypeAdapter

from client import Api, together
from gateway import wait_until, with_template
from test_tools import CITY, THINKS

WEATHER = {"type": "function", "name": "get_weather", "description": "The weather.", "parameters": CITY, "strict": False}
PING = {"type": "function", "name": "ping", "parameters": None, "strict": None}
EVENT = TypeAdapter(ResponseStreamEvent)
ITEM = TypeAdapter(ResponseItem)


def client_of(gateway, **more):
    return openai.OpenAI(base_url=gateway.url + "/v1", api_key="-", max_retries=0, **more)


@pytest.fixture(scope="module")
def client(gateway):
    return client_of(gateway)


def strict(value, type_=Response):
    """The type itself and not what the client makes of anything it gets."""
    adapter = TypeAdapter(type_) if isinstance(type_, type) else type_
    return adapter.validate_json(json.dumps(value), strict=False)


def raw_events(api, body):
    """The events of a stream: each has its name, its number and OpenAI's members; none comes after the last."""
    answer = api.post("/v1/responses", body | {"stream": True})
    assert answer.status_code == 200, answer.text
    events = []
    for block in answer.text.split("\n\n")[:-1]:
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == "event: " + event["type"]
        assert event["sequence_number"] == len(events)
        assert strict(event, EVENT).type == event["type"]
        events.append(event)
    assert [e["type"] for e in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1]["type"] in ("response.completed", "response.incomplete")
    return events


def check_order(events):
    """Items one after the other, each put together of its deltas as its done events have it."""
    items, text, item, part = [], "", None, None
    for event in events[2:-1]:
        kind = event["type"].removeprefix("response.")
        if kind == "output_item.added":
            assert item is None and event["output_index"] == len(items)
            item, text = event["item"], ""
            assert item["status"] == "in_progress"
        elif kind == "content_part.added":
            assert part is None and event["content_index"] == 0
            part = event["part"]
            assert part["text"] == ""
        elif kind.endswith(".delta"):
            assert event["item_id"] == item["id"] and event["delta"]
            text += event["delta"]
        elif kind == "output_item.done":
            assert part is None and event["item"]["id"] == item["id"]
            items.append(event["item"])
            item = None
        elif kind == "content_part.done":
            assert event["part"]["text"] == text and event["part"]["type"] == part["type"]
            part = None
        else:
            assert kind in ("output_text.done", "reasoning_text.done", "function_call_arguments.done")
            assert event.get("text", event.get("arguments")) == text
    assert item is None and part is None
    assert events[-1]["response"]["output"] == items
    return items


def test_a_text(api, client):
    body = {"model": "tgi", "input": "What is tgi?", "max_output_tokens": 20, "temperature": 0, "metadata": {"a": "b"}}
    whole = api.ok("/v1/responses", body)
    assert strict(whole).output_text
    assert whole["object"] == "response" and whole["id"].startswith("resp_") and whole["error"] is None
    assert whole["metadata"] == {"a": "b"} and whole["temperature"] == 0 and whole["max_output_tokens"] == 20
    chat = api.ok("/v1/chat/completions", {"messages": [{"role": "user", "content": "What is tgi?"}], "max_tokens": 20,
                                           "temperature": 0})
    assert whole["output"][0]["content"][0]["text"] == chat["choices"][0]["message"]["content"]
    usage = whole["usage"]
    assert usage["input_tokens"] == chat["usage"]["prompt_tokens"]
    assert usage["output_tokens"] == chat["usage"]["completion_tokens"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    parsed = client.responses.create(**body)
    assert parsed.output_text == chat["choices"][0]["message"]["content"] and parsed.usage.input_tokens_details.cached_tokens >= 0


@pytest.mark.parametrize("more, status", [({"max_output_tokens": 4}, "incomplete"), ({"max_output_tokens": 300}, "completed")])
def test_the_stream_is_the_answer(api, more, status):
    body = {"input": "What is tgi?", "temperature": 0} | more
    events = raw_events(api, body)
    check_order(events)
    whole = api.ok("/v1/responses", body)
    last = events[-1]["response"]
    assert whole["status"] == last["status"] == status
    assert events[-1]["type"] == "response." + status
    assert whole["incomplete_details"] == last["incomplete_details"] == (
        {"reason": "max_output_tokens"} if status == "incomplete" else None)
    assert [i["content"] for i in whole["output"]] == [i["content"] for i in last["output"]]
    assert whole["output"][-1]["status"] == last["output"][-1]["status"] == status
    assert whole["usage"]["output_tokens"] == last["usage"]["output_tokens"]


def test_the_official_client_streams(client):
    with client.responses.stream(model="tgi", input="What is tgi?", max_output_tokens=300, temperature=0) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert final.output_text == text and final.status == "completed"


class Place(BaseModel):
    street: str = Field(max_length=8)
    number: int = Field(ge=0, le=99)


def test_parsed_answers_whole_and_streamed(client):
    more = {"model": "tgi", "input": "Where?", "text_format": Place, "max_output_tokens": 200}
    for _ in range(3):
        assert isinstance(client.responses.parse(**more).output_parsed, Place)
    with client.responses.stream(**more) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_response().output_parsed, Place)
    form = {"format": {"type": "json_object"}}
    text = client.responses.create(model="tgi", input="Where?", text=form, max_output_tokens=300).output_text
    assert text.startswith("{")


def test_log_probabilities(api):
    body = {"input": "What is tgi?", "max_output_tokens": 12, "temperature": 0, "top_logprobs": 2,
            "include": ["message.output_text.logprobs"]}
    whole = api.ok("/v1/responses", body)
    strict(whole)
    part = whole["output"][0]["content"][0]
    assert "".join(each["token"] for each in part["logprobs"]) == part["text"]
    assert all(len(each["top_logprobs"]) == 2 and each["logprob"] <= 0 for each in part["logprobs"])
    events = raw_events(api, body)
    assert events[-1]["response"]["output"][0]["content"] == whole["output"][0]["content"]
    told = [each for e in events if e["type"] == "response.output_text.delta" for each in e["logprobs"]]
    assert told == part["logprobs"]
    chat = api.ok("/v1/chat/completions", {"messages": [{"role": "user", "content": "What is tgi?"}], "max_tokens": 12,
                                           "temperature": 0, "logprobs": True, "top_logprobs": 2})
    assert part["logprobs"] == chat["choices"][0]["logprobs"]["content"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_tools_are_called_and_their_results_read(api, client, stream):
    names = set()
    for seed in range(6):
        body = {"input": "The weather in Rome?", "tools": [WEATHER, PING], "tool_choice": "required", "seed": seed,
                "temperature": 1.3, "max_output_tokens": 250, "parallel_tool_calls": False}
        if stream:
            events = raw_events(api, body)
            answer, items = events[-1]["response"], check_order(events)
            assert [e["name"] for e in events if e["type"] == "response.function_call_arguments.done"] == [items[0]["name"]]
        else:
            answer = api.ok("/v1/responses", body)
            items = answer["output"]
        assert strict(answer).output[0].type == "function_call"
        assert len(items) == 1 and items[0]["status"] == "completed"
        assert isinstance(json.loads(items[0]["arguments"]), dict)
        names.add(items[0]["name"])
        result = {"type": "function_call_output", "call_id": items[0]["call_id"], "output": "sunny"}
        for history in ({"input": [*items, result]}, {"input": [result], "previous_response_id": answer["id"]}):
            after = client.responses.create(model="tgi", tools=[WEATHER, PING], max_output_tokens=8, temperature=0, **history)
            assert after.output
    assert names <= {"get_weather", "ping"}


def places(*tools, **more):
    return {"type": "namespace", "name": "places", "description": "Of places.", "tools": list(tools)} | more


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_functions_of_a_namespace_are_told_by_both_names(api, client, stream):
    body = {"input": "The weather in Rome?", "tools": [PING, places(WEATHER)], "tool_choice": {
        "type": "function", "namespace": "places", "name": "get_weather"}, "temperature": 0, "max_output_tokens": 250}
    events = raw_events(api, body) if stream else []
    answer = events[-1]["response"] if stream else api.ok("/v1/responses", body)
    (call,) = strict(answer).output
    assert (call.namespace, call.name) == ("places", "get_weather") and json.loads(call.arguments)["city"]
    assert answer["tools"] == body["tools"]
    told = [(e["item"]["namespace"], e["item"]["name"]) for e in events if e["type"].startswith("response.output_item.")]
    assert told == [("places", "get_weather")] * len(told)
    if stream:
        assert len(told) == 2 and len(check_order(events)) == 1
        assert [e["name"] for e in events if e["type"] == "response.function_call_arguments.done"] == ["get_weather"]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    after = client.responses.create(model="tgi", input=[*answer["output"], result], tools=body["tools"], max_output_tokens=4)
    listed = client.responses.input_items.list(after.id, order="asc").data
    assert (listed[0].namespace, listed[0].name) == ("places", "get_weather")


def test_a_namespace_is_what_the_model_sees_in_names_and_descriptions(api):
    shown = {"type": "function", "name": "places__get_weather", "description": "Of places.\nThe weather.", "parameters": CITY,
             "strict": False}
    called = {"type": "function_call", "call_id": "a", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "a", "output": "sunny"}

    def count(tools, **names):
        return api.ok("/v1/responses/input_tokens", {"tools": tools, "input": [called | names, result]})["input_tokens"]

    wanted = count([shown], name="places__get_weather")
    assert count([places(WEATHER)], namespace="places", name="get_weather") == wanted
    # A search that may not go out finds nothing: it is none.
    assert count([shown, {"type": "web_search", "external_web_access": False}], name="places__get_weather") == wanted


def test_tool_choices(api):
    base = {"input": "Go!", "tools": [WEATHER, PING], "max_output_tokens": 250, "temperature": 1.2}
    for choice in ({"type": "function", "name": "ping"},
                   {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "ping"}]}):
        answer = api.ok("/v1/responses", base | {"tool_choice": choice})
        strict(answer)
        assert {item["name"] for item in answer["output"]} == {"ping"} and answer["tool_choice"] == choice
    none = api.ok("/v1/responses", base | {"tool_choice": "none", "max_output_tokens": 5})
    assert none["output"][0]["type"] == "message"


def test_items_are_the_conversation(pair, tmp_path):
    """What the model sees of every kind of item, told by a template that shows it all."""
    show = ("{% for m in messages %}<{{ m.role }}|{{ m.reasoning_content }}|{{ m.content }}|{% for c in m.tool_calls or [] %}"
            "{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}>{% endfor %}{{ tools }}")
    api = pair(model=with_template(tmp_path, show)).api
    items = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
             {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
             {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
              "content": [{"type": "output_text", "text": "b", "annotations": [], "logprobs": []}]},
             {"type": "function_call", "call_id": "c1", "name": "ping", "arguments": "{}"},
             {"type": "function_call", "call_id": "c2", "name": "ping", "arguments": '{"x": 1}'},
             {"type": "function_call_output", "call_id": "c1", "output": "one"},
             {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
             {"role": "user", "content": "c"}]
    messages = [{"role": "system", "content": "obey\n\nbe brief"}, {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b", "reasoning_content": "hm", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}},
                    {"id": "c2", "type": "function", "function": {"name": "ping", "arguments": '{"x": 1}'}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "one"}, {"role": "tool", "tool_call_id": "c2", "content": "two"},
                {"role": "user", "content": "c"}]
    ours = api.ok("/v1/responses", {"instructions": "obey", "input": items, "max_output_tokens": 8, "temperature": 0})
    chat = api.ok("/v1/chat/completions", {"messages": messages, "max_tokens": 8, "temperature": 0})
    assert ours["usage"]["input_tokens"] == chat["usage"]["prompt_tokens"]
    text = "".join(i["content"][0]["text"] for i in ours["output"])
    assert text == chat["choices"][0]["message"]["content"]


def test_reasoning(pair, tmp_path):
    running = pair(model=with_template(tmp_path, THINKS))
    body = {"input": "Why?", "max_output_tokens": 60, "temperature": 0.9, "seed": 5, "reasoning": {"max_tokens": 7},
            "include": ["reasoning.encrypted_content"]}
    whole = running.api.ok("/v1/responses", body)
    assert strict(whole).output[0].type == "reasoning"
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message"]
    thought = whole["output"][0]["content"][0]["text"]
    assert thought and whole["usage"]["output_tokens_details"]["reasoning_tokens"] >= 7
    high = running.api.ok("/v1/responses", body | {"reasoning": {"effort": "high"}})
    assert high["reasoning"]["effort"] == "high" and high["usage"]["input_tokens"] > whole["usage"]["input_tokens"]
    events = raw_events(running.api, body)
    check_order(events)
    assert "".join(e["delta"] for e in events if e["type"] == "response.reasoning_text.delta") == thought
    assert {e["type"] for e in events} >= {"response.reasoning_text.done", "response.output_text.done"}
    # Clients that keep nothing but what they take for encrypted give it back.
    kept = [{k: v for k, v in whole["output"][0].items() if k not in ("content", "status")}, whole["output"][1]]
    shown = [{"role": "user", "content": "Why?"}, *whole["output"], {"role": "user", "content": "And?"}]
    for history in (shown, [shown[0], *kept, shown[-1]]):
        answer = running.api.ok("/v1/responses", body | {"input": history})
        assert answer["usage"]["input_tokens"] > whole["usage"]["input_tokens"]
    none = running.api.ok("/v1/responses", body | {"reasoning": {"effort": "none"}})
    assert [item["type"] for item in none["output"]] == ["message"]
    cut = running.api.ok("/v1/responses", body | {"reasoning": None, "max_output_tokens": 9})
    assert [item["type"] for item in cut["output"]] == ["reasoning"] and cut["status"] == "incomplete"


def test_answers_are_kept_and_gone_on_with(api, client):
    first = client.responses.create(model="tgi", input="Once upon a time", max_output_tokens=8, temperature=0)
    again = client.responses.retrieve(first.id)
    assert again.output_text == first.output_text and again.id == first.id
    second = client.responses.create(model="tgi", input="And then?", previous_response_id=first.id, max_output_tokens=8, temperature=0)
    assert second.previous_response_id == first.id
    by_hand = api.ok("/v1/responses", {"input": [{"role": "user", "content": "Once upon a time"},
                                                 *[i.to_dict() for i in first.output], {"role": "user", "content": "And then?"}],
                                       "max_output_tokens": 8, "temperature": 0})
    assert strict(by_hand).output_text == second.output_text
    assert by_hand["usage"]["input_tokens"] == second.usage.input_tokens > first.usage.input_tokens
    items = client.responses.input_items.list(second.id, order="asc").data
    assert [item.type for item in items] == ["message"] * 3 and items[0].content[0].text == "Once upon a time"
    newest = client.responses.input_items.list(second.id, limit=1)
    assert newest.data[0].content[0].text == "And then?" and newest.has_next_page()
    assert [i.id for i in newest] == [i.id for i in reversed(items)]
    for item in api.get(f"/v1/responses/{second.id}/input_items").json()["data"]:
        strict(item, ITEM)
    by_reference = api.ok("/v1/responses", {"input": [{"type": "item_reference", "id": items[1].id}, {"role": "user", "content": "c"}],
                                            "max_output_tokens": 4})
    assert by_reference["output"]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    # What goes on from it has its conversation still.
    third = client.responses.create(model="tgi", input="And?", previous_response_id=second.id, max_output_tokens=4)
    assert third.usage.input_tokens > second.usage.input_tokens
    streamed = raw_events(api, {"input": "And?", "previous_response_id": third.id, "max_output_tokens": 4})[-1]["response"]
    assert client.responses.retrieve(streamed["id"]).to_dict() == client.responses.retrieve(streamed["id"]).to_dict()
    assert api.get("/v1/responses/" + streamed["id"]).json() == streamed


def test_what_is_not_kept(api, client, serve):
    apart = client.responses.create(model="tgi", input="a", store=False, max_output_tokens=3)
    for call in (client.responses.retrieve, client.responses.cancel, client.responses.delete):
        with pytest.raises(openai.NotFoundError):
            call(apart.id)
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="tgi", input="a", previous_response_id=apart.id)
    assert refused.value.code == "previous_response_not_found" and refused.value.param == "previous_response_id"
    with pytest.raises(openai.BadRequestError, match="`background`: needs an answer that is kept"):
        client.responses.create(model="tgi", input="a", store=False, background=True)
    kept = client.responses.create(model="tgi", input="a", max_output_tokens=3)
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        client.responses.cancel(kept.id)

    few = client_of(serve("--max-stored-responses", "2"))
    ids = [few.responses.create(model="tgi", input="a", max_output_tokens=3).id for _ in range(2)]
    few.responses.retrieve(ids[0])
    ids.append(few.responses.create(model="tgi", input="a", max_output_tokens=3).id)
    for name, is_there in zip(ids, (True, False, True)):
        if is_there:
            assert few.responses.retrieve(name).id == name
        else:
            with pytest.raises(openai.NotFoundError):
                few.responses.retrieve(name)
    small = client_of(serve("--max-stored-bytes", "6000"))
    ids = [small.responses.create(model="tgi", input="a" * 500, max_output_tokens=3).id for _ in range(12)]
    there = []
    for name in ids:
        try:
            there.append(small.responses.retrieve(name).id)
        except openai.NotFoundError:
            pass
    assert 0 < len(there) < 12 and there == ids[-len(there):]
    none = Api(serve("--max-stored-responses", "0").url)
    assert none.ok("/v1/responses", {"input": "a", "max_output_tokens": 3})["store"] is False
    refused = none.post("/v1/responses", {"input": "a", "store": True})
    assert refused.status_code == 400 and "--max-stored-responses" in refused.text


def settled(client, name):
    """What became of an answer that is made in the background."""
    def look():
        answer = client.responses.retrieve(name)
        return None if answer.status in ("queued", "in_progress") else answer
    return wait_until(look, 60)


def test_answers_are_made_in_the_background(api, client):
    asked = {"model": "tgi", "input": "What is tgi?", "temperature": 0, "metadata": {"a": "b"}}
    begun = client.responses.create(**asked, background=True)
    assert begun.status == "queued" and begun.background and begun.output == [] and begun.usage is None
    done = settled(client, begun.id)
    whole = client.responses.create(**asked)
    assert done.status == "completed" and done.id == begun.id and done.created_at == begun.created_at
    assert done.output_text == whole.output_text and done.usage.output_tokens == whole.usage.output_tokens
    assert done.metadata == {"a": "b"} and strict(done.to_dict())
    after = client.responses.create(model="tgi", input="And?", previous_response_id=done.id, max_output_tokens=4)
    assert after.usage.input_tokens > done.usage.input_tokens
    assert client.responses.cancel(done.id).to_dict() == done.to_dict()  # too late, which is no error
    # What is wrong with a request is told at once.
    refused = api.post("/v1/responses", {"input": "a", "background": True, "max_output_tokens": 10**6})
    assert refused.status_code == 400
    assert api.post("/v1/responses", {"input": "a", "background": True, "model": "nope"}).status_code == 404
    # Without /v1 too.
    short = openai.OpenAI(base_url=api.url, api_key="-", max_retries=0)
    assert settled(short, short.responses.create(**asked, background=True).id).output_text == whole.output_text
    many = [client.responses.create(**asked, background=True).id for _ in range(20)]
    assert {settled(client, name).output_text for name in many} == {whole.output_text}


def test_what_runs_in_the_background_is_cancelled(slow_pair):
    pair = slow_pair()
    client = client_of(pair.gateway)
    asked = {"model": "tgi", "input": "Once", "background": True, "extra_body": {"ignore_eos": True}}
    first, second = (client.responses.create(**asked).id for _ in range(2))
    wait_until(lambda: pair.daemon.status()["model"]["num_running"] == 2)
    assert client.responses.retrieve(first).status == "in_progress"
    with pytest.raises(openai.BadRequestError, match="still in progress"):
        client.responses.create(model="tgi", input="And?", previous_response_id=first)
    cancelled = client.responses.cancel(first)
    assert cancelled.status == "cancelled" and strict(cancelled.to_dict()).output == []
    assert client.responses.cancel(first).to_dict() == client.responses.retrieve(first).to_dict() == cancelled.to_dict()
    client.responses.delete(second)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second)
    wait_until(pair.daemon.is_idle)
    # They count as requests that were dropped, and none of them is waited for any more.
    metrics = pair.api.get("/metrics").text
    assert 'tgi_request_failure{err="dropped"} 2' in metrics


def test_a_stream_in_the_background_is_told_again(api, client):
    asked = {"model": "tgi", "input": "What is tgi?", "temperature": 0}
    events = list(client.responses.create(**asked, background=True, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:3]] == ["response.created", "response.queued", "response.in_progress"]
    assert events[0].response.status == "queued" and events[-1].type == "response.completed"
    whole = client.responses.create(**asked)
    assert events[-1].response.output_text == whole.output_text
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    name = events[0].response.id
    assert client.responses.retrieve(name).to_dict() == events[-1].response.to_dict()
    told = lambda **more: [event.to_dict() for event in client.responses.retrieve(name, stream=True, **more)]
    everything = [event.to_dict() for event in events]
    assert told() == everything
    for after in (0, 3, len(events) - 2, len(events) - 1, 10**6):
        assert told(starting_after=after) == everything[after + 1:]
    assert together([told] * 4) == [everything] * 4
    client.responses.delete(name)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(name, stream=True)

    # Of others there are no events, and what is no number is refused.
    for more in ({}, {"background": True}):
        other = client.responses.create(**asked, **more).id
        assert settled(client, other).status == "completed"
        refused = api.get(f"/v1/responses/{other}?stream=true")
        assert refused.status_code == 400 and "`background` and `stream`" in refused.text
    for query in ("stream=perhaps", "stream=true&starting_after=-1", "stream=true&starting_after=x", "starting_after=3"):
        assert api.get(f"/v1/responses/{other}?{query}").status_code == 400, query
    assert api.get(f"/v1/responses/{other}?stream=false").status_code == 200


def test_a_stream_in_the_background_goes_on_without_its_client(slow_pair):
    pair = slow_pair()
    client = client_of(pair.gateway)
    asked = {"model": "tgi", "input": "Once", "background": True, "stream": True, "max_output_tokens": 300}
    stream = client.responses.create(**asked, extra_body={"ignore_eos": True})
    began = [next(stream) for _ in range(6)]
    name = began[0].response.id
    stream.close()
    rest = list(client.responses.retrieve(name, stream=True, starting_after=began[-1].sequence_number))
    assert [event.sequence_number for event in rest] == list(range(6, 6 + len(rest)))
    assert rest[-1].type == "response.incomplete" and rest[-1].response.usage.output_tokens == 300
    assert client.responses.retrieve(name).to_dict() == rest[-1].response.to_dict()

    # One that is cancelled ends the streams of all who follow it.
    stream = client.responses.create(**asked | {"max_output_tokens": 4000}, extra_body={"ignore_eos": True})
    name = next(stream).response.id
    follower = client.responses.retrieve(name, stream=True)
    assert next(follower).type == "response.created"
    assert client.responses.cancel(name).status == "cancelled"
    kinds = [{event.type for event in each} for each in (stream, follower)]
    assert not any("response.completed" in each or "response.failed" in each for each in kinds)
    wait_until(pair.daemon.is_idle)


def test_all_who_cancel_are_told_what_became_of_it(slow_pair):
    pair = slow_pair()
    client = client_of(pair.gateway)
    begun = client.responses.create(model="tgi", input="Once", background=True, extra_body={"ignore_eos": True}).id
    wait_until(lambda: pair.daemon.status()["model"]["num_running"] == 1)
    assert set(together([lambda: client.responses.cancel(begun).status] * 4)) == {"cancelled"}


def test_what_is_still_made_is_kept(slow_pair):
    pair = slow_pair("--max-stored-responses", "1", "--max-stored-bytes", "3000")
    client = client_of(pair.gateway)
    asked = {"model": "tgi", "input": "Once", "background": True, "extra_body": {"ignore_eos": True}}
    with pytest.raises(openai.BadRequestError, match="--max-stored-bytes"):
        client.responses.create(**asked | {"input": "a " * 1500})
    first = client.responses.create(**asked).id
    wait_until(lambda: pair.daemon.status()["model"]["num_running"] == 1)
    with pytest.raises(openai.RateLimitError, match="--max-stored-responses"):
        client.responses.create(**asked)
    client.responses.create(model="tgi", input="And?", max_output_tokens=2)
    assert client.responses.retrieve(first).status == "in_progress"
    assert client.responses.cancel(first).status == "cancelled"
    second = client.responses.create(**asked).id
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first)
    client.responses.delete(second)
    wait_until(pair.daemon.is_idle)


def test_a_gateway_that_ends_gives_the_background_its_time(slow_pair):
    pair = slow_pair("--graceful-termination-timeout", "60")
    client = client_of(pair.gateway)
    for length in (400, 4000):
        client.responses.create(model="tgi", input="Once", background=True, max_output_tokens=length)
    wait_until(lambda: pair.daemon.status()["model"]["num_running"] == 2)
    pair.gateway.send(signal.SIGTERM)
    wait_until(lambda: pair.daemon.status()["model"]["num_running"] == 1, 60)  # one ends by itself, the other goes on
    assert pair.gateway.alive()
    pair.gateway.send(signal.SIGTERM)
    assert pair.gateway.wait(20) == 0
    wait_until(pair.daemon.is_idle)


def test_the_oldest_turns_are_left_out_where_that_is_asked(api, client):
    turns = [{"role": role, "content": f"{i} tgi is a server. " * 6} for i in range(60) for role in ("user", "assistant")]
    body = {"instructions": "Obey.", "input": [*turns, {"role": "user", "content": "And?"}], "max_output_tokens": 8, "temperature": 0}
    refused = api.post("/v1/responses", body)
    assert refused.status_code == 400 and "tokens" in refused.json()["error"]["message"]
    answer = api.ok("/v1/responses", body | {"truncation": "auto"})
    assert strict(answer).truncation == "auto"
    count = lambda input: client.responses.input_tokens.count(model="tgi", instructions="Obey.", input=input).input_tokens
    num = answer["usage"]["input_tokens"]
    fits = [first for first in range(0, len(turns), 2) if count(body["input"][first:]) == num]
    assert len(fits) == 1 and count(body["input"][fits[0] - 2:]) > api.total_tokens() - 8 >= num
    items = client.responses.input_items.list(answer["id"], limit=100)
    assert len(list(items)) == len(body["input"])
    assert api.post("/v1/responses", body | {"input": "tgi " * 3000, "truncation": "auto"}).status_code == 400


def test_the_tokens_of_a_request_are_counted_before_it_is_made(api, client):
    """Whatever takes tokens: the count is that of the answer to the same request."""
    count = lambda **asked: client.responses.input_tokens.count(model="tgi", **asked).input_tokens
    bare = count(input="What is tgi?")
    asks = [{"input": "What is tgi?", "instructions": "Be brief."}, {"input": "What is tgi?", "tools": [WEATHER, PING]},
            {"input": [{"role": "user", "content": "What is tgi?"}, {"role": "assistant", "content": "A server."},
                       {"role": "user", "content": "Since when?"}], "instructions": "Be brief."}]
    for asked in asks:
        answer = client.responses.create(model="tgi", max_output_tokens=2, **asked)
        assert count(**asked) == answer.usage.input_tokens > bare
    first = client.responses.create(model="tgi", input="What is tgi?", max_output_tokens=8, instructions="Be brief.")
    follow = {"previous_response_id": first.id, "input": "And?", "tools": [WEATHER]}
    follows = client.responses.create(model="tgi", max_output_tokens=2, **follow)
    assert count(**follow) == follows.usage.input_tokens
    # What is there before anything is asked.
    assert count(input="What is tgi?", instructions="Be brief.") > count(instructions="Be brief.") > 0
    assert count(previous_response_id=first.id, tools=[WEATHER]) < count(**follow)
    raw = api.ok("/responses/input_tokens", {"input": "What is tgi?"})
    assert raw == {"object": "response.input_tokens", "input_tokens": bare}
    for asked, text in [({}, "`input` cannot be empty"), ({"input": "a", "extra_body": {"personality": "friendly"}}, "`personality` is not supported"),
                        ({"input": "a", "conversation": "conv_1"}, "`conversation` is not supported"),
                        ({"input": "a", "previous_response_id": "resp_nope"}, "'resp_nope' not found")]:
        with pytest.raises(openai.BadRequestError, match=text):
            count(**asked)


def test_compaction_is_refused_by_name(client, api):
    with pytest.raises(openai.BadRequestError, match="compaction is not supported") as refused:
        client.responses.compact(model="tgi", input="What is tgi?")
    assert refused.value.code == "unsupported_feature"
    item = {"type": "compaction", "encrypted_content": "abc"}
    with pytest.raises(openai.BadRequestError, match="items of type compaction are not supported"):
        client.responses.create(model="tgi", input=[item, {"role": "user", "content": "And?"}])
    assert api.post("/responses/compact", {}).status_code == 400


@pytest.mark.parametrize("body, text", [
    ({}, "input: missing field"),
    ({"input": 3}, "input: invalid type"),
    ({"input": []}, "`input` cannot be empty"),
    ({"input": "a", "inptu": 1}, "unknown field `inptu`"),
    ({"input": "a", "temperature": "hot"}, "temperature: invalid type"),
    ({"input": "a", "max_output_tokens": 0}, "`max_output_tokens` must be"),
    ({"input": "a", "top_logprobs": 99}, "`top_logprobs` must be"),
    ({"input": "a", "include": ["all"]}, "include[0]: unknown value"),
    ({"input": "a", "background": "yes"}, "background: invalid type"),
    ({"input": "a", "conversation": "conv_1"}, "`conversation` is not supported"),
    ({"input": "a", "prompt": {"id": "pmpt_1"}}, "`prompt` is not supported"),
    ({"input": "a", "truncation": "some"}, "truncation: expected auto or disabled"),
    ({"input": "a", "metadata": {"a": 1}}, "metadata.a"),
    ({"input": "a", "text": {"format": {"type": "xml"}}}, "text.format.type: unknown type"),
    ({"input": "a", "text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema"),
    ({"input": "a", "reasoning": {"effort": "a lot"}}, "reasoning.effort: unknown effort"),
    ({"input": "a", "tools": [{"type": "web_search"}]}, "tools of type web_search"),
    ({"input": "a", "tools": [{"type": "web_search", "external_web_access": True}]}, "tools of type web_search"),
    ({"input": "a", "tools": [places({"type": "custom", "name": "a"})]}, "tools[0].tools[0]`: tools of type custom"),
    ({"input": "a", "tools": [places(WEATHER, mood="good")]}, "tools[0].mood"),
    ({"input": "a", "tools": [places(WEATHER) | {"tools": {}}]}, "tools[0].tools: expected an array"),
    ({"input": "a", "tools": [{"type": "namespace", "tools": [WEATHER]}]}, "tools[0].name: missing field"),
    ({"input": "a", "tools": [places(WEATHER, WEATHER)]}, "places__get_weather"),
    ({"input": "a", "top_k": -2}, "`top_k` must be >= -1"),
    ({"input": "a", "tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
    ({"input": "a", "tools": [WEATHER], "tool_choice": {"type": "function", "name": "ping"}}, "Tool with name ping not found"),
    ({"input": "a", "tools": [WEATHER], "tool_choice": {"type": "file_search"}}, "only functions"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]}, "input[0].content[0]`: input_image"),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input_file is not supported"),
    ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input_audio is not supported"),
    ({"input": [{"role": "poet", "content": "a"}]}, "input[0].role: unknown role"),
    ({"input": [{"role": "user", "content": "a", "mood": "good"}]}, "input[0].mood"),
    ({"input": [{"type": "computer_call"}]}, "items of type computer_call"),
    ({"input": [{"type": "function_call", "call_id": "a", "name": "b", "arguments": "{"}]}, "input[0].arguments"),
    ({"input": [{"type": "function_call_output", "call_id": "nope", "output": "x"}]}, "No tool call found"),
    ({"input": [{"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}]}, "input[0].encrypted_content"),
], ids=str)
def test_what_is_refused(api, body, text):
    for stream in (False, True):
        answer = api.post("/v1/responses", body | {"stream": stream})
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error" and text in error["message"], error
    assert api.alive()


def test_other_refusals(api, client):
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.responses.create(model="gpt-nope", input="a")
    with pytest.raises(openai.NotFoundError, match="Item with id 'msg_nope' not found"):
        client.responses.create(model="tgi", input=[{"type": "item_reference", "id": "msg_nope"}])
    name = client.responses.create(model="tgi", input="a", max_output_tokens=3).id
    for query in ("limit=0", "limit=x", "order=up", "after=msg_nope", "first=1"):
        assert api.get(f"/v1/responses/{name}/input_items?{query}").status_code == 400, query
    assert api.get(f"/v1/responses/{name}?stream=true").status_code == 400
    assert api.get(f"/v1/responses/{name}/nope").status_code == 404
    assert api.get("/v1/responses").status_code == 405
    assert api.post_bytes("/v1/responses", b"{").status_code == 400


def test_a_stream_that_fails_says_so(slow_pair):
    running = slow_pair()
    with client_of(running.gateway).responses.stream(model="tgi", input="a", max_output_tokens=3000) as stream:
        events = iter(stream)
        for event in events:
            if event.type == "response.output_text.delta":
                break
        running.daemon.end()
        last = [event for event in events][-1]
    assert last.type == "response.failed" and last.response.status == "failed" and last.response.error.code == "server_error"


def test_agents_of_the_official_kit(gateway):
    agents = pytest.importorskip("agents")
    from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    set_tracing_disabled(True)
    asked = []

    @function_tool
    def look_up(name: str) -> str:
        """Looks a place up."""
        asked.append(name)
        return "a house"

    model = OpenAIResponsesModel("tgi", openai_client=openai.AsyncOpenAI(base_url=gateway.url + "/v1", api_key="-"))
    agent = Agent(name="a", instructions="Be brief.", model=model, tools=[look_up],
                  model_settings=ModelSettings(tool_choice="required", temperature=0, max_tokens=400))
    result = Runner.run_sync(agent, "Where?", max_turns=4)
    assert asked and result.final_output is not None
    place = Agent(name="b", model=model, output_type=Place, model_settings=ModelSettings(temperature=0, max_tokens=400))
    assert isinstance(Runner.run_sync(place, "Where?").final_output, Place)
    assert agents
