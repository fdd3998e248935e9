"""A hub for tests: the API and the headers of the Hugging Face Hub as clients see them, with a storage host of another origin, and
faults on demand. Everything that was asked is kept in `requests`."""

import hashlib
import json
import re
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LFS_BYTES = 64 << 10


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class File:
    def __init__(self, data):
        self.data = data
        self.is_lfs = len(data) >= LFS_BYTES
        self.sha256 = sha256(data)
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {len(data)}\n".encode()
        self.oid = git_sha1(pointer if self.is_lfs else data)
        self.etag = self.sha256 if self.is_lfs else self.oid

    def entry(self, path):
        entry = {"type": "file", "oid": self.oid, "size": len(self.data), "path": path}
        if self.is_lfs:
            entry["lfs"] = {"oid": self.sha256, "size": len(self.data), "pointerSize": 134}
        return entry


class Model:
    def __init__(self):
        self.commits = {}  # sha -> {path: File}
        self.refs = {}
        self.gated = False  # True: a token of `readers` is needed
        self.private = False
        self.readers = {"hf_good"}

    def commit(self, files, ref="main"):
        files = {path: File(data) for path, data in files.items()}
        sha = hashlib.sha1(repr(sorted((p, f.oid) for p, f in files.items())).encode()).hexdigest()
        self.commits[sha] = files
        self.refs[ref] = sha
        return sha

    def resolve(self, revision):
        revision = self.refs.get(revision, revision)
        return revision if revision in self.commits else None


class Fault:
    """What goes wrong with requests whose address matches: at most `times` of them, after the first `skip`.

    kind: status (with `headers`, `body`), cut (after `at` bytes of the body), corrupt (the byte at `at` of the file), slow (`delay`
    seconds for each piece of `piece` bytes), stall (nothing comes after `at` bytes), short (the length of the whole is `at` less),
    etag (another one), norange (ranges are answered with the whole), misrange (another range than was asked for), extra (`at` bytes
    too many)."""

    def __init__(self, kind, match=".", times=10**9, skip=0, **more):
        self.kind, self.match, self.times, self.skip = kind, re.compile(match), times, skip
        self.status = more.pop("status", 503)
        self.headers = more.pop("headers", {})
        self.body = more.pop("body", b"")
        self.at = more.pop("at", 0)
        self.delay = more.pop("delay", 0.01)
        self.piece = more.pop("piece", 64 << 10)
        self.method = more.pop("method", None)
        assert not more, more
        self.used = 0


class Asked:
    def __init__(self, host, method, path, headers, when):
        self.host, self.method, self.path, self.headers, self.when = host, method, path, headers, when


class Hub:
    def __init__(self, tls=None):
        self.models = {}
        self.buckets = {}  # name -> {key: bytes}; answered on the storage host as S3 does
        self.bucket_keys = None  # (key, secret): requests must be signed with them
        self.folders = {}  # path -> bytes, plain files of a web server on the storage host
        self.faults = []
        self.requests = []
        self.page_size = 1000
        self.signed_uses = None  # a signed address serves so many requests, then 403
        self.on_request = None  # called with each Asked before it is answered
        self.stall = threading.Event()
        self.lock = threading.Lock()
        self.storage = self._serve("storage", tls)
        self.api = self._serve("hub", tls)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self.api.server_port}"
        self.storage_url = f"{scheme}://localhost:{self.storage.server_port}"
        self.signed = {}

    def _serve(self, host, tls):
        hub = self

        class Handler(HubHandler):
            pass

        Handler.hub, Handler.host_name = hub, host
        server = Server(("127.0.0.1", 0), Handler)
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def close(self):
        self.stall.set()
        for server in (self.api, self.storage):
            server.shutdown()
            server.server_close()

    def model(self, name, files=None):
        model = self.models.setdefault(name, Model())
        if files is not None:
            model.commit(files)
        return model

    def fault(self, kind, match=".", **more):
        fault = Fault(kind, match, **more)
        self.faults.append(fault)
        return fault

    def asked(self, host=None, method=None, match="."):
        return [a for a in self.requests if (host is None or a.host == host) and (method is None or a.method == method)
                and re.search(match, a.path)]

    def bytes_sent(self, match="."):
        return sum(n for path, n in self.sent if re.search(match, path))

    sent = ()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # clients are killed in these tests


class HubHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    # --- what goes wrong

    def faults(self):
        found = {}
        with self.hub.lock:
            for fault in self.hub.faults:
                if not fault.match.search(self.host_name + " " + self.path) or (fault.method or self.command) != self.command:
                    continue
                fault.used += 1
                if fault.skip < fault.used <= fault.skip + fault.times:
                    found[fault.kind] = fault
        return found

    def send(self, status, body=b"", headers=()):
        self.send_response(status)
        headers = dict(headers)
        headers.setdefault("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_json(self, value, headers=()):
        self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json", **dict(headers)})

    def refuse(self, status, code, message):
        self.send(status, json.dumps({"error": message}).encode(),
                  {"X-Error-Code": code, "X-Error-Message": message, "Content-Type": "application/json"})

    # --- routes

    def answer(self):
        asked = Asked(self.host_name, self.command, self.path, dict(self.headers), time.monotonic())
        self.hub.requests.append(asked)
        if self.hub.on_request:
            self.hub.on_request(asked)
        self.active = self.faults()
        try:
            if "status" in self.active:
                fault = self.active["status"]
                return self.send(fault.status, fault.body, fault.headers)
            url = urllib.parse.urlsplit(self.path)
            path, query = urllib.parse.unquote(url.path), urllib.parse.parse_qs(url.query)
            if self.host_name == "storage":
                return self.answer_storage(path, query)
            if path.startswith("/api/models/"):
                return self.answer_api(url.path[len("/api/models/"):], query)
            if path.startswith("/resolve-cache/"):
                return self.answer_resolve(path[len("/resolve-cache"):], cached=True)
            return self.answer_resolve(path)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def find(self, repo):
        """The model, or None after a refusal."""
        model = self.hub.models.get(repo)
        token = self.headers.get("Authorization", "")
        token = token[len("Bearer "):] if token.startswith("Bearer ") else None
        if token is not None and token == "hf_bad":
            self.refuse(401, "", "Invalid credentials in Authorization header")
        elif model is None or (model.private and token not in model.readers):
            status = 401 if token is None else 404
            self.refuse(status, "RepoNotFound", "Repository not found")
        elif model.gated and token not in model.readers:
            self.refuse(401 if token is None else 403, "GatedRepo", "Access to model is restricted")
        else:
            return model
        return None

    def answer_api(self, rest, query):
        match = re.fullmatch(r"(.+?)(?:/(revision|tree)/([^/]+))?", rest)
        repo, what, revision = match.groups()
        model = self.find(repo)
        if model is None:
            return
        commit = model.resolve(urllib.parse.unquote(revision or "main"))
        if commit is None:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        entries = [file.entry(path) for path, file in sorted(model.commits[commit].items())]
        if what == "tree":
            begin = int(query.get("cursor", ["0"])[0])
            end = begin + self.hub.page_size
            headers = {}
            if end < len(entries):
                headers["Link"] = f'<{self.hub.url}/api/models/{repo}/tree/{commit}?recursive=true&cursor={end}>; rel="next"'
            return self.send_json(entries[begin:end], headers)
        self.send_json({"_id": "0", "id": repo, "modelId": repo, "sha": commit, "private": model.private, "disabled": False,
                        "gated": False, "downloads": 0, "likes": 0, "tags": [], "createdAt": "2024-01-01T00:00:00.000Z",
                        "siblings": [{"rfilename": entry["path"]} for entry in entries]})

    def answer_resolve(self, path, cached=False):
        match = re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path)
        if not match:
            return self.refuse(404, "", "Not found")
        repo, revision, name = match.groups()
        model = self.find(repo)
        if model is None:
            return
        commit = model.resolve(revision)
        if commit is None:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        file = model.commits[commit].get(name)
        if file is None:
            self.send(404, b"Entry not found", {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found",
                                                "X-Repo-Commit": commit})
            return
        headers = {"X-Repo-Commit": commit, "ETag": f'"{file.etag}"', "Accept-Ranges": "bytes"}
        if "etag" in self.active:
            headers["ETag"] = headers["X-Linked-Etag"] = f'"{"0" * len(file.etag)}"'
        if file.is_lfs:
            headers.setdefault("X-Linked-Etag", f'"{file.sha256}"')
            headers["X-Linked-Size"] = str(len(file.data))
            signature = f"{len(self.hub.requests)}-{id(self)}"
            self.hub.signed[signature] = 0
            headers["Location"] = f"{self.hub.storage_url}/lfs/{file.sha256}?Signature={signature}"
            self.hub.blobs = getattr(self.hub, "blobs", {})
            self.hub.blobs[file.sha256] = file.data
            return self.send(302, b"", headers)
        if not cached:  # as the hub does for small files: a relative redirect to a cached copy
            return self.send(307, b"", {**headers, "Location": f"/resolve-cache/{repo}/resolve/{commit}/{urllib.parse.quote(name)}"})
        self.send_file(file.data, headers)

    def answer_storage(self, path, query):
        if path.startswith("/lfs/"):
            if self.command == "HEAD":
                return self.send(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
            signature = query.get("Signature", [""])[0]
            uses = self.hub.signed.get(signature)
            if uses is None or (self.hub.signed_uses is not None and uses >= self.hub.signed_uses):
                return self.send(403, b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
            self.hub.signed[signature] = uses + 1
            data = self.hub.blobs[path[len("/lfs/"):]]
            etag = hashlib.md5(data[:64]).hexdigest() + "-2"
            if "etag" in self.active:
                etag = "moved-" + etag
            return self.send_file(data, {"ETag": f'"{etag}"', "Accept-Ranges": "bytes"})
        if path in self.hub.folders:
            data = self.hub.folders[path]
            etag = sha256(data)[:16] + ("-moved" if "etag" in self.active else "")
            return self.send_file(data, {"ETag": f'"{etag}"', "Accept-Ranges": "bytes"})
        bucket, _, key = path[1:].partition("/")
        if bucket in self.hub.buckets:
            return self.answer_s3(self.hub.buckets[bucket], key, query)
        self.send(404, b"not here")

    # --- S3

    def answer_s3(self, objects, key, query):
        if self.hub.bucket_keys and not self.is_signed():
            return self.send(403, b"<?xml version='1.0'?><Error><Code>SignatureDoesNotMatch</Code></Error>")
        if key:
            if key not in objects:
                return self.send(404, b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>")
            data = objects[key]
            return self.send_file(data, {"ETag": f'"{hashlib.md5(data).hexdigest()}"'})
        prefix = query.get("prefix", [""])[0]
        keys = sorted(k for k in objects if k.startswith(prefix))
        begin = int(query.get("continuation-token", ["0"])[0])
        page = keys[begin:begin + self.hub.page_size]
        rows = "".join(f"<Contents><Key>{k.replace('&', '&amp;')}</Key><Size>{len(objects[k])}</Size>"
                       f"<ETag>&quot;{hashlib.md5(objects[k]).hexdigest()}&quot;</ETag></Contents>" for k in page)
        more = begin + len(page) < len(keys)
        tail = f"<NextContinuationToken>{begin + len(page)}</NextContinuationToken>" if more else ""
        self.send(200, f"<?xml version='1.0'?><ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{rows}{tail}"
                       f"</ListBucketResult>".encode(), {"Content-Type": "application/xml"})

    def is_signed(self):
        """AWS signature version 4, worked out from its specification."""
        import hmac
        auth = self.headers.get("Authorization", "")
        match = re.match(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)", auth)
        if not match or match.group(1) != self.hub.bucket_keys[0]:
            return False
        _, day, region, names, signature = match.groups()
        url = urllib.parse.urlsplit(self.path)
        query = "&".join(sorted(url.query.split("&"))) if url.query else ""
        headers = "".join(f"{n}:{self.headers.get(n, '').strip()}\n" for n in names.split(";"))
        body = self.headers.get("x-amz-content-sha256", sha256(b""))
        canonical = "\n".join([self.command, url.path, query, headers, names, body])
        scope = f"{day}/{region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers.get("X-Amz-Date", ""), scope, sha256(canonical.encode())])
        key = ("AWS4" + self.hub.bucket_keys[1]).encode()
        for part in (day, region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == signature

    # --- bytes, and what goes wrong with them

    def send_file(self, data, headers):
        total = len(data)
        first, last, status = 0, total - 1, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and "norange" not in self.active:
            first = int(asked.group(1))
            last = min(int(asked.group(2) or total - 1), total - 1)
            if first >= total:
                return self.send(416, b"", {"Content-Range": f"bytes */{total}"})
            status = 206
            if "misrange" in self.active:
                first, last = max(first - 1, 0) if first else 1, last
        body = data[first:last + 1]
        if "corrupt" in self.active and first <= self.active["corrupt"].at <= last:
            at = self.active["corrupt"].at - first
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
        headers = dict(headers)
        length = len(body)
        if "short" in self.active:
            total -= self.active["short"].at
            length = length if status == 206 else length - self.active["short"].at
            body = body[:length]
        if "extra" in self.active:
            body += b"x" * self.active["extra"].at
            length = len(body)
        headers["Content-Length"] = str(length)
        if status == 206:
            headers["Content-Range"] = f"bytes {first}-{last}/{total}"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        for kind in ("cut", "stall"):
            if kind in self.active and len(body) > self.active[kind].at:
                body = body[:self.active[kind].at]
                self.write(body)
                if kind == "stall":
                    self.wfile.flush()
                    self.hub.stall.wait(30)
                self.close_connection = True
                return
        self.write(body)

    def write(self, body):
        slow = self.active.get("slow")
        piece = slow.piece if slow else 1 << 20
        for begin in range(0, len(body), piece):
            if slow:
                time.sleep(slow.delay)
            self.wfile.write(body[begin:begin + piece])
            if slow:
                self.wfile.flush()
