"""The validation rules of the native routes: text, type, status, and their order."""

import json

import pytest

from client import together

PREFIX = "Input validation error: "
SAMPLING = {"do_sample": True}
HELLO = [{"role": "user", "content": "hello"}]
MANY = 1000000

# (parameters, rule text), in the order in which the rules are checked. {total}, {input} come from /info.
RULES = [
    ({"best_of": 3, "do_sample": True}, "`best_of` must be > 0 and <= 2. Given: 3"),
    ({"best_of": 2}, "you must use sampling when `best_of` is > 1"),
    ({"temperature": 0.0}, "`temperature` must be strictly positive; leave it out for a greedy answer, which is the default"),
    ({"temperature": -1.5}, "`temperature` must be strictly positive; leave it out for a greedy answer, which is the default"),
    ({"repetition_penalty": 0.0}, "`repetition_penalty` must be strictly positive"),
    ({"repetition_penalty": -1.0}, "`repetition_penalty` must be strictly positive"),
    ({"frequency_penalty": 2.1}, "`frequency_penalty` must be >= -2.0 and <= 2.0"),
    ({"frequency_penalty": -2.1}, "`frequency_penalty` must be >= -2.0 and <= 2.0"),
    ({"top_p": 0.0}, "`top_p` must be > 0.0 and < 1.0"),
    ({"top_p": 1.0}, "`top_p` must be > 0.0 and < 1.0"),
    ({"top_p": -0.1}, "`top_p` must be > 0.0 and < 1.0"),
    ({"typical_p": 0.0}, "`typical_p` must be > 0.0 and < 1.0"),
    ({"typical_p": 1.0}, "`typical_p` must be > 0.0 and < 1.0"),
    ({"top_k": 0}, "`top_k` must be strictly positive"),
    ({"top_k": -3}, "`top_k` must be strictly positive"),
    ({"max_new_tokens": 0}, "`max_new_tokens` must be strictly positive"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "`stop` supports up to 4 stop sequences. Given: 5"),
    ({"seed": 1, "best_of": 2, "do_sample": True}, "`seed` must not be set when `best_of` > 1"),
    ({"top_n_tokens": 6}, "`top_n_tokens` must be >= 0 and <= 5. Given: 6"),
    ({"return_k_alternatives": 6}, "`return_k_alternatives` must be >= 0 and <= 5. Given: 6"),
    ({"truncate": 0}, "`truncate` must be strictly positive and less than {input}. Given: 0"),
    ({"truncate": 100000}, "`truncate` must be strictly positive and less than {input}. Given: 100000"),
]
# Each breaks one rule, and the rules are checked in this order: together they give the first one's text.
ORDER = [
    ({"best_of": 2, "temperature": -1.0}, "`temperature`"),  # temperature present is sampling: rule 1 passes
    ({"temperature": -1.0, "repetition_penalty": -1.0}, "`temperature`"),
    ({"repetition_penalty": -1.0, "frequency_penalty": 3.0}, "`repetition_penalty`"),
    ({"frequency_penalty": 3.0, "top_p": 2.0}, "`frequency_penalty`"),
    ({"top_p": 2.0, "typical_p": 2.0}, "`top_p`"),
    ({"typical_p": 2.0, "top_k": 0}, "`typical_p`"),
    ({"top_k": 0, "max_new_tokens": 0}, "`top_k`"),
    ({"max_new_tokens": 0, "stop": list("abcde")}, "`max_new_tokens`"),
    ({"stop": list("abcde"), "seed": 1, "best_of": 2, "do_sample": True}, "`stop`"),
    ({"seed": 1, "best_of": 2, "do_sample": True, "top_n_tokens": 9}, "`seed`"),
    ({"top_n_tokens": 9, "truncate": 0}, "`top_n_tokens`"),
    ({"truncate": 0, "max_new_tokens": 100000}, "`truncate`"),
    # A grammar's form is looked at before the tokens are counted; what it says comes last.
    ({"max_new_tokens": 100000, "grammar": {"type": "json", "value": False}}, "`grammar.value`"),
]


@pytest.fixture(scope="module")
def limits(api):
    info = api.ok_get("/info")
    return {"total": info["max_total_tokens"], "input": info["max_input_tokens"]}


def refusal(response):
    assert response.status_code == 422, response.text
    body = response.json()
    assert body.keys() == {"error", "error_type"} and body["error_type"] == "validation"
    assert body["error"].startswith(PREFIX)
    return body["error"][len(PREFIX):]


@pytest.mark.parametrize("path", ["/generate", "/", "/invocations"])
@pytest.mark.parametrize("parameters, text", RULES, ids=lambda v: json.dumps(v) if isinstance(v, dict) else "")
def test_a_broken_rule_is_a_422_with_its_text(api, limits, path, parameters, text):
    response = api.post(path, {"inputs": "Once", "parameters": parameters})
    assert refusal(response) == text.format(**limits)


@pytest.mark.parametrize("parameters, text", RULES, ids=lambda v: json.dumps(v) if isinstance(v, dict) else "")
def test_in_a_stream_it_is_a_200_with_one_error_event(api, limits, parameters, text):
    if "best_of" in parameters:
        text = "`best_of` != 1 is not supported when streaming tokens"
    for path, more in (("/generate_stream", {}), ("/", {"stream": True})):
        events = api.events(path, {"inputs": "Once", "parameters": parameters} | more)
        assert len(events) == 1
        assert json.loads(events[0]) == {"error": PREFIX + text.format(**limits),
                                         "error_type": "validation"}


@pytest.mark.parametrize("parameters, begin", ORDER, ids=lambda v: json.dumps(v) if isinstance(v, dict) else "")
def test_the_first_broken_rule_wins(api, parameters, begin):
    response = api.post("/generate", {"inputs": "Once", "parameters": parameters})
    assert refusal(response).startswith(begin)


def test_empty_inputs(api):
    assert refusal(api.post("/generate", {"inputs": ""})) == "`inputs` cannot be empty"
    early = {"inputs": "", "parameters": {"top_n_tokens": 9}}
    assert refusal(api.post("/generate", early)).startswith("`top_n_tokens`")
    late = {"inputs": "", "parameters": {"truncate": 0}}
    assert refusal(api.post("/generate", late)) == "`inputs` cannot be empty"


def test_inputs_and_new_tokens_past_the_total(api, limits):
    num_inputs = len(api.ok("/tokenize", {"inputs": "Once upon a time"}))
    total = limits["total"]
    for asked in (total - num_inputs + 1, total):
        response = api.post("/generate", {"inputs": "Once upon a time", "parameters": {"max_new_tokens": asked}})
        assert refusal(response) == (
            f"`inputs` tokens + `max_new_tokens` must be <= {total}. "
            f"Given: {num_inputs} `inputs` tokens and {asked} `max_new_tokens`")
    fits = api.post("/generate", {"inputs": "Once upon a time",
                                  "parameters": {"max_new_tokens": total - num_inputs}})
    assert fits.status_code == 200


def test_all_new_tokens_count_for_the_total(api, limits):
    num_inputs = len(api.ok("/tokenize", {"inputs": "Once"}))
    for asked in (1025, 10000, 4294967295):
        response = api.post("/generate", {"inputs": "Once", "parameters": {"max_new_tokens": asked}})
        assert refusal(response) == (
            f"`inputs` tokens + `max_new_tokens` must be <= {limits['total']}. "
            f"Given: {num_inputs} `inputs` tokens and {asked} `max_new_tokens`")


def test_too_long_inputs(api, limits):
    text = "a b " * limits["input"]
    num_inputs = len(api.ok("/tokenize", {"inputs": text}))
    assert num_inputs > limits["total"]
    for parameters, num_new in (({}, 0), ({"max_new_tokens": 5}, 5)):  # absent: what is left, which is nothing
        response = api.post("/generate", {"inputs": text, "parameters": parameters})
        assert refusal(response) == (f"`inputs` tokens + `max_new_tokens` must be <= {limits['total']}. "
                                     f"Given: {num_inputs} `inputs` tokens and {num_new} `max_new_tokens`")
    cut = api.generate(text, truncate=10, max_new_tokens=3, details=True, decoder_input_details=True)
    assert len(cut["details"]["prefill"]) == 10


def test_inputs_that_fill_the_context(api, limits):
    """As many tokens as the total: rule 15 lets them pass with nothing to generate, rule 16 does not."""
    text = " a" * (limits["total"] - len(api.ok("/tokenize", {"inputs": " a"})) + 1)
    assert len(api.ok("/tokenize", {"inputs": text})) == limits["total"]
    response = api.post("/generate", {"inputs": text, "parameters": {}})
    assert refusal(response) == \
        f"`inputs` must have less than {limits['input']} tokens. Given: {limits['total']}"


def test_inputs_of_exactly_the_limit_are_taken(api, limits):
    text = "a b " * limits["input"]
    answer = api.generate(text, truncate=limits["input"], details=True)
    assert answer["details"]["generated_tokens"] == limits["total"] - limits["input"]
    assert answer["details"]["finish_reason"] in ("length", "eos_token")


def test_streams_refuse_best_of_and_prompt_details(api):
    for value in (0, 2, 3):
        events = api.events("/generate_stream", {"inputs": "a", "parameters": {"best_of": value}})
        assert json.loads(events[0])["error"] == PREFIX + "`best_of` != 1 is not supported when streaming tokens"
    assert "generated_text" in api.generate_stream("a", best_of=1, max_new_tokens=1)[0]
    events = api.events("/generate_stream", {"inputs": "a", "parameters": {"decoder_input_details": True}})
    assert len(events) == 1
    assert json.loads(events[0])["error"] == \
        PREFIX + "`decoder_input_details` == true is not supported when streaming tokens"


def test_best_of_zero_is_one(api):
    assert api.generate("Once", best_of=0, max_new_tokens=3) == api.generate("Once", max_new_tokens=3)


def test_limits_come_from_the_flags(serve):
    from client import Api
    gateway = serve("--max-best-of", "1", "--max-stop-sequences", "1", "--max-top-n-tokens", "2",
                    "--max-client-batch-size", "2")
    api = Api(gateway.url)

    def text(parameters):
        return refusal(api.post("/generate", {"inputs": "a", "parameters": parameters}))

    assert text({"best_of": 2}) == "`best_of` != 1 is not allowed for this endpoint"
    assert text({"stop": ["a", "b"]}) == "`stop` supports up to 1 stop sequences. Given: 2"
    assert text({"top_n_tokens": 3}) == "`top_n_tokens` must be >= 0 and <= 2. Given: 3"
    response = api.post("/v1/completions", {"prompt": ["a", "b", "c"], "max_tokens": 1})
    assert response.status_code == 422
    assert "Number of prompts exceeds the maximum allowed batch size of 2" in response.text
    info = api.ok_get("/info")
    assert (info["max_best_of"], info["max_stop_sequences"], info["max_client_batch_size"]) == (1, 1, 2)


def test_every_edge_that_is_allowed(api):
    """What stands just inside a rule's border is answered."""
    for parameters in ({"temperature": 1e-3}, {"top_p": 0.999}, {"top_p": 0.001}, {"typical_p": 0.999},
                       {"top_k": 1}, {"top_k": 2147483647}, {"frequency_penalty": 2.0},
                       {"frequency_penalty": -2.0}, {"repetition_penalty": 1e-3}, {"stop": list("zyxw")},
                       {"top_n_tokens": 5}, {"top_n_tokens": 0}, {"best_of": 2, "top_p": 0.5},
                       {"best_of": 1, "seed": 3}, {"truncate": 1}, {"seed": 18446744073709551615},
                       {"seed": 0}, {"best_of": None, "temperature": None, "grammar": None, "stop": []}):
        answer = api.post("/generate", {"inputs": "Once", "parameters": {"max_new_tokens": 2} | parameters})
        assert answer.status_code == 200, (parameters, answer.text)


def test_a_refusal_beside_running_work_harms_nobody(api):
    good = lambda: api.generate("Once upon a time", max_new_tokens=40)["generated_text"]
    bad = lambda: refusal(api.post("/generate", {"inputs": "a", "parameters": {"top_k": 0}}))
    results = together([good, bad] * 8)
    assert len(set(results[0::2])) == 1 and len(set(results[1::2])) == 1


# What each API calls its prompt and the tokens of its answer: (path, body, prompt, tokens).
WORDS = [
    ("/generate", {"inputs": "Once", "parameters": {"max_new_tokens": MANY}}, "inputs", "max_new_tokens"),
    ("/v1/chat/completions", {"messages": HELLO, "max_tokens": MANY}, "messages", "max_tokens"),
    ("/v1/chat/completions", {"messages": HELLO, "max_completion_tokens": MANY}, "messages", "max_completion_tokens"),
    ("/v1/chat/completions", {"messages": HELLO, "max_tokens": MANY, "stream": True}, "messages", "max_tokens"),
    ("/invocations", {"messages": HELLO, "max_tokens": MANY}, "messages", "max_tokens"),
    ("/v1/completions", {"prompt": "Once", "max_tokens": MANY}, "prompt", "max_tokens"),
    ("/v1/responses", {"input": "hello", "max_output_tokens": MANY}, "input", "max_output_tokens"),
    ("/api/chat", {"model": "demo", "messages": HELLO, "options": {"num_predict": MANY}}, "messages", "num_predict"),
    ("/api/generate", {"model": "demo", "prompt": "hi", "options": {"num_predict": MANY}}, "prompt", "num_predict"),
    ("/completion", {"prompt": "Once", "n_predict": MANY}, "prompt", "n_predict"),
    ("/vertex", {"instances": [{"messages": HELLO, "max_tokens": MANY}]}, "messages", "max_tokens"),
]


@pytest.mark.parametrize("path,body,prompt,tokens", WORDS, ids=[f"{row[0]} {row[3]}" for row in WORDS])
def test_a_limit_is_told_in_the_words_of_the_route(api, path, body, prompt, tokens):
    answer = api.post(path, body)
    assert answer.status_code in (400, 422)
    assert f"`{prompt}` tokens + `{tokens}` must be <=" in answer.text


@pytest.mark.parametrize("path,body", [
    ("/v1/chat/completions", {"messages": HELLO, "max_tokens": 3, "min_tokens": 9}),
    ("/v1/completions", {"prompt": "Once", "max_tokens": 3, "min_tokens": 9}),
])
def test_too_many_min_tokens_are_told_as_they_were_given(api, path, body):
    assert "`min_tokens` must be at least 0 and at most `max_tokens`, 3. Given: 9" in api.post(path, body).text
