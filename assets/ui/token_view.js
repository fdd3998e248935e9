// The tokens of an answer with their probabilities: shaded by them, and the alternatives of the one under the pointer or the arrow keys.
import {h} from "./dom.js";

const percent = logprob => {
  const share = Math.exp(logprob) * 100;
  return share >= 99.95 ? "100 %" : share >= 0.1 ? `${share.toFixed(1)} %` : share > 0 ? `${share.toPrecision(1)} %` : "0 %";
};
const shown = text => text.replaceAll("\n", "⏎").replaceAll(" ", "␣").replaceAll("\t", "⇥") || "∅";
const shadeOf = logprob => {
  const share = Math.exp(logprob);
  return share > 0.9 ? 0 : share > 0.6 ? 1 : share > 0.3 ? 2 : share > 0.1 ? 3 : 4;
};

function alternativesOf(token) {
  const rows = token.top_logprobs ?? [];
  const listed = rows.some(row => row.token === token.token && row.logprob === token.logprob) ? rows : [token, ...rows];
  return h("table", {}, h("tbody", {}, listed.map(row => h("tr", {class: row.token === token.token && "taken"},
    h("td", {}, h("code", {}, shown(row.token))),
    h("td", {}, percent(row.logprob)),
    h("td", {}, row.logprob.toFixed(3))))));
}

export function tokenView(tokens) {
  const popup = h("div", {class: "token-popup", role: "status", hidden: true});
  const spans = tokens.map((token, i) => h("span", {class: `token shade-${shadeOf(token.logprob)}`, "data-index": i}, token.token));
  let at = -1;
  const show = index => {
    spans[at]?.classList.remove("at");
    at = index;
    popup.hidden = at < 0;
    if (at < 0) return;
    const span = spans[at];
    span.classList.add("at");
    popup.replaceChildren(alternativesOf(tokens[at]));
    const box = view.getBoundingClientRect();
    const place = span.getClientRects()[0] ?? span.getBoundingClientRect();
    popup.style.top = `${place.bottom - box.top + 6}px`;
    popup.style.left = `${Math.max(0, Math.min(place.left - box.left, box.width - popup.offsetWidth))}px`;
  };
  const text = h("div", {class: "token-text", tabindex: 0, role: "group",
    "aria-label": "Tokens with their probabilities; arrow keys go from one to the next",
    onmouseover: event => event.target.dataset.index && show(Number(event.target.dataset.index)),
    onmouseleave: () => show(-1),
    onclick: event => event.target.dataset.index && show(Number(event.target.dataset.index)),
    onblur: () => show(-1),
    onkeydown(event) {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (event.key === "Escape") show(-1);
      if (!step) return;
      event.preventDefault();
      show(Math.max(0, Math.min(spans.length - 1, at + step)));
    }}, spans);
  const view = h("div", {class: "token-view"}, text, popup);
  return view;
}
