// Dialogs: the browser's own, which keep the focus inside and close with Escape.
import {h, iconButton} from "./dom.js";

let count = 0;

/** Shows one; it is gone from the page when it is closed. `foot`: its buttons, to which "Done" is added unless `done` is false. */
export function openDialog(title, body, foot = [], {done = true, onclose} = {}) {
  const id = `dialog-title-${++count}`;
  const buttons = [...foot, done && h("button", {type: "button", class: "button first", onclick: () => dialog.close()}, "Done")];
  const dialog = h("dialog", {"aria-labelledby": id,
    onclick: event => event.target === dialog && dialog.close(),
    onclose: () => {
      dialog.remove();
      onclose?.();
    }},
  h("div", {class: "dialog-head"}, h("h2", {id}, title), iconButton("close", "Close", () => dialog.close())),
  h("div", {class: "dialog-body"}, body),
  h("div", {class: "dialog-foot"}, buttons.filter(Boolean)));
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Resolves to whether it was agreed to. */
export function confirmDialog(title, text, action) {
  return new Promise(resolve => {
    let agreed = false;
    const cancel = h("button", {type: "button", class: "button", onclick: () => dialog.close()}, "Cancel");
    const agree = h("button", {type: "button", class: "button danger", onclick() {
      agreed = true;
      dialog.close();
    }}, action);
    const dialog = openDialog(title, h("p", {}, text), [cancel, agree], {done: false, onclose: () => resolve(agreed)});
    cancel.focus();
  });
}

const kWhyKey = {wanted: "This server was started with --api-key.", wrong: "The server does not take this key.",
  changed: "Sent with what this page asks the server."};

/** Resolves to the key that was typed, or to null. `why`: "wanted", "wrong" or "changed". */
export function askForKeyDialog(why, current = "") {
  return new Promise(resolve => {
    let key = null;
    const input = h("input", {type: "password", autocomplete: "off", required: true, value: current});
    const form = h("form", {id: "key-form", onsubmit(event) {
      event.preventDefault();
      key = input.value.trim();
      dialog.close();
    }},
    h("p", {}, kWhyKey[why]),
    h("label", {class: "field"}, h("span", {}, "API key"), input, h("small", {}, "Kept in this tab alone, until it is closed.")));
    const dialog = openDialog("API key", form, [
      h("button", {type: "button", class: "button", onclick: () => dialog.close()}, "Cancel"),
      h("button", {type: "submit", form: "key-form", class: "button first"}, "Use it"),
    ], {done: false, onclose: () => resolve(key)});
    input.focus();
  });
}

export function showHelp(version) {
  const keys = [["Enter", "send"], ["Shift Enter", "a new line"], ["Esc", "stop the answer"], ["↑", "in an empty field: edit the last question"],
    ["Alt N", "new chat"], ["Alt S", "settings"], ["Alt 1, Alt 2", "chat, server"], ["/", "to the message field"]];
  openDialog("Keyboard and about", [
    h("dl", {class: "keys"}, keys.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("p", {}, `tgi ${version}. Conversations stay in this browser; the server keeps none. `,
      h("a", {href: "docs"}, "The API"), ", ", h("a", {href: "ui/files/licences.txt"}, "licences of what the page is made of"), "."),
  ]);
}

/** A short text that needs nothing but to be seen. */
export const showNotice = (title, text) => openDialog(title, h("p", {}, text));
