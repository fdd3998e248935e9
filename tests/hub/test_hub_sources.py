"""Buckets and web servers, TLS and proxies: models that come from elsewhere than the hub."""

import hashlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading

import pytest

from conftest import Place, check_snapshot, noise, safetensors, small_model
from hub import Hub

MB = 1 << 20
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "AWS_REGION": "eu-west-1"}


def bucket(hub, files, prefix="models/x/"):
    hub.buckets["weights"] = {prefix + name: data for name, data in files.items()}
    return {"AWS_ENDPOINT_URL": hub.storage_url}


def test_a_public_bucket(hub, place):
    files = small_model(12 * MB)
    env = bucket(hub, files)
    hub.page_size = 4
    path = place.download("s3://weights/models/x", env=env).path
    assert path.is_relative_to(place.folder / "cache/tgi/sources")
    check_snapshot(path, files, ["README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
    assert len([a for a in hub.asked("storage", "GET") if "Range" in a.headers]) >= 3
    before = len(hub.asked("storage", match="model.safetensors"))
    assert place.download("s3://weights/models/x/", env=env).path == path
    assert len(hub.asked("storage", match="model.safetensors")) == before
    assert place.download("s3://weights/models/x", "--offline", env=env).path == path


def test_a_bucket_that_wants_signatures(hub, place):
    files = small_model(12 * MB)
    hub.bucket_keys = (KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"])
    env = bucket(hub, {**files, "a name+with&signs.json": b"{}"})
    check_snapshot(place.download("s3://weights/models/x", "--include", "*.json", "--include", "*.safetensors", "--exclude", "original/", env={**env, **KEYS}).path,
                   {**files, "a name+with&signs.json": b"{}"},
                   ["a name+with&signs.json", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
    place.download("s3://weights/models/x", env={**env, "XDG_CACHE_HOME": str(place.folder / "2")}).refused(3, "403 SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY")
    wrong = {**KEYS, "AWS_SECRET_ACCESS_KEY": "other"}
    place.download("s3://weights/models/x", env={**env, **wrong, "XDG_CACHE_HOME": str(place.folder / "3")}).refused(3, "SignatureDoesNotMatch")


def test_a_corrupt_object_is_found_by_its_md5(hub, place):
    env = bucket(hub, small_model())
    hub.fault("corrupt", "weights/models/x/config.json", at=3)
    place.download("s3://weights/models/x", env=env).refused(8, "config.json", "md5")


def test_bad_buckets(hub, place):
    env = bucket(hub, small_model())
    place.download("s3://weights/none", env=env).refused(4, "no files")
    place.download("s3://other/x", env=env).refused(4, "404")
    place.download("s3://", env=env).refused(3, "s3://BUCKET/PREFIX")
    place.download("s3://weights/x", env={**env, "AWS_ACCESS_KEY_ID": "x"}).refused(3, "go together")
    hub.buckets["weights"]["models/x/../../../evil"] = b"x"
    place.download("s3://weights/models/x", env=env).refused(3, "the server lists a file")
    hub.fault("status", "weights/", status=200, body=b"<html>")
    place.download("s3://weights/models/x", env=env).refused(3, "S3 store")


def web(hub, files):
    hub.folders.update({f"/some/model/{name}": data for name, data in files.items()})
    return f"{hub.storage_url}/some/model"


def test_a_folder_of_a_web_server(hub, place):
    files = small_model(12 * MB)
    address = web(hub, files)
    path = place.download(address).path
    check_snapshot(path, files, ["README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
    assert place.download(address + "/").path == path
    # Another version of a file is another snapshot.
    hub.folders["/some/model/config.json"] = b'{"new": 1}'
    again = place.download(address).path
    assert again != path and (again / "config.json").read_bytes() == b'{"new": 1}'
    assert (path / "config.json").read_bytes() == files["config.json"]


def test_shards_of_a_web_server_come_from_the_index(hub, place):
    files = {"config.json": b"{}", "model-1.safetensors": safetensors(1000), "model-2.safetensors": safetensors(1000, 2),
             "model.safetensors.index.json": json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}).encode()}
    check_snapshot(place.download(web(hub, files)).path, files, files)
    del hub.folders["/some/model/model-2.safetensors"]
    place.download(web(hub, {})).refused(4, "model-2.safetensors", "not there")
    hub.folders["/some/model/model.safetensors.index.json"] = b'{"weight_map": {"a": "../../evil"}}'
    place.download(web(hub, {})).refused(3, "the server lists a file")


def test_a_web_server_whose_file_changes_meanwhile(hub, place):
    address = web(hub, small_model(24 * MB))
    hub.fault("etag", "model/model.safetensors", skip=4)
    place.download(address).refused(8, "model.safetensors changed", "ETag")


def test_bad_addresses(hub, place):
    place.download(f"{hub.storage_url}/nothing").refused(4, "none of the files of a model")
    place.download("https://user:secret@127.0.0.1/x").refused(3, "password")
    place.download("https://").refused(3, "https://HOST/PATH")
    assert "secret" not in place.download("https://user:secret@127.0.0.1/x").err


# --- TLS and proxies

@pytest.fixture
def certificate(tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tgi test",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context, tmp_path / "cert.pem"


def test_tls_with_a_trusted_certificate_and_never_without(certificate):
    context, file = certificate
    hub = Hub(tls=context)
    place = Place(hub)
    try:
        files = small_model(8 * MB)
        hub.model("org/name", files)
        place.download("org/name").refused(8, "certificate", "SSL_CERT_FILE")
        check_snapshot(place.download("org/name", env={"SSL_CERT_FILE": str(file)}).path, files)
        # A redirect that would leave TLS is not followed.
        hub.model("org/plain", small_model(seed=3))
        hub.fault("status", "org/plain/resolve", status=302, headers={"Location": "http://127.0.0.1:9/x"})
        place.download("org/plain", env={"SSL_CERT_FILE": str(file)}).refused(3, "never from https to http")
    finally:
        hub.close()


class Proxy(threading.Thread):
    """Takes absolute addresses of http and passes them on; counts."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked = []
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.pass_on, args=(client,), daemon=True).start()

    def pass_on(self, client):
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                more = client.recv(65536)
                if not more:
                    return
                head += more
            method, address, rest = head.split(b" ", 2)
            self.asked.append(address.decode())
            host, _, path = address[len(b"http://"):].partition(b"/")
            name, _, port = host.partition(b":")
            with socket.create_connection((name.decode(), int(port))) as server:
                rest = rest.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
                server.sendall(method + b" /" + path + b" " + rest)
                while data := server.recv(65536):
                    client.sendall(data)


def test_a_proxy_of_the_environment_is_used(hub, place):
    files = small_model(8 * MB)
    hub.model("org/name", files)
    proxy = Proxy()
    check_snapshot(place.download("org/name", env={"http_proxy": f"http://127.0.0.1:{proxy.port}"}).path, files)
    assert len(proxy.asked) == len(hub.requests)
    proxy.asked.clear()
    assert place.download("org/name", env={"http_proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": "127.0.0.1"}).status == 0
    assert not proxy.asked
