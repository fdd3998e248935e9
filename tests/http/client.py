"""A plain client of the gateway: requests with strict reading of server-sent events, and raw sockets."""

import json
import socket
import threading

import requests

TIMEOUT = 30


def parse_events(body):
    """The data of each event of a whole event stream. Framing is exact: `data: X\\n\\n`, or a comment."""
    text = body.decode("utf-8")  # strict: half a code point fails here
    assert text == "" or text.endswith("\n\n"), f"the stream ends inside an event: {text[-80:]!r}"
    events = []
    for block in text.split("\n\n")[:-1]:
        if block.startswith(":"):
            assert "\n" not in block, f"a comment of more than one line: {block!r}"
            continue
        assert block.startswith("data: ") and "\n" not in block, f"not one `data: ` line: {block!r}"
        events.append(block[len("data: "):])
    return events


class Api:
    """One gateway. Every call makes its own connection unless it is given a session."""

    def __init__(self, url, key=None):
        self.url = url
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def get(self, path, **more):
        more.setdefault("timeout", TIMEOUT)
        return requests.get(self.url + path, headers=self.headers | more.pop("headers", {}), **more)

    def post(self, path, body, **more):
        more.setdefault("timeout", TIMEOUT)
        return requests.post(self.url + path, json=body,
                             headers=self.headers | more.pop("headers", {}), **more)

    def post_bytes(self, path, data, content_type="application/json"):
        headers = self.headers | ({"Content-Type": content_type} if content_type else {})
        return requests.post(self.url + path, data=data, headers=headers, timeout=TIMEOUT)

    def ok(self, path, body):
        response = self.post(path, body)
        assert response.status_code == 200, f"{response.status_code} {response.text}"
        return response.json()

    def generate(self, inputs, **parameters):
        return self.ok("/generate", {"inputs": inputs, "parameters": parameters})

    def events(self, path, body):
        """The events of a stream that began with status 200, as text."""
        response = self.post(path, body)
        assert response.status_code == 200, f"{response.status_code} {response.text}"
        assert response.headers["content-type"].split(";")[0] == "text/event-stream"
        return parse_events(response.content)

    def generate_stream(self, inputs, **parameters):
        body = {"inputs": inputs, "parameters": parameters}
        return [json.loads(e) for e in self.events("/generate_stream", body)]

    def chunks(self, path, body):
        """The chunks of an OpenAI stream, without its [DONE], which has to be there."""
        events = self.events(path, {**body, "stream": True})
        assert events[-1] == "[DONE]"
        assert "[DONE]" not in events[:-1]
        return [json.loads(e) for e in events[:-1]]

    def chat(self, content, **more):
        return self.ok("/v1/chat/completions", chat_body(content, **more))

    def complete(self, prompt, **more):
        return self.ok("/v1/completions", {"prompt": prompt, **more})

    def total_tokens(self):
        return self.ok_get("/info")["max_total_tokens"]

    def ok_get(self, path):
        response = self.get(path)
        assert response.status_code == 200, f"{response.status_code} {response.text}"
        return response.json()

    def alive(self):
        return self.get("/health").status_code == 200


def chat_body(content, **more):
    return {"messages": [{"role": "user", "content": content}], **more}


def native_text(events):
    """What a reader of a native stream has on the screen: the text of all tokens that are not special."""
    return "".join(e["token"]["text"] for e in events if not e["token"]["special"])


def chat_text(chunks, index=0):
    return "".join(c["delta"].get("content") or "" for chunk in chunks for c in chunk["choices"]
                   if c["index"] == index)


def completion_text(chunks, index=0):
    return "".join(c["text"] for chunk in chunks for c in chunk["choices"] if c["index"] == index)


def together(calls):
    """Runs all calls at once, each in a thread of its own; their values in order. The first failure is raised."""
    results = [None] * len(calls)
    failures = []

    def run(i):
        try:
            results[i] = calls[i]()
        except BaseException as error:  # carried to the caller's thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


class RawConnection:
    """Bytes to the server's port and back, for what no client library would send."""

    def __init__(self, gateway, timeout=10, receive_buffer=None):
        self.socket = socket.socket(socket.AF_INET)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect((gateway.host, gateway.port))
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """Sends; false when the server has closed in the meantime, which is its right after an answer."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def end_sending(self):
        """Tells the server that nothing more comes, unless it has closed already."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def read_until(self, mark):
        """Reads until mark has been received, or the end."""
        while mark not in self.received:
            if not self._read_some():
                break
        return self.received

    def read_all(self):
        """Reads until the server closes, or falls silent for the timeout; returns all that came."""
        try:
            while self._read_some():
                pass
        except (TimeoutError, ConnectionResetError):
            pass
        return self.received

    def _read_some(self):
        part = self.socket.recv(65536)
        self.received += part
        return bool(part)

    def status(self):
        """The status code of the first answer, 0 when there was none."""
        try:
            head = self.read_until(b"\r\n")
        except ConnectionResetError:
            head = self.received
        return int(head.split(b" ")[1]) if head.startswith(b"HTTP/") else 0


def http_request(method, path, body=b"", headers=(), version="HTTP/1.1"):
    """The bytes of a request; headers beside Host, Content-Type and Content-Length are a list of pairs."""
    lines = [f"{method} {path} {version}", "Host: 127.0.0.1", "Content-Type: application/json",
             f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def start_stream(gateway, path, body, headers=(), receive_buffer=None):
    """Opens a stream and returns the connection once its first event is there."""
    connection = RawConnection(gateway, timeout=60, receive_buffer=receive_buffer)
    connection.send(http_request("POST", path, json.dumps(body).encode(), headers))
    connection.read_until(b"data: ")
    assert b" 200 " in connection.received.split(b"\r\n")[0], connection.received
    return connection


def raw_events(received):
    """The events in what a raw connection has read so far, chunked coding undone; the last may be cut."""
    head, _, body = received.partition(b"\r\n\r\n")
    if b"chunked" not in head.lower():
        return body
    out = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        if not size or int(size, 16) == 0:
            break
        out, body = out + body[:int(size, 16)], body[int(size, 16) + 2:]
    return out
