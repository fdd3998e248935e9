"""The requests of lm-evaluation-harness' `local-completions`, replayed: log-likelihoods, rolling ones, and texts.

The package itself brings 776 MB of others, so what it sends (version 0.4.13) is sent here: prompts as lists of token
ids, several in a request, `echo` with one log-probability, one token or none, temperature 0 and a seed; and answers
are read as it reads them. scripts/test_http does not install it.
"""

import json

import pytest

from gateway import ROOT

CONTEXT, CONTINUATION = "Once upon a time", " there was a purple submarine."
END = json.loads((ROOT / "assets" / "demo" / "generation_config.json").read_text())["eos_token_id"]


@pytest.fixture(scope="module")
def ids(api):
    return lambda text: [token["id"] for token in api.ok("/tokenize", {"inputs": text})]


def ask(api, prompts, **more):
    body = {"model": "tgi", "prompt": prompts, "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234,
            "echo": True}
    return api.ok("/v1/completions", body | more)


def read_likelihoods(answer, context_lengths):
    """As LocalCompletionsAPI.parse_logprobs does: (sum of the continuation, whether each token is the likeliest)."""
    out = []
    for choice, length in zip(sorted(answer["choices"], key=lambda c: c["index"]), context_lengths):
        logprobs = choice["logprobs"]["token_logprobs"][length:-1]
        tops = choice["logprobs"]["top_logprobs"][length:-1]
        out.append((sum(logprobs), all(own == max(top.values()) for own, top in zip(logprobs, tops))))
    return out


def prompt_logprobs(api, text):
    details = api.generate(text, max_new_tokens=1, decoder_input_details=True)["details"]
    return [token["logprob"] for token in details["prefill"]]


def test_a_log_likelihood_is_the_sum_over_the_continuation(api, ids):
    whole, context = ids(CONTEXT + CONTINUATION), ids(CONTEXT)
    assert whole[:len(context)] == context
    [(total, greedy)] = read_likelihoods(ask(api, [whole]), [len(context)])
    assert total == pytest.approx(sum(prompt_logprobs(api, CONTEXT + CONTINUATION)[len(context):]))
    assert not greedy


def test_a_greedy_continuation_is_told_as_such(api, ids):
    context = ids(CONTEXT)
    tokens = api.generate(CONTEXT, max_new_tokens=12, details=True)["details"]["tokens"]
    [(total, greedy)] = read_likelihoods(ask(api, [context + [t["id"] for t in tokens]]), [len(context)])
    assert greedy
    assert total == pytest.approx(sum(t["logprob"] for t in tokens), abs=1e-4)


def test_a_batch_has_an_answer_for_each_prompt(api, ids):
    prompts = [ids(CONTEXT + text) for text in (" there was", " a fox", CONTINUATION, ".")]
    lengths = [len(ids(CONTEXT))] * 4
    together = read_likelihoods(ask(api, prompts), lengths)
    assert together == [read_likelihoods(ask(api, [p]), [n])[0] for p, n in zip(prompts, lengths)]
    assert len({total for total, _ in together}) == 4
    as_text = [CONTEXT + text for text in (" there was", " a fox", CONTINUATION, ".")]
    assert read_likelihoods(ask(api, as_text), lengths) == together


def test_a_rolling_log_likelihood_begins_with_the_end_token(api, ids):
    prefix = END[0] if isinstance(END, list) else END
    document = ids(CONTEXT + CONTINUATION)
    answer = ask(api, [[prefix] + document])
    [(total, _)] = read_likelihoods(answer, [1])
    lists = answer["choices"][0]["logprobs"]
    assert lists["token_logprobs"][0] is None and lists["top_logprobs"][0] is None
    assert len(lists["tokens"]) == len(document) + 2
    assert total < 0 and all(value <= 0 for value in lists["token_logprobs"][1:])


def test_no_token_gives_the_prompt_alone(api, ids):
    document = ids(CONTEXT + CONTINUATION)
    one, none = ask(api, [document]), ask(api, [document], max_tokens=0)
    lists = none["choices"][0]["logprobs"]
    assert lists == {name: values[:-1] for name, values in one["choices"][0]["logprobs"].items()}
    assert none["choices"][0]["text"] == CONTEXT + CONTINUATION
    assert none["choices"][0]["finish_reason"] == "length"
    assert none["usage"]["completion_tokens"] == 0
    assert none["usage"]["prompt_tokens"] == len(document)
    as_text = ask(api, CONTEXT + CONTINUATION, max_tokens=0)
    assert as_text["choices"][0]["logprobs"] == lists
    for offset, token in zip(lists["text_offset"], lists["tokens"]):
        if token == "<|bos|>":
            continue  # a special token, which the text has not
        assert (CONTEXT + CONTINUATION)[offset:].startswith(token.removeprefix(" " if offset == 0 else ""))
    plain = api.complete(CONTEXT, max_tokens=0)["choices"][0]
    assert (plain["text"], plain["finish_reason"]) == ("", "length")
    chunks = api.chunks("/v1/completions", {"prompt": CONTEXT, "max_tokens": 0, "echo": True})
    assert [c["choices"][0]["text"] for c in chunks] == [CONTEXT]
    assert api.post("/v1/completions", {"prompt": CONTEXT, "max_tokens": -1}).status_code == 422


def test_a_stream_begins_with_the_prompt_too(api, ids):
    document = ids(CONTEXT)
    body = {"prompt": document, "temperature": 0, "max_tokens": 3, "logprobs": 2, "echo": True}
    chunks = api.chunks("/v1/completions", body)
    whole = api.ok("/v1/completions", body)["choices"][0]
    assert "".join(c["choices"][0]["text"] for c in chunks) == whole["text"]
    assert [token for c in chunks for token in c["choices"][0]["logprobs"]["tokens"]] == whole["logprobs"]["tokens"]


def test_texts_until_a_stop(api, ids):
    body = {"model": "tgi", "prompt": [ids(CONTEXT), ids("The fox")], "max_tokens": 30, "temperature": 0,
            "stop": [".", "\n\n"], "seed": 1234}
    choices = api.ok("/v1/completions", body)["choices"]
    assert [c["index"] for c in choices] == [0, 1]
    for choice, prompt in zip(choices, (CONTEXT, "The fox")):
        text = api.generate(prompt, max_new_tokens=30)["generated_text"]
        assert choice["text"] == text.split(".")[0].split("\n\n")[0]
