"""The routes that llama.cpp's server has beside OpenAI's, and vLLM's /tokenize, /detokenize and /version."""

import json

import pytest

from client import chat_body, together
from gateway import wait_until, with_template

PROMPT = "Once upon a time"
GREEDY = {"temperature": 0, "n_predict": 12}


@pytest.fixture
def complete(api):
    return lambda prompt=PROMPT, **more: api.ok("/completion", {"prompt": prompt, **GREEDY, **more})


def pieces(api, **body):
    """The events of a stream: the last one, and it alone, says stop."""
    events = [json.loads(e) for e in api.events("/completion", {"prompt": PROMPT, **GREEDY, **body, "stream": True})]
    assert [e["stop"] for e in events] == [False] * (len(events) - 1) + [True]
    return events


def error_of(response, status):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == status and isinstance(error["type"], str)
    return error["message"]


def ids_of(api, text, **more):
    return api.ok("/tokenize", {"content": text, **more})["tokens"]


def test_an_answer_is_what_the_openai_route_gives(api, complete):
    same = api.complete(PROMPT, temperature=0, max_tokens=12)
    for path in ("/completion", "/completions"):
        answer = api.ok(path, {"prompt": PROMPT, **GREEDY})
        assert answer["content"] == same["choices"][0]["text"]
        assert answer["stop"] and answer["stop_type"] == "limit" and answer["stopping_word"] == ""
        assert answer["tokens_predicted"] == 12 and answer["tokens_evaluated"] == same["usage"]["prompt_tokens"]
        assert answer["prompt"] == PROMPT and answer["model"] == "demo" and not answer["truncated"]
        assert answer["tokens"] == [] and "completion_probabilities" not in answer
    assert complete(max_tokens=3, n_predict=None)["tokens_predicted"] == 3
    settings = complete(top_k=7, stop=["x"], seed=4)["generation_settings"]
    assert (settings["top_k"], settings["stop"], settings["seed"], settings["n_predict"]) == (7, ["x"], 4, 12)


def test_times_and_the_cache_are_told(api):
    prompt = "A fox and a hen and a dog went to see the sea, and the sea was not there. " * 3
    first = api.ok("/completion", {"prompt": prompt, **GREEDY, "cache_prompt": False})
    api.ok("/completion", {"prompt": prompt, **GREEDY})
    again = api.ok("/completion", {"prompt": prompt, **GREEDY})
    once_more = api.ok("/completion", {"prompt": prompt, **GREEDY, "cache_prompt": False})
    assert first["content"] == again["content"] == once_more["content"]
    assert first["timings"]["cache_n"] == once_more["timings"]["cache_n"] == 0
    assert again["tokens_cached"] == again["timings"]["cache_n"] > 0
    for answer in (first, again):
        times = answer["timings"]
        assert times["prompt_n"] + times["cache_n"] == answer["tokens_evaluated"]
        assert times["predicted_n"] == 12 and times["predicted_ms"] > 0 and times["predicted_per_second"] > 0


def test_a_stream_put_together_is_the_answer(api, complete):
    whole = complete(return_tokens=True)
    events = pieces(api, timings_per_token=True)
    assert "".join(e["content"] for e in events) == whole["content"]
    assert [i for e in events for i in e["tokens"]] == whole["tokens"] and len(whole["tokens"]) == 12
    assert events[-1]["stop_type"] == "limit" and events[-1]["tokens_predicted"] == 12 and events[-1]["content"] == ""
    assert all(e["timings"]["predicted_n"] <= 12 for e in events)
    assert "timings" not in pieces(api)[0]


def test_how_an_answer_ends(complete):
    word = complete(stop=["nothing like it", "."], n_predict=-1)
    assert word["stop_type"] == "word" and word["stopping_word"] == "." and "." not in word["content"]
    assert complete(stop=".", n_predict=-1)["content"] == word["content"]
    end = complete(n_predict=-1, return_tokens=True)
    if end["stop_type"] == "eos":
        assert len(end["tokens"]) == end["tokens_predicted"] - 1
    assert complete(n_predict=60, ignore_eos=True, stop=[])["tokens_predicted"] == 60
    assert complete(n_predict=0)["content"] == ""


def test_prompts_are_texts_ids_or_both(api, complete):
    text = complete()["content"]
    ids = ids_of(api, PROMPT, add_special=True)
    assert complete(ids)["content"] == text and complete(ids)["tokens_evaluated"] == len(ids)
    assert complete([PROMPT])["content"] == text
    mixed = complete(["Once upon", *ids_of(api, " a time")])
    assert mixed["content"] == complete(ids_of(api, "Once upon", add_special=True) + ids_of(api, " a time"))["content"]
    both = complete([PROMPT, ids])
    assert [a["index"] for a in both] == [0, 1] and [a["content"] for a in both] == [text, text]
    assert [a["content"] for a in complete([ids, ["Once upon", *ids_of(api, " a time")]])] == [text, mixed["content"]]
    assert PROMPT in complete(ids)["prompt"]


def test_samplers(api, complete):
    mine = complete(temperature=None, seed=5)["content"]
    same = api.complete(PROMPT, max_tokens=12, seed=5, temperature=0.8, top_k=40, top_p=0.95, min_p=0.05)["choices"][0]["text"]
    assert mine == same, "the defaults are llama.cpp's"
    mine = complete(temperature=1.5, seed=5, samplers=["temperature"])["content"]
    assert mine == api.complete(PROMPT, max_tokens=12, seed=5, temperature=1.5)["choices"][0]["text"]
    greedy = complete()["content"]
    assert complete(temperature=3, samplers=["top_k"], top_k=1)["content"] == greedy
    assert complete(temperature=1, top_p=0, seed=8)["content"] == greedy
    assert complete(repeat_penalty=5.0, presence_penalty=2)["content"] != greedy
    assert complete(repeat_penalty=5.0, presence_penalty=2, repeat_last_n=0)["content"] == greedy
    # What SillyTavern and others send with every request.
    assert complete(dry_multiplier=0, dry_base=1.75, dry_allowed_length=2, dry_sequence_breakers=["\n"], xtc_probability=0,
                    xtc_threshold=0.1, mirostat=0, mirostat_tau=5, dynatemp_range=0, id_slot=-1, n_keep=0, min_keep=0,
                    typical_p=1, tfs_z=1, repeat_last_n=64, penalize_nl=False, image_data=[])["content"] == greedy
    # What this year's releases have, each with the value that means off.
    assert complete(adaptive_target=-1.0, adaptive_decay=0.9, backend_sampling=True, sse_ping_interval=-1, verbose=False, n=1, logprobs=0,
                    reasoning_budget_tokens=-1, reasoning_control=False, grammar_lazy=False, grammar_triggers=[], preserved_tokens=[],
                    reasoning_format="none", parse_tool_calls=False, stream_options={"include_usage": True}, return_progress=False,
                    **{"speculative.type": "none", "speculative.ngram_size_n": 12})["content"] == greedy
    listed = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature", "adaptive_p"]
    assert complete(samplers=listed)["content"] == greedy


def test_the_bias_of_tokens(api, complete):
    banned = complete(n_predict=1, return_tokens=True)
    for bias in ([[banned["tokens"][0], False]], [[banned["content"], False]], {str(banned["tokens"][0]): -100},
                 {banned["content"]: -100}, [[banned["tokens"][0], -1000]]):
        other = complete(n_predict=1, return_tokens=True, logit_bias=bias)
        assert other["tokens"] and other["tokens"] != banned["tokens"], bias


def test_probabilities(api, complete):
    answer = complete(n_probs=3, return_tokens=True)
    listed = answer["completion_probabilities"]
    assert [each["id"] for each in listed] == answer["tokens"] and all(len(each["top_logprobs"]) == 3 for each in listed)
    assert "".join(each["token"] for each in listed) == answer["content"]
    assert listed[0]["top_logprobs"][0]["id"] == listed[0]["id"] and listed[0]["logprob"] <= 0
    assert [p for e in pieces(api, n_probs=3) for p in e.get("completion_probabilities", [])] == listed


def test_forms(complete):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert set(json.loads(complete(json_schema=schema, n_predict=60)["content"])) == {"n"}
    assert complete(grammar='root ::= "yes" | "no"')["content"] in ("yes", "no")
    assert complete(grammar="", json_schema=None)["content"] == complete()["content"]


def test_fields_of_an_answer_may_be_chosen(complete):
    assert set(complete(response_fields=["content", "generation_settings/n_predict", "nothing"])) == {"content", "n_predict"}


BAD = [
    ({"prompt": None}, "prompt"), ({"prompt": {"prompt_string": "a"}}, "prompt"), ({"prompt": [1, {}]}, "prompt"), ({"prompt": [1.5]}, "prompt"),
    ({"prompt": [-1]}, ""), ({"prompt": ["a"] * 5}, "batch size"), ({"temperature": "hot"}, "temperature"), ({"top_p": 2}, "top_p"),
    ({"mirostat": 2}, "mirostat"), ({"dry_multiplier": 0.8}, "dry_multiplier"), ({"xtc_probability": 0.5}, "xtc_probability"),
    ({"dynatemp_range": 1}, "dynatemp_range"), ({"top_n_sigma": 1}, "top_n_sigma"), ({"samplers": ["infill"]}, "infill"), ({"samplers": "k"}, "samplers"),
    ({"lora": [{"id": 0, "scale": 1}]}, "lora"), ({"image_data": [{"id": 1}]}, "image_data"), ({"n_probs": 999}, "n_probs"),
    ({"grammar": "root ::= nothing"}, ""), ({"grammar": "root ::= \"a\"", "json_schema": {}}, "grammar"), ({"json_schema": 3}, "json_schema"),
    ({"logit_bias": [1]}, "logit_bias[0]"), ({"logit_bias": 3}, "logit_bias"), ({"n_predct": 3}, "n_predct"), ({"post_sampling_probs": True}, "post_sampling_probs"),
    ({"adaptive_target": 0.3}, "adaptive_target"), ({"reasoning_budget_tokens": 5}, "reasoning_budget_tokens"), ({"n": 2}, "`n`"),
    ({"grammar_triggers": [{"type": 0, "value": "a"}]}, "grammar_triggers"), ({"preserved_tokens": ["a"]}, "preserved_tokens"),
    ({"max_completion_tokens": 3}, "n_predict"), ({"return_progress": True}, "return_progress"), ({"verbose": True}, "verbose"),
    ({"repeat_last_n": -2}, "repeat_last_n"), ({"stop": [""]}, "stop"), ({"t_max_predict_ms": 10}, "t_max_predict_ms")]


@pytest.mark.parametrize("more, named", BAD, ids=[json.dumps(m) for m, _ in BAD])
def test_what_is_wrong_is_refused_by_name(api, more, named):
    assert named in error_of(api.post("/completion", {"prompt": PROMPT, **more}), 400)


def test_other_refusals(api):
    assert "demo" in error_of(api.post("/completion", {"prompt": PROMPT, "model": "llama9"}), 404)
    assert "JSON" in error_of(api.post_bytes("/completion", b"{", None), 400)
    assert "fill in the middle" in error_of(api.post("/infill", {"input_prefix": "a", "input_suffix": "b"}), 501)
    assert "tgi load" in error_of(api.post("/props", {}), 501)


def test_what_the_server_tells_of_itself(api, daemon):
    props = api.ok_get("/props")
    assert props["default_generation_settings"]["n_ctx"] == api.total_tokens()
    assert props["default_generation_settings"]["params"]["top_p"] == 0.95
    assert props["model_alias"] == "demo" and props["modalities"] == {"vision": False, "audio": False}
    slots = api.ok_get("/slots")
    assert len(slots) == props["total_slots"] and all(isinstance(s["is_processing"], bool) for s in slots)
    assert api.ok_get("/version") == {"version": api.ok_get("/info")["version"]}


def test_slots_say_how_many_requests_run(slow_pair):
    served = slow_pair()
    assert not any(s["is_processing"] for s in served.api.ok_get("/slots"))
    body = {"prompt": PROMPT, "n_predict": 3000, "stream": True}
    with served.api.post("/completion", body, stream=True) as stream:
        lines = stream.iter_lines()
        next(lines)
        # The engine counts a moment after the token went out.
        assert wait_until(lambda: sum(s["is_processing"] for s in served.api.ok_get("/slots")) == 1)


def test_llama_cpp_tokenizes_and_puts_together(api):
    ids = ids_of(api, PROMPT)
    theirs = [t["id"] for t in api.ok("/tokenize", {"inputs": PROMPT})]
    assert ids_of(api, PROMPT, add_special=True) == theirs and ids == [i for i in theirs if i in ids]
    listed = ids_of(api, "Zoë 😀", with_pieces=True)
    raw = b"".join(p["piece"].encode() if isinstance(p["piece"], str) else bytes(p["piece"]) for p in listed)
    assert raw.decode().strip() == "Zoë 😀" and [p["id"] for p in listed] == ids_of(api, "Zoë 😀")
    assert api.ok("/detokenize", {"tokens": ids})["content"].strip() == PROMPT
    assert api.ok("/detokenize", {"tokens": []})["content"] == ""
    assert "not in the vocabulary" in error_of(api.post("/detokenize", {"tokens": [10_000_000]}), 400)
    assert "not in the vocabulary" in error_of(api.post("/detokenize", {"tokens": [-1]}), 400)
    assert "tokens" in error_of(api.post("/detokenize", {"tokens": "a"}), 400)
    assert "tokens" in error_of(api.post("/detokenize", {}), 400)
    assert api.post("/tokenize", {"content": 3}).status_code == 422
    assert api.post("/tokenize", {"content": "a", "parse_special": False}).status_code == 422


def test_vllm_tokenizes(api):
    ids = [t["id"] for t in api.ok("/tokenize", {"inputs": PROMPT})]
    answer = api.ok("/tokenize", {"model": "demo", "prompt": PROMPT})
    assert answer == {"count": len(ids), "max_model_len": api.total_tokens(), "tokens": ids, "token_strs": None}
    bare = api.ok("/tokenize", {"prompt": PROMPT, "add_special_tokens": False, "return_token_strs": True})
    assert bare["tokens"] == ids_of(api, PROMPT) and "".join(bare["token_strs"]).strip() == PROMPT
    chat = api.ok("/tokenize", {"model": "demo", **chat_body("hi"), "return_token_strs": True})
    assert chat["tokens"] == [t["id"] for t in api.ok("/chat_tokenize", chat_body("hi"))["tokenize_response"]]
    assert len(chat["token_strs"]) == chat["count"]
    assert api.ok("/detokenize", {"model": "demo", "tokens": ids})["prompt"]
    for wrong in ({"prompt": 3}, {"prompt": "a", "nope": 1}, {"messages": []}, {**chat_body("a"), "return_token_strs": 3}):
        assert api.post("/tokenize", wrong).status_code == 422


def test_the_template_alone(api, pair, tmp_path):
    assert api.ok("/apply-template", chat_body("hi"))["prompt"] == api.ok("/chat_tokenize", chat_body("hi"))["templated_text"]
    assert "messages" in error_of(api.post("/apply-template", {}), 400)
    served = pair(model=with_template(tmp_path, None))
    assert "template" in error_of(served.api.post("/apply-template", chat_body("hi")), 400).lower()


def test_many_at_once(api, complete):
    alone = complete()["content"]
    assert [answer["content"] for answer in together([complete] * 8)] == [alone] * 8


def test_whole_numbers_may_be_written_as_real_ones(complete):
    assert complete(n_predict=2.0, top_k=40.0, seed=1.0)["tokens_predicted"] == 2
