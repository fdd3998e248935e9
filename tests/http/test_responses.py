"""Response headers, the framing of event streams, and the small routes."""

import json
import time

import pytest

from client import RawConnection, chat_body, http_request, raw_events

PROMPT = "Once upon a time"
BODY = {"inputs": PROMPT, "parameters": {"max_new_tokens": 10}}
MILLISECONDS = ["x-total-time", "x-validation-time", "x-queue-time", "x-inference-time", "x-time-per-token",
                "x-time-to-first-token", "x-time-per-output-token"]


@pytest.mark.parametrize("path, body", [("/generate", BODY), ("/", BODY), ("/invocations", BODY),
                                        ("/v1/chat/completions", chat_body("What is tgi?", max_tokens=10,
                                                                            temperature=0))])
def test_headers_of_an_answer(api, path, body):
    response = api.post(path, body)
    headers = response.headers
    assert headers["content-type"].split(";")[0] == "application/json"
    assert headers["x-compute-type"]
    assert float(headers["x-compute-time"]) >= 0
    assert headers["x-generated-tokens"] == "10"
    assert int(headers["x-total-tokens"]) == int(headers["x-prompt-tokens"]) + 10
    for name in MILLISECONDS:
        assert headers[name].isdigit(), name
    assert int(headers["x-total-time"]) >= int(headers["x-inference-time"])
    if path != "/v1/chat/completions":
        assert headers["x-compute-characters"] == str(len(PROMPT))
        assert headers["x-prompt-tokens"] == str(len(api.ok("/tokenize", {"inputs": PROMPT})))
    else:
        templated = api.ok("/chat_tokenize", body)
        assert headers["x-compute-characters"] == str(len(templated["templated_text"]))
        assert headers["x-prompt-tokens"] == str(response.json()["usage"]["prompt_tokens"])


def test_characters_are_code_points(api):
    body = {"inputs": "Zoë 😀 你", "parameters": {"max_new_tokens": 1}}
    assert api.post("/generate", body).headers["x-compute-characters"] == "7"


def test_headers_of_completions_are_sums(api):
    prompts = [PROMPT, "The fox"]
    response = api.post("/v1/completions", {"prompt": prompts, "max_tokens": 5, "temperature": 0})
    headers = response.headers
    assert headers["x-generated-tokens"] == "10"
    assert headers["x-prompt-tokens"] == str(response.json()["usage"]["prompt_tokens"])
    assert headers["x-compute-characters"] == str(sum(map(len, prompts)))


@pytest.mark.parametrize("path, body", [("/generate_stream", BODY), ("/", BODY | {"stream": True}),
                                        ("/v1/chat/completions", chat_body(PROMPT, max_tokens=3, stream=True)),
                                        ("/v1/completions", {"prompt": PROMPT, "max_tokens": 3, "stream": True})])
def test_headers_of_a_stream(api, path, body):
    headers = api.post(path, body).headers
    assert headers["content-type"].split(";")[0] == "text/event-stream"
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-compute-type"]
    if path in ("/generate_stream", "/"):
        assert headers["x-compute-characters"] == str(len(PROMPT))
    assert not set(MILLISECONDS) & {name.lower() for name in headers}


def test_the_compute_type_is_an_environment_variable(serve):
    from client import Api
    api = Api(serve(env={"COMPUTE_TYPE": "1-toy"}).url)
    assert api.post("/generate", BODY).headers["x-compute-type"] == "1-toy"


def test_framing_is_exact(gateway):
    """Exactly `data: {json}` and an empty line for each event, nothing else, and the end of the body is the end."""
    with RawConnection(gateway) as connection:
        connection.send(http_request("POST", "/generate_stream", json.dumps(BODY).encode(),
                                     [("Connection", "close")]))
        body = raw_events(connection.read_all())
    assert body.count(b"data: ") == body.count(b"\n\n") == 10
    assert body.replace(b"\n\n", b"").count(b"\n") == 0 and b"\r" not in body
    assert b"event:" not in body and b"id:" not in body.replace(b'"id":', b"")


def test_events_come_one_by_one(slow_pair):
    """Not all at the end: the first event is there long before the last."""
    import requests
    pair = slow_pair()
    begin = time.monotonic()
    times = []
    body = {"inputs": PROMPT, "parameters": {"max_new_tokens": 300}}
    with requests.post(pair.gateway.url + "/generate_stream", json=body, stream=True, timeout=60) as response:
        for line in response.iter_lines(chunk_size=1):
            if line:
                times.append(time.monotonic() - begin)
    assert len(times) == 300
    assert times[0] < times[-1] / 4
    assert sum(1 for a, b in zip(times, times[1:]) if b - a > 0.0003) > 100


def test_info(api, gateway):
    info = api.ok_get("/info")
    assert info["model_id"] == gateway.model_name
    assert info["max_concurrent_requests"] == 128 and info["max_best_of"] == 2
    assert info["max_stop_sequences"] == 4 and info["max_client_batch_size"] == 4
    assert info["max_total_tokens"] == 1024 and 0 < info["max_input_tokens"] < 1024
    assert info.keys() >= {"model_sha", "model_pipeline_tag", "validation_workers", "router", "version", "sha",
                           "docker_label"}


def test_health(api):
    for path in ("/health", "/ping", "/"):
        response = api.get(path)
        assert response.status_code == 200 and response.content == b"", path


def test_models(api, gateway):
    assert [m["id"] for m in api.ok_get("/v1/models")["data"]] == [gateway.model_name]


def test_one_model(api, gateway):
    assert api.ok_get("/v1/models/" + gateway.model_name)["id"] == gateway.model_name
    response = api.get("/v1/models/gpt-4")
    assert response.status_code == 404 and response.json()["error"]["code"] == "model_not_found"


def test_tokenize_gives_offsets_into_the_source(api):
    text = "Once upon a 😀 Zoë"
    tokens = api.ok("/tokenize", {"inputs": text})
    for token in tokens:
        assert token.keys() == {"id", "text", "start", "stop"}
        assert token["text"] == text[token["start"]:token["stop"]]
    assert tokens[-1]["stop"] == len(text)
    starts = [t["start"] for t in tokens]
    assert starts == sorted(starts)
    with_special = api.ok("/tokenize", {"inputs": "a"})
    assert with_special[0]["id"] == 0 and with_special[0]["start"] == with_special[0]["stop"]
    same = api.ok("/tokenize", {"inputs": "a", "parameters": {"max_new_tokens": 1}})
    assert same == with_special


def test_chat_tokenize_renders_the_template(api):
    answer = api.ok("/chat_tokenize", chat_body("hello there"))
    assert "hello there" in answer["templated_text"]
    text = answer["templated_text"]
    assert text == "<|bos|><|user|>\nhello there<|end|>\n<|assistant|>\n"
    assert answer["tokenize_response"][0]["id"] == 0
    assert [t["id"] for t in answer["tokenize_response"]].count(0) == 1
    assert api.chat("hello there", max_tokens=1)["usage"]["prompt_tokens"] == len(answer["tokenize_response"])


def test_documentation(api):
    document = api.ok_get("/api-doc/openapi.json")
    assert "/generate" in document["paths"]
    response = api.get("/docs")
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/html")


METRICS = ["request_count", "request_success", "request_duration", "request_validation_duration",
           "request_queue_duration", "request_inference_duration", "request_mean_time_per_token_duration",
           "request_generated_tokens", "request_input_length", "request_max_new_tokens", "queue_size",
           "batch_current_size"]


def metric(api, line_begin):
    lines = [line for line in api.get("/metrics").text.splitlines() if line.startswith(line_begin + " ")]
    return float(lines[0].split()[-1]) if lines else 0.0


def counters(api, names):
    """Their values once they stand still: a request is counted when its last byte was sent, so just after its answer."""
    last = None
    while last != (last := [metric(api, name) for name in names]):
        time.sleep(0.2)
    return last


def test_metrics_have_tgi_names_and_count_once(api):
    api.generate("warm", max_new_tokens=1)
    response = api.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    for name in METRICS:
        assert f"# TYPE tgi_{name} " in response.text, name
    names = ["tgi_request_count", "tgi_request_success", "tgi_request_generated_tokens_sum"]
    before = counters(api, names)
    api.generate(PROMPT, max_new_tokens=7)
    api.chat("What is tgi?", max_tokens=5, temperature=0)  # not counted twice, as TGI does
    assert [now - then for now, then in zip(counters(api, names), before)] == [2, 2, 12]


def test_failures_are_counted_by_kind(api):
    name = 'tgi_request_failure{err="validation"}'
    before = counters(api, [name])[0]
    api.post("/generate", {"inputs": ""})
    assert counters(api, [name])[0] - before == 1
