// The view of the conversation that is shown, and the answers that run: several at once, each in its own conversation.
import * as conversations from "./conversations.js";
import {messagesOf, streamAnswer} from "./chat_request.js";
import {addNode, choose, parentOf, pathOf, siblingsOf} from "./conversation.js";
import {showNotice} from "./dialogs.js";
import {announce, byId, h} from "./dom.js";
import {MessageView} from "./message.js";
import {summaryOf} from "./settings.js";

const kSaveEveryMs = 2000;
const kExamples = ["Tell me a short story about a fox", "What is a KV cache?", "Write a Python function that finds primes"];

const scroll = byId("messages-scroll");
const place = byId("messages");
const note = byId("composer-note");
const running = new Map();  // id of a conversation -> {node, stop, numParts, began}
let views = new Map();      // id of a message -> MessageView, of the conversation that is shown
let viewsOf = null;
let pinned = true;          // to the end, while it grows
let modelName = "this model";
let onRunningChange = () => {};

export const isRunning = () => running.has(conversations.shown().id);
export const whenRunningChanges = listener => { onRunningChange = listener; };
export function nameModel(name) {
  modelName = name;
  if (place.querySelector(".welcome")) render();
}

function save(conversation) {
  try {
    conversations.save(conversation);
  } catch (error) {
    showNotice("Not kept", error.message);
  }
}

const actions = {
  refresh: () => render(),
  choose(node) {
    choose(conversations.shown(), node);
    save(conversations.shown());
    render();
  },
  again(node) {
    if (isRunning()) return;
    const conversation = conversations.shown();
    answer(conversation, parentOf(conversation, node));
  },
  edit(node, text) {
    if (isRunning()) return;
    const conversation = conversations.shown();
    const {role, callId, name} = node;
    const added = addNode(conversation, parentOf(conversation, node), {role, content: text, callId, name});
    if (role === "assistant") {
      save(conversation);
      render();
    } else {
      answer(conversation, added);
    }
  },
  resume: node => run(conversations.shown(), node, node),
  results(node, texts) {
    const conversation = conversations.shown();
    let last = node;
    node.calls.forEach((call, i) => {
      last = addNode(conversation, last, {role: "tool", content: texts[i], callId: call.id, name: call.name});
    });
    answer(conversation, last);
  },
};

/** A question of the user's, and its answer. */
export function send(text) {
  const conversation = conversations.shown();
  const node = addNode(conversation, pathOf(conversation).at(-1), {role: "user", content: text});
  pinned = true;
  answer(conversation, node);
}

export function stop(conversation = conversations.shown()) {
  running.get(conversation.id)?.stop();
}

/** The last question becomes a field. */
export function editLast() {
  const last = pathOf(conversations.shown()).findLast(node => node.role === "user");
  if (last && !isRunning()) views.get(last.id)?.edit();
}

const answer = (conversation, parent) => run(conversation, addNode(conversation, parent, {role: "assistant"}), parent);

// Asks for an answer to what leads to `end` (a message, or null), into `node`. When they are the same, the answer goes on.
async function run(conversation, node, end) {
  const leaving = new AbortController();
  const state = {node, stop: () => leaving.abort(), numParts: 0, began: performance.now()};
  running.set(conversation.id, state);
  delete node.error;
  delete node.finish;
  const tokens = [];
  let savedAt = Date.now();
  let frame = 0;
  save(conversation);
  onRunningChange();
  render();
  announce("Answering");
  try {
    await streamAnswer(conversation, node, messagesOf(conversation, end), {signal: leaving.signal, tokens, onpart() {
      ++state.numParts;
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        show(conversation, node);
      });
      if (Date.now() - savedAt > kSaveEveryMs) {
        savedAt = Date.now();
        save(conversation);
      }
    }});
    if (!node.finish) node.error = "The answer ended early.";
  } catch (error) {
    if (error.name === "AbortError") node.finish = "stopped";
    else node.error = error.message;
  }
  cancelAnimationFrame(frame);
  running.delete(conversation.id);
  save(conversation);
  onRunningChange();
  if (conversations.shown() === conversation && viewsOf === conversation) {
    render();
    const view = views.get(node.id);
    if (view && tokens.length) {
      view.tokens = tokens;
      view.update(stateOf(conversation, node, node));
    }
    keepPinned();
  }
  announce(node.error ?? (node.finish === "stopped" ? "Stopped" : `Answer complete, ${node.stats?.completion_tokens ?? 0} tokens`));
}

const stateOf = (conversation, node, last) => ({running: running.get(conversation.id)?.node === node, isLast: node === last,
  siblings: siblingsOf(conversation, node)});

// A part of the answer came.
function show(conversation, node) {
  if (conversations.shown() !== conversation) return;
  views.get(node.id)?.update(stateOf(conversation, node, node));
  showNote();
  keepPinned();
}

function showNote() {
  const conversation = conversations.shown();
  const state = running.get(conversation.id);
  const seconds = state ? (performance.now() - state.began) / 1000 : 0;
  note.textContent = !state ? summaryOf(conversation.settings)
    : state.numParts < 3 ? "Answering" : `Answering · ${Math.round(state.numParts / seconds)} tokens/s · Esc stops`;
}

function keepPinned() {
  if (pinned) scroll.scrollTop = scroll.scrollHeight;
  showJump();
}

const distance = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight;
const showJump = () => { byId("jump").hidden = pinned || distance() < 200; };
scroll.addEventListener("scroll", () => {
  pinned = distance() < 60;
  showJump();
}, {passive: true});
byId("jump").addEventListener("click", () => {
  pinned = true;
  keepPinned();
});

function welcome() {
  return h("div", {class: "welcome"},
    h("h2", {}, `Ask ${modelName}`),
    h("p", {}, "It runs on this server. Conversations stay in this browser."),
    h("div", {class: "examples"}, kExamples.map(text => h("button", {type: "button", class: "button", onclick: () => send(text)}, text))));
}

/** Shows the conversation as it is now; what did not change keeps its elements. */
export function render() {
  const conversation = conversations.shown();
  if (viewsOf !== conversation) {
    viewsOf = conversation;
    views = new Map();
    pinned = true;
  }
  const path = pathOf(conversation);
  for (const node of path) {
    if (!views.has(node.id)) views.set(node.id, new MessageView(node, actions));
    views.get(node.id).update(stateOf(conversation, node, path.at(-1)));
  }
  const wanted = path.length ? path.map(node => views.get(node.id).element) : [welcome()];
  // Only what changes is moved: focus and selection stay where they are.
  wanted.forEach((element, i) => {
    if (place.children[i] !== element) place.insertBefore(element, place.children[i] ?? null);
  });
  while (place.children.length > wanted.length) place.lastChild.remove();
  showNote();
  keepPinned();
}

// Who leaves the page stops its answers: the browser may keep it, with its connections, for a while. They can be gone on with.
addEventListener("pagehide", () => {
  for (const conversation of conversations.all()) {
    const state = running.get(conversation.id);
    if (!state) continue;
    state.node.finish = "stopped";
    save(conversation);
    state.stop();
  }
});
