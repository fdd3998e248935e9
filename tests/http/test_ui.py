"""The page of `tgi serve` and GET /docs, in headless Chromium: what a person does with them, and what must not happen to one."""

import gzip
import json
import pathlib
import re

import pytest
import requests

from browser import CHROMIUM, Browser
from client import Api
from gateway import ROOT, model_variant, wait_until

SOURCES = ROOT / "assets" / "ui"
CHECKS = (pathlib.Path(__file__).parent / "page_checks.js").read_text()
KEY = "page-key"
MAX_BYTES = 300_000
LAST = "document.querySelector('.message.assistant:last-child')"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; scripts/test_http installs it")

# What a model might write to harm who reads it.
HARMFUL = """Hello <img src=x onerror="window.harmed = 1"> and <script>window.harmed = 2</script>

<iframe srcdoc="<script>parent.harmed = 3</script>"></iframe>

<svg onload="window.harmed = 4"></svg> <style>body { display: none }</style>

[a](javascript:window.harmed=5) [b](JaVaScRiPt:window.harmed=6) [c](data:text/html,<script>window.harmed=7</script>)
[d](&#106;avascript:window.harmed=8) ![e](x" onerror="window.harmed=9) ![f](https://elsewhere.example/pixel.png) <javascript:window.harmed=10>
[g](vbscript:x) [h](/unload) [i]("onmouseover="window.harmed=11")

| <img src=x onerror=window.harmed=12> | b |
|--|--|
| `<b>` | $\\href{javascript:window.harmed=13}{x}$ $\\htmlStyle{display:none}{y}$ |

```html" onmouseover="window.harmed=14
<img src=x onerror="window.harmed = 15">
```
"""

RICH = """## A heading

Some **bold**, *slanted*, ~~gone~~ and `code` with a [link](https://example.org/a?b=c&d=e "title"), 3 < 4 &amp; 5 > 4, $5 and $6.

- one
  1. inner
- [x] done
- [ ] not done

| name | number |
|:--|--:|
| a | 1 |

Euler: $e^{i\\pi} + 1 = 0$, and \\(a_1\\).

$$\\int_0^1 x^2\\,dx = \\frac{1}{3}$$

```python
def f(x):  # comment
    return "text" * 3
```

> quoted

---
The end<br>of it.
"""


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.end()


@pytest.fixture
def open_page(browser, gateway):
    """Opens pages; at the end none of them may have a problem in its console. `expected`: the refusals a test provokes."""
    opened = []

    def open_one(path="/ui", url=None, expected=(), **more):
        page = browser.page((url or gateway.url) + path, **more)
        opened.append((page, expected))
        return page

    yield open_one
    for page, expected in opened:
        assert [p for p in page.problems if not any(part in p for part in expected)] == []


def settings(page, **values):
    """As if they had been chosen in the dialog."""
    page.js("import('./ui/files/conversations.js').then(c => { "
            f"Object.assign(c.shown().settings, {json.dumps(values)}); c.saveSettings(c.shown()); }})")


def ask(page, text):
    page.set_value("#composer-text", text)
    page.key("Enter")
    page.wait(f"{LAST}?.getAttribute('aria-busy') === 'false' && {LAST}.querySelector('.stats, .error:not([hidden])').innerText")
    return page.js("Promise.all([import('./ui/files/conversations.js'), import('./ui/files/conversation.js')])"
                   ".then(([c, n]) => n.pathOf(c.shown()).at(-1).content.trim())")


def conversation_of(*contents):
    """A file for Import: questions and answers in turn."""
    nodes = [{"id": f"n{i}", "parent": f"n{i - 1}" if i else "", "role": "assistant" if i % 2 else "user", "content": text,
              **({"finish": "stop"} if i % 2 else {})} for i, text in enumerate(contents)]
    return {"format": "tgi conversations", "version": 1,
            "conversations": [{"id": "x", "title": "", "created": 1, "updated": 2, "settings": {}, "nodes": nodes, "chosen": {}}]}


def import_file(page, text):
    text = text if isinstance(text, str) else json.dumps(text)
    page.js("(() => { const data = new DataTransfer(); "
            f"data.items.add(new File([{json.dumps(text)}], 'c.json')); const input = document.querySelector('#import-file'); "
            "input.files = data.files; input.dispatchEvent(new Event('change')); })()")


def exported(page):
    """What Export writes."""
    page.js("(() => { window.saved = []; const make = URL.createObjectURL; "
            "URL.createObjectURL = blob => { blob.text().then(text => window.saved.push(text)); return make.call(URL, blob); }; })()")
    page.js("document.querySelector('#export-all').click()")
    page.js("document.querySelector('dialog .first').click()")
    page.wait("window.saved.length")
    return json.loads(page.js("window.saved[0]"))


# What is served.

def test_the_page_has_a_strict_policy_and_is_kept_by_its_tag(gateway):
    for path in ("/ui", "/docs", "/ui/files/app.js", "/ui/files/lib/katex.js"):
        answer = requests.get(gateway.url + path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy and "*" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-encoding"] == "gzip"
        plain = requests.get(gateway.url + path, headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers and plain.content == answer.content
        refused = requests.get(gateway.url + path, headers={"Accept-Encoding": "gzip;q=0, br"})
        assert "content-encoding" not in refused.headers
        again = requests.get(gateway.url + path, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304 and again.content == b"" and again.headers["etag"] == answer.headers["etag"]
        assert requests.get(gateway.url + path, headers={"If-None-Match": '"other"'}).status_code == 200
        head = requests.head(gateway.url + path)
        assert head.status_code == 200 and head.content == b""
    assert plain.headers["etag"] != answer.headers["etag"]


def test_every_file_is_served_and_there_is_no_markup_in_scripts(gateway):
    num_bytes = 0
    for source in SOURCES.iterdir():
        path = {"index.html": "/ui", "docs.html": "/docs"}.get(source.name, f"/ui/files/{source.name}")
        answer = requests.get(gateway.url + path)
        assert answer.status_code == 200 and answer.content == source.read_bytes(), source.name
        num_bytes += len(gzip.compress(answer.content))
        text = source.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), source.name
        if source.suffix == ".html":
            assert not re.search(r"\son\w+=|<style|style=|<script(?![^>]*\ssrc=)", text), source.name
        assert len(text.splitlines()) <= 300
    for name in ("marked", "katex"):
        answer = requests.get(f"{gateway.url}/ui/files/lib/{name}.js")
        assert len(answer.content) > 10_000, f"built without libjs-{name}"
        num_bytes += len(gzip.compress(answer.content))
    assert num_bytes < MAX_BYTES
    modules = {s.name for s in SOURCES.glob("*.js")} - {"theme.js", "docs.js", "docs_example.js"}
    index = (SOURCES / "index.html").read_text()  # asked for at once, not one after the other
    assert set(re.findall(r'(?:modulepreload" href|module" src)="ui/files/(\w+\.js)"', index)) == modules
    for path in ("/ui/files/nope.js", "/ui/files/../app.js", "/ui/files/lib/", "/ui/files/%2e%2e/%2e%2e/etc/passwd"):
        assert requests.get(gateway.url + path).status_code == 404, path


def test_the_root_is_a_page_for_browsers_and_health_for_others(gateway):
    page = requests.get(gateway.url, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert page.text == (SOURCES / "index.html").read_text()
    for accept in ("*/*", "application/json", ""):
        answer = requests.get(gateway.url, headers={"Accept": accept})
        assert answer.status_code == 200 and answer.content == b""
    assert requests.get(gateway.url + "/ui/").url == gateway.url + "/ui"
    posted = requests.post(gateway.url, json={"inputs": "a", "parameters": {"max_new_tokens": 1}}, headers={"Accept": "text/html"})
    assert posted.json()[0]["generated_text"].startswith("a")


def test_the_last_requests_are_told_without_their_texts(serve):
    gateway = serve("--api-key", KEY)
    api = Api(gateway.url, KEY)
    assert requests.get(gateway.url + "/ui/requests").status_code == 401
    assert api.ok_get("/ui/requests")["requests"][0]["status"] == 401
    api.chat("a very private question", max_tokens=3)
    api.post("/generate", {"inputs": "another secret", "parameters": {"top_p": 7}})
    rows = wait_until(lambda: rows if len(rows := api.ok_get("/ui/requests")["requests"]) == 3 else None)
    assert [(r["route"], r["status"]) for r in rows[:2]] == [("/generate", 422), ("/v1/chat/completions", 200)]
    assert rows[1]["generated_tokens"] == 3 and rows[1]["prompt_tokens"] > 3 and rows[1]["finish_reason"] == "length"
    assert "private" not in json.dumps(rows) and "secret" not in json.dumps(rows) and KEY not in json.dumps(rows)
    for _ in range(210):
        api.get("/nope")
    wait_until(lambda: len(api.ok_get("/ui/requests")["requests"]) == 200)


# Chat.

@needs_chromium
def test_an_answer_streams_in_and_is_the_answer(open_page, api, gateway):
    page = open_page()
    settings(page, temperature=0)
    assert ask(page, "What is tgi?") == api.chat("What is tgi?", temperature=0)["choices"][0]["message"]["content"].strip()
    stats = page.text(".message.assistant .stats")
    assert re.match(r"\d+ tokens · (?:[\d.]+ tokens/s · )?first after [\d.]+ s · ", stats), stats
    ask(page, "What is tgi?")
    assert re.search(r"\d+ of \d+ prompt tokens cached", page.js(f"{LAST}.querySelector('.stats').innerText"))
    assert page.count(".message") == 4
    assert all(r.startswith((gateway.url, "data:")) for r in page.requests)
    assert page.num_bytes < MAX_BYTES
    page.open(gateway.url + "/ui")  # all is there again
    page.wait("document.querySelectorAll('.message').length === 4")


@needs_chromium
def test_an_answer_is_stopped_and_goes_on(open_page, slow_pair):
    pair = slow_pair()
    page = open_page(url=pair.gateway.url)
    page.set_value("#composer-text", "Tell me a story")
    page.key("Enter")
    for length in (20, 60, 100):  # it grows while it comes
        page.wait(f"{LAST}?.querySelector('.body').innerText.length > {length}")
        assert page.js(f"{LAST}.getAttribute('aria-busy')") == "true"
    assert page.js("document.querySelector('#send').ariaLabel") == "Stop"
    page.click("#send")
    page.wait(f"{LAST}.getAttribute('aria-busy') === 'false'")
    wait_until(pair.daemon.is_idle)
    first = page.js(f"{LAST}.querySelector('.body').innerText")
    assert page.js("document.querySelector('#send').ariaLabel") == "Send"
    page.click(".message:last-child [aria-label='Go on']")
    page.wait(f"{LAST}.querySelector('.body').innerText.length > {len(first) + 20}")
    page.key("Escape")
    page.wait(f"{LAST}.getAttribute('aria-busy') === 'false'")
    assert page.js(f"{LAST}.querySelector('.body').innerText").startswith(first.rstrip()[:20])
    assert page.count(".message") == 2
    settings(page, max_tokens="40")
    ask(page, "And some more")
    assert re.match(r"40 tokens · [\d.]+ tokens/s · ", page.js(f"{LAST}.querySelector('.stats').innerText"))
    settings(page, max_tokens="")
    # Two conversations answer at once.
    page.set_value("#composer-text", "And another")
    page.key("Enter")
    page.wait(f"{LAST}?.getAttribute('aria-busy') === 'true'")
    page.click("#new-chat")
    page.set_value("#composer-text", "A second chat")
    page.key("Enter")
    page.wait(f"{LAST}?.querySelector('.body').innerText.length > 5")
    assert page.count(".conversation") == 2 and page.count(".message") == 2
    page.js("[...document.querySelectorAll('.conversation-open')].find(e => e.innerText.includes('Tell')).click()")
    page.wait("document.querySelectorAll('.message').length === 6 && document.querySelector('[aria-busy=true]')")
    page.open(pair.gateway.url + "/docs")  # leaves both
    wait_until(pair.daemon.is_idle)
    page.open(pair.gateway.url + "/ui")
    page.wait("document.querySelector('.message:last-child [aria-label=\"Go on\"]')")


@needs_chromium
def test_answers_are_asked_for_again_and_questions_edited_as_branches(open_page):
    page = open_page()
    settings(page, temperature=1, max_tokens=6)
    ask(page, "Tell me a story")
    page.click(".message.assistant [aria-label='Answer again']")
    page.wait("document.querySelector('.message.assistant .branches')?.innerText.includes('2 / 2')")
    ask(page, "Another one")
    page.js("document.querySelectorAll('.message.user')[0].querySelector('[aria-label=Edit]').click()")
    page.set_value(".message.user textarea", "Tell me two stories")
    page.key("Enter", ctrl=True)
    page.wait(f"document.querySelectorAll('.message').length === 2 && {LAST}?.querySelector('.stats').innerText")
    assert page.js("document.querySelector('.message.user .body').innerText") == "Tell me two stories"
    page.click(".message.user [aria-label='Version before']")
    page.wait("document.querySelectorAll('.message').length === 4")
    assert page.js("document.querySelector('.message.user .body').innerText") == "Tell me a story"
    page.click(".message.assistant [aria-label='Version before']")
    page.wait("document.querySelectorAll('.message').length === 2")
    # An answer that is edited is another version, and asks for nothing.
    page.click(".message.assistant [aria-label='Edit']")
    page.set_value(".message.assistant textarea", "My own words")
    page.click(".message.assistant .edit .first")
    page.wait(f"{LAST}.querySelector('.body').innerText === 'My own words'")
    assert "3 / 3" in page.text(".message.assistant .branches")


@needs_chromium
def test_conversations_are_exported_imported_renamed_and_deleted(open_page, gateway):
    page = open_page()
    settings(page, max_tokens=4)
    ask(page, "What is tgi?")
    saved = exported(page)
    assert saved["format"] == "tgi conversations" and len(saved["conversations"]) == 1
    other = open_page()
    import_file(other, saved)
    other.wait("document.querySelectorAll('.message').length === 2")
    assert exported(other)["conversations"][0]["nodes"] == saved["conversations"][0]["nodes"]
    for bad in ("{", "[]", {"format": "tgi conversations", "conversations": [{"nodes": [{"id": 1}]}]},
                {"format": "tgi conversations", "conversations": [{"nodes": [
                    {"id": "a", "parent": "a", "role": "user", "content": ""}]}]},
                {"format": "tgi conversations", "conversations": [{"nodes": [
                    {"id": "a", "parent": "", "role": "wizard", "content": ""}]}]}):
        import_file(other, bad)
        other.wait("document.querySelector('dialog')?.innerText.includes('Not imported')")
        other.key("Escape")
        other.wait("!document.querySelector('dialog')")
    assert other.count(".conversation") == 1
    other.js("document.querySelector('[aria-label^=Rename]').click()")
    other.set_value(".conversation-name", "My <b>name</b>")
    other.key("Enter")
    other.open(gateway.url + "/ui")
    other.wait("document.querySelector('.conversation-open')?.innerText === 'My <b>name</b>'")
    other.js("document.querySelector('[aria-label^=Delete]').click()")
    other.click("dialog .danger")
    other.wait("!document.querySelector('.conversation')")
    other.open(gateway.url + "/ui")
    assert other.count(".conversation") == 0


@needs_chromium
def test_markdown_code_tables_and_formulas(open_page):
    page = open_page()
    import_file(page, conversation_of("Show me", RICH))
    page.wait("document.querySelectorAll('.message math').length === 3")
    body = ".message.assistant .body"
    assert page.text(f"{body} h4") == "A heading"
    assert page.text(f"{body} strong, {body} em") == "bold" and page.text(f"{body} del") == "gone"
    assert page.js(f"document.querySelector('{body} a').href") == "https://example.org/a?b=c&d=e"
    assert page.js(f"document.querySelector('{body} a').rel") == "noopener noreferrer"
    assert "3 < 4 & 5 > 4, $5 and $6." in page.text(f"{body} p")
    assert page.text(f"{body} li ol li") == "inner" and page.count(f"{body} li.task") == 2
    assert page.js(f"getComputedStyle(document.querySelector('{body} td.to-right')).textAlign") == "right"
    assert page.count(f"{body} .formula.display math[display=block]") == 1
    assert page.text(".code-head span") == "python"
    assert [page.text(f".syntax-{kind}") for kind in ("comment", "string", "number", "keyword", "name")] == \
        ["# comment", '"text"', "3", "def", "f"]
    assert page.text(".code-block code") == 'def f(x):  # comment\n    return "text" * 3'
    assert page.count(f"{body} blockquote") == page.count(f"{body} hr") == page.count(f"{body} p > br") == 1
    # What grew piece by piece is what came whole.
    grown = page.js("import('./ui/files/markdown.js').then(m => { const [a, b] = [document.createElement('div'), document.createElement('div')]; "
                    f"const text = {json.dumps(RICH)}; const view = new m.MarkdownView(a); "
                    "for (let i = 1; i <= text.length; ++i) view.show(text.slice(0, i)); new m.MarkdownView(b).show(text); "
                    "return a.innerText === b.innerText && a.querySelectorAll('*').length === b.querySelectorAll('*').length; })")
    assert grown


@needs_chromium
def test_what_a_model_writes_does_no_harm(open_page, gateway):
    page = open_page()
    import_file(page, conversation_of(HARMFUL, HARMFUL))
    page.wait("document.querySelectorAll('.message math').length >= 1")
    page.js("new Promise(done => setTimeout(done, 300))")
    assert page.js("window.harmed ?? null") is None
    assert page.count("#messages :is(img, script, iframe, style, object, embed, link, form, meta, base)") == 0
    assert page.count("#messages svg[onload]") == 0
    for name in page.js("[...document.querySelectorAll('#messages *')].flatMap(e => e.getAttributeNames())"):
        assert not name.startswith("on") and name != "srcdoc"
    for address in page.js("[...document.querySelectorAll('#messages a, #messages [href]')].map(e => e.getAttribute('href'))"):
        assert address.startswith(("https://", "http://", "mailto:", "#i-")), address
    assert "<img src=x onerror=" in page.text(".message.assistant .body")
    assert page.js("getComputedStyle(document.body).display") != "none"
    assert all(r.startswith((gateway.url, "data:")) for r in page.requests)


@needs_chromium
def test_a_key_is_asked_for_and_kept_in_the_tab_alone(open_page, serve):
    gateway = serve("--api-key", KEY)
    page = open_page(url=gateway.url, expected=("401",))
    page.set_value("#composer-text", "What is tgi?")
    page.key("Enter")
    page.wait("document.querySelector('dialog')?.innerText.includes('started with --api-key')")
    page.type("wrong")
    page.key("Enter")
    page.wait("document.querySelector('dialog')?.innerText.includes('does not take this key')")
    page.type(KEY)
    page.key("Enter")
    page.wait(f"{LAST}.querySelector('.stats').innerText")
    assert KEY not in page.js("JSON.stringify({...localStorage})") and KEY not in page.js("document.cookie")
    assert KEY in page.js("JSON.stringify({...sessionStorage})")
    assert KEY not in json.dumps(exported(page))
    page.js("document.querySelector('#tab-server').click()")
    page.wait("document.querySelector('.requests td')")
    other = open_page(url=gateway.url, expected=("401",))
    other.set_value("#composer-text", "Hello")
    other.key("Enter")
    other.wait("document.querySelector('dialog')")
    other.key("Escape")
    other.wait("document.querySelector('.error:not([hidden])')?.innerText.includes('wants an API key')")


@needs_chromium
def test_settings_reach_the_request_and_refusals_are_shown(open_page, api):
    page = open_page(expected=("422",))
    page.click("#open-settings")
    assert page.js("document.activeElement.closest('dialog') !== null")
    page.js("(() => { const set = (label, text) => { const e = [...document.querySelectorAll('dialog label')]"
            ".find(l => l.firstChild.textContent === label).querySelector('input, textarea'); e.value = text; "
            "e.dispatchEvent(new Event('input')); }; set('System prompt', 'Be brief.'); set('Temperature', '0'); set('Most tokens', '7'); "
            "set('JSON schema', '{'); })()")
    assert "not JSON" in page.text("dialog .wrong[role=alert]:not(:empty)")
    page.js("(() => { const e = document.querySelector('dialog [aria-invalid]'); e.value = ''; e.dispatchEvent(new Event('input')); })()")
    page.key("Escape")
    page.wait("!document.querySelector('dialog')")
    answer = ask(page, "What is tgi?")
    wanted = api.ok("/v1/chat/completions", {"temperature": 0, "max_tokens": 7, "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is tgi?"}]})
    assert answer == wanted["choices"][0]["message"]["content"].strip()
    assert "ended at the limit" in page.text(".message.assistant .stats")
    assert "system prompt · temperature 0 · most tokens 7" in page.text("#composer-note")
    settings(page, top_p=7)
    ask(page, "And now?")
    assert "`top_p` must be > 0.0 and <= 1.0" in page.js(f"{LAST}.querySelector('.error').innerText")
    settings(page, top_p="", max_tokens=60, schema=json.dumps({"type": "object", "properties": {"n": {"type": "integer"}},
                                                             "required": ["n"], "additionalProperties": False}))
    assert isinstance(json.loads(ask(page, "A number"))["n"], int)


@needs_chromium
def test_a_call_of_a_tool_is_shown_and_its_result_typed(open_page, gateway):
    page = open_page()
    tool = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}},
                                                  "required": ["city"]}}
    settings(page, temperature=0, max_tokens=80, tools=json.dumps([tool]), tool_choice="required")
    page.set_value("#composer-text", "The weather?")
    page.key("Enter")
    page.wait("document.querySelector('.results textarea')")
    assert page.text(".call-head code") == "get_weather"
    assert json.loads(page.text(".call pre"))["city"] in ("Rome", "Oslo")
    settings(page, tool_choice="none")
    page.set_value(".results textarea", "sunny <b>24</b>")
    page.click(".results button")
    page.wait("document.querySelectorAll('.message').length === 4")
    page.wait(f"{LAST}.querySelector('.stats').innerText")
    assert page.text(".message.tool .body") == "sunny <b>24</b>" and "get_weather returned" in page.text(".message.tool")
    assert page.count(".results") == 0
    page.open(gateway.url + "/ui")
    page.wait("document.querySelectorAll('.message').length === 4")
    messages = page.js("Promise.all([import('./ui/files/chat_request.js'), import('./ui/files/conversations.js'), "
                       "import('./ui/files/conversation.js')]).then(([r, c, n]) => r.messagesOf(c.shown(), n.pathOf(c.shown())[2]))")
    assert [m["role"] for m in messages] == ["user", "assistant", "tool"]
    assert messages[2]["tool_call_id"] == messages[1]["tool_calls"][0]["id"]


@needs_chromium
def test_the_probabilities_of_a_token_are_shown_under_the_pointer_and_by_keys(open_page, api):
    page = open_page()
    settings(page, temperature=0, max_tokens=8, logprobs=True)
    ask(page, "What is tgi?")
    page.click(".message.assistant [aria-label='Token probabilities']")
    wanted = api.chat("What is tgi?", temperature=0, max_tokens=8, logprobs=True, top_logprobs=5)["choices"][0]["logprobs"]["content"]
    assert page.js("[...document.querySelectorAll('.token')].map(e => e.textContent)") == [t["token"] for t in wanted]
    page.move(".token:nth-child(3)")
    page.wait("!document.querySelector('.token-popup').hidden")
    assert page.count(".token-popup tr") == 5 and page.count(".token-popup .taken") == 1
    assert f"{wanted[2]['logprob']:.3f}" in page.text(".token-popup .taken")
    page.js("document.querySelector('.token-text').focus()")
    page.key("ArrowLeft")
    page.wait("document.querySelector('.token.at').dataset.index === '1'")
    assert f"{wanted[1]['logprob']:.3f}" in page.text(".token-popup .taken")


# The second tab.

@needs_chromium
def test_the_second_tab_shows_the_server(open_page, gateway, api):
    page = open_page()
    settings(page, max_tokens=20)
    ask(page, "Tell me a story")
    page.click("#tab-server")
    page.wait("document.querySelector('.requests td')")
    assert page.count(".tile") == 6 and page.count(".plot") == 5
    api.generate("Once", max_new_tokens=50)
    page.wait("document.querySelectorAll('.plot path.line').length >= 6", 15)
    tiles = dict(page.js("[...document.querySelectorAll('.tile')].map(t => [t.children[0].innerText, t.children[1].innerText])"))
    assert int(tiles["Answered"].replace(",", "")) >= 2 and tiles["Running"] == "0"
    assert gateway.model_name in page.text(".facts")
    assert page.js("document.querySelector('.requests tr:nth-child(1) td:nth-child(2)').innerText").startswith("/")
    asked = len([r for r in page.requests if r.endswith("/metrics")])
    page.click("#tab-chat")
    page.js("new Promise(done => setTimeout(done, 2600))")
    assert len([r for r in page.requests if r.endswith("/metrics")]) <= asked + 1  # nobody looks, nobody asks


@needs_chromium
def test_several_models_are_chosen_among_and_told(open_page, pair, tmp_path):
    second = model_variant(tmp_path, 128, [1, 2])
    two = pair("--model", f"second={second}", daemon_flags=("--kv-cache-memory", "2MiB", "--on-demand", "third=demo"))
    page = open_page(url=two.gateway.url)
    page.wait("document.querySelector('#model').options.length === 3")
    assert page.js("[...document.querySelector('#model').options].map(o => o.value + ' ' + o.text)") == [
        " demo", "second second", "third third"]
    assert page.count("#model optgroup") == 0
    page.js("(() => { const e = document.querySelector('#model'); e.value = 'second'; e.dispatchEvent(new Event('change')); })()")
    settings(page, max_tokens=4)
    ask(page, "What is tgi?")
    assert page.text(".message.assistant .stats").endswith("second")
    page.click("#tab-server")
    page.wait("document.querySelector('.facts dd')")
    assert "demo, second, third (unloaded)" in page.text(".facts") and "none" in page.text(".facts")


# For everybody.

STATES = {
    "welcome": "null",
    "answer": "null",
    "tokens": "document.querySelector('[aria-label=\"Token probabilities\"]').click()",
    "chat": "null",
    "settings": "document.querySelector('#open-settings').click()",
    "key": "document.querySelector('#set-key').click()",
    "export": "document.querySelector('#export-all').click()",
    "edit": "document.querySelector('.message [aria-label=Edit]').click()",
    "server": "document.querySelector('#tab-server').click()",
    "sidebar": "document.querySelector('#open-sidebar').click()",
}


def names_missing(page):
    """Roles of what can be used and has no name for a screen reader."""
    roles = {"button", "link", "textbox", "combobox", "checkbox", "tab", "searchbox", "spinbutton", "listbox", "dialog", "region"}
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    return [n["role"]["value"] for n in nodes if not n.get("ignored") and n.get("role", {}).get("value") in roles
            and not n.get("name", {}).get("value", "").strip()]


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_contrast_names_and_width_in_every_state(open_page, dark, width, tmp_path):
    page = open_page(width=width, height=844 if width < 500 else 800, dark=dark)
    assert page.js("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    for state, action in STATES.items():
        if state == "answer":
            settings(page, logprobs=True, max_tokens="12")
            ask(page, "Tell me a story")
        if state == "chat":
            import_file(page, conversation_of("Show me", RICH, "And more, with a very-long-word-" + "x" * 200, HARMFUL))
            page.wait("document.querySelector('.message math')")
        page.js(action)
        page.js("new Promise(done => setTimeout(done, 300))")
        if state == "server":
            page.wait("document.querySelector('.requests td')")
        page.screenshot(tmp_path / f"{state}.png")
        root = "document.querySelector('dialog') ?? document.body" if state != "sidebar" or width > 760 else "document.querySelector('#sidebar')"
        assert page.js(f"(() => {{ {CHECKS}; return lowContrast({root}, 4.5); }})()") == [], state
        assert page.js(f"(() => {{ {CHECKS}; return tooWide(); }})()") == [], state
        assert names_missing(page) == [], state
        page.js("document.querySelector('dialog')?.close()")
        page.js("document.querySelector('.edit .button')?.click()")


@needs_chromium
def test_the_theme_is_chosen_and_kept(open_page, gateway):
    page = open_page()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.js(ground)
    page.click("#theme")
    assert page.js(ground) != light and page.js("document.querySelector('#theme').ariaLabel") == "Light theme"
    page.open(gateway.url + "/ui")
    assert page.js(ground) != light
    page.open(gateway.url + "/docs")
    assert page.js(ground) != light
    page.js("document.querySelector('#theme').click()")
    assert page.js(ground) == light
    page.set_theme(True)  # chosen as the system had it: follows the system again
    page.wait(f"{ground} !== {json.dumps(light)}")


@needs_chromium
def test_everything_is_done_with_the_keyboard(open_page, slow_pair):
    page = open_page(url=slow_pair().gateway.url)
    page.js("document.activeElement.blur()")
    page.key("/")
    assert page.focused() == "Message"
    page.type("Tell me a story")
    page.key("Enter", shift=True)
    page.type("please")
    page.key("Enter")
    page.wait(f"{LAST}?.querySelector('.body').innerText.length > 5")
    assert page.js("document.querySelector('.message.user .body').innerText") == "Tell me a story\nplease"
    page.key("Escape")
    page.wait(f"{LAST}.getAttribute('aria-busy') === 'false'")
    page.key("ArrowUp")  # the last question, to be edited
    page.wait("document.activeElement.closest('.message.user')")
    page.key("Escape")
    page.key("s", code="KeyS", alt=True)
    page.wait("document.querySelector('dialog')?.innerText.includes('Settings')")
    for _ in range(40):  # the focus stays inside; the browser's own chrome may come between
        page.key("Tab")
        assert page.js("document.activeElement === document.body || document.activeElement.closest('dialog') !== null")
    page.key("Escape")
    page.wait("!document.querySelector('dialog')")
    page.key("2", code="Digit2", alt=True)
    page.wait("!document.querySelector('#panel-server').hidden")
    page.js("document.querySelector('#tab-server').focus()")
    page.key("ArrowLeft")
    page.wait("!document.querySelector('#panel-chat').hidden")
    assert page.focused() == "Chat"
    page.key("n", code="KeyN", alt=True)
    page.wait("document.querySelector('.welcome')")
    reached = set()
    for _ in range(40):
        page.key("Tab")
        reached.add(page.focused())
        assert page.js("document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none' "
                       "|| getComputedStyle(document.activeElement.parentElement).outlineStyle !== 'none'"), page.focused()
    assert {"Message", "New chat", "Export", "Import", "API key", "Settings of this chat", "Dark theme", "Chat"} <= reached, reached


@needs_chromium
def test_on_a_narrow_screen_the_list_lies_over_the_chat(open_page):
    page = open_page(width=390, height=844)
    import_file(page, conversation_of("One", "Two"))
    page.wait("document.querySelectorAll('.message').length === 2")
    assert not page.js("document.querySelector('#sidebar').checkVisibility({visibilityProperty: true})")
    page.click("#open-sidebar")
    page.wait("document.querySelector('#sidebar').getBoundingClientRect().left === 0")
    assert page.js("document.querySelector('.main').inert") and page.focused() == "New chat"
    page.key("Escape")
    page.wait("!document.querySelector('#sidebar').checkVisibility({visibilityProperty: true})")
    assert page.focused() == "Conversations"
    page.click("#open-sidebar")
    page.wait("document.querySelector('#sidebar').getBoundingClientRect().left === 0")
    page.click("#new-chat")
    page.wait("document.querySelector('.welcome')")


# The page of the routes.

@needs_chromium
def test_docs_lists_every_route_and_asks_it(open_page, gateway, api):
    page = open_page("/docs", expected=("422",))
    document = api.ok_get("/api-doc/openapi.json")
    page.wait("document.querySelector('.route')")
    listed = page.js("[...document.querySelectorAll('.route summary')].map(e => e.children[0].innerText + ' ' + e.children[1].innerText)")
    assert sorted(listed) == sorted(f"{m.upper()} {p}" for p, each in document["paths"].items() for m in each)

    def open_route(name):
        page.js(f"[...document.querySelectorAll('.route')].find(e => e.dataset.text.startsWith({json.dumps(name)})).open = true")
        page.wait("document.querySelector('.route[open] .route-body form button')")

    def close_all():
        page.js("document.querySelectorAll('.route[open]').forEach(e => e.remove())")

    open_route("post /generate_stream")
    page.click(".route[open] form [type=submit]")
    page.wait("document.querySelector('.answer-state')?.innerText.includes('ms')")
    assert page.text(".answer-state").startswith("200") and page.text(".answer").count("data:") >= 5
    close_all()
    open_route("post /v1/completions")
    page.set_value(".route[open] textarea", json.dumps({"prompt": "a", "top_p": 9}))
    page.click(".route[open] form [type=submit]")
    page.wait("document.querySelector('.answer-state')?.innerText === '422'")
    assert "top_p" in page.text(".answer")
    close_all()
    for name in ("post /v1/chat/completions", "post /tokenize", "post /chat_tokenize", "get /info", "get /metrics", "get /ui/requests"):
        open_route(name)
        page.click(".route[open] form [type=submit]")
        page.wait("document.querySelector('.answer-state')?.innerText.includes('ms')")
        assert page.text(".answer-state").startswith("200"), name
        assert len(page.text(".answer")) > 10
        close_all()
    page.set_value("#filter", "rerank")
    said = [f"{path} {one['summary']}" for path, each in document["paths"].items() for one in each.values()]
    reranking = sum("rerank" in text.lower() for text in said)
    page.wait(f"[...document.querySelectorAll('.route')].filter(e => !e.hidden).length === {reranking}")


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_docs_contrast_names_and_width(open_page, dark, width, tmp_path):
    page = open_page("/docs", width=width, dark=dark)
    page.wait("document.querySelector('.route')")
    page.js("[...document.querySelectorAll('.route')].find(e => e.dataset.text.startsWith('post /v1/chat')).open = true")
    page.wait("document.querySelector('.route[open] form button')")
    page.js("document.querySelector('.route[open] form [type=submit]').click()")
    page.wait("document.querySelector('.answer-state')?.innerText.includes('ms')")
    page.screenshot(tmp_path / "docs.png")
    assert page.js(f"(() => {{ {CHECKS}; return lowContrast(document.body, 4.5); }})()") == []
    assert page.js(f"(() => {{ {CHECKS}; return tooWide(); }})()") == []
    assert names_missing(page) == []
