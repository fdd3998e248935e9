"""Answers in a form that was asked for: JSON schemas, patterns and grammars, in the spellings of TGI, OpenAI, LoRAX,
vLLM and llama.cpp."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from client import Api, chat_body
from gateway import BUILD, ROOT

SCHEMA = {"type": "object", "additionalProperties": False, "required": ["name", "age", "tags"], "properties": {
    "name": {"type": "string", "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3}}}
OPENAI = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
FORMATS = {
    "17_json_object": {"type": "json_object", "value": SCHEMA},
    "17_json": {"type": "json", "value": SCHEMA},
    "17_json_as_text": {"type": "json", "value": json.dumps(SCHEMA)},
    "17_json_schema": {"type": "json_schema", "value": {"name": "a", "schema": SCHEMA}},
    "18_openai": OPENAI,
    "lorax": {"type": "json_object", "schema": SCHEMA},
}
GBNF = 'root ::= ("yes" | "no") " " [0-9]{2}'
LARK = 'start: ("yes" | "no") " " /[0-9]{2}/'
LIST = json.dumps({"grammars": [{"lark_grammar": 'start: @word " " /[0-9]{2}/'}, {"name": "word", "lark_grammar": 'start: "yes" | "no" //::=\n'}]})
YES_NO = re.compile(r"(yes|no) [0-9]{2}")


def check_person(text):
    person = json.loads(text)
    assert list(person) == ["name", "age", "tags"]
    assert isinstance(person["name"], str) and len(person["name"]) <= 12
    assert type(person["age"]) is int and 0 <= person["age"] <= 150
    assert len(person["tags"]) <= 3 and set(person["tags"]) <= {"red", "green"}


def text_of(api, body, stream, route="/v1/chat/completions"):
    if not stream:
        return api.ok(route, body)["choices"][0]["message"]["content"]
    pieces = [json.loads(event) for event in api.events(route, body | {"stream": True}) if event != "[DONE]"]
    return "".join(piece["choices"][0]["delta"].get("content") or "" for piece in pieces if piece["choices"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "19_streamed"])
@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS.keys())
def test_17_18_19_response_format(api, form, stream):
    for seed in range(3):
        body = chat_body("Tell me about you.", max_tokens=100, temperature=1.5, seed=seed, response_format=form)
        check_person(text_of(api, body, stream))


def test_what_a_schema_says_nothing_of_is_not_made_up(api):
    """A small model would fill the rest of its tokens with members that nobody asked for."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9, "minimum": 0}}, "required": ["n"]}
    for more, closed in (({}, True), ({"additionalProperties": True}, False)):
        texts = [text_of(api, chat_body("hi", max_tokens=50, temperature=1.5, seed=seed, guided_json=schema | more), False)
                 for seed in range(6)]
        assert all(list(json.loads(text))[0] == "n" for text in texts)
        assert all(len(json.loads(text)) == 1 for text in texts) == closed, texts


def test_json_object_is_any_object(api):
    for seed in range(3):
        body = chat_body("hi", max_tokens=60, temperature=1.5, seed=seed, response_format={"type": "json_object"})
        assert isinstance(json.loads(text_of(api, body, False)), dict)


@pytest.mark.parametrize("fields, pattern", [
    ({"response_format": {"type": "regex", "value": "[0-9]{3}-[a-f]+"}}, r"[0-9]{3}-[a-f]+"),
    ({"grammar": GBNF}, YES_NO), ({"grammar": LARK}, YES_NO),
    ({"guided_grammar": GBNF}, YES_NO), ({"guided_grammar": LIST}, YES_NO),
    ({"guided_regex": r"\d+(\.\d\d)?"}, r"\d+(\.\d\d)?"),
    ({"guided_regex": "[[:alpha:]]{3}[a-z&&[^aeiou]]{4}"}, r"[A-Za-z]{3}[b-df-hj-np-tv-z]{4}"),
    ({"guided_grammar": "start: /[[:alpha:]_][[:alnum:]_]*/"}, r"[A-Za-z_][A-Za-z0-9_]*"),
    ({"guided_choice": ["a cat", "a dog"]}, r"a (cat|dog)"),
    ({"structured_outputs": {"choice": ["a cat", "a dog"]}}, r"a (cat|dog)"),
], ids=str)
def test_27_patterns_grammars_and_choices(api, fields, pattern):
    for seed in range(3):
        body = chat_body("hi", max_tokens=20, temperature=1.5, seed=seed, **fields)
        assert re.fullmatch(pattern, text_of(api, body, False))


@pytest.mark.parametrize("fields", [{"guided_json": SCHEMA}, {"json_schema": SCHEMA},
                                    {"structured_outputs": {"json": SCHEMA}}], ids=lambda f: next(iter(f)))
def test_schemas_as_vllm_and_llama_cpp_send_them(api, fields):
    check_person(text_of(api, chat_body("hi", max_tokens=100, **fields), False))
    answer = api.ok("/v1/completions", {"prompt": "Once", "max_tokens": 100} | fields)
    check_person(answer["choices"][0]["text"])


@pytest.mark.parametrize("grammar", [
    {"type": "json", "value": SCHEMA}, {"type": "json_object", "value": SCHEMA},
    {"type": "json_schema", "value": {"schema": SCHEMA}}], ids=lambda g: g["type"])
def test_27_grammar_of_the_native_routes(api, grammar):
    body = {"inputs": "a", "parameters": {"max_new_tokens": 100, "grammar": grammar, "details": True}}
    answer = api.ok("/generate", body)
    check_person(answer["generated_text"])
    assert answer["details"]["finish_reason"] == "eos_token"
    last = json.loads(api.events("/generate_stream", body)[-1])
    assert last["generated_text"] == answer["generated_text"]


@pytest.mark.parametrize("max_tokens", [24, 30, 40])
def test_an_answer_is_whole_when_the_tokens_run_out(api, max_tokens):
    schema = {"type": "object", "properties": {"story": {"type": "string"}}, "required": ["story"]}
    for seed in range(4):
        body = chat_body("Tell me a story.", max_tokens=max_tokens, temperature=1.5, seed=seed,
                         response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}})
        assert list(json.loads(text_of(api, body, False))) == ["story"]


def test_many_at_once_with_and_without_a_form(api):
    def ask(i):
        form = {"guided_regex": f"{i}:[a-z]{{{1 + i % 5}}}"} if i % 2 else {}
        body = chat_body("hi", max_tokens=20, temperature=1.2, seed=i, **form)
        return i, text_of(api, body, False)
    with ThreadPoolExecutor(16) as pool:
        for i, text in pool.map(ask, range(48)):
            if i % 2:
                assert re.fullmatch(f"{i}:[a-z]{{{1 + i % 5}}}", text), text
    free = chat_body("hi", max_tokens=20, temperature=1.2, seed=2)
    assert text_of(api, free, False) == text_of(api, free, False)


@pytest.mark.parametrize("fields, place", [
    ({"guided_json": {"type": "objekt"}}, "#/type"),
    ({"guided_json": {"type": "object", "propertys": {}}}, "propertys"),
    ({"guided_json": {"properties": {"a": {"$ref": "https://example.org/x"}}}}, "#/properties/a/$ref"),
    ({"guided_regex": "a(b"}, "regular expression"), ({"guided_regex": r"(a)\1"}, "regular expression"),
    ({"grammar": 'root ::= missing'}, "missing"), ({"guided_grammar": ""}, "grammar: it is empty"),
    ({"guided_json": {"type": "array", "items": {"enum": [1]}, "uniqueItems": True, "minItems": 2}}, "schema #: no value satisfies"),
    ({"guided_json": {"pattern": "[[:alpha:]]"}}, "#/pattern"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "json_schema.schema: missing"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"guided_regex": "a", "guided_choice": ["b"]}, "guided_choice"),
], ids=str)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_form_that_cannot_be_kept_is_refused_where_it_stands(api, fields, place, stream):
    response = api.post("/v1/chat/completions", chat_body("hi", max_tokens=5, stream=stream, **fields))
    assert response.status_code == 422, response.text
    assert place in response.json()["error"]["message"]


def test_choices_are_as_many_as_the_values_of_an_enum(api):
    body = {"prompt": "Once", "max_tokens": 40, "guided_choice": [f"choice number {i}" for i in range(50_000)]}
    assert re.fullmatch("choice number [0-9]{1,5}", api.ok("/v1/completions", body)["choices"][0]["text"])


def test_a_schema_has_as_many_properties_as_are_promised(api):
    schema = {"type": "object", "properties": {f"p{i}": {"type": "null"} for i in range(2000)}}
    for form in (schema, json.dumps(schema)):
        answer = api.ok("/v1/completions", {"prompt": "Once", "max_tokens": 40, "guided_json": form})
        assert set(json.loads(answer["choices"][0]["text"])) <= set(schema["properties"])


def test_without_grammar_support_every_form_is_refused(serve):
    gateway = serve("--disable-grammar-support")
    for fields in ({"response_format": {"type": "json_object"}}, {"guided_regex": "a"}):
        response = Api(gateway.url).post("/v1/chat/completions", chat_body("hi", max_tokens=5, **fields))
        assert response.status_code == 422 and "grammar is not supported" in response.text
    assert Api(gateway.url).ok("/v1/chat/completions", chat_body("hi", max_tokens=2))


def test_hundreds_of_answers_are_of_their_forms():
    """scripts/check_guided, in short."""
    out = subprocess.run([sys.executable, str(ROOT / "scripts/check_guided"), "--bin-dir", str(BUILD / "bin"), "--answers", "300",
                          "--forms", "60"], capture_output=True, text=True, timeout=300, check=False)
    assert out.returncode == 0, out.stdout + out.stderr
    assert re.search(r"^ +0 invalid$", out.stdout, re.M) and re.search(r"^ +0 failed$", out.stdout, re.M), out.stdout
    assert int(re.search(r"^ +(\d+) whole$", out.stdout, re.M)[1]) > 200, out.stdout


def test_values_of_random_schemas_are_written_and_others_are_not():
    """scripts/fuzz_schemas, in short."""
    out = subprocess.run([sys.executable, str(ROOT / "scripts/fuzz_schemas"), str(BUILD / "bin/try_schemas"), str(ROOT / "assets/demo"),
                          "--schemas", "400", "--slow", "60"], capture_output=True, text=True, timeout=300, check=False)
    assert out.returncode == 0, out.stdout + out.stderr
    assert int(re.search(r"^ +(\d+) compiled$", out.stdout, re.M)[1]) > 200, out.stdout
    assert int(re.search(r"^ +(\d+) valid values$", out.stdout, re.M)[1]) > 2000, out.stdout


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_last_token_of_a_form_is_among_the_logprobs(api, stream):
    """An answer that its form ends has no end token, so that its last token is one of its text."""
    body = chat_body("hi", max_tokens=20, temperature=1.5, seed=3, guided_choice=["yes", "no"], logprobs=True, top_logprobs=1)
    if stream:
        choices = [choice for chunk in api.chunks("/v1/chat/completions", body) for choice in chunk["choices"]]
        text = "".join(choice["delta"].get("content") or "" for choice in choices)
        listed = [token for choice in choices for token in (choice["logprobs"] or {}).get("content") or []]
    else:
        choice = api.ok("/v1/chat/completions", body)["choices"][0]
        text, listed = choice["message"]["content"], choice["logprobs"]["content"]
    assert text in ("yes", "no") and "".join(token["token"] for token in listed) == text


def test_what_describes_members_is_an_object(api):
    grammar = {"type": "json", "value": {"properties": {"location": {"type": "string", "maxLength": 5}}, "required": ["location"]}}
    answer = api.ok("/generate", {"inputs": "I saw a puppy", "parameters": {"max_new_tokens": 60, "grammar": grammar}})
    assert list(json.loads(answer["generated_text"])) == ["location"]
