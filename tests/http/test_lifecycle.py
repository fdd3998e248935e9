"""Beginning and end: finding or starting the daemon, ending gracefully, the daemon's death and return."""

import json
import signal
import subprocess
import time

import requests

from client import Api, chat_body, raw_events, start_stream
from gateway import TGI, Daemon, Gateway, wait_until

LONG = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 600}}


def last_event(connection):
    body = raw_events(connection.read_all()).decode()
    return body.split("\n\n")[-2].removeprefix("data: ")


def status_of(api, path="/health"):
    try:
        return api.get(path, timeout=5).status_code
    except requests.ConnectionError:
        return None


def test_it_starts_a_daemon_when_none_runs(home_of_its_own):
    home = home_of_its_own
    gateway = Gateway(home)
    try:
        assert Api(gateway.url).generate("Once", max_new_tokens=2)["generated_text"]
    finally:
        gateway.send(signal.SIGTERM)
        gateway.wait()
        subprocess.run([TGI, "stop", "--socket", home.socket], env=home.environment(), timeout=20, check=False)
        gateway.end()


def test_it_finds_the_daemon_that_runs(pair):
    one = pair()
    assert one.api.generate("Once", max_new_tokens=2)
    assert one.daemon.status()["counters"]["num_requests"] == 1


def test_a_second_gateway_serves_beside_the_first(pair, serve):
    first, second = serve(), serve()
    ask = lambda g: Api(g.url).generate("Once upon", max_new_tokens=8)
    assert first.port != second.port and ask(first) == ask(second)


def test_a_port_that_is_taken_is_an_error_at_once(gateway, home):
    done = subprocess.run([TGI, "serve", "demo", "--http", f"127.0.0.1:{gateway.port}"], env=home.environment(),
                          capture_output=True, timeout=10)
    assert done.returncode == 3  # a setting is wrong
    assert str(gateway.port).encode() in done.stderr


def test_sigterm_refuses_new_work_and_finishes_what_runs(slow_pair):
    pair = slow_pair()
    stream = start_stream(pair.gateway, "/generate_stream", LONG, [("Connection", "close")])
    pair.gateway.send(signal.SIGTERM)
    refused = wait_until(lambda: [r for r in [pair.api.post("/generate", {"inputs": "a", "parameters": {
        "max_new_tokens": 1}})] if r.status_code != 200])[0]
    assert refused.status_code == 503
    assert refused.json().keys() == {"error", "error_type"}
    assert pair.api.post("/v1/chat/completions", chat_body("hi")).status_code == 503
    assert pair.api.get("/health").status_code == 503
    assert json.loads(last_event(stream))["details"]["generated_tokens"] == 600
    assert pair.gateway.wait() == 0
    assert pair.daemon.alive()  # it was there before


def test_after_the_deadline_what_runs_gets_a_final_error(slow_pair):
    pair = slow_pair("--graceful-termination-timeout", "1")
    long = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 4000}}
    chat = {"prompt": "Once upon a time", "max_tokens": 4000, "stream": True}
    native = start_stream(pair.gateway, "/generate_stream", long, [("Connection", "close")])
    openai = start_stream(pair.gateway, "/v1/completions", chat, [("Connection", "close")])
    pair.gateway.send(signal.SIGTERM)
    begin = time.monotonic()
    error = json.loads(last_event(native))
    assert error.keys() == {"error", "error_type"}
    events = raw_events(openai.read_all()).decode().split("\n\n")
    assert events[-2] == "data: [DONE]"
    assert json.loads(events[-3].removeprefix("data: "))["error"].keys() >= {"message", "http_status_code"}
    assert pair.gateway.wait() == 0
    assert 0.5 < time.monotonic() - begin < 6
    wait_until(pair.daemon.is_idle)


def test_an_idle_gateway_ends_at_once(pair):
    one = pair()
    with requests.Session() as session:  # an idle connection does not hold it up
        session.get(one.gateway.url + "/health", timeout=5)
        begin = time.monotonic()
        one.gateway.send(signal.SIGINT)
        one.gateway.wait()
    assert time.monotonic() - begin < 3


def test_the_daemon_dies_and_comes_back(slow_pair):
    pair = slow_pair()
    native = start_stream(pair.gateway, "/generate_stream", LONG, [("Connection", "close")])
    chat = start_stream(pair.gateway, "/v1/chat/completions", chat_body("hi", max_tokens=3000, stream=True),
                        [("Connection", "close")])
    pair.daemon.send(signal.SIGKILL)
    pair.daemon.wait()
    error = json.loads(last_event(native))
    assert error.keys() == {"error", "error_type"}
    events = raw_events(chat.read_all()).decode().split("\n\n")
    assert events[-2] == "data: [DONE]"
    assert json.loads(events[-3].removeprefix("data: "))["error"]["http_status_code"] >= 500
    for path, body in (("/generate", {"inputs": "a"}), ("/v1/chat/completions", chat_body("a")),
                       ("/tokenize", {"inputs": "a"})):
        response = pair.api.post(path, body)
        assert response.status_code in (500, 502), path
        assert response.json()["error"]
    wait_until(lambda: status_of(pair.api) == 503)
    assert pair.api.get("/health").json() == {"error": "unhealthy", "error_type": "healthcheck"}
    assert pair.gateway.alive()
    again = Daemon(pair.daemon.home, "demo")
    try:
        wait_until(lambda: status_of(pair.api) == 200)
        assert pair.api.generate("Once", max_new_tokens=2)["generated_text"]
    finally:
        again.end()


def test_a_stopped_daemon_does_not_stop_the_small_routes(slow_pair):
    pair = slow_pair()
    pair.daemon.send(signal.SIGSTOP)
    begin = time.monotonic()
    assert pair.api.get("/info", timeout=5).status_code == 200
    assert pair.api.get("/v1/models", timeout=5).status_code == 200
    assert pair.api.get("/docs", timeout=5).status_code == 200
    assert time.monotonic() - begin < 3
    assert pair.api.get("/health", timeout=20).status_code == 503  # red while nothing answers
    pair.daemon.send(signal.SIGCONT)
    wait_until(lambda: status_of(pair.api) == 200)


def test_it_listens_on_loopback_when_no_host_is_given(home, daemon):
    gateway = Gateway(home, http=":0")
    try:
        assert gateway.host == "127.0.0.1"
    finally:
        gateway.end()


def test_a_container_id_as_hostname_is_no_obstacle(serve):
    """Containers set HOSTNAME to their id, which TGI takes for --hostname and falls back."""
    assert Api(serve(env={"HOSTNAME": "3f2a9c1b7d5e"}).url).alive()
