// Calls of tools in an answer. Nothing runs by itself: the result of each is typed, and sent with the others.
import {h} from "./dom.js";

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;  // it still comes, or is none
  }
}

export function callView(call) {
  return h("div", {class: "call"},
    h("div", {class: "call-head"}, h("span", {class: "call-mark", "aria-hidden": "true"}, "ƒ"), h("code", {}, call.name || "…")),
    h("pre", {tabindex: 0}, h("code", {}, pretty(call.arguments))));
}

/** Where the results are typed; `onresults` gets a text for each call. */
export function resultForm(calls, onresults) {
  const areas = calls.map(() => h("textarea", {rows: 2, placeholder: "What the call returns", spellcheck: "false"}));
  return h("form", {class: "results", onsubmit(event) {
    event.preventDefault();
    onresults(areas.map(area => area.value));
  }},
  calls.map((call, i) => h("label", {class: "field"}, h("span", {}, `${call.name} returns`), areas[i])),
  h("button", {class: "button first", type: "submit"}, calls.length > 1 ? "Send results" : "Send result"));
}
