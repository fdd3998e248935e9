// Markdown as elements. marked (a library of Debian's) reads it into tokens; here each becomes a node, so that no HTML of a model is
// ever parsed: tags it writes are shown as the text they are. Formulas between $ or \( \) and $$ or \[ \] are read here too.
import {codeBlock} from "./code.js";
import {h} from "./dom.js";
import {formula} from "./math.js";

const kEntities = {amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", hellip: "…", mdash: "—",
  ndash: "–", rarr: "→", larr: "←", times: "×", deg: "°"};
const decode = text => text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
  if (name) return kEntities[name] ?? whole;
  const code = decimal ? Number(decimal) : parseInt(hex, 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
});

const kInlineMath = /^(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\]|\\\(([\s\S]+?)\\\)|\$(?![\s$])((?:\\.|[^$\\\n])*?[^\s$\\]|\\.)\$(?!\d))/;
const kBlockMath = /^ {0,3}(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n+|$)/;

const marked = globalThis.marked;
marked?.use({mangle: false, extensions: [{
  name: "math", level: "inline",
  start: text => text.match(/\$|\\[([]/)?.index,
  tokenizer(text) {
    const found = kInlineMath.exec(text);
    if (!found) return undefined;
    return {type: "math", raw: found[0], text: found.slice(1).find(Boolean), display: Boolean(found[1] ?? found[2])};
  },
}, {
  name: "mathBlock", level: "block",
  start: text => text.match(/\n {0,3}(?:\$\$|\\\[)/)?.index,
  tokenizer(text) {
    const found = kBlockMath.exec(text);
    return found ? {type: "math", raw: found[0], text: found[1] ?? found[2], display: true} : undefined;
  },
}]});

// Only addresses that lead to a page or a mail; others are shown as text.
function safeAddress(href) {
  try {
    const address = new URL(decode(href));
    return ["http:", "https:", "mailto:"].includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

function link(token, children) {
  const href = safeAddress(token.href);
  if (!href) return h("span", {title: token.href}, children);
  return h("a", {href, target: "_blank", rel: "noopener noreferrer", title: token.title}, children);
}

const inlineOf = token => token.tokens ? nodesOf(token.tokens) : [decode(token.text ?? "")];

function list(token) {
  const items = token.items.map(item => h("li", item.task && {class: "task"},
    item.task && h("span", {class: "tick", role: "img", "aria-label": item.checked ? "done" : "to do"}, item.checked ? "☑" : "☐"),
    nodesOf(item.tokens)));
  return token.ordered ? h("ol", {start: token.start === 1 ? null : token.start}, items) : h("ul", {}, items);
}

function table(token) {
  const cell = (tag, {tokens}, i) => h(tag, {class: token.align[i] && `to-${token.align[i]}`}, nodesOf(tokens));
  return h("div", {class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Table"}, h("table", {},
    h("thead", {}, h("tr", {}, token.header.map((each, i) => cell("th", each, i)))),
    h("tbody", {}, token.rows.map(row => h("tr", {}, row.map((each, i) => cell("td", each, i)))))));
}

const kNodes = {
  space: () => null,
  def: () => null,
  hr: () => h("hr"),
  br: () => h("br"),
  code: token => codeBlock(token.text, (token.lang ?? "").split(/\s/)[0]),
  codespan: token => h("code", {}, decode(token.text)),
  heading: token => h(`h${Math.min(token.depth + 2, 6)}`, {}, inlineOf(token)),
  paragraph: token => h("p", {}, inlineOf(token)),
  blockquote: token => h("blockquote", {}, nodesOf(token.tokens)),
  strong: token => h("strong", {}, inlineOf(token)),
  em: token => h("em", {}, inlineOf(token)),
  del: token => h("del", {}, inlineOf(token)),
  text: inlineOf,
  escape: token => decode(token.text),
  html: token => /^<br\s*\/?>$/i.test(token.raw.trim()) ? h("br") : token.raw,
  link: token => link(token, inlineOf(token)),
  image: token => link(token, [decode(token.text) || token.href]),  // a picture would be asked for elsewhere
  math: token => formula(token.text, token.display),
  list,
  table,
};

const nodesOf = tokens => tokens.flatMap(token => (kNodes[token.type] ?? (other => other.raw))(token) ?? []);

// HTML between paragraphs, as text in a paragraph of its own.
const blocksOf = token => token.type === "html" ? [h("p", {class: "as-written"}, token.raw.trimEnd())] : nodesOf([token]);

/** Shows a growing text: only the blocks at its end that changed are made anew. */
export class MarkdownView {
  constructor(element) {
    this.element = element;
    this.blocks = [];  // {raw, nodes}
  }

  show(text) {
    // Without the library: as it was written.
    const tokens = marked ? marked.lexer(text) : [{type: "html", raw: text}];
    const links = JSON.stringify(tokens.links ?? {});  // a definition at the end changes what came before
    let same = 0;
    if (links === this.links) while (same < tokens.length && this.blocks[same]?.raw === tokens[same].raw) ++same;
    this.links = links;
    for (const {nodes} of this.blocks.splice(same)) nodes.forEach(node => node.remove());
    for (const token of tokens.slice(same)) {
      const nodes = blocksOf(token).map(node => typeof node === "string" ? document.createTextNode(node) : node);
      this.element.append(...nodes);
      this.blocks.push({raw: token.raw, nodes});
    }
  }
}
