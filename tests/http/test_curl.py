"""curl, as in every README: plain, streaming, compressed, uploading in chunks, over HTTP/1.0 and on one connection."""

import json
import subprocess

BODY = json.dumps({"inputs": "Once upon a time", "parameters": {"max_new_tokens": 10}})
JSON = ["-H", "Content-Type: application/json"]


def curl(*arguments, stdin=None, status=0):
    done = subprocess.run(["curl", "-sS", "--max-time", "20", *arguments], input=stdin, capture_output=True, timeout=30)
    assert done.returncode == status, done.stderr
    return done.stdout.decode()


def test_generate(gateway, api):
    out = curl(gateway.url + "/generate", "-X", "POST", "-d", BODY, *JSON)
    assert json.loads(out) == api.generate("Once upon a time", max_new_tokens=10)


def test_a_stream_line_by_line(gateway):
    out = curl("-N", gateway.url + "/generate_stream", "-d", BODY, *JSON)
    lines = [line for line in out.split("\n") if line]
    assert len(lines) == 10 and all(line.startswith("data: {") for line in lines)


def test_a_chat_stream_ends_with_done(gateway):
    body = json.dumps({"model": "tgi", "messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 5})
    out = curl("-N", gateway.url + "/v1/chat/completions", "-d", body, *JSON)
    assert out.endswith("data: [DONE]\n\n")


def test_without_a_content_type_it_is_told_so(gateway):
    out = curl(gateway.url + "/generate", "-d", BODY, "-w", "\n%{http_code}")  # curl says it is a form
    assert out.splitlines()[-1] == "415" and "application/json" in out


def test_upload_in_chunks(gateway):
    out = curl(gateway.url + "/generate", "-H", "Transfer-Encoding: chunked", *JSON, "--data-binary", "@-",
               stdin=BODY.encode())
    assert json.loads(out)["generated_text"]


def test_a_body_so_long_that_curl_waits_for_100_continue(gateway):
    body = json.dumps({"inputs": "a " * 700_000, "parameters": {"truncate": 5, "max_new_tokens": 2}})
    out = curl(gateway.url + "/generate", *JSON, "-H", "Expect: 100-continue", "--data-binary", "@-",
               stdin=body.encode())
    assert json.loads(out)["generated_text"]


def test_http_1_0_and_compression_asked_for(gateway):
    assert json.loads(curl("--http1.0", gateway.url + "/generate", "-d", BODY, *JSON))["generated_text"]
    assert json.loads(curl("--compressed", gateway.url + "/generate", "-d", BODY, *JSON))["generated_text"]
    out = curl("--compressed", "-N", gateway.url + "/generate_stream", "-d", BODY, *JSON)
    assert out.count("data: ") == 10


def test_an_upgrade_to_http_2_is_passed_over(gateway):
    assert json.loads(curl("--http2", gateway.url + "/generate", "-d", BODY, *JSON))["generated_text"]


def test_one_connection_for_many(gateway):
    url = gateway.url + "/info"
    out = curl(url, url, url, "-o", "/dev/null", "-o", "/dev/null", "-o", "/dev/null", "-w", "%{num_connects}\n")
    assert out.split() == ["1", "0", "0"]


def test_a_stream_keeps_the_connection_for_the_next(gateway):
    """A stream's end is told by its framing, so the connection lives on."""
    url = gateway.url + "/generate_stream"
    out = curl(url, url, "-d", BODY, *JSON, "-o", "/dev/null", "-o", "/dev/null", "-w", "%{http_code}:%{num_connects}\n")
    assert out.split()[0] == "200:1" and out.split()[1].startswith("200:")


def test_health_as_a_probe(gateway):
    assert curl("-f", gateway.url + "/health") == ""
    curl("-f", gateway.url + "/nowhere", status=22)
    assert "HTTP/1.1 200" in curl("-I", gateway.url + "/health")
