"""huggingface_hub's InferenceClient, sync and async, as its users call it with an address."""

import asyncio
import json

import pytest
from huggingface_hub import AsyncInferenceClient, InferenceClient
from huggingface_hub.errors import (GenerationError, HfHubHTTPError, IncompleteGenerationError,
                                    OverloadedError, ValidationError)

from client import start_stream

PROMPT = "Once upon a time"
MESSAGES = [{"role": "user", "content": "What is tgi?"}]


@pytest.fixture(params=["base_url", "model"])
def client(request, gateway):
    """Both ways in which the address is given."""
    return InferenceClient(**{request.param: gateway.url})


def test_text_generation(client, api):
    text = client.text_generation(PROMPT, max_new_tokens=10)
    assert text == api.generate(PROMPT, max_new_tokens=10)["generated_text"] or text.startswith(PROMPT)
    assert client.text_generation(PROMPT, max_new_tokens=10, return_full_text=False) == \
        api.generate(PROMPT, max_new_tokens=10)["generated_text"]


def test_text_generation_with_details(client):
    answer = client.text_generation(PROMPT, max_new_tokens=10, details=True, return_full_text=False,
                                    decoder_input_details=True, top_n_tokens=2)
    assert answer.details.finish_reason == "length"
    assert answer.details.generated_tokens == len(answer.details.tokens) == 10
    assert "".join(t.text for t in answer.details.tokens) == answer.generated_text
    assert answer.details.prefill[0].text is not None and answer.details.tokens[0].logprob <= 0
    assert len(answer.details.top_tokens) == 10


def test_text_generation_stream(client):
    whole = client.text_generation(PROMPT, max_new_tokens=10, return_full_text=False)
    assert "".join(client.text_generation(PROMPT, max_new_tokens=10, stream=True)) == whole
    details = list(client.text_generation(PROMPT, max_new_tokens=10, stream=True, details=True,
                                          return_full_text=False))
    assert [d.index for d in details] == list(range(1, 11))
    assert details[-1].generated_text == whole
    assert details[-1].details.finish_reason == "length" and details[0].details is None


def test_text_generation_with_everything(client):
    answer = client.text_generation(
        PROMPT, max_new_tokens=12, details=True, do_sample=True, seed=7, temperature=0.8, top_k=40, top_p=0.9,
        typical_p=0.95, repetition_penalty=1.1, frequency_penalty=0.1, stop=["."], truncate=100, watermark=True)
    assert answer.details.seed == 7
    best = client.text_generation(PROMPT, max_new_tokens=5, details=True, do_sample=True, best_of=2)
    assert len(best.details.best_of_sequences) == 1


def test_text_generation_errors(client):
    with pytest.raises(ValidationError, match="`top_p` must be"):
        client.text_generation(PROMPT, top_p=3.0)
    with pytest.raises(ValidationError, match="cannot be empty"):
        list(client.text_generation("", stream=True))


def test_chat_completion(client):
    answer = client.chat_completion(MESSAGES, max_tokens=10)
    assert answer.choices[0].message.role == "assistant" and answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens == 10


def test_chat_completion_stream(client):
    whole = client.chat_completion(MESSAGES, temperature=0, max_tokens=40).choices[0].message.content
    chunks = list(client.chat_completion(MESSAGES, temperature=0, max_tokens=40, stream=True,
                                         stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole
    assert all(c.choices[0].delta.role == "assistant" for c in chunks if c.choices)
    assert chunks[-1].usage.completion_tokens > 0


def test_chat_completion_parameters(client):
    answer = client.chat_completion(MESSAGES, max_tokens=20, n=2, seed=1, logprobs=True, top_logprobs=2, top_p=0.9,
                                    temperature=0.9, stop=["t"], frequency_penalty=0.5, presence_penalty=0.5)
    assert len(answer.choices) == 2
    assert answer.choices[0].logprobs.content[0].top_logprobs


def test_the_name_of_the_model_may_be_given(client, gateway):
    assert client.chat_completion(MESSAGES, max_tokens=2, model=None).choices
    for_openai = InferenceClient(base_url=gateway.url + "/v1", api_key="-")
    answer = for_openai.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=2)
    assert answer.choices[0].message.content


def test_chat_completion_errors(client):
    with pytest.raises(HfHubHTTPError) as caught:
        client.chat_completion(MESSAGES, max_tokens=5, temperature=-1)
    assert caught.value.response.status_code == 422


def test_response_format_as_the_client_rewrites_it(client):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    answer = client.chat_completion(MESSAGES, response_format=form, max_tokens=20)
    assert list(json.loads(answer.choices[0].message.content)) == ["n"]
    text = client.text_generation("Once", grammar={"type": "regex", "value": "[ab]{4}"}, max_new_tokens=10,
                                  return_full_text=False)
    assert len(text) == 4 and set(text) <= {"a", "b"}


# The second is how the client's own ChatCompletionInputToolChoiceClass writes it.
@pytest.mark.parametrize("choice", [{"type": "function", "function": {"name": "weather"}}, {"function": {"name": "weather"}}],
                         ids=["typed", "untyped"])
def test_tools_whole_streamed_and_their_results(client, choice):
    city = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": city}}]
    ask = {"tools": tools, "tool_choice": choice, "max_tokens": 100, "temperature": 1.0, "seed": 3}
    message = client.chat_completion(MESSAGES, **ask).choices[0].message
    call = message.tool_calls[0]
    assert call.function.name == "weather" and call.id and call.type == "function"
    assert list(json.loads(call.function.arguments)) == ["city"]
    chunks = list(client.chat_completion(MESSAGES, stream=True, **ask))
    deltas = [part for chunk in chunks for part in chunk.choices[0].delta.tool_calls or [] if part.index == 0]
    assert deltas[0].function.name == "weather" and deltas[0].id
    assert "".join(part.function.arguments for part in deltas) == call.function.arguments
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    # The message as the client reads it, sent back with the result.
    history = [*MESSAGES, message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    assert client.chat_completion(history, tools=tools, tool_choice="none", max_tokens=5).choices[0].message.content


def test_overloaded(slow_pair):
    pair = slow_pair("--max-concurrent-requests", "1")
    stream = start_stream(pair.gateway, "/generate_stream",
                          {"inputs": PROMPT, "parameters": {"max_new_tokens": 3000}})
    client = InferenceClient(pair.gateway.url)
    with pytest.raises(OverloadedError):
        client.text_generation("a")
    with pytest.raises(OverloadedError):
        list(client.text_generation("a", stream=True))
    stream.close()


def test_a_daemon_that_dies_is_a_generation_error(slow_pair):
    pair = slow_pair()
    client = InferenceClient(pair.gateway.url)
    stream = client.text_generation(PROMPT, stream=True, max_new_tokens=3000)
    next(iter(stream))
    pair.daemon.end()
    with pytest.raises((GenerationError, IncompleteGenerationError)):
        list(stream)


def test_async(gateway):
    async def ask():
        async with AsyncInferenceClient(gateway.url) as client:
            texts = await asyncio.gather(*[client.text_generation(PROMPT, max_new_tokens=10, return_full_text=False)
                                           for _ in range(6)])
            stream = await client.text_generation(PROMPT, max_new_tokens=10, stream=True)
            streamed = "".join([piece async for piece in stream])
            chat = await client.chat_completion(MESSAGES, max_tokens=10, stream=True)
            chunks = [chunk async for chunk in chat]
        return texts, streamed, chunks

    texts, streamed, chunks = asyncio.run(ask())
    assert set(texts) == {streamed}
    assert chunks[-1].choices[0].finish_reason == "length"
