"""Limits and manners: too many at once, clients that leave or read slowly, API keys, other origins."""

import json
import resource
import subprocess
import time

import pytest
import requests

from client import Api, RawConnection, chat_body, http_request, raw_events, start_stream, together
from gateway import TGI, Gateway, wait_until

LONG = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 3000}}
KEY = "Secret-Key_123"


def test_the_429_comes_at_once_when_all_streams_are_busy(slow_pair):
    pair = slow_pair("--max-concurrent-requests", "4")
    streams = [start_stream(pair.gateway, "/generate_stream", LONG) for _ in range(4)]
    for path, body in (("/generate", {"inputs": "a"}), ("/", {"inputs": "a"}),
                       ("/generate", {"inputs": "a", "parameters": {"top_k": 0}})):  # before validation
        begin = time.monotonic()
        response = pair.api.post(path, body)
        assert time.monotonic() - begin < 0.5
        assert response.status_code == 429
        assert response.json() == {"error": "Model is overloaded", "error_type": "overloaded"}
    events = pair.api.events("/generate_stream", {"inputs": "a"})
    assert json.loads(events[0]) == {"error": "Model is overloaded", "error_type": "overloaded"}
    for stream in (False, True):
        response = pair.api.post("/v1/chat/completions", chat_body("hi", stream=stream))
        assert response.status_code == 429 and response.json()["error"]["message"]
    assert pair.api.get("/health").status_code == 200  # others are not held up
    assert pair.api.get("/info").status_code == 200
    assert 'tgi_request_failure{err="overloaded"}' in pair.api.get("/metrics").text
    streams[0].close()
    wait_until(lambda: pair.api.post("/generate", {"inputs": "a", "parameters": {
        "max_new_tokens": 1}}).status_code == 200)
    for stream in streams[1:]:
        stream.close()


def test_one_after_another_needs_one_place(serve):
    api = Api(serve("--max-concurrent-requests", "1").url)
    with requests.Session() as session:
        for i in range(300):
            path, body = (("/generate_stream", {"inputs": "Once", "parameters": {"max_new_tokens": 3}}),
                          ("/v1/completions", {"prompt": "Once", "max_tokens": 3, "stream": True}),
                          ("/v1/chat/completions", chat_body("hi", max_tokens=3)))[i % 3]
            response = session.post(api.url + path, json=body, timeout=30)
            assert response.status_code == 200 and "overloaded" not in response.text, (i, response.text)


def test_a_connection_that_closes_is_no_client_that_left(serve):
    gateway = serve()
    api = Api(gateway.url)
    body = json.dumps({"inputs": "Once", "parameters": {"max_new_tokens": 3}}).encode()
    for path in ("/generate", "/generate_stream"):
        for version, headers in (("HTTP/1.1", [("Connection", "close")]), ("HTTP/1.0", [])):
            with RawConnection(gateway) as connection:
                connection.send(http_request("POST", path, body, headers, version))
                assert b"generated_text" in connection.read_all()
    wait_until(lambda: "tgi_request_success 4" in api.get("/metrics").text)
    assert 'err="dropped"} 0' in api.get("/metrics").text or 'err="dropped"' not in api.get("/metrics").text


def test_few_descriptors_are_429_and_never_an_error_of_the_system(home, daemon):
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    gateway = Gateway(home, before_start=limit)
    try:
        assert "open files are limited to 256 (ulimit -n): at most 38 requests at once" in gateway.log()
        assert Api(gateway.url).ok_get("/info")["max_concurrent_requests"] == 38
        body = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 200}}

        def ask():
            response = requests.post(gateway.url + "/generate_stream", json=body, timeout=60)
            if response.status_code == 200 and "overloaded" not in response.text:
                assert '"details":{' in response.text, response.text
                return 200
            assert "overloaded" in response.text, response.text
            assert response.status_code == 200 or response.headers["Retry-After"] == "1"
            return 429

        statuses = together([ask] * 200)
        assert set(statuses) <= {200, 429} and statuses.count(200) >= 38
        assert "Too many open files" not in gateway.log()
    finally:
        gateway.end()


def test_the_429_comes_at_once_when_the_daemon_does_not_answer(slow_pair):
    """Nothing has been streamed yet: the requests wait for a daemon that is stopped."""
    import signal
    pair = slow_pair("--max-concurrent-requests", "3")
    pair.daemon.send(signal.SIGSTOP)
    waiting = []
    for path in ("/generate", "/generate_stream", "/generate"):
        waiting.append(RawConnection(pair.gateway))
        waiting[-1].send(http_request("POST", path, json.dumps(LONG).encode()))
    time.sleep(0.3)
    begin = time.monotonic()
    assert pair.api.post("/generate", {"inputs": "a"}).status_code == 429
    assert time.monotonic() - begin < 0.5
    pair.daemon.send(signal.SIGCONT)
    for connection in waiting:
        connection.close()
    wait_until(pair.daemon.is_idle)


def test_best_of_takes_a_permit_for_each(slow_pair):
    pair = slow_pair("--max-concurrent-requests", "1")
    response = pair.api.post("/generate", {"inputs": "a", "parameters": {
        "best_of": 2, "do_sample": True, "max_new_tokens": 1}})
    assert response.status_code == 429
    assert pair.api.generate("a", max_new_tokens=1)


def test_many_at_once_are_all_answered(api):
    """More than the server has threads or the daemon has slots, fewer than the limit."""
    texts = together([lambda: api.generate("Once upon a time", max_new_tokens=20)["generated_text"]] * 100)
    assert len(set(texts)) == 1


@pytest.mark.parametrize("when", ["while it prefills", "while it streams", "without a stream"])
def test_a_client_that_leaves_frees_its_blocks(slow_pair, when):
    pair = slow_pair(daemon_flags=("--max-batch-tokens", "64"))  # short steps, many for a prompt
    body = LONG | ({"inputs": "a b " * 1400, "parameters": {"max_new_tokens": 500}}
                   if when == "while it prefills" else {})
    if when == "while it streams":
        connections = [start_stream(pair.gateway, "/generate_stream", body) for _ in range(4)]
    else:
        path = "/generate" if when == "without a stream" else "/generate_stream"
        connections = [RawConnection(pair.gateway) for _ in range(4)]
        for connection in connections:
            connection.send(http_request("POST", path, json.dumps(body).encode()))
    wait_until(lambda: pair.daemon.status()["model"]["num_running"] >= 1)
    for connection in connections:
        connection.close()
    wait_until(pair.daemon.is_idle, 5)
    assert pair.daemon.status()["counters"]["num_cancelled"] == 4
    assert pair.api.generate("a", max_new_tokens=1)


def test_choices_of_one_request_leave_with_their_client(slow_pair):
    pair = slow_pair()
    body = {"prompt": ["a", "b", "c"], "max_tokens": 3000, "stream": True}
    start_stream(pair.gateway, "/v1/completions", body).close()
    wait_until(pair.daemon.is_idle, 5)


def test_many_vanish_at_random_moments(pair):
    import random
    one = pair()
    generator = random.Random(3)

    def vanish(delay):
        connection = RawConnection(one.gateway)
        connection.send(http_request("POST", "/generate_stream", json.dumps(
            {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 900}}).encode()))
        time.sleep(delay)
        connection.close()

    for _ in range(5):
        together([lambda d=generator.random() * 0.1: vanish(d) for _ in range(40)])
    wait_until(one.daemon.is_idle, 5)
    assert one.api.generate("a", max_new_tokens=1)


def test_a_slow_reader_is_waited_for_and_harms_nobody(slow_pair):
    pair = slow_pair("--max-concurrent-requests", "8")
    slow = start_stream(pair.gateway, "/generate_stream",
                        {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 800, "top_n_tokens": 5}},
                        [("Connection", "close")], receive_buffer=4096)
    begin = time.monotonic()
    assert pair.api.generate("Once", max_new_tokens=20)["generated_text"]
    assert time.monotonic() - begin < 5
    time.sleep(1)
    body = raw_events(slow.read_all())  # now it reads: everything is there, to the end
    events = [json.loads(e[len("data: "):]) for e in body.decode().split("\n\n") if e]
    assert [e["index"] for e in events] == list(range(1, 801))
    assert events[-1]["details"]["generated_tokens"] == 800


def test_who_stalls_is_cut_off(pair, endless_model):
    """One that never reads its stream, one that never ends its headers: both in the end, without harm to others."""
    one = pair(model=endless_model)
    body = chat_body("hi", max_tokens=4000, n=8, stream=True, logprobs=True, top_logprobs=20)
    deaf = start_stream(one.gateway, "/v1/chat/completions", body, receive_buffer=4096)
    mute = RawConnection(one.gateway, timeout=25)
    mute.send(b"POST /generate HTTP/1.1\r\nHost: a\r\nX-Slow: ")
    for _ in range(5):
        time.sleep(1)
        mute.send(b"x")
        assert one.api.generate("a", max_new_tokens=1)
    assert mute.status() in (0, 408)  # closed by the server; a timeout here would raise
    assert one.daemon.status()["model"]["num_running"] > 0  # paused, not yet given up
    wait_until(one.daemon.is_idle, 60, pause=0.5)
    assert one.daemon.status()["counters"]["num_cancelled"] >= 1
    deaf.close()


def test_an_api_key_guards_what_generates(serve):
    gateway = serve("--api-key", KEY)
    good, none = Api(gateway.url, KEY), Api(gateway.url)
    assert good.generate("a", max_new_tokens=1)
    guarded = {"/generate": {"inputs": "a"}, "/generate_stream": {"inputs": "a"}, "/": {"inputs": "a"},
               "/invocations": {"inputs": "a"}, "/tokenize": {"inputs": "a"},
               "/v1/chat/completions": chat_body("a"), "/v1/completions": {"prompt": "a"}}
    for path, body in guarded.items():
        assert none.post(path, body).status_code == 401, path
    assert none.post("/generate", {"inputs": "a"}).content == b""
    assert none.post("/v1/chat/completions", chat_body("a")).json()["error"]["message"]
    assert none.post_bytes("/generate", b"{").status_code == 401  # asked for before the body is looked at
    for path in ("/", "/info", "/health", "/ping", "/metrics", "/v1/models", "/docs", "/api-doc/openapi.json"):
        assert none.get(path).status_code == 200, path
    assert none.post("/chat_tokenize", chat_body("a")).status_code == 200


@pytest.mark.parametrize("value", [
    f"Bearer {KEY.lower()}", f"Bearer {KEY.upper()}", f"Bearer {KEY[:-1]}", f"Bearer {KEY}x", KEY, "Bearer",
    f"Basic {KEY}", "", f"Bearer {KEY} {KEY}", f"Bearer {KEY},Bearer {KEY}", f"Bearer x{KEY}"])
def test_an_api_key_is_exact(serve, value):
    api = Api(serve("--api-key", KEY).url)
    assert api.post("/generate", {"inputs": "a"}, headers={"Authorization": value}).status_code == 401


def test_an_api_key_from_the_environment(serve):
    gateway = serve(env={"API_KEY": KEY})
    assert Api(gateway.url).post("/generate", {"inputs": "a"}).status_code == 401
    assert Api(gateway.url, KEY).generate("a", max_new_tokens=1)
    assert KEY not in gateway.log()


def preflight(url, path="/v1/chat/completions", origin="http://elsewhere.example"):
    return requests.options(url + path, timeout=10, headers={
        "Origin": origin, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type"})


def test_fixed_a_preflight_allows_authorization(serve):
    gateway = serve("--api-key", KEY)
    response = preflight(gateway.url)  # answered before the key is asked for
    assert response.status_code in (200, 204)
    headers = response.headers
    assert headers["access-control-allow-origin"] == "*"
    allowed = headers["access-control-allow-headers"].lower()
    assert "content-type" in allowed and "authorization" in allowed
    methods = headers["access-control-allow-methods"]
    assert "POST" in methods and "GET" in methods
    refused = requests.post(gateway.url + "/generate", json={}, headers={"Origin": "http://a.example"}, timeout=10)
    assert refused.status_code == 401 and refused.headers["access-control-allow-origin"] == "*"


def test_origins_can_be_named(serve):
    gateway = serve("--cors-allow-origin", "http://a.example", "--cors-allow-origin", "http://b.example")
    for origin in ("http://a.example", "http://b.example"):
        assert preflight(gateway.url, origin=origin).headers["access-control-allow-origin"] == origin
    assert "access-control-allow-origin" not in preflight(gateway.url, origin="http://c.example").headers
    answer = requests.get(gateway.url + "/info", headers={"Origin": "http://b.example"}, timeout=10)
    assert answer.headers["access-control-allow-origin"] == "http://b.example"


def test_answers_and_streams_carry_the_origin(api):
    for path in ("/generate", "/generate_stream"):
        response = api.post(path, {"inputs": "a", "parameters": {"max_new_tokens": 1}},
                            headers={"Origin": "http://a.example"})
        assert response.headers["access-control-allow-origin"] == "*"


def test_one_line_for_each_request_and_no_prompt_in_it(serve):
    gateway = serve("--json-output")
    Api(gateway.url).generate("A prompt that nobody may read", max_new_tokens=2)
    Api(gateway.url).post("/generate", {"inputs": ""})
    lines = [json.loads(line) for line in wait_until(
        lambda: [line for line in gateway.log().splitlines() if line.startswith("{") and "generate" in line][1:]
        and [line for line in gateway.log().splitlines() if line.startswith("{") and "generate" in line])]
    assert len(lines) == 2
    assert "nobody may read" not in gateway.log()


def test_a_flag_without_meaning_here_is_refused_with_a_reason(home):
    done = subprocess.run([TGI, "serve", "demo", "--ngrok"], env=home.environment(), capture_output=True, timeout=20)
    assert done.returncode == 5  # unsupported
    assert b"--ngrok: " in done.stderr and b"reverse proxy" in done.stderr
