// GET /docs: every route of the OpenAPI document, what it takes, and a button that asks it. Streams are shown as they come.
import {apiKey, ask, messageOf, onKeyWanted} from "./api.js";
import {askForKeyDialog} from "./dialogs.js";
import {announce, byId, copyText, h} from "./dom.js";
import {exampleBody, resolved, typeOf} from "./docs_example.js";

const jsonSchemaOf = content => content?.["application/json"]?.schema;
const kMaxShown = 200000;  // characters of an answer

function membersOf(schema, document) {
  const plain = resolved(schema, document);
  const choices = plain.oneOf ?? plain.anyOf;
  if (choices && !plain.properties) return h("p", {}, `One of: ${choices.map(each => typeOf(each, document)).join(", ")}.`);
  return h("dl", {class: "members"}, Object.entries(plain.properties ?? {}).flatMap(([name, member]) => [
    h("dt", {}, h("code", {}, name), plain.required?.includes(name) && h("span", {class: "type"}, " required")),
    h("dd", {}, h("span", {class: "type"}, typeOf(member, document)), member.description && ` – ${member.description}`),
  ]));
}

function curlOf(method, path, body) {
  const address = new URL(path, location.href).href;
  const quoted = text => `'${text.replaceAll("'", "'\\''")}'`;
  const key = apiKey.get() ? " -H \"Authorization: Bearer $API_KEY\"" : "";
  return method === "GET" ? `curl${key} ${quoted(address)}` : `curl${key} ${quoted(address)} -H 'Content-Type: application/json' -d ${quoted(body)}`;
}

// The answer's text as it comes; JSON that came whole is set out.
async function showAnswer(response, place) {
  const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json");
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (reader) {
    const {done, value} = await reader.read();
    text += done ? decoder.decode() : decoder.decode(value, {stream: true});
    if (!isJson) place.textContent = text.slice(0, kMaxShown);
    if (done) break;
  }
  if (isJson) {
    try {
      text = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // As it came, then.
    }
  }
  place.textContent = text.length > kMaxShown ? `${text.slice(0, kMaxShown)}\n… ${text.length} characters in all` : text || "(empty)";
}

function tryOut(method, path, operation, document) {
  const schema = jsonSchemaOf(operation.requestBody?.content);
  const name = operation.parameters?.find(each => each.in === "path")
    && h("input", {value: "", placeholder: "name", spellcheck: "false"});
  const example = schema ? JSON.stringify(exampleBody(schema, document), null, 2) : "";
  const body = schema && h("textarea", {rows: Math.min(14, example.split("\n").length), spellcheck: "false", value: example});
  const state = h("p", {class: "answer-state", role: "status", hidden: true});
  const answer = h("pre", {class: "answer", tabindex: 0, "aria-label": "Answer", hidden: true});
  let leaving = null;
  const address = () => path.slice(1).replace("{name}", encodeURIComponent(name?.value ?? "")) || ".";
  const send = h("button", {type: "submit", class: "button first"}, "Send");
  const copy = h("button", {type: "button", class: "button", onclick: () => copyText(curlOf(method, address(), body?.value ?? ""), copy)}, "Copy as curl");
  const form = h("form", {async onsubmit(event) {
    event.preventDefault();
    if (leaving) return leaving.abort();
    leaving = new AbortController();
    send.textContent = "Stop";
    answer.textContent = "";
    answer.hidden = state.hidden = false;
    state.className = "answer-state";
    state.textContent = "Asking";
    const began = performance.now();
    try {
      const options = body ? {body: body.value, headers: {"Content-Type": "application/json"}} : {};
      const response = await ask(address(), {method, signal: leaving.signal, ...options});
      state.textContent = `${response.status} ${response.statusText}`;
      await showAnswer(response, answer);
      state.textContent += `, ${Math.round(performance.now() - began)} ms`;
    } catch (error) {
      state.classList.toggle("bad", error.name !== "AbortError");
      state.textContent = error.name === "AbortError" ? "Stopped" : error.status || "Not reached";
      if (error.name !== "AbortError") answer.textContent = messageOf(error.message, error.message);
    }
    leaving = null;
    send.textContent = "Send";
  }},
  name && h("label", {class: "field"}, h("span", {}, "Name in the path"), name),
  body && h("label", {class: "field"}, h("span", {}, "Body"), body),
  h("div", {class: "route-buttons"}, send, copy), state, answer);
  return form;
}

function routeOf(method, path, operation, document) {
  const details = h("details", {class: "route", "data-text": `${method} ${path} ${operation.summary}`.toLowerCase()},
    h("summary", {}, h("span", {class: `method ${method.toLowerCase()}`}, method), h("code", {}, path),
      operation.security && h("span", {class: "locked"}, "API key"), h("small", {}, operation.summary)));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const schema = jsonSchemaOf(operation.requestBody?.content);
    details.append(h("div", {class: "route-body"}, tryOut(method, path, operation, document),
      schema && [h("h3", {}, `Members of the body (${typeOf(schema, document)})`), membersOf(schema, document)]));
  });
  return details;
}

async function start() {
  const document = await (await ask("api-doc/openapi.json")).json();
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => routeOf(method.toUpperCase(), path, operation, document)));
  byId("routes").replaceChildren(...routes);
  byId("filter").addEventListener("input", event => {
    const wanted = event.target.value.trim().toLowerCase();
    for (const route of routes) route.hidden = !route.dataset.text.includes(wanted);
    announce(`${routes.filter(route => !route.hidden).length} routes`);
  });
}

async function setKey(why) {
  const key = await askForKeyDialog(why, why === "changed" ? apiKey.get() : "");
  if (key !== null) apiKey.set(key);
  return Boolean(key);
}

onKeyWanted(setKey);
byId("set-key").addEventListener("click", () => setKey("changed"));
byId("theme").addEventListener("click", () => window.tgiTheme.toggle());
start().catch(error => byId("routes").replaceChildren(h("p", {}, error.message)));
