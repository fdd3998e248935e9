"""Fields that clients of OpenRouter and of llama.cpp's server send to OpenAI's routes: what asks for nothing, or for what is done
anyway, is taken; what would change the answer is refused by its name."""

import openai
import pytest

PROMPT = "What is tgi?"
LISTED = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"]
HARMLESS = [
    {"usage": {"include": True}}, {"usage": {}}, {"provider": {}}, {"transforms": []}, {"plugins": []}, {"route": "fallback"},
    {"models": ["other/one", "other/two"], "model": "tgi"}, {"models": []}, {"session_id": "s", "trace": {"trace_id": "t"}, "top_a": 0},
    {"provider": {"order": ["anthropic"], "sort": "price", "ignore": ["x"], "allow_fallbacks": False, "require_parameters": True,
                  "data_collection": "deny", "zdr": True, "max_price": {"prompt": 1}, "only": [], "quantizations": None}},
    {"dynatemp_range": 0, "dynatemp_exponent": 1, "dry_multiplier": 0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1,
     "xtc_probability": 0, "xtc_threshold": 0.1, "mirostat": 0, "mirostat_tau": 5, "top_n_sigma": -1.0, "adaptive_target": -1, "min_keep": 0,
     "repeat_penalty": 1.0, "repeat_last_n": 64, "typical_p": 1, "samplers": LISTED, "n_probs": 0, "n_predict": -1, "id_slot": -1},
    {"cache_prompt": True, "timings_per_token": False, "return_progress": False, "sse_ping_interval": 30, "backend_sampling": False,
     "speculative.n_max": 16, "lora": [], "t_max_predict_ms": -1, "grammar_lazy": False, "post_sampling_probs": False}]
REFUSED = [
    ({"usage": True}, "usage"), ({"usage": {"include": 1}}, "usage.include"), ({"usage": {"exclude": 1}}, "usage.exclude"),
    ({"provider": "groq"}, "provider"), ({"provider": {"only": ["groq"]}}, "`provider.only` is not supported"),
    ({"provider": {"quantizations": ["fp16"]}}, "`provider.quantizations`"), ({"provider": {"ordr": []}}, "provider.ordr"),
    ({"provider": {"enforce_distillable_text": True}}, "provider.enforce_distillable_text"), ({"transforms": ["middle-out"]}, "`transforms`"),
    ({"models": ["a"]}, "`models` without `model`"), ({"models": "a"}, "models"), ({"model": "tgi", "models": [3]}, "models[0]"),
    ({"plugins": [{"id": "web"}]}, "`plugins`"), ({"top_a": 0.5}, "`top_a`"), ({"route": "other"}, "`route`"),
    ({"mirostat": 2}, "`mirostat`"), ({"dry_multiplier": 0.8}, "`dry_multiplier`"), ({"xtc_probability": 0.5}, "`xtc_probability`"),
    ({"adaptive_target": 0.2}, "`adaptive_target`"), ({"repeat_penalty": 1.1}, "use `repetition_penalty`"),
    ({"samplers": ["top_k"]}, "`samplers`"), ({"n_predict": 5}, "use `max_tokens`"), ({"lora": [{"id": 0, "scale": 1}]}, "`lora`"),
    ({"return_progress": True}, "`return_progress`"), ({"reasoning_budget_tokens": 9}, "use `thinking_token_budget`")]


def bodies(more):
    rest = {"max_tokens": 6, "temperature": 0} | more
    return [("/v1/chat/completions", {"messages": [{"role": "user", "content": PROMPT}]} | rest), ("/v1/completions", {"prompt": PROMPT} | rest)]


def texts(answer):
    return [choice.get("text") or choice["message"]["content"] for choice in answer["choices"]]


@pytest.mark.parametrize("more", HARMLESS, ids=str)
def test_what_changes_nothing_is_taken(api, more):
    for (path, plain), (_, body) in zip(bodies({}), bodies(more)):
        assert texts(api.ok(path, body)) == texts(api.ok(path, plain)), path


@pytest.mark.parametrize("more, named", REFUSED, ids=str)
def test_what_would_change_the_answer_is_refused_by_name(api, more, named):
    for path, body in bodies(more):
        answer = api.post(path, body)
        assert answer.status_code == 422 and named in answer.json()["error"]["message"], answer.text


def test_of_chats_alone(api):
    ask = lambda **more: api.post("/v1/chat/completions", bodies(more)[0][1])
    for more in ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_format": "auto"}, {"parse_tool_calls": True}):
        assert ask(**more).status_code == 200, more
    assert "`reasoning_format`" in ask(reasoning_format="none").text and "`parse_tool_calls`" in ask(parse_tool_calls=False).text
    assert "reasoning.depth" in ask(reasoning={"depth": 3}).text


def test_usage_is_told_in_a_stream_as_openrouter_tells_it(gateway):
    client = openai.OpenAI(base_url=gateway.url + "/v1", api_key="-", max_retries=0)
    def told(**more):
        chunks = client.chat.completions.create(model="tgi", messages=[{"role": "user", "content": PROMPT}], max_tokens=4, temperature=0,
                                                stream=True, **more)
        return [chunk.usage.completion_tokens for chunk in chunks if chunk.usage]
    assert told() == []
    assert told(extra_body={"usage": {"include": True}}) == [4] == told(stream_options={"include_usage": True})
    assert told(extra_body={"usage": {"include": True}}, stream_options={"include_usage": False}) == [4]
    assert told(extra_body={"usage": {"include": False}}) == []
