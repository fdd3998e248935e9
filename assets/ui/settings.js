// What a conversation is asked with: its fields, their dialog, and what of them goes into a request.
import {h} from "./dom.js";
import {openDialog} from "./dialogs.js";

export const defaultSettings = {
  model: "", system: "", temperature: "", top_p: "", top_k: "", min_p: "", repetition_penalty: "", frequency_penalty: "",
  presence_penalty: "", max_tokens: "", seed: "", stop: "", reasoning_effort: "", logprobs: false, tools: "", tool_choice: "", schema: "",
};

/** Of what a file or an older page has, the members that are known, each of its kind. */
export function cleanSettings(value) {
  const out = {...defaultSettings};
  for (const [name, each] of Object.entries(value ?? {})) {
    if (name in out && ["string", "number", "boolean"].includes(typeof each)) {
      out[name] = typeof out[name] === "boolean" ? each === true : String(each);
    }
  }
  return out;
}

// [name, label, lowest, highest, step]; the names are the route's.
const kNumbers = [
  ["temperature", "Temperature", 0, 5, 0.1], ["top_p", "Top p", 0.01, 1, 0.01], ["top_k", "Top k", 1, undefined, 1],
  ["min_p", "Min p", 0, 1, 0.01], ["max_tokens", "Most tokens", 1, undefined, 1], ["seed", "Seed", 0, undefined, 1],
  ["repetition_penalty", "Repetition penalty", 0.01, undefined, 0.01], ["frequency_penalty", "Frequency penalty", -2, 2, 0.1],
  ["presence_penalty", "Presence penalty", -2, 2, 0.1],
];
const kEfforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
export const kNumAlternatives = 5;

function parsed(text, what, check) {
  if (!text.trim()) return undefined;
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${what}: not JSON: ${error.message}`);
  }
  if (!check(value)) throw new Error(`${what}: ${what === "Tools" ? "expected a list" : "expected an object"}`);
  return value;
}

/** The tools as the route wants them: a list of functions may be given bare. Throws Error. */
export function toolsOf(settings) {
  const list = parsed(settings.tools ?? "", "Tools", Array.isArray);
  return list?.length ? list.map(tool => tool?.type ? tool : {type: "function", function: tool}) : undefined;
}

const schemaOf = settings => parsed(settings.schema ?? "", "Schema", value => typeof value === "object" && !Array.isArray(value));

/** The fields of a chat request; what was left empty is the server's to choose. Throws Error when JSON in them can't be read. */
export function requestFields(settings) {
  const out = {};
  if (settings.model) out.model = settings.model;
  for (const [name] of kNumbers) if (settings[name] !== "" && settings[name] !== undefined) out[name] = Number(settings[name]);
  const stop = (settings.stop ?? "").split("\n").filter(Boolean);
  if (stop.length) out.stop = stop;
  if (settings.reasoning_effort) out.reasoning_effort = settings.reasoning_effort;
  if (settings.logprobs) Object.assign(out, {logprobs: true, top_logprobs: kNumAlternatives});
  const tools = toolsOf(settings);
  if (tools) out.tools = tools;
  if (tools && settings.tool_choice) out.tool_choice = settings.tool_choice;
  const schema = schemaOf(settings);
  if (schema) out.response_format = {type: "json_schema", json_schema: {name: "answer", schema}};
  return out;
}

/** What is not the server's own choice, in a few words. */
export function summaryOf(settings) {
  const out = [];
  if (settings.system) out.push("system prompt");
  for (const [name, label] of kNumbers) {
    if (settings[name] !== "" && settings[name] !== undefined) out.push(`${label.toLowerCase()} ${settings[name]}`);
  }
  if (settings.reasoning_effort) out.push(`reasoning ${settings.reasoning_effort}`);
  if (settings.tools?.trim()) out.push("tools");
  if (settings.schema?.trim()) out.push("schema");
  if (settings.logprobs) out.push("token probabilities");
  return out.join(" · ");
}

/** Shows them; `onchange` after each change that can be read. */
export function showSettings(settings, onchange) {
  const set = (name, value) => {
    settings[name] = value;
    onchange();
  };
  const field = (label, control, note) => h("label", {class: "field"}, h("span", {}, label), control, note && h("small", {}, note));
  const area = (name, placeholder, more = {}) => {
    const note = h("small", {class: "wrong", role: "alert"});
    const control = h("textarea", {placeholder, rows: 3, spellcheck: more.check ? "false" : undefined, class: more.check && "code",
      oninput() {
        note.textContent = "";
        control.removeAttribute("aria-invalid");
        try {
          more.check?.({[name]: control.value});
        } catch (error) {
          note.textContent = error.message;
          control.setAttribute("aria-invalid", "true");
        }
        set(name, control.value);
      }});
    control.value = settings[name] ?? "";
    return h("label", {class: "field"}, h("span", {}, more.label), control, more.note && h("small", {}, more.note), note);
  };
  const number = ([name, label, min, max, step]) => field(label, h("input", {type: "number", inputmode: "decimal", min, max, step,
    placeholder: "default", value: settings[name] ?? "", oninput: event => set(name, event.target.value)}));
  const select = (name, label, choices, note) => {
    const control = h("select", {onchange: event => set(name, event.target.value)},
      choices.map(([value, text]) => h("option", {value}, text)));
    control.value = settings[name] ?? "";
    return field(label, control, note);
  };
  const logprobs = h("input", {type: "checkbox", onchange: event => set("logprobs", event.target.checked)});
  logprobs.checked = Boolean(settings.logprobs);
  const reset = h("button", {type: "button", class: "button", onclick() {
    Object.assign(settings, {...defaultSettings, model: settings.model});
    onchange();
    dialog.close();
    showSettings(settings, onchange);
  }}, "Back to defaults");
  const dialog = openDialog("Settings of this chat", [
    area("system", "You are a helpful assistant.", {label: "System prompt"}),
    h("h3", {}, "Sampling"),
    h("div", {class: "grid"}, kNumbers.map(number)),
    area("stop", "", {label: "Stop texts", note: "One a line; the answer ends before it."}),
    h("h3", {}, "Answer"),
    select("reasoning_effort", "Reasoning", [["", "as the model does"], ...kEfforts.map(word => [word, word])],
      "For models that can reason; none turns it off."),
    area("schema", "{\"type\": \"object\", \"properties\": {…}}", {label: "JSON schema", check: schemaOf,
      note: "The answer is JSON that satisfies it."}),
    h("label", {class: "check"}, logprobs, "Keep token probabilities: shown by the bars under an answer"),
    h("h3", {}, "Tools"),
    area("tools", "[{\"name\": \"get_weather\", \"description\": \"…\", \"parameters\": {…}}]", {label: "Tools", check: toolsOf,
      note: "A list of functions as OpenAI has them. Nothing runs by itself: you type what a call returns."}),
    select("tool_choice", "Calls", [["", "when the model wants"], ["required", "always"], ["none", "never"]]),
  ], [reset]);
}
