"""The `text-generation` package, TGI's first client, still in many scripts.

Its chat streams can't be read with any server: it parses `[DONE]` as JSON. So only its whole chats are here.
"""

import asyncio

import pytest
from text_generation import AsyncClient, Client
from text_generation.errors import GenerationError, IncompleteGenerationError, OverloadedError, ValidationError

from client import start_stream

PROMPT = "Once upon a time"
MESSAGES = [{"role": "user", "content": "What is tgi?"}]


@pytest.fixture
def client(gateway):
    return Client(gateway.url)


def test_generate(client, api):
    answer = client.generate(PROMPT, max_new_tokens=10, decoder_input_details=True, top_n_tokens=2)
    assert answer.generated_text == api.generate(PROMPT, max_new_tokens=10)["generated_text"]
    details = answer.details
    assert details.finish_reason == "length" and details.generated_tokens == 10 and details.seed is None
    assert details.prefill[0].logprob is None and len(details.tokens) == 10
    assert all(len(top) >= 2 for top in details.top_tokens)


def test_generate_with_everything(client):
    answer = client.generate(PROMPT, do_sample=True, max_new_tokens=30, best_of=2, repetition_penalty=1.2,
                             frequency_penalty=0.2, return_full_text=True, stop_sequences=["."], temperature=0.7,
                             top_k=30, top_p=0.9, truncate=20, typical_p=0.9, watermark=True)
    assert answer.generated_text.startswith(PROMPT)
    assert len(answer.details.best_of_sequences) == 1 and answer.details.seed is not None
    assert client.generate(PROMPT, stop_sequences=["."], max_new_tokens=80).details.finish_reason == "stop_sequence"
    assert client.generate(PROMPT, max_new_tokens=400).details.finish_reason == "eos_token"


def test_generate_stream(client):
    events = list(client.generate_stream(PROMPT, max_new_tokens=10, top_n_tokens=2))
    assert "".join(e.token.text for e in events) == events[-1].generated_text
    assert events[-1].details.finish_reason == "length" and events[-1].details.generated_tokens == 10
    assert all(e.generated_text is None and e.details is None for e in events[:-1])
    assert len(events[0].top_tokens) >= 2


def test_chat(client):
    answer = client.chat(MESSAGES, max_tokens=10, seed=1, temperature=0.5, top_p=0.9, logprobs=True, top_logprobs=2)
    assert answer.choices[0].message.content and answer.choices[0].finish_reason == "length"
    assert answer.usage["completion_tokens"] == 10
    assert client.chat(MESSAGES, max_tokens=3).choices[0].message.role == "assistant"


def test_validation_errors(client):
    with pytest.raises(ValidationError, match="`truncate` must be"):
        client.generate(PROMPT, truncate=100000)
    with pytest.raises(ValidationError, match="cannot be empty"):
        client.generate("")
    with pytest.raises(ValidationError, match="`top_n_tokens` must be"):
        list(client.generate_stream(PROMPT, top_n_tokens=9))


def test_overloaded_and_generation_errors(slow_pair):
    pair = slow_pair("--max-concurrent-requests", "1")
    client = Client(pair.gateway.url)
    stream = client.generate_stream(PROMPT, max_new_tokens=3000)
    next(stream)
    with pytest.raises(OverloadedError):
        client.generate("a")
    with pytest.raises(OverloadedError):
        list(client.generate_stream("a"))
    pair.daemon.end()
    with pytest.raises((GenerationError, IncompleteGenerationError)):
        list(stream)


def test_the_async_client(gateway):
    async def ask():
        client = AsyncClient(gateway.url)
        answers = await asyncio.gather(*[client.generate(PROMPT, max_new_tokens=10) for _ in range(6)])
        events = [event async for event in client.generate_stream(PROMPT, max_new_tokens=10)]
        chat = await client.chat(MESSAGES, max_tokens=4)
        return answers, events, chat

    answers, events, chat = asyncio.run(ask())
    assert {a.generated_text for a in answers} == {events[-1].generated_text}
    assert chat.choices[0].message.content


def test_the_async_client_leaves(slow_pair):
    from gateway import wait_until
    pair = slow_pair()

    async def leave():
        async for _ in AsyncClient(pair.gateway.url).generate_stream(PROMPT, max_new_tokens=3000):
            break

    asyncio.run(leave())
    wait_until(pair.daemon.is_idle, 5)
    start_stream(pair.gateway, "/generate_stream", {"inputs": "a", "parameters": {"max_new_tokens": 2}}).close()
