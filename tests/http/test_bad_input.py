"""Input that no good client sends. None of it may give a 5xx or end the server, and each case is answered or closed."""

import json
import time

import pytest

from client import RawConnection, http_request

NOTHING = 0  # closed without an answer, which a server may do with what is no HTTP
GOOD = json.dumps({"inputs": "a", "parameters": {"max_new_tokens": 1}}).encode()


@pytest.fixture(autouse=True)
def alive_after_each(api, gateway, daemon):
    yield
    assert gateway.alive() and daemon.alive()
    assert api.generate("Once", max_new_tokens=1)["generated_text"]


def answer(gateway, data, timeout=10):
    """The status of what the server answers to these bytes; the writing side stays open."""
    with RawConnection(gateway, timeout=timeout) as connection:
        connection.send(data)
        return connection.status()


def request(body, path="/generate", headers=(), method="POST", **more):
    return http_request(method, path, body, headers, **more)


def chunked(*chunks, path="/generate", end=b"0\r\n\r\n"):
    head = (f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n").encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + end


def test_good_chunked_bodies_are_read(gateway):
    assert answer(gateway, chunked(GOOD)) == 200
    assert answer(gateway, chunked(*[bytes([b]) for b in GOOD])) == 200
    extension = chunked(GOOD).replace(b"%x\r\n" % len(GOOD), b"%x;name=value\r\n" % len(GOOD))
    assert answer(gateway, extension) == 200


def test_trailers_are_refused_or_ignored(gateway):
    """HTTP allows fields after a chunked body, and that nobody looks at them; no client of such an API sends them. The library of
    Debian 12 refuses them, that of Debian 13 reads over them."""
    assert answer(gateway, chunked(GOOD, end=b"0\r\nTrailer: x\r\n\r\n")) in (200, 400)
    assert answer(gateway, chunked(GOOD, end=b"0\r\nContent-Length: 5\r\n\r\n")) in (200, 400)
    assert answer(gateway, chunked(b"{}", end=b"0\r\nTrailer: x\r\n\r\n")) in (400, 422)


MALFORMED_CHUNKS = {
    "size that is no number": b"zz\r\nabc\r\n0\r\n\r\n",
    "negative size": b"-1\r\nabc\r\n0\r\n\r\n",
    "size past 64 bits": b"fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "huge size": b"7fffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "no size": b"\r\nabc\r\n0\r\n\r\n",
    "data longer than said": b"1\r\nabc\r\n0\r\n\r\n",
    "no line end after data": b"3\r\nabcX0\r\n\r\n",
    "0x in front": b"0x3\r\nabc\r\n0\r\n\r\n",
    "a long extension": b"3;" + b"e" * 100000 + b"\r\nabc\r\n0\r\n\r\n",
    "a size of a thousand digits": b"0" * 1000 + b"3\r\nabc\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("rest", MALFORMED_CHUNKS.values(), ids=MALFORMED_CHUNKS.keys())
def test_malformed_chunked_bodies(gateway, rest):
    with RawConnection(gateway) as connection:
        connection.send(chunked(end=rest))
        connection.end_sending()
        assert connection.status() in (NOTHING, 400, 413, 431)


def test_a_chunked_body_over_the_limit(gateway):
    big = b"x" * 65536
    assert answer(gateway, chunked(*[big] * 40)) in (NOTHING, 413)


def test_a_chunked_body_that_never_ends_is_cut_off(gateway):
    with RawConnection(gateway) as connection:
        connection.send(chunked(end=b""))
        sent = 0
        while sent < 30_000_000 and connection.send(b"10000\r\n" + b"x" * 65536 + b"\r\n"):
            sent += 65536
        assert sent < 30_000_000, "30 MB of a 2 MB body were taken"


HEADERS = {
    "one of 100 kB": [("X-Long", "v" * 100_000)],
    "a name of 100 kB": [("X" * 100_000, "v")],
    "ten thousand": [(f"X-{i}", "v") for i in range(10_000)],
    "2 MB in all": [(f"X-{i}", "v" * 2000) for i in range(1000)],
}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS.keys())
def test_huge_headers(gateway, headers):
    assert answer(gateway, request(GOOD, headers=headers)) in (NOTHING, 400, 413, 414, 431)


def test_ordinary_headers_in_number(gateway):
    assert answer(gateway, request(GOOD, headers=[(f"X-{i}", "v" * 50) for i in range(50)])) == 200


HEADS = {
    "no version": b"POST /generate\r\n\r\n", "nothing": b"\r\n\r\n\r\n\r\n", "binary": bytes(range(256)) * 4 + b"\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
    "http/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version 9": b"GET /health HTTP/9.9\r\n\r\n",
    "a long path": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    "space in the path": b"GET /hea lth HTTP/1.1\r\nHost: a\r\n\r\n",
    "nul in the path": b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a header without colon": b"GET /nowhere HTTP/1.1\r\nHost a\r\n\r\n",
    "nul in a header": b"GET /nowhere HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
    "bad escapes": b"GET /%zz%%%0 HTTP/1.1\r\nHost: a\r\n\r\n",
    "an absolute path": b"GET http://elsewhere/nowhere HTTP/1.1\r\nHost: a\r\n\r\n",
    "dots": b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
    "folded header": b"GET /nowhere HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
    "lengths that differ": b"POST /generate HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
    "a negative length": b"POST /generate HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nabcde",
    "a length that is no number": b"POST /generate HTTP/1.1\r\nHost: a\r\nContent-Length: five\r\n\r\nabcde",
    "a length past 64 bits": b"POST /generate HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nabcde",
    "an unknown coding": b"POST /generate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nabcde",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_heads_that_are_no_request(gateway, head):
    with RawConnection(gateway) as connection:
        connection.send(head)
        connection.end_sending()
        status = connection.status()
    assert status == NOTHING or 400 <= status < 500 or status in (501, 505), status


def test_a_length_and_a_transfer_encoding_at_once(gateway):
    """The classic of request smuggling: one reading sees a second request where the other sees a body."""
    hidden = b"0\r\n\r\nGET /info HTTP/1.1\r\nHost: a\r\n\r\n"
    data = (b"POST /generate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(hidden)) + hidden
    with RawConnection(gateway, timeout=2) as connection:
        connection.send(data)
        received = connection.read_all()
    assert b"text-generation-router" not in received and b"max_total_tokens" not in received
    assert b" 200 " not in received.split(b"\r\n")[0]


DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize("deep", ['{"a": ' + DEEP + "}", '{"a":' * 200_000 + "1" + "}" * 200_000, "[" * 200_000], ids=["arrays", "objects", "open"])
def test_json_that_stands_in_a_text_may_be_deep_too(api, deep):
    """Where a text holds JSON: arguments of calls, and schemas. To copy what is so deep takes more than a thread's stack."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": deep}}
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": [call]},
             {"role": "tool", "tool_call_id": "c", "content": "b"}, {"role": "user", "content": "c"}]
    items = [{"role": "user", "content": "u"}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": deep},
             {"type": "function_call_output", "call_id": "c", "output": "o"}]
    for path, body in [("/v1/chat/completions", {"messages": turns, "max_tokens": 2}), ("/apply-template", {"messages": turns}),
                       ("/v1/responses", {"input": items, "max_output_tokens": 2}),
                       ("/v1/completions", {"prompt": "a", "max_tokens": 2, "guided_json": deep}),
                       ("/generate", {"inputs": "a", "parameters": {"grammar": {"type": "json", "value": deep}}}),
                       ("/v1/completions", {"prompt": "a", "max_tokens": 2, "grammar": "start: %json " + deep})]:
        refused = api.post(path, body)
        assert 400 <= refused.status_code < 500 and refused.text, path


BODIES = {
    "deep arrays": b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"inputs": "a", "x": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "deep and unclosed": b"[" * 1_000_000,
    "NaN": b'{"inputs": "a", "parameters": {"temperature": NaN}}',
    "Infinity": b'{"inputs": "a", "parameters": {"temperature": -Infinity}}',
    "1e400": b'{"inputs": "a", "parameters": {"temperature": 1e400}}',
    "-1e400": b'{"inputs": "a", "parameters": {"temperature": -1e400}}',
    "1e39, past a float32": b'{"inputs": "a", "parameters": {"temperature": 1e39, "max_new_tokens": 1}}',
    "1e-400": b'{"inputs": "a", "parameters": {"temperature": 1e-400, "max_new_tokens": 1}}',
    "1e400 as a count": b'{"inputs": "a", "parameters": {"max_new_tokens": 1e400}}',
    "a thousand digits": b'{"inputs": "a", "parameters": {"seed": ' + b"9" * 1000 + b"}}",
    "a lone surrogate": b'{"inputs": "a\\ud800b", "parameters": {"max_new_tokens": 1}}',
    "surrogates swapped": b'{"inputs": "a\\udc00\\ud800b", "parameters": {"max_new_tokens": 1}}',
    "an encoded surrogate": b'{"inputs": "a\xed\xa0\x80b"}',
    "an overlong slash": b'{"inputs": "a\xc0\xafb"}',
    "past unicode": b'{"inputs": "a\xf4\x90\x80\x80b"}',
    "a byte order mark": b'\xef\xbb\xbf{"inputs": "a"}',
    "utf-16": '{"inputs": "a"}'.encode("utf-16"),
    "a million keys": b"{" + b",".join(b'"%d":0' % i for i in range(150_000)) + b"}",
    "long key": b'{"' + b"k" * 1_500_000 + b'": 1}',
}


@pytest.mark.parametrize("path", ["/generate", "/generate_stream", "/v1/chat/completions", "/v1/completions",
                                  "/", "/invocations", "/tokenize", "/chat_tokenize"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_bodies_that_nobody_means(api, path, body):
    openai = path.startswith("/v1") or path == "/chat_tokenize"
    if openai:
        body = body.replace(b'"inputs": "', b'"messages": [{"role": "user", "content": "x"}], "prompt": "')
        body = body.replace(b'"parameters": {', b'').replace(b"}}", b"}").replace(b"new_tokens", b"tokens")
    response = api.post_bytes(path, body)
    assert response.status_code < 500, response.text
    assert response.status_code in (200, 400, 413, 422)


def test_surrogates_are_never_passed_on(api):
    response = api.post_bytes("/generate", b'{"inputs": "a\\ud800b", "parameters": {"max_new_tokens": 1}}')
    assert response.status_code == 400
    pair = api.post_bytes("/generate", b'{"inputs": "a\\ud83d\\ude00b", "parameters": {"max_new_tokens": 1}}')
    assert pair.status_code == 200
    assert pair.headers["x-compute-characters"] == "3"


def test_nul_is_a_character_like_others(api):
    body = {"inputs": "a\u0000b", "parameters": {"max_new_tokens": 2, "return_full_text": True}}
    assert api.ok("/generate", body)["generated_text"].startswith("a\u0000b")
    assert api.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "\u0000"}],
                                             "max_tokens": 1, "stop": "\u0000"}).status_code == 200


def test_a_prompt_of_ten_megabytes(api):
    for path, body in (("/generate", {"inputs": "word " * 2_000_000}),
                       ("/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 2_000_000}]})):
        try:
            assert api.post(path, body).status_code == 413
        except OSError:
            pass  # closed while the rest was still being sent; `alive_after_each` looks at the server


def test_duplicate_keys(api):
    """Either the last counts or it is refused; never both."""
    response = api.post_bytes("/generate", b'{"inputs": "a", "inputs": "Once upon", "parameters": {"max_new_tokens": 1,'
                                           b' "max_new_tokens": 3, "details": true}}')
    assert response.status_code in (200, 400, 422)
    if response.status_code == 200:
        assert response.json()["details"]["generated_tokens"] == 3


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW", "get", "X" * 5000])
def test_other_methods(gateway, method):
    status = answer(gateway, request(b"", method=method))
    assert status in (NOTHING, 400, 404, 405, 414, 431, 501), status


def test_head_has_no_body(gateway):
    with RawConnection(gateway, timeout=2) as connection:
        connection.send(b"HEAD /info HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        received = connection.read_all()
    assert received.endswith(b"\r\n\r\n")
    assert connection.status() in (200, 405)


def test_http_1_0(gateway):
    with RawConnection(gateway) as connection:
        connection.send(request(GOOD, version="HTTP/1.0"))
        received = connection.read_all()
    head, _, body = received.partition(b"\r\n\r\n")
    assert connection.status() == 200 and b"chunked" not in head.lower()
    assert json.loads(body)["generated_text"]
    with RawConnection(gateway) as connection:
        connection.send(request(GOOD, path="/generate_stream", version="HTTP/1.0"))
        received = connection.read_all()
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    assert body.startswith(b"data: {") and body.endswith(b"}\n\n")


def test_requests_one_after_the_other_on_one_connection(gateway):
    with RawConnection(gateway) as connection:
        for _ in range(3):
            connection.received = b""
            connection.send(request(GOOD))
            connection.read_until(b"generated_text")
            assert connection.status() == 200


def test_pipelined_requests_are_answered_in_order(gateway):
    bodies = [json.dumps({"inputs": "a", "parameters": {"max_new_tokens": n, "details": True}}).encode()
              for n in (1, 2, 3)]
    with RawConnection(gateway, timeout=3) as connection:
        connection.send(b"".join(request(body) for body in bodies[:-1]) +
                        request(bodies[-1], headers=[("Connection", "close")]))
        received = connection.read_all()
    assert received.count(b"HTTP/1.1 200") == 3
    order = [part.split(b",")[0] for part in received.split(b'"generated_tokens":')[1:]]
    assert order == [b"1", b"2", b"3"]


def test_a_range_is_ignored(gateway):
    with RawConnection(gateway, timeout=3) as connection:
        connection.send(b"GET /info HTTP/1.1\r\nHost: a\r\nRange: bytes=0-3\r\nConnection: close\r\n\r\n")
        received = connection.read_all()
    assert connection.status() == 200
    assert json.loads(received.partition(b"\r\n\r\n")[2])["model_id"]
    assert answer(gateway, request(GOOD, headers=[("Range", "bytes=9999999999999999999-, -1,5-2")])) in (200, 400, 416)


def test_expect_100_continue(gateway):
    with RawConnection(gateway, timeout=5) as connection:
        whole = request(GOOD, headers=[("Expect", "100-continue"), ("Connection", "close")])
        head, _, body = whole.partition(b"\r\n\r\n")
        connection.send(head + b"\r\n\r\n")
        assert connection.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        connection.received = b""
        connection.send(body)
        connection.read_all()
        assert connection.status() == 200


def test_a_body_that_is_shorter_than_said(gateway):
    with RawConnection(gateway, timeout=5) as connection:
        connection.send(request(GOOD).replace(b"Content-Length: %d" % len(GOOD), b"Content-Length: 500"))
        connection.end_sending()
        assert connection.status() in (NOTHING, 400, 408)


def test_slow_senders_hold_up_nobody(gateway, api):
    """Fifty clients that send a byte now and then, in the head or in the body; the others go on as ever."""
    slow = [RawConnection(gateway) for _ in range(50)]
    for i, connection in enumerate(slow):
        connection.send(request(GOOD)[:20] if i % 2 else request(GOOD)[:-10])
    for _ in range(4):
        begin = time.monotonic()
        assert api.generate("Once", max_new_tokens=2)["generated_text"]
        assert api.alive()
        assert time.monotonic() - begin < 1
        for connection in slow:
            connection.send(b"x")
    for connection in slow:
        connection.close()


def test_idle_connections_hold_up_nobody(gateway, api):
    idle = [RawConnection(gateway) for _ in range(300)]
    assert api.generate("Once", max_new_tokens=2)["generated_text"]
    for connection in idle:
        connection.close()


def test_a_client_that_closes_before_the_answer(gateway):
    for _ in range(30):
        with RawConnection(gateway) as connection:
            connection.send(request(GOOD))
        with RawConnection(gateway) as connection:
            connection.send(request(GOOD)[:-5])
