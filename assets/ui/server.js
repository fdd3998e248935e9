// The second tab: what the server does now and did in the last minutes, from /metrics, /info, /v1/models and /ui/requests.
import {ask, askJson, partedModels} from "./api.js";
import {byId, h} from "./dom.js";
import {parseMetrics, quantileOf, rateOf, valueOf} from "./metrics.js";
import {Plot} from "./plot.js";

const kEveryMs = 2000;
const kNumSamples = 150;    // five minutes
const kFewestSamples = 30;  // a plot's width, before there are more

const count = value => value === undefined ? "–" : Math.round(value).toLocaleString("en");
const short = value => value.toLocaleString("en", {notation: "compact", maximumFractionDigits: 1});
const rate = value => value < 10 ? value.toFixed(1) : count(value);
const time = seconds => seconds < 0.1 ? `${(seconds * 1000).toFixed(1)} ms` : seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
const percent = share => `${Math.round(share * 100)} %`;
const orDash = (value, format = String) => value === undefined || value === null ? "–" : format(value);

let timer = 0;
let view = null;
let last = null;  // {at, metrics}
let mayAskForRequests = true;
const samples = [];

class Tile {
  constructor(title) {
    this.value = h("strong", {}, "–");
    this.note = h("small", {});
    this.element = h("div", {class: "tile"}, h("span", {}, title), this.value, this.note);
  }
  show(value, note = "") {
    this.value.textContent = value;
    this.note.textContent = note;
  }
}

function build() {
  const tiles = {running: new Tile("Running"), waiting: new Tile("Waiting"), speed: new Tile("Generating"), cache: new Tile("From the cache"),
    total: new Tile("Answered"), failed: new Tile("Failed or refused")};
  const plots = {speed: new Plot("Tokens per second", rate), requests: new Plot("Requests", count),
    blocks: new Plot("KV blocks", percent, {top: 1}), first: new Plot("Time to the first token", time), next: new Plot("Time between tokens", time)};
  const state = h("p", {class: "server-state", role: "status"}, "Asking the server");
  const models = h("div", {class: "facts"});
  const requests = h("div", {class: "requests"});
  byId("panel-server").replaceChildren(h("div", {class: "server"},
    state,
    h("div", {class: "tiles"}, Object.values(tiles).map(tile => tile.element)),
    h("div", {class: "plots"}, Object.values(plots).map(plot => plot.element)),
    h("h2", {}, "Models and limits"), models,
    h("h2", {}, "Last requests"), requests));
  return {tiles, plots, state, models, requests};
}

function sampleOf(before, metrics, seconds) {
  const blocks = ["used", "cached", "free"].map(state => valueOf(metrics, "tgi_kv_blocks", {state}) ?? 0);
  const all = blocks[0] + blocks[1] + blocks[2];
  const of = name => before ? rateOf(before, metrics, name, seconds) : undefined;
  const quantile = (name, share) => before ? quantileOf(before, metrics, name, share) : undefined;
  return {
    running: valueOf(metrics, "tgi_batch_current_size"), waiting: valueOf(metrics, "tgi_queue_size"),
    generated: of("tgi_generated_tokens"), prompt: of("tgi_prompt_tokens"),
    used: all ? blocks[0] / all : undefined, held: all ? blocks[1] / all : undefined, blocks, all,
    first50: quantile("tgi_request_time_to_first_token", 0.5), first95: quantile("tgi_request_time_to_first_token", 0.95),
    next50: quantile("tgi_request_inter_token_latency", 0.5), next95: quantile("tgi_request_inter_token_latency", 0.95),
  };
}

function showNumbers(metrics, sample) {
  const {tiles, plots, state} = view;
  const isUp = valueOf(metrics, "tgi_engine_up") === 1;
  state.textContent = isUp ? "" : "The daemon does not answer: no model is served now.";
  tiles.running.show(orDash(sample.running, count), sample.all ? `${percent(sample.used)} of ${count(sample.all)} KV blocks` : "");
  tiles.waiting.show(orDash(sample.waiting, count));
  tiles.speed.show(orDash(sample.generated, rate), "tokens/s");
  const prompt = valueOf(metrics, "tgi_prompt_tokens");
  const hits = valueOf(metrics, "tgi_prefix_cache_hit_tokens");
  tiles.cache.show(prompt ? percent(hits / prompt) : "–", prompt ? `${short(hits)} of ${short(prompt)} prompt tokens` : "of prompt tokens");
  tiles.total.show(count(valueOf(metrics, "tgi_request_success") ?? 0), "since the start");
  const failures = (metrics.get("tgi_request_failure") ?? []).filter(row => row.value > 0);
  tiles.failed.show(count(failures.reduce((sum, row) => sum + row.value, 0)),
    failures.map(row => `${count(row.value)} ${row.labels.err}`).join(", "));
  const of = name => samples.map(each => each[name]);
  const width = Math.max(samples.length, kFewestSamples);
  plots.speed.show([{name: "generated", values: of("generated")}, {name: "prompts", values: of("prompt")}], width);
  plots.requests.show([{name: "running", values: of("running")}, {name: "waiting", values: of("waiting")}], width);
  plots.blocks.show([{name: "used", values: of("used")}, {name: "cached", values: of("held")}], width);
  plots.first.show([{name: "half below", values: of("first50")}, {name: "95 % below", values: of("first95")}], width);
  plots.next.show([{name: "half below", values: of("next50")}, {name: "95 % below", values: of("next95")}], width);
}

function showModels({data}, info) {
  const {models, adapters} = partedModels(data);
  const stateOf = ({id, status}) => status.value === "loaded" ? id : `${id} (${status.value})`;
  const facts = [[models.length > 1 ? "Models" : "Model", models.map(stateOf).join(", ")],
    ["Adapters", adapters.map(({id}) => id).join(", ") || "none"],
    ["Tokens of a prompt, at most", count(info.max_input_tokens)], ["Tokens in all, at most", count(info.max_total_tokens)],
    ["Requests at once, at most", count(info.max_concurrent_requests)], ["tgi", info.version]];
  view.models.replaceChildren(h("dl", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
}

const kColumns = [
  ["Time", row => new Date(row.timestamp).toLocaleTimeString()],
  ["Route", row => row.route],
  ["Status", row => h("span", {class: row.status >= 400 ? "bad" : "good"}, String(row.status))],
  ["End", row => row.finish_reason ?? row.cancelled_phase ?? row.error_type ?? "–"],
  ["Model", row => (row.model ?? "–").split("/").at(-1)],
  ["Prompt", row => orDash(row.prompt_tokens, count), true],
  ["Cached", row => orDash(row.cached_tokens, count), true],
  ["Generated", row => orDash(row.generated_tokens, count), true],
  ["First token", row => orDash(row.ttft_ms, ms => time(ms / 1000)), true],
  ["Total", row => time(row.total_ms / 1000), true],
];

function showRequests(rows) {
  if (!rows.length) return view.requests.replaceChildren(h("p", {class: "nothing"}, "None since the server started."));
  const head = h("tr", {}, kColumns.map(([name, , isNumber]) => h("th", {scope: "col", class: isNumber && "number"}, name)));
  const body = rows.map(row => h("tr", {}, kColumns.map(([, text, isNumber]) => h("td", {class: isNumber && "number"}, text(row)))));
  const scrolled = view.requests.querySelector(".table-scroll")?.scrollLeft ?? 0;
  const table = h("div", {class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Last requests"},
    h("table", {}, h("thead", {}, head), h("tbody", {}, body)));
  view.requests.replaceChildren(table);
  table.scrollLeft = scrolled;
}

async function look() {
  try {
    const [text, models, info] = await Promise.all([ask("metrics").then(answer => answer.text()), askJson("v1/models"), askJson("info")]);
    const metrics = parseMetrics(text);
    const at = performance.now();
    const sample = sampleOf(last?.metrics, metrics, last ? (at - last.at) / 1000 : 0);
    last = {at, metrics};
    samples.push(sample);
    if (samples.length > kNumSamples) samples.shift();
    showNumbers(metrics, sample);
    showModels(models, info);
  } catch (error) {
    view.state.textContent = error.message;
  }
  if (!mayAskForRequests) return;
  try {
    // Asked for once: who has no key still sees the rest.
    showRequests((await askJson("ui/requests")).requests);
  } catch (error) {
    if (error.status === 401) mayAskForRequests = false;
    view.requests.replaceChildren(h("p", {class: "nothing"}, error.message));
  }
}

async function again(token) {
  if (document.visibilityState === "visible") await look();
  if (token === timer) setTimeout(() => token === timer && again(token), kEveryMs);
}

/** Shows it and goes on asking, or stops. */
export function showServer(shown) {
  if (!shown) {
    timer = 0;
    return;
  }
  view ??= build();
  if (timer) return;
  mayAskForRequests = true;
  if (last) samples.push({});  // a gap: nobody looked
  last = null;
  timer = performance.now();
  again(timer);
}
