"""A browser's fetch from another origin, in headless Chromium: preflight, Authorization, streams, readable errors."""

import http.server
import json
import re
import shutil
import subprocess
import threading
import html

import pytest

KEY = "browser-key"
CHROMIUM = shutil.which("chromium")
PAGE = """<!doctype html><title>client</title><pre id=out></pre>
<script>
const server = "%s", key = "%s";
const post = (path, body, token) => fetch(server + path, {
  method: "POST",
  headers: {"Content-Type": "application/json", "Authorization": "Bearer " + token},
  body: JSON.stringify(body)});
async function pieces(response) {
  const reader = response.body.getReader(), decoder = new TextDecoder("utf-8", {fatal: true});
  let text = "", reads = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return {text, reads};
    text += decoder.decode(value, {stream: true});
    reads++;
  }
}
async function run() {
  const out = {};
  const messages = [{role: "user", content: "What is tgi?"}];
  const whole = await post("/v1/chat/completions", {messages, temperature: 0}, key);
  out.whole = (await whole.json()).choices[0].message.content;
  const stream = await post("/v1/chat/completions", {messages, temperature: 0, stream: true}, key);
  out.stream = await pieces(stream);
  out.native = await pieces(await post("/generate_stream", {inputs: "Once", parameters: {max_new_tokens: 5}}, key));
  const wrong = await post("/generate", {inputs: "a"}, "wrong");
  out.wrong = wrong.status;
  const invalid = await post("/generate", {inputs: ""}, key);
  out.invalid = {status: invalid.status, body: await invalid.json()};
  out.info = (await (await fetch(server + "/info")).json()).model_id;
  const leaving = new AbortController();
  const left = await fetch(server + "/generate_stream", {method: "POST", signal: leaving.signal,
    headers: {"Content-Type": "application/json", "Authorization": "Bearer " + key},
    body: JSON.stringify({inputs: "Once", parameters: {max_new_tokens: 900}})});
  await left.body.getReader().read();
  leaving.abort();
  return out;
}
run().catch(error => ({error: String(error)})).then(out => {
  document.getElementById("out").textContent = JSON.stringify(out);
  fetch("/done");
});
</script><img src="/wait">"""


class Page(http.server.BaseHTTPRequestHandler):
    """Serves the page. Its image comes when the script is done: until then the browser has not loaded the page."""

    def do_GET(self):
        if self.path == "/wait":
            self.server.done.wait(30)
        if self.path == "/done":
            self.server.done.set()
        content = self.server.page.encode() if self.path == "/" else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def page_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.done = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; scripts/test_http installs it")
def test_a_page_of_another_origin(serve, daemon, page_server, tmp_path):
    gateway = serve("--api-key", KEY)
    page_server.page = PAGE % (gateway.url, KEY)
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         f"--user-data-dir={tmp_path}", "--timeout=40000", "--dump-dom",
         f"http://localhost:{page_server.server_port}/"], capture_output=True, timeout=60)
    found = re.search(r"<pre id=\"?out\"?>(.*?)</pre>", done.stdout.decode(), re.S)
    assert found and found.group(1), done.stderr.decode()[-2000:]
    out = json.loads(html.unescape(found.group(1)))
    assert "error" not in out, out
    chunks = [json.loads(e[6:]) for e in out["stream"]["text"].split("\n\n") if e and e != "data: [DONE]"]
    assert "".join(c["choices"][0]["delta"]["content"] for c in chunks) == out["whole"] != ""
    assert out["stream"]["text"].endswith("data: [DONE]\n\n")
    assert out["native"]["text"].count("data: ") == 5
    assert out["wrong"] == 401
    assert out["invalid"]["status"] == 422 and out["invalid"]["body"]["error_type"] == "validation"
    assert out["info"] == gateway.model_name
