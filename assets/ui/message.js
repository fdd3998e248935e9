// One message on the page. What its buttons do is told by `actions`: copy, edit, again, resume, choose, results.
import {copyText, h, iconButton} from "./dom.js";
import {MarkdownView} from "./markdown.js";
import {tokenView} from "./token_view.js";
import {callView, resultForm} from "./tool_calls.js";

const kNames = {user: "You", assistant: "Answer", tool: "Result"};
const kEnds = {length: "ended at the limit", stopped: "stopped"};

function statsOf({stats, finish, model}) {
  const out = [];
  if (stats) {
    out.push(`${stats.completion_tokens} tokens`);
    if (stats.tokens_per_s) out.push(`${stats.tokens_per_s.toFixed(stats.tokens_per_s < 20 ? 1 : 0)} tokens/s`);
    if (stats.first_ms) out.push(`first after ${(stats.first_ms / 1000).toFixed(2)} s`);
    if (stats.cached_tokens) out.push(`${stats.cached_tokens} of ${stats.prompt_tokens} prompt tokens cached`);
    else out.push(`${stats.prompt_tokens} prompt tokens`);
  }
  if (kEnds[finish]) out.push(kEnds[finish]);
  if (model && out.length) out.push(model.split("/").at(-1));
  return out.join(" · ");
}

export class MessageView {
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    this.form = null;    // for results of calls
    this.tokens = null;  // of the last answer that was asked for with probabilities
    this.showsTokens = false;
    this.body = h("div", {class: node.role === "assistant" ? "body markdown" : "body plain"});
    this.markdown = new MarkdownView(this.body);
    this.reasoning = h("details", {class: "reasoning", hidden: true}, h("summary", {}, "Reasoning"), h("div", {class: "plain"}));
    this.calls = h("div", {class: "calls"});
    this.extra = h("div", {class: "extra"});
    this.error = h("p", {class: "error", role: "alert", hidden: true});
    this.stats = h("p", {class: "stats"});
    this.buttons = h("div", {class: "buttons"});
    this.element = h("article", {class: `message ${node.role}`, "aria-label": kNames[node.role], "data-node": node.id},
      node.role === "tool" && h("p", {class: "tool-name"}, `${node.name ?? "The call"} returned`),
      this.reasoning, this.body, this.calls, this.extra, this.error,
      h("div", {class: "foot"}, this.buttons, this.stats));
  }

  /** `state`: {running, isLast, siblings: {all, index}}. */
  update(state) {
    if (this.editing) return;
    const {node} = this;
    this.element.classList.toggle("running", Boolean(state.running));
    if (node.role === "assistant") this.#showAnswer(state);
    else this.body.textContent = node.content;
    this.error.hidden = !node.error;
    this.error.textContent = node.error ?? "";
    this.stats.textContent = state.running ? "" : statsOf(node);
    this.#showButtons(state);
  }

  #showAnswer({running, isLast}) {
    const {node} = this;
    if (this.showsTokens && this.tokens?.length && !running) {
      this.body.hidden = true;
      this.extra.replaceChildren(tokenView(this.tokens));
    } else {
      this.body.hidden = false;
      this.markdown.show(node.content);
      this.extra.replaceChildren();
    }
    this.reasoning.hidden = !node.reasoning;
    if (node.reasoning) {
      this.reasoning.lastChild.textContent = node.reasoning;
      this.reasoning.firstChild.textContent = running && !node.content ? "Reasoning…" : "Reasoning";
    }
    const calls = (node.calls ?? []).filter(Boolean);
    this.calls.replaceChildren(...calls.map(callView));
    // What is typed there stays while the rest is shown anew.
    const isWanted = calls.length > 0 && isLast && !running && !node.error;
    if (isWanted !== Boolean(this.form)) {
      this.form?.remove();
      this.form = isWanted ? resultForm(calls, texts => this.actions.results(node, texts)) : null;
      if (this.form) this.extra.after(this.form);
    }
    this.element.setAttribute("aria-busy", String(Boolean(running)));
  }

  #showButtons({running, isLast, siblings}) {
    const {node, actions} = this;
    const buttons = [];
    if (!running) {
      const copy = iconButton("copy", "Copy", () => copyText(node.content, copy));
      buttons.push(copy, iconButton("pencil", "Edit", () => this.edit()));
      if (node.role === "assistant") {
        buttons.push(iconButton("again", "Answer again", () => actions.again(node)));
        if (isLast && node.content && !node.calls?.length && (node.finish === "length" || node.finish === "stopped")) {
          buttons.push(iconButton("play", "Go on", () => actions.resume(node)));
        }
        if (this.tokens?.length) {
          buttons.push(iconButton("tokens", "Token probabilities", () => {
            this.showsTokens = !this.showsTokens;
            this.update({running, isLast, siblings});
          }, {"aria-pressed": String(this.showsTokens)}));
        }
      }
    }
    const focused = this.buttons.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    this.buttons.replaceChildren(...(siblings.all.length > 1 && !running ? [this.#branches(siblings)] : []), ...buttons);
    if (focused) [...this.buttons.querySelectorAll("button")].find(each => each.getAttribute("aria-label") === focused)?.focus();
  }

  #branches({all, index}) {
    const go = step => this.actions.choose(all[index + step]);
    return h("span", {class: "branches", role: "group", "aria-label": "Versions"},
      iconButton("left", "Version before", () => go(-1), {disabled: index === 0}),
      h("span", {}, `${index + 1} / ${all.length}`),
      iconButton("right", "Next version", () => go(1), {disabled: index === all.length - 1}));
  }

  /** The text becomes a field. What is saved is another version; this one stays. */
  edit() {
    const {node} = this;
    this.editing = true;
    const end = () => {
      this.editing = false;
      form.remove();
      this.body.hidden = false;
      this.actions.refresh();
    };
    const area = h("textarea", {"aria-label": `Text of ${kNames[node.role].toLowerCase()}`, rows: Math.min(14, node.content.split("\n").length + 1),
      onkeydown(event) {
        if (event.key === "Escape") {
          event.stopPropagation();
          end();
        }
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
      }});
    area.value = node.content;
    const form = h("form", {class: "edit", onsubmit: event => {
      event.preventDefault();
      const text = area.value;
      end();
      if (text.trim()) this.actions.edit(node, text);
    }}, area, h("div", {class: "edit-buttons"},
      h("button", {type: "button", class: "button", onclick: end}, "Cancel"),
      h("button", {type: "submit", class: "button first"}, node.role === "assistant" ? "Save" : "Send")));
    this.body.hidden = true;
    this.body.after(form);
    area.focus();
  }
}
