"""What holds for every stream: its pieces make the whole, no half code points, no part of a stop string, seeds hold."""

import concurrent.futures
import json
import random

import pytest

from client import chat_body, chat_text, completion_text, native_text

PROMPTS = ["Once upon a time", "What is tgi?", "😀", "你好，世界", "Zoë's café", "👩‍👩‍👧‍👦 family", "a\u0301", "\n\n\n",
           " ", "\t", "\"quotes\" \\ and / slashes", "<|user|>", "1 + 1 =", "ЁЖ", "🇫🇷🇩🇪", "x" * 300]
# Hot enough that a byte-level model emits bytes that make no character, and parts of characters.
HOT = {"do_sample": True, "temperature": 4.0, "max_new_tokens": 60}


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_native_streams_add_up(api, prompt, seed):
    parameters = {"max_new_tokens": 60} if seed is None else HOT | {"seed": seed}
    events = api.generate_stream(prompt, **parameters)
    whole = api.generate(prompt, **parameters)["generated_text"]
    assert events[-1]["generated_text"] == whole
    assert native_text(events) == whole
    assert [e["index"] for e in events] == list(range(1, len(events) + 1))
    assert events[-1]["details"]["generated_tokens"] == len(events)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_openai_streams_add_up(api, prompt):
    for more in ({"temperature": 0}, {"temperature": 2.0, "seed": 4}):
        body = chat_body(prompt, max_tokens=40, **more)
        whole = api.ok("/v1/chat/completions", body)["choices"][0]["message"]["content"]
        assert chat_text(api.chunks("/v1/chat/completions", body)) == whole
        body = {"prompt": prompt, "max_tokens": 40, **more}
        whole = api.ok("/v1/completions", body)["choices"][0]["text"]
        assert completion_text(api.chunks("/v1/completions", body)) == whole


def test_several_choices_add_up_each(api):
    body = chat_body("What is tgi?", max_tokens=30, n=2, seed=8)
    choices = api.ok("/v1/chat/completions", body)["choices"]
    chunks = api.chunks("/v1/chat/completions", body)
    assert [chat_text(chunks, i) for i in range(2)] == \
        [c["message"]["content"] for c in sorted(choices, key=lambda c: c["index"])]


def test_echo_streams_the_prompt_first(api):
    prompt = "  Zoë 😀\n said"
    body = {"prompt": prompt, "max_tokens": 12, "temperature": 0, "echo": True}
    whole = api.ok("/v1/completions", body)["choices"][0]["text"]
    assert whole.startswith(prompt)
    assert completion_text(api.chunks("/v1/completions", body)) == whole


def likely(api, text):
    """Parameters that give little else than the tokens of a text that the vocabulary has only bytes for."""
    ids = {t["id"] for t in api.ok("/tokenize", {"inputs": text}) if t["start"] != t["stop"]}
    assert len(ids) > 1
    return {"logit_bias": {str(i): 60 for i in ids}, "temperature": 2.0}


@pytest.mark.parametrize("text", ["😀", "你", "é"])
def test_no_chunk_holds_half_a_code_point(api, text):
    """The bytes of a character are made likely, so they come in all orders, whole and broken off."""
    seen = ""
    for seed in range(8):
        body = {"prompt": "a", "max_tokens": 60, "seed": seed, **likely(api, text)}
        whole = api.ok("/v1/completions", body)["choices"][0]["text"]
        seen += whole
        chunks = api.chunks("/v1/completions", body)
        assert completion_text(chunks) == whole
        # Half a character that is shown too early becomes U+FFFD, and then there are more of them.
        assert sum(c["choices"][0]["text"].count("\ufffd") for c in chunks) == whole.count("\ufffd")
    assert "\ufffd" in seen
    assert text[0] in seen


def stops_of(text, generator):
    """Stop strings at random places of a text: inside a token, over tokens, one character long."""
    for _ in range(4):
        begin = generator.randrange(3, len(text) - 4)
        yield text[begin:begin + generator.choice((1, 2, 5, 9))]


@pytest.mark.parametrize("prompt", PROMPTS[:4])
def test_a_stop_string_never_shows_in_part(api, prompt):
    full = api.complete(prompt, max_tokens=60, temperature=0)["choices"][0]["text"]
    if len(full) < 12:
        full = api.complete("Once upon a time", max_tokens=60, temperature=0)["choices"][0]["text"]
        prompt = "Once upon a time"
    for stop in stops_of(full, random.Random(7)):
        expected = full[:full.index(stop)]
        body = {"prompt": prompt, "max_tokens": 60, "temperature": 0, "stop": [stop]}
        chunks = api.chunks("/v1/completions", body)
        shown = ""
        for chunk in chunks:
            shown += chunk["choices"][0]["text"]
            assert expected.startswith(shown), (stop, shown)
        assert shown == expected == api.ok("/v1/completions", body)["choices"][0]["text"]
        native = api.generate_stream(prompt, max_new_tokens=60, stop=[stop])
        assert native_text(native) == native[-1]["generated_text"] == expected + stop


def test_a_stop_string_that_was_only_begun_is_shown(api):
    """What was held back as a possible stop string comes out once it can't be one, and at the end."""
    full = api.complete("Once upon a time", max_tokens=30, temperature=0)["choices"][0]["text"]
    for at in (4, 11, len(full) - 3):
        stop = full[at:at + 3] + "\u2603"
        body = {"prompt": "Once upon a time", "max_tokens": 30, "temperature": 0, "stop": [stop]}
        assert completion_text(api.chunks("/v1/completions", body)) == full
        native = api.generate_stream("Once upon a time", max_new_tokens=30, stop=[stop])
        assert native_text(native) == full


def test_a_stop_string_of_bytes_that_are_a_token_each(api):
    cut = 0
    for seed in range(8):
        body = {"prompt": "a", "max_tokens": 60, "seed": seed, **likely(api, "é")}
        full = api.ok("/v1/completions", body)["choices"][0]["text"]
        if "é" not in full[1:]:
            continue
        stopped = body | {"stop": "é"}
        assert api.ok("/v1/completions", stopped)["choices"][0]["text"] == full[:full.index("é")]
        assert completion_text(api.chunks("/v1/completions", stopped)) == full[:full.index("é")]
        cut += 1
    assert cut > 2


def test_seeds_give_the_same_text_at_concurrency_1_and_64(api):
    def ask(seed):
        return api.generate("Once upon a time", seed=seed, temperature=1.2, max_new_tokens=48,
                            do_sample=True)["generated_text"]

    def stream(seed):
        return native_text(api.generate_stream("Once upon a time", seed=seed, temperature=1.2,
                                               max_new_tokens=48, do_sample=True))

    seeds = list(range(64))
    alone = [ask(seed) for seed in seeds]
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert list(pool.map(ask, seeds)) == alone
        assert list(pool.map(stream, seeds)) == alone
    assert len(set(alone)) > 40


def test_greedy_answers_are_the_same_at_concurrency_1_and_64(api):
    bodies = [chat_body(f"Question {i}: what is tgi?", max_tokens=32, temperature=0, logprobs=True)
              for i in range(64)]

    def ask(body):
        answer = api.ok("/v1/chat/completions", body)
        return json.dumps(answer["choices"], sort_keys=True)

    alone = [ask(body) for body in bodies]
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert list(pool.map(ask, bodies)) == alone
