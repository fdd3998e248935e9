"""OpenAI's own Python client: sync, async, streams, every parameter it sends, and the exception for each error."""

import asyncio
import typing
from typing import Literal, Optional

import openai
import pytest
from pydantic import BaseModel, Field

from client import native_text
from gateway import wait_until

MESSAGES = [{"role": "user", "content": "What is tgi?"}]


@pytest.fixture
def client(gateway):
    return openai.OpenAI(base_url=gateway.url + "/v1", api_key="-", max_retries=0)


@pytest.fixture
def chat(client):
    return lambda **more: client.chat.completions.create(**({"model": "tgi", "messages": MESSAGES} | more))


@pytest.fixture
def complete(client):
    return lambda **more: client.completions.create(**({"model": "tgi", "prompt": "Once upon a time"} | more))


def text_of(stream):
    return "".join(c.choices[0].delta.content or "" for c in stream if c.choices)


def test_15_a_chat(chat, gateway):
    answer = chat(max_tokens=10)
    assert answer.object == "chat.completion" and answer.model == gateway.model_name
    assert answer.choices[0].message.role == "assistant" and answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 10
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 10
    assert answer.usage.prompt_tokens_details.cached_tokens >= 0


def test_15_a_chat_stream(chat):
    chunks = list(chat(temperature=0, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[0].choices[0].delta.content == ""
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert text_of(chunks) == chat(temperature=0).choices[0].message.content
    assert all(chunk.usage is None for chunk in chunks)


def test_the_stream_helper_of_the_client(client):
    with client.chat.completions.stream(model="tgi", messages=MESSAGES, temperature=0) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert final.choices[0].message.content and final.choices[0].finish_reason == "stop"


def test_usage_in_a_stream(chat):
    chunks = list(chat(max_tokens=6, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 6
    assert [c.usage for c in chunks[:-1]] == [None] * (len(chunks) - 1)


def test_async(gateway):
    async def ask():
        async with openai.AsyncOpenAI(base_url=gateway.url + "/v1", api_key="-", max_retries=0) as client:
            answers = await asyncio.gather(*[client.chat.completions.create(
                model="tgi", messages=MESSAGES, temperature=0) for _ in range(8)])
            stream = await client.chat.completions.create(model="tgi", messages=MESSAGES, temperature=0, stream=True)
            streamed = "".join([c.choices[0].delta.content or "" async for c in stream])
            completion = await client.completions.create(model="tgi", prompt="Once", max_tokens=3, stream=True)
            pieces = [c.choices[0].text async for c in completion]
        return [a.choices[0].message.content for a in answers], streamed, pieces

    answers, streamed, pieces = asyncio.run(ask())
    assert set(answers) == {streamed}
    assert len(pieces) >= 3


def test_n(chat):
    ask = lambda **more: chat(n=2, max_tokens=20, seed=3, temperature=2.0, **more)
    choices = ask().choices
    assert [c.index for c in choices] == [0, 1]
    assert choices[0].message.content != choices[1].message.content
    again = ask().choices
    assert [c.message.content for c in again] == [c.message.content for c in choices]
    assert chat(n=2, max_tokens=5).usage.completion_tokens == 10
    streamed = list(ask(stream=True))
    for i in range(2):
        mine = [c.choices[0] for c in streamed if c.choices and c.choices[0].index == i]
        assert mine[0].delta.content == "" and mine[-1].finish_reason == "length"
        assert "".join(c.delta.content or "" for c in mine) == choices[i].message.content


def test_n_greedy_answers_are_the_same(chat, complete):
    answer = chat(n=3, max_tokens=6, temperature=0)
    assert [c.index for c in answer.choices] == [0, 1, 2]
    assert {c.message.content for c in answer.choices} == {chat(max_tokens=6, temperature=0).choices[0].message.content}
    assert answer.usage.completion_tokens == 18
    streamed = list(complete(prompt=["Once", "The fox"], n=2, max_tokens=5, temperature=0, stream=True))
    texts = ["".join(c.choices[0].text for c in streamed if c.choices[0].index == i) for i in range(4)]
    assert texts[0] == texts[1] != texts[2] == texts[3]


def test_logprobs_have_bytes_and_no_end_token(chat):
    answer = chat(temperature=0, logprobs=True, top_logprobs=2).choices[0]
    assert answer.finish_reason == "stop"
    assert b"".join(bytes(t.bytes) for t in answer.logprobs.content).decode() == answer.message.content
    assert all(bytes(top.bytes) for t in answer.logprobs.content for top in t.top_logprobs)
    streamed = [t for c in chat(temperature=0, logprobs=True, top_logprobs=2, stream=True)
                if c.choices[0].logprobs for t in c.choices[0].logprobs.content]
    assert streamed == answer.logprobs.content


def test_logprobs(chat):
    answer = chat(max_tokens=5, temperature=0, logprobs=True, top_logprobs=4)
    content = answer.choices[0].logprobs.content
    assert len(content) == 5
    assert "".join(t.token for t in content) == answer.choices[0].message.content
    for token in content:
        assert token.logprob <= 0 and len(token.top_logprobs) >= 4
        assert token.top_logprobs[0].token == token.token
    assert all(t.top_logprobs == [] for t in chat(max_tokens=3, logprobs=True).choices[0].logprobs.content)
    assert chat(max_tokens=3).choices[0].logprobs is None
    assert len(chat(max_tokens=1, logprobs=True, top_logprobs=20).choices[0].logprobs.content[0].top_logprobs) >= 20
    streamed = [t for c in chat(max_tokens=5, temperature=0, logprobs=True, top_logprobs=4, stream=True)
                if c.choices[0].logprobs for t in c.choices[0].logprobs.content]
    assert streamed == content


def test_stop(chat):
    whole = chat(temperature=0).choices[0].message.content
    for stop in ("t", ["t"], ["zzz", "t"]):
        answer = chat(temperature=0, stop=stop)
        assert answer.choices[0].message.content == whole[:whole.index("t")]
        assert answer.choices[0].finish_reason == "stop"
    with pytest.raises(openai.UnprocessableEntityError):
        chat(stop=list("abcde"))


def test_seed_and_temperature(chat):
    ask = lambda **more: chat(max_tokens=30, **more).choices[0].message.content
    assert ask(seed=1, temperature=2) == ask(seed=1, temperature=2) != ask(seed=2, temperature=2)
    assert ask(temperature=0) == ask(temperature=0)
    assert ask(temperature=0, top_p=1) == ask(temperature=0)
    assert ask(temperature=0.01, seed=1) == ask(temperature=0)
    assert ask(top_p=0.0001, seed=9) == ask(temperature=0)


def test_max_completion_tokens(chat):
    assert chat(max_completion_tokens=4, temperature=0).usage.completion_tokens == 4


def test_logit_bias(chat, complete, api):
    banned = chat(temperature=0, max_tokens=1, logprobs=True, top_logprobs=2)
    first = api.generate("Once upon a time", max_new_tokens=1, details=True)["details"]["tokens"][0]
    without = complete(temperature=0, max_tokens=1, logit_bias={str(first["id"]): -100})
    assert without.choices[0].text != first["text"]
    only = complete(temperature=0, max_tokens=5, logit_bias={str(first["id"]): 100})
    assert only.choices[0].text == first["text"] * 5
    assert chat(temperature=0, max_tokens=1, logit_bias={}).choices[0].message.content == \
        banned.choices[0].message.content
    for bias in ({"1": 101}, {"x": 1}, {"99999999": 1}, {"-1": 1}):
        with pytest.raises(openai.UnprocessableEntityError):
            complete(max_tokens=1, logit_bias=bias)


def test_completions(complete, api):
    answer = complete(max_tokens=10, temperature=0)
    assert answer.object == "text_completion"
    native = api.generate_stream("Once upon a time", max_new_tokens=10)
    assert answer.choices[0].text == native_text(native)
    streamed = list(complete(max_tokens=10, temperature=0, stream=True))
    assert "".join(c.choices[0].text for c in streamed) == answer.choices[0].text
    assert [c.choices[0].finish_reason for c in streamed] == [None] * (len(streamed) - 1) + ["length"]
    assert complete(max_tokens=4, temperature=0, echo=True).choices[0].text.startswith("Once upon a time")
    usage = list(complete(max_tokens=4, stream=True, stream_options={"include_usage": True}))[-1]
    assert usage.choices == [] and usage.usage.completion_tokens == 4


def test_completions_with_several_prompts_and_n(complete):
    answer = complete(prompt=["Once", "The fox"], n=2, max_tokens=5, seed=1)
    assert sorted(c.index for c in answer.choices) == [0, 1, 2, 3]
    assert answer.usage.completion_tokens == 20


def test_completions_logprobs(complete):
    answer = complete(max_tokens=4, temperature=0, logprobs=2)
    logprobs = answer.choices[0].logprobs
    assert "".join(logprobs.tokens) == answer.choices[0].text
    assert len(logprobs.token_logprobs) == len(logprobs.top_logprobs) == len(logprobs.text_offset) == 4
    assert all(value <= 0 for value in logprobs.token_logprobs)
    assert all(token in top for token, top in zip(logprobs.tokens, logprobs.top_logprobs))


def test_completions_of_token_ids_and_echo_with_logprobs(complete, api):
    ids = [t["id"] for t in api.ok("/tokenize", {"inputs": "Once upon a time"})]
    text = complete(max_tokens=6, temperature=0).choices[0].text
    assert complete(prompt=ids, max_tokens=6, temperature=0).choices[0].text == text
    assert [c.text for c in complete(prompt=[ids, ids], max_tokens=6, temperature=0).choices] == [text, text]
    logprobs = complete(max_tokens=2, temperature=0, echo=True, logprobs=1).choices[0].logprobs
    assert logprobs.token_logprobs[0] is None
    assert all(value <= 0 for value in logprobs.token_logprobs[1:])
    assert logprobs.top_logprobs[0] is None
    assert all(max(top.values()) >= own for top, own in zip(logprobs.top_logprobs[1:], logprobs.token_logprobs[1:]))
    assert complete(prompt=ids, max_tokens=1, temperature=0, echo=True).choices[0].text.startswith("Once upon a time")
    assert len(logprobs.tokens) == len(logprobs.text_offset) == len(ids) + 2


def test_best_of_completions(complete):
    answer = complete(best_of=4, n=2, max_tokens=8, seed=1, temperature=1.5)
    assert len(answer.choices) == 2 and answer.choices[0].text != answer.choices[1].text
    assert answer.usage.completion_tokens >= 16
    with pytest.raises(openai.UnprocessableEntityError):
        complete(best_of=1, n=2, max_tokens=8)


def test_content_in_parts(chat):
    parts = [{"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "tgi?"}]}]
    assert chat(messages=parts, temperature=0).choices[0].message == chat(temperature=0).choices[0].message


def test_a_system_message_and_a_name(chat):
    messages = [{"role": "system", "content": "You are a toy."}, {"role": "user", "name": "bob", "content": "hi"}]
    assert chat(messages=messages, max_tokens=3).choices[0].message.content


def test_models(client, gateway):
    assert [m.id for m in client.models.list()] == [gateway.model_name]


@pytest.mark.parametrize("more, error", [
    ({"model": "gpt-4"}, openai.NotFoundError),
    ({"temperature": -1}, openai.UnprocessableEntityError),
    ({"top_p": 1.5}, openai.UnprocessableEntityError),
    ({"max_tokens": 0}, openai.UnprocessableEntityError),
    ({"max_tokens": 100000}, openai.UnprocessableEntityError),
    ({"top_logprobs": 21, "logprobs": True}, openai.UnprocessableEntityError),
    ({"frequency_penalty": 3}, openai.UnprocessableEntityError),
    ({"n": 0}, openai.UnprocessableEntityError),
    ({"n": 100000}, openai.UnprocessableEntityError),
    ({"messages": "hi"}, openai.UnprocessableEntityError),
    ({"messages": [{"role": "user", "content": "x" * 2_100_000}]}, openai.APIStatusError),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, openai.UnprocessableEntityError),
    ({"response_format": {"type": "json_objekt"}}, openai.UnprocessableEntityError),
], ids=lambda v: str(v)[:60])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_error_is_the_right_exception(chat, more, error, stream):
    with pytest.raises(error) as caught:
        chat(stream=stream, **more)
    assert caught.value.body["message"] and "type" in caught.value.body


def test_a_wrong_key_is_an_authentication_error(serve):
    gateway = serve("--api-key", "right")
    wrong = openai.OpenAI(base_url=gateway.url + "/v1", api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        wrong.chat.completions.create(model="tgi", messages=MESSAGES)
    right = openai.OpenAI(base_url=gateway.url + "/v1", api_key="right", max_retries=0)
    assert right.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=2).choices


def test_too_many_is_a_rate_limit_error_and_a_dead_daemon_a_server_error(slow_pair):
    pair = slow_pair("--max-concurrent-requests", "1")
    client = openai.OpenAI(base_url=pair.gateway.url + "/v1", api_key="-", max_retries=0)
    ask = lambda **more: client.chat.completions.create(model="tgi", messages=MESSAGES, **more)
    running = ask(stream=True, max_tokens=3000)
    next(iter(running))
    with pytest.raises(openai.RateLimitError):
        ask()
    pair.daemon.end()
    with pytest.raises(openai.APIError):  # the error event of the stream that was running
        list(running)
    wait_until(lambda: pair.api.get("/health").status_code == 503)
    with pytest.raises(openai.InternalServerError):
        ask()


def test_leaving_a_stream_early_cancels_it(slow_pair):
    pair = slow_pair()
    client = openai.OpenAI(base_url=pair.gateway.url + "/v1", api_key="-", max_retries=0)
    with client.chat.completions.create(model="tgi", messages=MESSAGES, stream=True, max_tokens=3000) as stream:
        next(iter(stream))
    wait_until(pair.daemon.is_idle, 5)


class Place(BaseModel):
    street: str = Field(max_length=8)
    number: Optional[int] = Field(ge=0, le=99)


class Find(BaseModel):
    """Finds a place."""
    kind: Literal["house", "flat"]
    place: Place


FIND = openai.pydantic_function_tool(Find)
SAMPLED = {"max_tokens": 200, "temperature": 1.0, "seed": 4}


def check_find(find):
    assert isinstance(find, Find) and find.kind in ("house", "flat") and len(find.place.street) <= 8


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "Find"}}], ids=["required", "named"])
def test_tools_whole_streamed_parsed_and_their_results(client, chat, choice):
    ask = {"tools": [FIND], "tool_choice": choice, "parallel_tool_calls": False} | SAMPLED
    answer = chat(**ask).choices[0]
    assert answer.finish_reason == "tool_calls" and answer.message.content is None
    [call] = answer.message.tool_calls
    check_find(Find.model_validate_json(call.function.arguments))

    deltas = [part for chunk in chat(stream=True, **ask) for part in chunk.choices[0].delta.tool_calls or []]
    assert deltas[0].function.name == "Find" and deltas[0].id and len(deltas) > 2
    assert "".join(part.function.arguments for part in deltas) == call.function.arguments

    parsed = client.chat.completions.parse(model="tgi", messages=MESSAGES, **ask).choices[0].message
    check_find(parsed.tool_calls[0].function.parsed_arguments)

    with client.chat.completions.stream(model="tgi", messages=MESSAGES, **ask) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion().choices[0]
    assert "tool_calls.function.arguments.delta" in kinds and kinds.count("tool_calls.function.arguments.done") == 1
    check_find(final.message.tool_calls[0].function.parsed_arguments)

    for message in (answer.message, parsed, final.message):  # as the client reads it, sent back
        history = [*MESSAGES, message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "found"}]
        assert chat(messages=history, tools=[FIND], tool_choice="none", max_tokens=8).choices[0].message.content
        again = chat(**ask | {"messages": history}).choices[0].message.tool_calls[0]
        assert again.id != message.tool_calls[0].id
        check_find(Find.model_validate_json(again.function.arguments))


def test_a_parsed_answer_whole_and_streamed(client):
    ask = {"model": "tgi", "messages": MESSAGES, "response_format": Find} | SAMPLED
    answer = client.chat.completions.parse(**ask).choices[0].message
    check_find(answer.parsed)
    with client.chat.completions.stream(**ask) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.parsed == answer.parsed


def test_the_daemons_seed_is_that_of_requests_without_one(pair):
    mine = pair(daemon_flags=("--seed", "7"))
    client = openai.OpenAI(base_url=f"{mine.gateway.url}/v1", api_key="-", max_retries=0)
    ask = lambda **more: [c.message.content for c in client.chat.completions.create(
        model="tgi", messages=MESSAGES, temperature=2, max_tokens=12, **more).choices]
    assert ask() == ask() == ask(seed=7) != ask(seed=8)
    first, second = ask(n=2)
    assert first != second  # each choice draws by a seed of its own


def test_without_a_seed_answers_differ(pair):
    mine = pair(daemon_flags=("--seed", "auto"))
    client = openai.OpenAI(base_url=f"{mine.gateway.url}/v1", api_key="-", max_retries=0)
    answers = {client.chat.completions.create(model="tgi", messages=MESSAGES, temperature=2, max_tokens=12)
               .choices[0].message.content for _ in range(8)}
    assert len(answers) > 1


def test_every_field_of_the_client_is_known(api):
    """Each is read, or taken, or refused with a reason: none is an unknown field."""
    from openai.types import completion_create_params as completions
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    schemas = api.get("/api-doc/openapi.json").json()["components"]["schemas"]
    for body, of in (("ChatRequest", chat.CompletionCreateParamsStreaming), ("ResponsesRequest", responses.ResponseCreateParamsStreaming),
                     ("CompletionRequest", completions.CompletionCreateParamsStreaming)):
        assert set(typing.get_type_hints(of)) <= set(schemas[body]["properties"]), body


def test_fields_without_a_meaning_for_texts(client):
    """What has an obvious meaning or none is taken; what cannot be done is refused by its name."""
    chat = lambda **more: client.chat.completions.create(model="tgi", messages=[{"role": "user", "content": "hi"}], max_tokens=3, **more)
    respond = lambda **more: client.responses.create(model="tgi", input="hi", max_output_tokens=3, **more)
    for level in ("low", "medium", "high"):
        assert chat(verbosity=level).choices
        assert respond(text={"verbosity": level}).text.verbosity == level
    assert chat(extra_body={"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}}).choices
    assert respond(extra_body={"prompt_cache_options": {"mode": "implicit"}, "background_options": {"completion_window": "2h"}}).output
    for ask in (chat, respond):
        for more, name in (({"prompt_cache_options": {"prewarm": True}}, "prompt_cache_options.prewarm"), ({"moderation": {"model": "m"}}, "moderation")):
            with pytest.raises(openai.APIStatusError, match=name) as refused:
                ask(extra_body=more)
            assert refused.value.status_code in (400, 422) and refused.value.code == "unsupported_feature"
    with pytest.raises(openai.BadRequestError, match="`text.verbosity` must be one of low, medium, high"):
        respond(text={"verbosity": "chatty"})
