"""Every member of every API with values of every other type, however deep it stands: each is answered or refused in the form of its
API, none is a server's error, and no refusal takes long. TGI_ALL_WRONG_TYPES=1 tries all of them, else a sample that is always the same."""

import copy
import json
import os
import random
import time

import pytest
import requests

SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 4}}, "required": ["a"]}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
TOOL = {"type": "function", "function": FUNCTION}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "b"}'}}
MESSAGES = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "u"}]},
            {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "t"}, {"role": "user", "content": "q"}]
SHORT = [{"role": "user", "content": "q"}]
SAMPLING = {"temperature": 0.5, "top_p": 0.9, "seed": 3, "stop": ["x"]}
BODIES = [
    ("/generate", {"inputs": "a", "parameters": {
        "max_new_tokens": 2, "temperature": 0.5, "top_k": 3, "top_p": 0.9, "typical_p": 0.9, "repetition_penalty": 1.1, "stop": ["x"],
        "seed": 3, "details": True, "truncate": 9, "watermark": False, "best_of": 1, "top_n_tokens": 2, "return_full_text": True,
        "decoder_input_details": False, "do_sample": True, "frequency_penalty": 0.1}, "options": {"wait_for_model": True}}),
    ("/generate", {"inputs": "a", "parameters": {"max_new_tokens": 9, "grammar": {"type": "json", "value": SCHEMA}}}),
    ("/generate", {"inputs": "a", "parameters": {"max_new_tokens": 9, "response_format": {"type": "json_object", "schema": SCHEMA}}}),
    ("/generate_stream", {"inputs": "a", "parameters": {"max_new_tokens": 2, "grammar": {"type": "regex", "value": "a+"}}}),
    ("/", {"inputs": "a", "parameters": {"max_new_tokens": 2}, "stream": True}),
    ("/v1/chat/completions", {"messages": MESSAGES, "tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}},
                              "max_tokens": 40, "model": "tgi", "parallel_tool_calls": False, "chat_template_kwargs": {"a": 1}, **SAMPLING}),
    ("/v1/chat/completions", {"messages": SHORT, "max_completion_tokens": 2, "n": 1, "logprobs": True, "top_logprobs": 2, "stream": True,
                              "logit_bias": {"5": 1}, "stream_options": {"include_usage": True}, "usage": {"include": True},
                              "provider": {"order": ["a"]}, "models": ["a"], "model": "tgi", "reasoning": {"effort": "low", "max_tokens": 3},
                              "user": "u", "metadata": {"a": "b"}, "min_tokens": 1, "ignore_eos": False, "frequency_penalty": 0.1,
                              "prompt_cache_options": {"mode": "implicit"}, "verbosity": "low"}),
    ("/v1/chat/completions", {"messages": SHORT, "max_tokens": 9, "tools": [TOOL],
                              "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}}),
    ("/v1/chat/completions", {"messages": SHORT, "max_tokens": 9, "response_format": {
        "type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}}),
    ("/v1/chat/completions", {"messages": SHORT, "max_tokens": 3, "structured_outputs": {"choice": ["a", "b"]}}),
    ("/v1/completions", {"prompt": ["a", "b"], "max_tokens": 2, "echo": True, "logprobs": 2, "best_of": 1, "n": 1, "logit_bias": {"5": 1},
                         "min_p": 0.1, "typical_p": 0.9, "guided_choice": None, **SAMPLING}),
    ("/v1/completions", {"prompt": [[5, 6], [7]], "max_tokens": 2, "stream": True}),
    ("/v1/completions", {"prompt": "a", "max_tokens": 3, "guided_regex": "a+"}),
    ("/v1/completions", {"prompt": "a", "max_tokens": 9, "grammar": 'root ::= "a" | "b"'}),
    ("/v1/responses", {"input": [
        {"role": "user", "content": [{"type": "input_text", "text": "u"}]}, {"type": "reasoning", "id": "r", "summary": [
            {"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "o"}]}],
        "instructions": "i", "tools": [{"type": "function", **FUNCTION}], "tool_choice": "auto", "max_output_tokens": 2,
        "text": {"format": {"type": "text"}, "verbosity": "low"}, "reasoning": {"effort": "low", "summary": "auto"}, "top_logprobs": 1,
        "include": ["message.output_text.logprobs"], "metadata": {"a": "b"}, "truncation": "auto", "store": False, "background": False,
        "temperature": 0.5, "top_p": 0.9, "user": "u", "stream": True, "stream_options": {"include_obfuscation": False}}),
    ("/v1/responses", {"input": "a", "max_output_tokens": 9, "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}}),
    ("/v1/responses/input_tokens", {"input": "a", "tools": [{"type": "function", **FUNCTION}], "previous_response_id": None}),
    ("/v1/messages", {"model": "tgi", "max_tokens": 9, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
                      "messages": [{"role": "user", "content": [
                          {"type": "text", "text": "u"}, {"type": "document", "title": "t", "context": "c", "citations": {"enabled": False},
                                                          "source": {"type": "content", "content": [{"type": "text", "text": "d"}]}},
                          {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}]},
                          {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"},
                                                            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]},
                          {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [
                              {"type": "text", "text": "r"}], "is_error": False}]}],
                      "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA, "input_examples": [{"a": "b"}]}],
                      "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, "thinking": {"type": "enabled", "budget_tokens": 1},
                      "stop_sequences": ["x"], "temperature": 0.5, "top_k": 3, "top_p": 0.9, "metadata": {"user_id": "u"},
                      "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "stream": False}),
    ("/v1/messages", {"model": "tgi", "max_tokens": 9, "messages": SHORT,
                      "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}}),
    ("/v1/messages/count_tokens", {"model": "tgi", "messages": SHORT, "system": "s", "tools": [{"name": "f", "input_schema": SCHEMA}]}),
    ("/completion", {"prompt": ["a", 5], "n_predict": 2, "n_probs": 1, "logit_bias": [["a", 1], [5, False]], "samplers": ["top_k"],
                     "response_fields": ["content"], "stream": False, "cache_prompt": True, "return_tokens": True, "repeat_penalty": 1.1,
                     "repeat_last_n": 4, "min_p": 0.1, "typical_p": 0.9, "mirostat": 0, "lora": [], "temperature": 0.5, "seed": 3, "stop": ["x"]}),
    ("/completion", {"prompt": "a", "n_predict": 9, "json_schema": SCHEMA, "stream": True}),
    ("/apply-template", {"messages": MESSAGES, "tools": [TOOL]}), ("/detokenize", {"tokens": [5, 6]}),
    ("/tokenize", {"inputs": "a", "parameters": {"max_new_tokens": 2}}), ("/tokenize", {"content": "a", "add_special": True, "with_pieces": True}),
    ("/tokenize", {"prompt": "a", "add_special_tokens": True}), ("/tokenize", {"messages": MESSAGES, "add_generation_prompt": True}),
    ("/chat_tokenize", {"messages": MESSAGES}), ("/invocations", {"messages": SHORT, "max_tokens": 2}), ("/invocations", {"inputs": "a"}),
    ("/api/chat", {"model": "demo", "messages": [{"role": "user", "content": "q", "images": []}], "tools": [TOOL], "format": SCHEMA,
                   "stream": False, "think": False, "keep_alive": "5m", "options": {"num_predict": 40, "temperature": 0.5, "stop": ["x"],
                                                                                   "num_ctx": 64, "seed": 3, "top_k": 3}}),
    ("/api/generate", {"model": "demo", "prompt": "a", "system": "s", "raw": False, "stream": True, "format": "json",
                       "options": {"num_predict": 5}}),
    ("/api/show", {"model": "demo", "verbose": True}), ("/api/embed", {"model": "demo", "input": ["a"], "truncate": True}),
    ("/v1/embeddings", {"model": "tgi", "input": ["a"], "encoding_format": "float", "dimensions": 3}),
    ("/embed", {"inputs": ["a"], "truncate": True}), ("/embed_all", {"inputs": ["a"], "truncate": True}), ("/rerank", {"query": "q", "texts": ["a"], "return_text": True}),
    ("/v1/rerank", {"query": "q", "documents": ["a", {"text": "b"}], "top_n": 1}), ("/classify", {"inputs": "a"}),
    ("/v2/models/demo/infer", {"id": "i", "inputs": [{"name": "text_input", "shape": [1], "datatype": "BYTES", "data": ["a"]}],
                               "outputs": [{"name": "text_output"}], "parameters": {"max_new_tokens": 2}}),
    ("/vertex", {"instances": [{"inputs": "a", "parameters": {"max_new_tokens": 2}}], "parameters": {"max_new_tokens": 2}}),
]
DEEP = json.loads("[" * 100 + "]" * 100)
WRONG = [None, True, 0, -1, 10**30, 2**63, -2**63 - 1, 1.5, 1e308, -0.0, "", "a", "\ud800", "\x00\u202e😀", "9" * 400, [], [[]], [None], {}, {"a": {}},
         {"type": 3}, {"": ""}, [{"type": "text"}], DEEP]


def places(value, path=()):
    """Every place of a body but the body itself."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, path + (key,))


def with_value(body, path, value):
    body = copy.deepcopy(body)
    at = body
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return body


def cases():
    for route, body in BODIES:
        yield route, body
        for path in places(body):
            for value in WRONG:
                yield route, with_value(body, path, value)
        for value in WRONG:
            yield route, value
            yield route, body | {"sirname": value}


def test_no_value_is_a_servers_error(gateway, api, daemon):
    all_cases = list(cases())
    if not os.environ.get("TGI_ALL_WRONG_TYPES"):
        all_cases = random.Random(7).sample(all_cases, 1000)
    bad, slow = [], []
    with requests.Session() as session:
        for route, body in all_cases:
            start = time.monotonic()
            answer = session.post(gateway.url + route, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}, timeout=30)
            taken = time.monotonic() - start
            if answer.status_code >= 500 or (answer.status_code >= 400 and not answer.content):
                bad.append((route, answer.status_code, answer.text[:300], json.dumps(body)[:600]))
            if taken > 10 and answer.status_code >= 400:  # others may have asked for all that there is room for
                slow.append((route, taken, json.dumps(body)[:600]))
    assert gateway.alive() and daemon.alive()
    assert not bad, f"{len(bad)}: " + "\n".join(map(str, bad[:20]))
    assert not slow, slow[:20]
    assert api.generate("Once", max_new_tokens=1)["generated_text"]


@pytest.mark.parametrize("route, body", BODIES, ids=[route for route, _ in BODIES])
def test_the_bodies_are_right_before_they_are_spoilt(api, route, body):
    """Else nothing of them would be looked at but the first mistake."""
    answer = api.post(route, body)
    vectors = ("/api/embed", "/v1/embeddings", "/embed", "/embed_all", "/rerank", "/v1/rerank", "/classify")  # which the demo model has none of
    assert answer.status_code == 200 or route in vectors, answer.text
