"""Native answers in detail: details, prefill, top tokens, best_of, seeds, return_full_text, log-probabilities."""

import json
import math

import pytest

from client import native_text, together

PROMPT = "Once upon a time"
SAMPLED = {"do_sample": True, "max_new_tokens": 12, "details": True}


def test_details_only_when_asked_for(api):
    assert api.generate(PROMPT, max_new_tokens=2).keys() == {"generated_text"}
    assert api.generate(PROMPT, max_new_tokens=2, details=True).keys() == {"generated_text", "details"}
    assert "details" in api.generate(PROMPT, max_new_tokens=2, decoder_input_details=True)


def test_which_keys_details_have(api):
    plain = api.generate(PROMPT, max_new_tokens=2, details=True)["details"]
    assert plain.keys() == {"finish_reason", "generated_tokens", "seed", "prefill", "tokens", "prompt_tokens"}
    assert plain["prefill"] == []
    assert plain["tokens"][0].keys() == {"id", "text", "logprob", "special"}
    top = api.generate(PROMPT, max_new_tokens=2, details=True, top_n_tokens=2)["details"]
    assert top.keys() - plain.keys() == {"top_tokens"}


def test_skipped_tokens(pair):
    """With --speculate answers stay as they are; what was drafted is marked as LoRAX marks it."""
    speculating = pair(daemon_flags=("--speculate", "5"))
    asked = {"inputs": "tgi is " * 6, "parameters": {"max_new_tokens": 150, "details": True, "ignore_eos_token": True}}
    without = speculating.api.ok("/generate", {**asked, "parameters": {**asked["parameters"], "speculate": 0}})
    assert "skipped_tokens" not in without["details"]
    answer = speculating.api.post("/generate", asked)
    found = answer.json()
    assert found["generated_text"] == without["generated_text"]
    skipped = sum(token.pop("skipped", False) for token in found["details"]["tokens"])
    assert found["details"]["tokens"] == without["details"]["tokens"]
    assert skipped == found["details"].get("skipped_tokens", 0) == int(answer.headers.get("x-skipped-tokens", 0))
    refused = speculating.api.post("/generate", {"inputs": "a", "parameters": {"speculate": 6}})
    assert refused.status_code == 422 and "speculate" in refused.json()["error"]


def test_prefill_lists_the_prompt(api):
    details = api.generate(PROMPT, max_new_tokens=2, decoder_input_details=True)["details"]
    ids = [t["id"] for t in api.ok("/tokenize", {"inputs": PROMPT})]
    assert [t["id"] for t in details["prefill"]] == ids
    assert all(t.keys() == {"id", "text", "logprob"} for t in details["prefill"])
    assert details["prefill"][0]["logprob"] is None
    assert all(t["logprob"] <= 0 for t in details["prefill"][1:])


def test_prefill_is_empty_unless_the_server_enables_it(serve):
    from client import Api
    details = Api(serve().url).generate(PROMPT, max_new_tokens=2, decoder_input_details=True)["details"]
    assert details["prefill"] == [] and len(details["tokens"]) == 2


def test_prefill_logprobs_are_what_the_model_says_of_generated_text(api):
    """The greedy continuation, given back as a prompt, has the log-probabilities it was generated with."""
    greedy = api.generate(PROMPT, max_new_tokens=8, details=True)
    whole = api.generate(PROMPT + greedy["generated_text"], max_new_tokens=1, decoder_input_details=True)
    tail = whole["details"]["prefill"][-8:]
    assert [t["id"] for t in tail] == [t["id"] for t in greedy["details"]["tokens"]]
    for prompt_token, token in zip(tail, greedy["details"]["tokens"]):
        assert math.isclose(prompt_token["logprob"], token["logprob"], rel_tol=1e-3, abs_tol=1e-4)


def test_top_tokens_fall_and_hold_the_greedy_choice(api):
    details = api.generate(PROMPT, max_new_tokens=6, details=True, top_n_tokens=3)["details"]
    assert len(details["top_tokens"]) == 6
    for token, top in zip(details["tokens"], details["top_tokens"]):
        logprobs = [t["logprob"] for t in top]
        assert len(top) >= 3 and logprobs == sorted(logprobs, reverse=True)
        assert top[0]["id"] == token["id"] and math.isclose(top[0]["logprob"], token["logprob"], abs_tol=1e-6)
        assert sum(math.exp(x) for x in logprobs) <= 1.0001
    streamed = api.generate_stream(PROMPT, max_new_tokens=6, top_n_tokens=3)
    assert [e["top_tokens"] for e in streamed] == details["top_tokens"]
    assert all("top_tokens" not in e for e in api.generate_stream(PROMPT, max_new_tokens=3))


def test_alternatives_of_lorax_are_the_top_tokens_in_another_place(api):
    best = api.generate(PROMPT, max_new_tokens=6, details=True, top_n_tokens=4)["details"]
    wanted = [[{key: t[key] for key in ("id", "text", "logprob")} for t in top[:4]] for top in best["top_tokens"]]
    details = api.generate(PROMPT, max_new_tokens=6, details=True, return_k_alternatives=4)["details"]
    assert [t["alternative_tokens"] for t in details["tokens"]] == wanted
    assert "top_tokens" not in details
    both = api.generate(PROMPT, max_new_tokens=6, details=True, return_k_alternatives=4, top_n_tokens=2)["details"]
    assert [t["alternative_tokens"] for t in both["tokens"]] == wanted
    assert [top[:2] for top in best["top_tokens"]] == both["top_tokens"]
    streamed = api.generate_stream(PROMPT, max_new_tokens=6, return_k_alternatives=4)
    assert [e["token"]["alternative_tokens"] for e in streamed] == wanted
    assert all("top_tokens" not in e for e in streamed)
    none = api.generate(PROMPT, max_new_tokens=2, details=True, return_k_alternatives=0)["details"]
    assert all("alternative_tokens" not in t for t in none["tokens"])


def test_the_tokens_joined_are_the_text(api):
    answer = api.generate(PROMPT, max_new_tokens=400, details=True)
    tokens = answer["details"]["tokens"]
    assert answer["details"]["finish_reason"] == "eos_token"
    assert tokens[-1]["special"] and not any(t["special"] for t in tokens[:-1])
    assert len(tokens) == answer["details"]["generated_tokens"]
    assert "".join(t["text"] for t in tokens[:-1]) == answer["generated_text"]


def test_an_end_on_the_last_place_is_length(api):
    num = api.generate(PROMPT, max_new_tokens=400, details=True)["details"]["generated_tokens"]
    details = api.generate(PROMPT, max_new_tokens=num, details=True)["details"]
    assert (details["finish_reason"], details["generated_tokens"]) == ("length", num)


def test_without_max_new_tokens_it_goes_to_the_end(api):
    assert api.generate(PROMPT) == api.generate(PROMPT, max_new_tokens=900)


def test_an_answer_may_not_end_before_its_minimum(api):
    """In the spellings of Hugging Face and of vLLM; what is free to go on longer is the same up to there."""
    body = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0}
    short = api.ok("/v1/chat/completions", body)
    num = short["usage"]["completion_tokens"]
    assert short["choices"][0]["finish_reason"] == "stop" and num < 30
    same = api.ok("/v1/chat/completions", body | {"min_tokens": num - 1})  # its end is a token too
    assert same["choices"][0]["message"] == short["choices"][0]["message"]
    for more in ({}, {"tools": [], "ignore_eos": False}, {"response_format": {"type": "text"}}):
        long = api.ok("/v1/chat/completions", body | {"min_tokens": 60, "max_tokens": 100} | more)
        assert 60 <= long["usage"]["completion_tokens"] <= 100
        text = short["choices"][0]["message"]["content"]
        assert long["choices"][0]["message"]["content"].startswith(text)
    exact = api.ok("/v1/chat/completions", body | {"min_tokens": 40, "max_tokens": 40})
    assert exact["usage"]["completion_tokens"] == 40 and exact["choices"][0]["finish_reason"] == "length"
    # A form goes on while it has more, and ends where it has not.
    form = {"guided_regex": "(yes|no)", "min_tokens": 20, "max_tokens": 30}
    assert api.ok("/v1/chat/completions", body | form)["choices"][0]["message"]["content"] in ("yes", "no")
    form = {"guided_regex": "[a-z ]+", "min_tokens": 20, "max_tokens": 30}
    assert api.ok("/v1/chat/completions", body | form)["usage"]["completion_tokens"] >= 20
    # A stop string is the client's own.
    cut = api.ok("/v1/chat/completions", body | {"min_tokens": 60, "stop": "o"})
    assert cut["usage"]["completion_tokens"] < 60 and cut["choices"][0]["finish_reason"] == "stop"
    native = api.generate("Once upon a time", max_new_tokens=150, min_new_tokens=150, details=True)
    assert native["details"]["generated_tokens"] == 150
    raw = api.complete("What is tgi?", min_tokens=30, max_tokens=40, temperature=0.9, seed=1, stream=False)
    assert raw["usage"]["completion_tokens"] >= 30
    told = api.ok("/v1/responses", {"input": "hi", "temperature": 0, "min_tokens": 60, "max_output_tokens": 100})
    assert told["usage"]["output_tokens"] >= 60
    refused = api.post("/v1/chat/completions", body | {"min_tokens": 50, "max_tokens": 20})
    assert refused.status_code == 422 and "`min_tokens` must be at least 0 and at most `max_tokens`" in refused.json()["error"]["message"]


def test_best_of_keeps_the_highest_mean_logprob(api):
    for _ in range(4):
        details = api.generate(PROMPT, temperature=1.5, best_of=2, **SAMPLED)["details"]
        other = details["best_of_sequences"][0]
        assert other.keys() == {"generated_text", "finish_reason", "generated_tokens", "prefill", "seed", "tokens"}

        def mean(sequence):
            return sum(t["logprob"] for t in sequence["tokens"]) / len(sequence["tokens"])

        assert mean(details) >= mean(other)
        assert details["seed"] != other["seed"]
    assert "best_of_sequences" not in api.generate(PROMPT, best_of=1, **SAMPLED)["details"]


def test_a_reported_seed_gives_the_text_again(api):
    for _ in range(3):
        first = api.generate(PROMPT, temperature=1.3, **SAMPLED)
        seed = first["details"]["seed"]
        assert api.generate(PROMPT, temperature=1.3, seed=seed, **SAMPLED) == first
    winner = api.generate(PROMPT, temperature=1.3, best_of=2, **SAMPLED)
    for sequence, text in ((winner["details"], winner["generated_text"]),
                           (winner["details"]["best_of_sequences"][0],) * 2):
        text = text if isinstance(text, str) else text["generated_text"]
        again = api.generate(PROMPT, temperature=1.3, seed=sequence["seed"], **SAMPLED)
        assert again["generated_text"] == text


def test_large_seeds_come_back_whole(api):
    for seed in (0, 2**53 + 1, 2**63, 2**64 - 1):
        assert api.generate(PROMPT, seed=seed, **SAMPLED)["details"]["seed"] == seed
    events = api.generate_stream(PROMPT, seed=2**64 - 1, do_sample=True, max_new_tokens=2)
    assert events[-1]["details"]["seed"] == 2**64 - 1


def test_different_seeds_give_different_texts(api):
    texts = {api.generate(PROMPT, seed=s, temperature=1.5, **SAMPLED)["generated_text"] for s in range(6)}
    assert len(texts) > 3


@pytest.mark.parametrize("switch", [{"do_sample": True}, {"temperature": 0.9}, {"top_k": 50}, {"top_p": 0.95},
                                    {"typical_p": 0.95}], ids=json.dumps)
def test_what_turns_sampling_on(api, switch):
    details = api.generate(PROMPT, max_new_tokens=2, details=True, **switch)["details"]
    assert details["seed"] is not None


def test_return_full_text_puts_the_raw_prompt_in_front(api):
    prompt = "  Once \n upon   a time 😀"
    text = api.generate(prompt, max_new_tokens=6)["generated_text"]
    assert api.generate(prompt, max_new_tokens=6, return_full_text=True)["generated_text"] == prompt + text
    assert api.generate_stream(prompt, max_new_tokens=6, return_full_text=True)[-1]["generated_text"] == \
        prompt + text
    best = api.generate(prompt, return_full_text=True, best_of=2, **SAMPLED)
    assert best["details"]["best_of_sequences"][0]["generated_text"].startswith(prompt)


def test_the_root_route_returns_the_full_text_unless_told_not_to(api):
    text = api.generate(PROMPT, max_new_tokens=4)["generated_text"]
    ask = lambda **more: api.ok("/", {"inputs": PROMPT, "parameters": {"max_new_tokens": 4} | more})
    assert ask() == [{"generated_text": PROMPT + text}]
    assert ask(return_full_text=True) == [{"generated_text": PROMPT + text}]
    assert ask(return_full_text=False) == [{"generated_text": text}]


def test_the_root_route_streams_when_asked(api):
    body = {"inputs": PROMPT, "parameters": {"max_new_tokens": 4}, "stream": True}
    events = [json.loads(e) for e in api.events("/", body)]
    assert [e["index"] for e in events] == [1, 2, 3, 4]
    assert native_text(events) == api.generate(PROMPT, max_new_tokens=4)["generated_text"]


def test_logprobs_are_printed_as_float32(api):
    """The shortest digits that read back as the same float32, as TGI prints them: never 17 of them."""
    import struct
    body = {"inputs": PROMPT, "parameters": {"max_new_tokens": 30, "details": True}}
    raw = json.loads(api.post("/generate", body).content, parse_float=str)
    for token in raw["details"]["tokens"]:
        text = str(token["logprob"])
        as_float32 = struct.unpack("f", struct.pack("f", float(text)))[0]
        assert len(text.lstrip("-").replace(".", "").lstrip("0").split("e")[0]) <= 9, text
        assert abs(as_float32 - float(text)) <= abs(as_float32) * 1e-7


def test_logprobs_are_the_models_own_whatever_is_made_of_them(api):
    """Unlike TGI, where temperature, top-k and penalties change them and `top_k: 1` always gives 0."""
    plain = api.generate(PROMPT, max_new_tokens=8, details=True)["details"]["tokens"]
    for parameters in ({"top_k": 1}, {"top_k": 1, "temperature": 3.0}, {"temperature": 1e-5}, {"top_p": 1e-4}):
        assert api.generate(PROMPT, max_new_tokens=8, details=True, **parameters)["details"]["tokens"] == plain


def test_stop_text_stays_and_only_the_first_match_counts(api):
    full = api.generate(PROMPT, max_new_tokens=80)["generated_text"]
    answer = api.generate(PROMPT, max_new_tokens=80, stop=["zzz", ". ", "."], details=True)
    assert answer["generated_text"] == full[:full.index(".") + 1]
    late = api.generate(PROMPT, max_new_tokens=80, stop=["zzz"], details=True)
    assert late["details"]["finish_reason"] in ("length", "eos_token")
    assert api.generate(PROMPT + ".", max_new_tokens=10, stop=[PROMPT + "."], details=True)["details"][
        "finish_reason"] == "length"  # the prompt is no part of what is searched


def test_sixteen_at_once_are_each_their_own(api):
    prompts = [f"Story number {i}: once" for i in range(16)]
    alone = [api.generate(p, max_new_tokens=20, details=True) for p in prompts]
    assert together([lambda p=p: api.generate(p, max_new_tokens=20, details=True) for p in prompts]) == alone
