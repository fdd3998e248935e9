// The list of conversations, their names, and what becomes of all of them.
import * as chat from "./chat.js";
import * as conversations from "./conversations.js";
import {pathOf, titleOf} from "./conversation.js";
import {confirmDialog, openDialog, showNotice} from "./dialogs.js";
import {announce, byId, download, h, iconButton} from "./dom.js";

const list = byId("conversation-list");
const sidebar = byId("sidebar");
const narrow = matchMedia("(max-width: 760px)");
let onShow = () => {};

function ageOf(time) {
  const day = new Date(time).setHours(0, 0, 0, 0);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - day) / 86400000);
  return days <= 0 ? "Today" : days === 1 ? "Yesterday" : days < 8 ? "This week" : "Earlier";
}

function show(conversation) {
  conversations.show(conversation);
  openSidebar(false);
  onShow();
}

async function removeOne(conversation) {
  const title = titleOf(conversation);
  if (!await confirmDialog("Delete this conversation?", `“${title}” is in this browser alone and can't be brought back.`, "Delete")) return;
  chat.stop(conversation);
  conversations.remove(conversation);
  onShow();
  announce("Deleted");
}

function rename(conversation, row) {
  const input = h("input", {class: "conversation-name", "aria-label": "Name of the conversation", value: titleOf(conversation)});
  let done = false;
  const end = keep => {
    if (done) return;
    done = true;
    if (keep) conversations.rename(conversation, input.value);
    else render();
  };
  input.addEventListener("keydown", event => {
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") {
      event.stopPropagation();
      end(false);
    }
  });
  input.addEventListener("blur", () => end(true));
  row.replaceChildren(input);
  input.focus();
  input.select();
}

function rowOf(conversation) {
  const isShown = conversation === conversations.shown();
  const title = titleOf(conversation);
  const row = h("li", {class: isShown ? "conversation current" : "conversation"});
  row.append(
    h("button", {type: "button", class: "conversation-open", "aria-current": isShown && "true", title, onclick: () => show(conversation),
      ondblclick: () => rename(conversation, row)}, title),
    iconButton("pencil", `Rename ${title}`, () => rename(conversation, row)),
    iconButton("trash", `Delete ${title}`, () => removeOne(conversation)));
  return row;
}

export function render() {
  const groups = new Map();
  for (const conversation of conversations.all()) {
    const age = ageOf(conversation.updated);
    if (!groups.has(age)) groups.set(age, []);
    groups.get(age).push(conversation);
  }
  list.replaceChildren(...[...groups].flatMap(([age, each]) => [h("h2", {}, age), h("ul", {}, each.map(rowOf))]));
}

/** On narrow screens it lies over the rest. */
export function openSidebar(open) {
  if (!narrow.matches && open) return;
  const was = sidebar.classList.contains("open");
  sidebar.classList.toggle("open", open);
  byId("scrim").hidden = !open;
  byId("open-sidebar").setAttribute("aria-expanded", String(open));
  document.querySelector(".main").inert = open;
  if (open) byId("new-chat").focus();
  else if (was) byId("open-sidebar").focus();
}

function exportDialog() {
  const shown = conversations.shown();
  const stamp = new Date().toISOString().slice(0, 10);
  const dialog = openDialog("Export", [
    h("p", {}, "All conversations of this browser as one file, which Import reads again; or the one that is shown as Markdown."),
  ], [
    h("button", {type: "button", class: "button", onclick() {
      download("conversation.md", conversations.asMarkdown(shown, pathOf(shown)), "text/markdown");
      dialog.close();
    }}, "This one, Markdown"),
    h("button", {type: "button", class: "button first", onclick() {
      download(`tgi-conversations-${stamp}.json`, conversations.exported());
      dialog.close();
    }}, "All, JSON"),
  ], {done: false});
}

async function importFile(input) {
  const [file] = input.files;
  input.value = "";
  if (!file) return;
  try {
    const count = conversations.importText(await file.text());
    onShow();
    announce(`${count} conversations added`);
  } catch (error) {
    showNotice("Not imported", error.message);
  }
}

export function startSidebar(whenShown) {
  onShow = whenShown;
  byId("new-chat").addEventListener("click", () => {
    conversations.showNew();
    openSidebar(false);
    onShow();
  });
  byId("open-sidebar").addEventListener("click", () => openSidebar(true));
  byId("close-sidebar").addEventListener("click", () => openSidebar(false));
  byId("scrim").addEventListener("click", () => openSidebar(false));
  narrow.addEventListener("change", () => openSidebar(false));
  byId("export-all").addEventListener("click", exportDialog);
  byId("import").addEventListener("click", () => byId("import-file").click());
  byId("import-file").addEventListener("change", event => importFile(event.target));
  conversations.onChange(render);
  render();
}
