// The conversations of this browser, kept in its localStorage: one entry each. Nothing of them is on the server.
import {checkConversation, newConversation, titleOf} from "./conversation.js";
import {cleanSettings, defaultSettings} from "./settings.js";

const kPrefix = "tgi.conversation.";
const kSettings = "tgi.settings";

const list = new Map();
const removed = new WeakSet();
const listeners = new Set();
let current = null;

export const onChange = listener => listeners.add(listener);
const changed = () => listeners.forEach(listener => listener());

/** Reads all that is there; what can't be read stays where it is, and is left out. */
export function open() {
  for (const key of Object.keys(localStorage).filter(name => name.startsWith(kPrefix))) {
    try {
      const conversation = JSON.parse(localStorage.getItem(key));
      conversation.settings = cleanSettings(conversation.settings);
      if (Array.isArray(conversation.nodes)) list.set(conversation.id, conversation);
    } catch (error) {
      console.warn(`${key} is damaged`, error);
    }
  }
  current = all()[0] ?? fresh();
}

function lastSettings() {
  try {
    return cleanSettings(JSON.parse(localStorage.getItem(kSettings) ?? "{}"));
  } catch {
    return {...defaultSettings};
  }
}

// Not in the list before something was said.
const fresh = () => newConversation(lastSettings());

/** The newest first. */
export const all = () => [...list.values()].sort((a, b) => b.updated - a.updated);
export const shown = () => current;

export function show(conversation) {
  current = conversation;
  changed();
}

export const showNew = () => show(fresh());

/** Keeps it as it is now. Throws Error when the browser's space is used up. */
export function save(conversation) {
  if (removed.has(conversation)) return;  // its answer may still be ending
  const isNew = !list.has(conversation.id);
  if (isNew) list.set(conversation.id, conversation);
  try {
    localStorage.setItem(kPrefix + conversation.id, JSON.stringify(conversation));
  } catch {
    throw new Error("The browser has no space left for conversations. Export and delete some; this one is kept until the page is closed.");
  } finally {
    changed();
  }
}

export function saveSettings(conversation) {
  localStorage.setItem(kSettings, JSON.stringify({...conversation.settings, schema: "", tools: ""}));
  if (list.has(conversation.id)) save(conversation);
}

export function rename(conversation, title) {
  conversation.title = title.trim();
  save(conversation);
}

export function remove(conversation) {
  removed.add(conversation);
  list.delete(conversation.id);
  localStorage.removeItem(kPrefix + conversation.id);
  if (conversation === current) current = all()[0] ?? fresh();
  changed();
}

/** All of them as the text of a file. */
export const exported = () => JSON.stringify({format: "tgi conversations", version: 1, conversations: all()}, null, 1);

/** One of them as Markdown, the path that is shown. */
export function asMarkdown(conversation, path) {
  const names = {user: "You", assistant: "Answer", tool: "Result"};
  const parts = path.map(node => `## ${names[node.role]}\n\n${node.content}${(node.calls ?? []).map(call =>
    `\n\n\`\`\`json\n${call.name}(${call.arguments})\n\`\`\``).join("")}`);
  return [`# ${titleOf(conversation)}`, ...parts].join("\n\n") + "\n";
}

/** Adds those of a file; returns how many. Throws Error, and then adds none. */
export function importText(text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error("the file is not JSON");
  }
  if (file?.format !== "tgi conversations" || !Array.isArray(file.conversations)) {
    throw new Error("the file is not an export of this page: expected {\"format\": \"tgi conversations\", \"conversations\": [...]}");
  }
  const read = file.conversations.map(checkConversation);
  for (const conversation of read) {
    conversation.settings = cleanSettings(conversation.settings);
    save(conversation);
  }
  if (read.length) show(read[0]);
  return read.length;
}
