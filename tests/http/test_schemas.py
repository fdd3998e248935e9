"""A wide grid of requests: every answer and every chunk is what TGI's document and the HF task schemas say."""

import json

import pytest

from client import chat_body
from schemas import check, component, needs_data, task

pytestmark = needs_data

NATIVE_GRID = [
    {"max_new_tokens": 1},
    {"max_new_tokens": 12, "details": True},
    {"max_new_tokens": 12, "details": True, "decoder_input_details": True},
    {"max_new_tokens": 8, "decoder_input_details": True},
    {"max_new_tokens": 8, "details": True, "top_n_tokens": 5},
    {"max_new_tokens": 8, "details": True, "top_n_tokens": 1, "do_sample": True, "seed": 3},
    {"max_new_tokens": 8, "details": True, "temperature": 0.7, "top_p": 0.9, "top_k": 20, "seed": 0},
    {"max_new_tokens": 8, "details": True, "typical_p": 0.5, "temperature": 1.5},
    {"max_new_tokens": 8, "details": True, "top_k": 1},
    {"max_new_tokens": 8, "details": True, "do_sample": True, "best_of": 2},
    {"max_new_tokens": 8, "details": True, "do_sample": True, "best_of": 2, "top_n_tokens": 2,
     "decoder_input_details": True, "return_full_text": True},
    {"max_new_tokens": 60, "details": True, "stop": [".", "never"]},
    {"max_new_tokens": 400, "details": True},
    {"max_new_tokens": 8, "details": True, "truncate": 2, "repetition_penalty": 1.3,
     "frequency_penalty": 0.5, "watermark": True, "return_full_text": True},
    {},
]
NOT_FOR_STREAMS = {"best_of", "decoder_input_details"}
PROMPTS = ["Once upon a time", "😀 你好 \n\t\u0000 Zoë", "a", " "]

CHAT_GRID = [
    {"max_tokens": 5},
    {"max_tokens": 5, "temperature": 0},
    {"max_completion_tokens": 5, "n": 2, "seed": 1},
    {"max_tokens": 5, "logprobs": True},
    {"max_tokens": 5, "logprobs": True, "top_logprobs": 3, "temperature": 0},
    {"max_tokens": 60, "stop": ".", "temperature": 0},
    {"max_tokens": 60, "stop": [".", "!"], "temperature": 0},
    {"max_tokens": 200, "temperature": 0},
    {"max_tokens": 5, "frequency_penalty": 1.0, "presence_penalty": -1.0, "top_p": 1},
    {"max_tokens": 5, "logit_bias": {"100": 5}, "model": "tgi", "user": "someone", "min_tokens": 0},
    {"max_tokens": 5, "stream_options": None, "tools": None, "response_format": {"type": "text"}},
]

COMPLETION_GRID = [
    {"prompt": "Once", "max_tokens": 5},
    {"prompt": ["Once"], "max_tokens": 5, "temperature": 0},
    {"prompt": ["Once", "There was", "A", "b"], "max_tokens": 4, "seed": 2},
    {"prompt": "Once", "max_tokens": 5, "n": 2},
    {"prompt": "Once upon a time", "max_tokens": 80, "stop": [".", "?"], "temperature": 0},
    {"prompt": "Once upon a time", "max_tokens": 400, "temperature": 0},
    {"prompt": "Once", "max_tokens": 5, "echo": True, "top_p": 0.5},
    {"prompt": "Once", "max_tokens": 5, "repetition_penalty": 1.2, "frequency_penalty": 1.0},
]


@pytest.mark.parametrize("parameters", NATIVE_GRID, ids=json.dumps)
@pytest.mark.parametrize("prompt", PROMPTS)
def test_native_answers_are_what_the_documents_say(api, prompt, parameters):
    body = {"inputs": prompt, "parameters": parameters}
    answer = api.ok("/generate", body)
    check(component("GenerateResponse"), answer)
    check(task("text-generation", "output"), answer)
    answers = api.ok("/", body)
    assert len(answers) == 1
    check(component("GenerateResponse"), answers[0])
    sage = api.ok("/invocations", body)  # an array as at `/`, which TGI's document forgets
    check(component("SagemakerResponse"), sage[0])


@pytest.mark.parametrize("parameters", NATIVE_GRID, ids=json.dumps)
def test_every_native_event_is_what_the_documents_say(api, parameters):
    if NOT_FOR_STREAMS & parameters.keys():
        parameters = {k: v for k, v in parameters.items() if k not in NOT_FOR_STREAMS}
    for prompt in PROMPTS:
        for event in api.generate_stream(prompt, **parameters):
            check(component("StreamResponse"), event)
            check(task("text-generation", "stream_output"), event)


@pytest.mark.parametrize("parameters", CHAT_GRID, ids=json.dumps)
def test_chat_answers_are_what_the_documents_say(api, parameters):
    answer = api.chat("What is tgi?", **parameters)
    check(component("ChatCompletion"), answer)
    check(task("chat-completion", "output"), answer)


@pytest.mark.parametrize("usage", [{}, {"stream_options": {"include_usage": True}}], ids=["plain", "usage"])
@pytest.mark.parametrize("parameters", CHAT_GRID, ids=json.dumps)
def test_every_chat_chunk_is_what_the_documents_say(api, parameters, usage):
    for chunk in api.chunks("/v1/chat/completions", chat_body("What is tgi?", **(parameters | usage))):
        check(component("ChatCompletionChunk"), chunk)
        check(task("chat-completion", "stream_output"), chunk)
        assert chunk["object"] == "chat.completion.chunk"


@pytest.mark.parametrize("parameters", COMPLETION_GRID, ids=json.dumps)
def test_completion_answers_are_what_the_documents_say(api, parameters):
    check(component("CompletionFinal"), api.ok("/v1/completions", parameters))


@pytest.mark.parametrize("parameters", COMPLETION_GRID, ids=json.dumps)
def test_every_completion_chunk_is_what_the_documents_say(api, parameters):
    chunks = api.chunks("/v1/completions", parameters)
    for chunk in chunks:
        # TGI has an empty reason while a choice goes on; OpenAI's null is what clients look for.
        for choice in chunk["choices"]:
            assert choice["finish_reason"] in (None, "length", "stop")
            choice["finish_reason"] = choice["finish_reason"] or ""
        check(component("Chunk"), chunk)
        assert chunk["object"] == "text_completion"


def test_small_answers_are_what_the_documents_say(api):
    check(component("Info"), api.ok_get("/info"))
    models = api.ok_get("/v1/models")
    assert models["object"] == "list" and len(models["data"]) == 1
    check(component("ModelInfo"), models["data"][0])
    check(component("TokenizeResponse"), api.ok("/tokenize", {"inputs": "Once upon a time"}))
    check(component("ChatTokenizeResponse"), api.ok("/chat_tokenize", chat_body("hi")))


ERRORS = [("/generate", {"inputs": ""}), ("/", {"inputs": ""}), ("/invocations", {"inputs": ""}),
          ("/generate", {"inputs": "a", "parameters": {"top_p": 2}})]


@pytest.mark.parametrize("path, body", ERRORS)
def test_errors_are_what_the_document_says(api, path, body):
    response = api.post(path, body)
    assert response.status_code == 422
    check(component("ErrorResponse"), response.json())


def test_our_own_document_describes_our_own_answers(api):
    """The server's document has TGI's schemas or better ones of the same name: our answers fit both."""
    document = api.ok_get("/api-doc/openapi.json")
    assert document["openapi"].startswith("3.")
    for path, verb in [("/generate", "post"), ("/generate_stream", "post"), ("/", "post"),
                       ("/v1/chat/completions", "post"), ("/v1/completions", "post"), ("/info", "get"),
                       ("/health", "get"), ("/metrics", "get"), ("/tokenize", "post"),
                       ("/chat_tokenize", "post"), ("/invocations", "post"), ("/v1/models", "get")]:
        assert verb in document["paths"][path], path
    answer = api.generate("Once", max_new_tokens=4, details=True, top_n_tokens=2)
    check(component("GenerateResponse", document), answer)
    check(component("ChatCompletion", document), api.chat("hi", max_tokens=4, logprobs=True))
