"""TGI's quirks, one test each and named after it: kept where clients lean on it, mended where it was a mistake.

The table is the specification's appendix. Cached text on requeue, the generator after concatenation, the penalties'
formula and the pad token are the engine's and are tested again there; here it is what a client sees of them.
"""

import json
import math

import pytest

from client import Api, chat_body, chat_text, completion_text, together

PROMPT = "Once upon a time"


def test_kept_without_parameters_sampling_is_on(pair):
    """A body without `parameters` samples at temperature 1; with an empty `parameters` it is greedy."""
    api = pair(daemon_flags=("--seed", "auto")).api
    greedy = {api.ok("/generate", {"inputs": PROMPT, "parameters": {}})["generated_text"] for _ in range(3)}
    assert len(greedy) == 1
    bare = {api.ok("/generate", {"inputs": PROMPT})["generated_text"] for _ in range(5)}
    assert len(bare) > 1
    events = [json.loads(e) for e in api.events("/generate_stream", {"inputs": PROMPT})]
    assert events[-1]["details"]["seed"] is not None


def test_kept_top_p_one_is_refused_on_native_routes(api):
    response = api.post("/generate", {"inputs": PROMPT, "parameters": {"top_p": 1.0}})
    assert response.status_code == 422


def test_fixed_top_p_one_is_accepted_on_openai_routes(api):
    assert api.chat("hi", max_tokens=2, top_p=1)["choices"]
    assert api.chat("hi", max_tokens=2, top_p=1.0, temperature=0)["choices"]
    assert api.complete(PROMPT, max_tokens=2, top_p=1)["choices"]


def test_kept_an_absent_temperature_samples_on_openai_routes_and_zero_is_greedy(pair):
    api = pair(daemon_flags=("--seed", "auto")).api
    texts = {api.complete(PROMPT, max_tokens=20)["choices"][0]["text"] for _ in range(5)}
    assert len(texts) > 1
    greedy = api.generate(PROMPT, max_new_tokens=20)["generated_text"]
    assert api.complete(PROMPT, max_tokens=20, temperature=0)["choices"][0]["text"] == greedy
    assert api.complete(PROMPT, max_tokens=20, temperature=0.0)["choices"][0]["text"] == greedy


def test_fixed_presence_penalty_zero_changes_nothing(api):
    """TGI made a repetition penalty of it: 0 became 2.0, and -2 was refused."""
    ask = lambda **more: api.chat("What is tgi?", max_tokens=30, temperature=0, **more)["choices"][0]["message"]
    assert ask(presence_penalty=0) == ask()
    assert ask(presence_penalty=-2)["content"]
    assert api.post("/v1/chat/completions", chat_body("a", presence_penalty=2.5)).status_code == 422


def first_logprobs(api, **more):
    """The log-probabilities, by token text, of the second token after a prompt that fixes the first."""
    body = chat_body("hi", max_tokens=2, temperature=0, logprobs=True, top_logprobs=20, **more)
    content = api.ok("/v1/chat/completions", body)["choices"][0]["logprobs"]["content"]
    return content[0]["token"], {t["token"]: t["logprob"] for t in content[1]["top_logprobs"]}


@pytest.mark.parametrize("penalty", ["frequency_penalty", "presence_penalty"])
def test_fixed_penalties_follow_openai(api, penalty):
    """Only generated tokens count, and one occurrence costs the whole penalty, however long the prompt or the batch."""
    token, plain = first_logprobs(api)
    same_token, fined = first_logprobs(api, **{penalty: 2.0})
    assert token == same_token  # the prompt's tokens cost nothing
    common = [t for t in plain if t in fined and t != token]
    shifts = [fined[t] - plain[t] for t in common]  # one and the same: what normalising gives
    assert len(common) > 5 and max(shifts) - min(shifts) < 2e-3
    if token in plain and token in fined:
        assert math.isclose(plain[token] - fined[token] + shifts[0], 2.0, abs_tol=5e-3)
    alone = api.chat("hi", max_tokens=20, temperature=0, **{penalty: 1.5})["choices"][0]["message"]["content"]
    batch = together([lambda: api.chat("hi", max_tokens=20, temperature=0, **{penalty: 1.5})] +
                     [lambda i=i: api.chat("tell a story " * i, max_tokens=20) for i in range(1, 12)])
    assert batch[0]["choices"][0]["message"]["content"] == alone


def test_fixed_a_stop_string_that_ends_inside_a_token_is_found(api):
    full = api.generate(PROMPT, max_new_tokens=60, details=True)
    text = full["generated_text"]
    token = next(t["text"] for t in full["details"]["tokens"][5:] if len(t["text"].strip()) > 3)
    stop = token[:-1]  # ends one character before the token does
    answer = api.generate(PROMPT, max_new_tokens=60, stop=[stop], details=True)
    assert answer["details"]["finish_reason"] == "stop_sequence"
    assert answer["generated_text"] == text[:text.index(stop) + len(stop)]


def test_kept_stop_text_stays_in_native_output(api):
    answer = api.generate(PROMPT, max_new_tokens=60, stop=["."], details=True)
    assert answer["generated_text"].endswith(".")
    events = api.generate_stream(PROMPT, max_new_tokens=60, stop=["."])
    assert events[-1]["generated_text"] == answer["generated_text"]


def test_fixed_stop_text_is_cut_off_on_openai_routes(api):
    native = api.generate(PROMPT, max_new_tokens=60, stop=["."])["generated_text"]
    body = {"prompt": PROMPT, "max_tokens": 60, "temperature": 0, "stop": "."}
    assert api.ok("/v1/completions", body)["choices"][0]["text"] == native[:-1]
    assert completion_text(api.chunks("/v1/completions", body)) == native[:-1]


def test_kept_native_finish_reason_of_a_stop_string(api):
    assert api.generate(PROMPT, stop=["."], details=True)["details"]["finish_reason"] == "stop_sequence"
    assert api.generate(PROMPT, details=True)["details"]["finish_reason"] == "eos_token"


def test_fixed_finish_reasons_on_openai_routes_are_stop_and_length(api):
    def reasons(path, body):
        whole = api.ok(path, body)["choices"][0]["finish_reason"]
        streamed = [c["finish_reason"] for chunk in api.chunks(path, body) for c in chunk["choices"]]
        assert all(not r for r in streamed[:-1])
        return whole, streamed[-1]

    completion = {"prompt": PROMPT, "temperature": 0}
    assert reasons("/v1/completions", completion) == ("stop", "stop")
    assert reasons("/v1/completions", completion | {"stop": "."}) == ("stop", "stop")
    assert reasons("/v1/completions", completion | {"max_tokens": 3}) == ("length", "length")
    chat = chat_body("What is tgi?", temperature=0)
    assert reasons("/v1/chat/completions", chat) == ("stop", "stop")
    assert reasons("/v1/chat/completions", chat | {"stop": ["t"]}) == ("stop", "stop")
    assert reasons("/v1/chat/completions", chat | {"max_tokens": 3}) == ("length", "length")


def test_fixed_stream_errors_have_the_status_that_is_meant(api, gateway):
    """TGI opened every stream with 200 and called every error 422."""
    response = api.post("/v1/chat/completions", chat_body("hi", stream=True, temperature=-1))
    assert response.status_code == 422 and "error" in response.json()
    assert api.post("/v1/chat/completions", chat_body("hi", stream=True, model="no")).status_code == 404


def test_kept_stream_errors_of_native_routes_are_events(api):
    events = api.events("/generate_stream", {"inputs": ""})
    assert json.loads(events[0]) == {"error": "Input validation error: `inputs` cannot be empty",
                                     "error_type": "validation"}


def test_fixed_ids_are_there_and_unique(api):
    answers = [api.chat("hi", max_tokens=1) for _ in range(3)]
    assert all(a["id"].startswith("chatcmpl-") for a in answers)
    assert len({a["id"] for a in answers}) == 3
    chunks = api.chunks("/v1/chat/completions", chat_body("hi", max_tokens=4))
    assert len({c["id"] for c in chunks}) == 1 and chunks[0]["id"].startswith("chatcmpl-")
    completions = [api.complete("a", max_tokens=1)["id"] for _ in range(3)]
    assert all(i.startswith("cmpl-") for i in completions) and len(set(completions)) == 3


def test_kept_the_model_is_echoed(api, gateway):
    name = gateway.model_name
    assert api.chat("hi", max_tokens=1)["model"] == name
    assert api.chat("hi", max_tokens=1, model="tgi")["model"] == name
    assert api.chat("hi", max_tokens=1, model=name)["model"] == name
    assert {c["model"] for c in api.chunks("/v1/completions", {"prompt": "a", "max_tokens": 2})} == {name}


def test_fixed_a_bare_string_is_a_stop(api):
    one = api.chat("What is tgi?", temperature=0, stop="t")["choices"][0]["message"]["content"]
    many = api.chat("What is tgi?", temperature=0, stop=["t"])["choices"][0]["message"]["content"]
    assert one == many and "t" not in one
    assert api.chat("hi", max_tokens=2, stop=None)["choices"]


def test_fixed_null_stream_options_and_null_stream(api):
    assert api.chat("hi", max_tokens=2, stream_options=None, stream=None)["object"] == "chat.completion"
    chunks = api.chunks("/v1/chat/completions", chat_body("hi", max_tokens=2, stream_options=None))
    assert all(c["usage"] is None for c in chunks)


def test_fixed_max_tokens_and_max_completion_tokens(api):
    assert api.chat("hi", max_completion_tokens=3, temperature=0)["usage"]["completion_tokens"] == 3
    assert api.chat("hi", max_tokens=3, temperature=0)["usage"]["completion_tokens"] == 3
    both = api.post("/v1/chat/completions", chat_body("hi", max_tokens=3, max_completion_tokens=3))
    assert both.status_code == 422


def test_fixed_more_than_1024_tokens_are_exact(pair, endless_model):
    """TGI asked for 1024 at a time and passed what was asked for on by whole such chunks."""
    api = pair(model=endless_model).api
    for asked in (1024, 1025, 1500, 2500):
        details = api.generate(PROMPT, max_new_tokens=asked, details=True)["details"]
        assert (details["generated_tokens"], details["finish_reason"]) == (asked, "length")
    assert api.complete(PROMPT, max_tokens=1500, temperature=0)["usage"]["completion_tokens"] == 1500


def test_fixed_what_can_not_be_generated_is_refused(pair, endless_model):
    """TGI looks at the first 1024 new tokens only and ends such an answer where the context does."""
    api = pair(model=endless_model).api
    response = api.post("/generate", {"inputs": PROMPT, "parameters": {"max_new_tokens": 1_000_000}})
    assert response.status_code == 422
    assert "and 1000000 `max_new_tokens`" in response.json()["error"]


def test_fixed_an_unknown_model_or_adapter_is_an_error(api):
    assert api.post("/v1/chat/completions", chat_body("hi", model="org/adapter")).status_code == 404
    native = api.post("/generate", {"inputs": "a", "parameters": {"adapter_id": "org/adapter"}})
    assert native.status_code == 424 and native.json()["error_type"] == "generation"


def test_fixed_generated_text_of_one_request_is_cached_for_the_next(api):
    """TGI kept the prompt's blocks only: a next turn of a chat computed the answer again."""
    body = {"prompt": "A fox and a hen " * 4, "max_tokens": 100, "temperature": 0}
    first = api.ok("/v1/completions", body)
    grown = body["prompt"] + first["choices"][0]["text"]
    usage = api.complete(grown, max_tokens=1, temperature=0)["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] > first["usage"]["prompt_tokens"]


def test_fixed_a_seed_holds_while_others_come_and_go(api):
    ask = lambda: api.generate(PROMPT, max_new_tokens=40, temperature=1.5, seed=5)["generated_text"]
    alone = ask()
    noise = [lambda i=i: api.generate(f"noise {i}", max_new_tokens=1 + 7 * i) for i in range(10)]
    assert together(noise + [ask, ask])[-2:] == [alone, alone]


def test_kept_repetition_penalty_is_a_parameter_of_its_own(api):
    plain = api.generate(PROMPT, max_new_tokens=60)["generated_text"]
    fined = api.generate(PROMPT, max_new_tokens=60, repetition_penalty=1.8)["generated_text"]
    assert plain != fined
    assert api.complete(PROMPT, max_tokens=60, temperature=0, repetition_penalty=1.8)["choices"][0][
        "text"] == fined


def test_kept_metric_names_and_headers(api):
    """The names are in test_responses.py in full; this is the appendix' line."""
    assert "tgi_request_count" in api.get("/metrics").text
    assert "x-compute-time" in api.post("/generate", {"inputs": "a", "parameters": {"max_new_tokens": 1}}).headers


def test_fixed_a_stream_that_stops_sends_no_text_after_the_stop(api):
    body = chat_body("What is tgi?", temperature=0, stop=["t"])
    chunks = api.chunks("/v1/chat/completions", body)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all(c["choices"][0]["delta"]["role"] == "assistant" for c in chunks)
    assert chat_text(chunks) == api.ok("/v1/chat/completions", body)["choices"][0]["message"]["content"]


def test_kept_without_a_limit_a_completion_goes_on_to_its_end(serve):
    """Null max_tokens is the model's maximum, not OpenAI's 16."""
    api = Api(serve().url)
    answer = api.complete(PROMPT, temperature=0)
    assert answer["usage"]["completion_tokens"] > 16
    assert answer["choices"][0]["finish_reason"] == "stop"
