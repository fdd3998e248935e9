// A conversation: a tree of messages, of which one path is shown. To edit a message or to ask again adds a sibling; nothing is lost.
//
// node: {id, parent, role: "user" | "assistant" | "tool", content, ...}. Of the assistant: reasoning, calls [{id, name, arguments}],
// finish, stats, error, model; of a tool: callId, name. `chosen` tells which child of a message is on the path ("": of the beginning).

let counter = 0;
export const newId = () => `${Date.now().toString(36)}-${(counter++).toString(36)}-${Math.random().toString(36).slice(2, 8)}`;

export function newConversation(settings) {
  return {id: newId(), title: "", created: Date.now(), updated: Date.now(), settings: {...settings}, nodes: [], chosen: {}};
}

const childrenOf = (conversation, parent) => conversation.nodes.filter(node => node.parent === parent);

/** The messages shown, from the first to the last. */
export function pathOf(conversation) {
  const path = [];
  let parent = "";
  for (;;) {
    const children = childrenOf(conversation, parent);
    if (!children.length) return path;
    const next = children.find(node => node.id === conversation.chosen[parent]) ?? children.at(-1);
    path.push(next);
    parent = next.id;
  }
}

/** The path from the first message to this one. */
export function pathTo(conversation, node) {
  const path = [];
  for (let at = node; at; at = conversation.nodes.find(other => other.id === at.parent)) path.unshift(at);
  return path;
}

/** Adds a message and shows it. `parent` is a node, or null for the beginning. */
export function addNode(conversation, parent, fields) {
  const node = {id: newId(), parent: parent?.id ?? "", content: "", ...fields};
  conversation.nodes.push(node);
  conversation.chosen[node.parent] = node.id;
  conversation.updated = Date.now();
  return node;
}

export const parentOf = (conversation, node) => conversation.nodes.find(other => other.id === node.parent) ?? null;

/** {all, index} of a message among those that stand at its place. */
export function siblingsOf(conversation, node) {
  const all = childrenOf(conversation, node.parent);
  return {all, index: all.indexOf(node)};
}

export function choose(conversation, node) {
  conversation.chosen[node.parent] = node.id;
}

export function titleOf(conversation) {
  if (conversation.title) return conversation.title;
  const first = conversation.nodes.find(node => node.role === "user");
  const line = first?.content.trim().split("\n")[0] ?? "";
  return line.length > 60 ? `${line.slice(0, 58).trimEnd()}…` : line || "New chat";
}

/** What a file of conversations may hold: anything else is refused with a reason. Throws Error. */
export function checkConversation(value) {
  const isText = text => typeof text === "string";
  const fail = why => { throw new Error(`not a conversation of this page: ${why}`); };
  if (typeof value !== "object" || value === null || Array.isArray(value)) fail("expected an object");
  if (!Array.isArray(value.nodes)) fail("it has no list `nodes`");
  const ids = new Set([""]);
  const nodes = value.nodes.map((node, i) => {
    if (!isText(node?.id) || !isText(node.parent) || !isText(node.content)) fail(`nodes[${i}] lacks id, parent or content`);
    if (!["user", "assistant", "tool"].includes(node.role)) fail(`nodes[${i}].role is ${JSON.stringify(node.role)}`);
    if (ids.has(node.id)) fail(`nodes[${i}].id is there twice`);
    if (!ids.has(node.parent)) fail(`nodes[${i}].parent does not come before it`);
    ids.add(node.id);
    const out = {id: node.id, parent: node.parent, role: node.role, content: node.content};
    for (const name of ["reasoning", "finish", "error", "model", "callId", "name"]) if (isText(node[name])) out[name] = node[name];
    if (Array.isArray(node.calls)) {
      out.calls = node.calls.map(call => ({id: String(call?.id), name: String(call?.name), arguments: String(call?.arguments)}));
    }
    if (typeof node.stats === "object" && node.stats !== null) {
      out.stats = Object.fromEntries(Object.entries(node.stats).filter(([, number]) => Number.isFinite(number)));
    }
    return out;
  });
  const chosen = {};
  for (const [parent, child] of Object.entries(value.chosen ?? {})) if (ids.has(parent) && ids.has(child)) chosen[parent] = child;
  const time = number => Number.isFinite(number) ? number : Date.now();
  return {id: newId(), title: isText(value.title) ? value.title : "", created: time(value.created), updated: time(value.updated),
    settings: typeof value.settings === "object" && value.settings !== null ? {...value.settings} : {}, nodes, chosen};
}
