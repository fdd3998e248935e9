"""The black-box cases that TGI's integration tests are worth most for, by the number they have in the specification.

Cases 17-24, 26 and 27 are in test_not_available.py; 28 (LoRA) and 30 (images) need models that the demo is not.
"""

import concurrent.futures
import itertools
import json
import random

from client import chat_body, chat_text, completion_text, native_text, together

PROMPT = "Once upon a time"
FOUR = ["Once upon a time", "What is tgi?", "The fox", "A long way from here"]


def test_01_ten_greedy_tokens(api):
    answer = api.generate(PROMPT, max_new_tokens=10, details=True)
    details = answer["details"]
    assert details["finish_reason"] == "length"
    assert details["generated_tokens"] == len(details["tokens"]) == 10
    again = api.generate(PROMPT, max_new_tokens=10, details=True)
    assert [t["id"] for t in again["details"]["tokens"]] == [t["id"] for t in details["tokens"]]
    assert again["generated_text"] == answer["generated_text"]


def test_02_four_at_once_are_identical(api):
    answers = together([lambda: api.generate(PROMPT, max_new_tokens=10, details=True)] * 4)
    assert all(answer == answers[0] for answer in answers)


def test_03_all_parameters_twice(api):
    parameters = dict(max_new_tokens=10, repetition_penalty=1.2, return_full_text=True, stop=["test"],
                      temperature=0.5, top_p=0.9, top_k=10, truncate=5, typical_p=0.9, watermark=True,
                      seed=0, details=True, decoder_input_details=True, do_sample=True)
    first = api.generate(PROMPT, **parameters)
    assert api.generate(PROMPT, **parameters) == first
    assert first["details"]["seed"] == 0
    assert first["generated_text"].startswith(PROMPT)
    assert len(first["generated_text"]) > len(PROMPT)


def test_04_a_stream_of_one_token(api):
    events = api.generate_stream(PROMPT, max_new_tokens=1)
    assert [e["index"] for e in events] == [1]
    assert events[0]["generated_text"] == events[0]["token"]["text"]
    assert events[0]["details"]["finish_reason"] == "length"


def test_04_events_before_the_last_have_null_text_and_details(api):
    events = api.generate_stream(PROMPT, max_new_tokens=5)
    assert [e["index"] for e in events] == [1, 2, 3, 4, 5]
    for event in events[:-1]:
        assert "generated_text" in event and event["generated_text"] is None
        assert "details" in event and event["details"] is None
    assert events[-1]["details"].keys() == {"finish_reason", "generated_tokens", "seed", "input_length", "prompt_tokens"}
    assert events[-1]["generated_text"] == native_text(events)


def test_05_best_of_two(api):
    answer = api.generate(PROMPT, max_new_tokens=10, do_sample=True, best_of=2, details=True)
    assert len(answer["details"]["best_of_sequences"]) == 1
    other = answer["details"]["best_of_sequences"][0]
    assert answer["details"]["seed"] is not None and other["seed"] is not None


def test_06_ten_thousand_tokens_are_too_many(api):
    response = api.post("/generate", {"inputs": PROMPT, "parameters": {"max_new_tokens": 10000}})
    assert response.status_code == 422
    assert response.json()["error_type"] == "validation"


def test_07_the_seed_is_null_unless_sampling(api):
    assert api.generate(PROMPT, max_new_tokens=2, details=True)["details"]["seed"] is None
    sampled = api.generate(PROMPT, max_new_tokens=2, details=True, do_sample=True)
    assert isinstance(sampled["details"]["seed"], int)


def test_08_a_stop_sequence_ends_the_text(api):
    full = api.generate(PROMPT, max_new_tokens=60)["generated_text"]
    stop = full[20:26]
    answer = api.generate(PROMPT, max_new_tokens=60, stop=[stop], details=True)
    assert answer["details"]["finish_reason"] == "stop_sequence"
    assert answer["generated_text"] == full[:full.index(stop) + len(stop)]


def test_09_truncate_keeps_the_last_tokens(api):
    prompt = "I like apples. " * 5 + PROMPT
    cut = api.generate(prompt, max_new_tokens=10, truncate=4, details=True, decoder_input_details=True)
    assert len(cut["details"]["prefill"]) == 4
    assert api.generate_stream(prompt, max_new_tokens=1, truncate=4)[0]["details"]["input_length"] == 4
    whole = api.generate(prompt, max_new_tokens=10)
    assert cut["generated_text"] != whole["generated_text"]


def test_10_a_completion(api):
    answer = api.complete(PROMPT, max_tokens=10, temperature=0)
    assert answer["object"] == "text_completion"
    assert answer["choices"][0]["finish_reason"] == "length"
    usage = answer["usage"]
    num_prompt = len(api.ok("/tokenize", {"inputs": PROMPT}))
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (num_prompt, 10)
    assert usage["total_tokens"] == num_prompt + 10


def test_11_four_prompts(api):
    answer = api.complete(FOUR, max_tokens=10, temperature=0)
    texts = {c["index"]: c["text"] for c in answer["choices"]}
    assert set(texts) == {0, 1, 2, 3} and len(answer["choices"]) == 4
    for i, prompt in enumerate(FOUR):
        assert texts[i] == api.complete(prompt, max_tokens=10, temperature=0)["choices"][0]["text"]
    assert answer["usage"]["completion_tokens"] == 40


def test_12_four_prompts_streamed(api):
    body = {"prompt": FOUR, "max_tokens": 10, "temperature": 0}
    whole = {c["index"]: c["text"] for c in api.ok("/v1/completions", body)["choices"]}
    chunks = api.chunks("/v1/completions", body)  # which checks [DONE]
    assert {i: completion_text(chunks, i) for i in range(4)} == whole


def test_13_usage_comes_in_a_last_chunk_of_its_own(api):
    body = chat_body("What is tgi?", max_tokens=10, stream_options={"include_usage": True})
    *chunks, last = api.chunks("/v1/chat/completions", body)
    assert last["choices"] == [] and last["usage"]["completion_tokens"] == 10
    assert all(c["usage"] is None and c["choices"] for c in chunks)


def test_14_without_include_usage_no_chunk_has_usage(api):
    for more in ({}, {"stream_options": {"include_usage": False}}, {"stream_options": {}}):
        chunks = api.chunks("/v1/chat/completions", chat_body("What is tgi?", max_tokens=10, **more))
        assert all(c["usage"] is None and c["choices"] for c in chunks)


def test_16_a_last_message_of_the_assistant_is_continued(api):
    body = chat_body("What is tgi?", temperature=0, max_tokens=60)
    whole = api.ok("/v1/chat/completions", body)["choices"][0]["message"]["content"]
    words = whole.split(" ")
    begun = " ".join(words[:3])
    assert len(words) > 4
    body["messages"].append({"role": "assistant", "content": begun})
    rest = api.ok("/v1/chat/completions", body)["choices"][0]["message"]["content"]
    assert rest.startswith(" ") and not rest.strip().startswith(begun)
    assert begun + rest == whole
    templated = api.ok("/chat_tokenize", body)["templated_text"]
    assert templated.endswith(begun)


def test_25_tool_choice_none_is_content_only(api):
    answer = api.chat("What is tgi?", max_tokens=10, temperature=0, tool_choice="none")
    plain = api.chat("What is tgi?", max_tokens=10, temperature=0)
    message = answer["choices"][0]["message"]
    assert message["content"] == plain["choices"][0]["message"]["content"]
    assert not message.get("tool_calls")


def test_29_shared_prefixes_in_any_order_change_nothing(api):
    stem = "Once upon a time there was a small fox. "
    prompts = [stem * (n % 3) + stem[:k] + tail for n, (k, tail) in
               enumerate(itertools.product((5, 17, 30), ("", "He", "She said", "\n")))]
    # decoder_input_details turns the prefix cache off for a request
    cold = {p: api.generate(p, max_new_tokens=10, decoder_input_details=True)["generated_text"]
            for p in prompts}
    generator = random.Random(1)
    for _ in range(3):
        order = prompts * 2
        generator.shuffle(order)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda p: api.generate(p, max_new_tokens=10)["generated_text"], order))
        assert texts == [cold[p] for p in order]


def test_29_the_cache_is_told_in_usage(api):
    prompt = "A tale that nobody has asked for so far, told slowly, again and again. " * 3
    first = api.complete(prompt, max_tokens=2, temperature=0)["usage"]["prompt_tokens_details"]
    second = api.complete(prompt, max_tokens=2, temperature=0)["usage"]["prompt_tokens_details"]
    assert first["cached_tokens"] == 0
    assert second["cached_tokens"] >= 16


def test_streams_equal_answers_on_all_routes(api):
    native = {"inputs": PROMPT, "parameters": {"max_new_tokens": 30}}
    streamed = api.events("/", native | {"stream": True})
    assert native_text([json.loads(e) for e in streamed]) == \
        api.ok("/generate", native)["generated_text"]
    chat = chat_body("What is tgi?", temperature=0)
    assert chat_text(api.chunks("/v1/chat/completions", chat)) == \
        api.ok("/v1/chat/completions", chat)["choices"][0]["message"]["content"]
