// Blocks of code, with colours. Ours, because Debian's highlight.js is one file of all its languages, 269 kB compressed: as large as
// this page may be in all. This knows comments, strings, numbers, keywords and names of what is called; that is what the eye wants.
import {copyText, h, icon} from "./dom.js";

const words = text => new Set(text.split(" "));
const kC = words("auto await async break case catch char class const constexpr continue crate default defer delete do double else enum " +
  "export extends extern false final finally float fn for friend from func function go if impl implements import in inline instanceof int " +
  "interface let long loop match mod module mut namespace new nil null nullptr of operator override package private protected pub public " +
  "return self short signed sizeof static std string struct super switch template this throw throws trait true try type typedef typename " +
  "undefined union unsigned use using val var virtual void volatile when where while with yield bool boolean byte i32 i64 u8 u32 u64 f32 f64 usize");
const kPython = words("and as assert async await break class continue def del elif else end ensure except False finally for from global if " +
  "import in is lambda None nonlocal not or pass print raise return self True try while with yield begin do module nil puts require then unless");
const kShell = words("case do done echo elif else esac export fi for function if in local return select set then until while sudo cd source");
const kSql = words("add all alter and as asc between by case create cross delete desc distinct drop else end exists from full group having " +
  "if in index inner insert into is join left like limit not null offset on or order outer primary key references right select set table " +
  "then union unique update using values view when where with");

// An apostrophe within a word, or of a lifetime of Rust's, begins nothing.
const kQuoted = String.raw`"(?:\\.|[^"\\\n])*"|(?<![&<\w])[bfruBFRU]{0,2}'(?:\\.|[^'\\\n])*'`;
const kKinds = {
  c: {comment: String.raw`//[^\n]*|/\*[\s\S]*?(?:\*/|$)`, string: kQuoted + "|`(?:\\\\.|[^`\\\\])*`?", keywords: kC},
  python: {comment: "#[^\\n]*", string: String.raw`"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|` + kQuoted, keywords: kPython},
  shell: {comment: "(?<![\\w$])#[^\\n]*", string: kQuoted, keywords: kShell},
  sql: {comment: String.raw`--[^\n]*|/\*[\s\S]*?(?:\*/|$)`, string: kQuoted, keywords: kSql, anyCase: true},
  json: {comment: "(?!)", string: kQuoted, keywords: words("true false null")},
  markup: {comment: "<!--[\\s\\S]*?(?:-->|$)", string: String.raw`(?<==\s*)(?:"[^"]*"|'[^']*')`, keywords: new Set(), tag: String.raw`</?[\w:-]+|/?>`},
};
const kLanguages = Object.fromEntries(Object.entries({
  c: "c h cc cpp c++ cxx hpp cuda cu java javascript js jsx mjs typescript ts tsx go rust rs swift kotlin kt csharp cs c# php scala dart css scss zig",
  python: "python py python3 ruby rb perl r julia toml yaml yml ini makefile dockerfile elixir",
  shell: "sh bash zsh shell console fish", sql: "sql sqlite postgres postgresql mysql", json: "json jsonl json5", markup: "html xml svg vue",
}).flatMap(([kind, names]) => names.split(" ").map(name => [name, kind])));

const patterns = new Map();
function patternOf(kind) {
  if (!patterns.has(kind)) {
    const {comment, string, tag = "(?!)"} = kKinds[kind];
    patterns.set(kind, new RegExp(`(?<comment>${comment})|(?<string>${string})|(?<keyword>${tag})|` +
      String.raw`(?<number>\b(?:0[xX][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b)|(?<word>[A-Za-z_]\w*)(?<call>\s*\()?`, "g"));
  }
  return patterns.get(kind);
}

/** [text, class or ""] one after the other; together the whole code. */
export function colouredParts(code, language) {
  const kind = kLanguages[language.toLowerCase()];
  if (!kind || code.length > 200000) return [[code, ""]];
  const {keywords, anyCase} = kKinds[kind];
  const parts = [];
  let end = 0;
  const add = (from, to, name) => {
    if (from > end) parts.push([code.slice(end, from), ""]);
    parts.push([code.slice(from, to), name]);
    end = to;
  };
  for (const found of code.matchAll(patternOf(kind))) {
    if (!found[0]) continue;
    const {comment, string, keyword, number, word, call} = found.groups;
    const from = found.index;
    if (comment) add(from, from + comment.length, "comment");
    else if (string) add(from, from + string.length, "string");
    else if (keyword) add(from, from + keyword.length, "keyword");
    else if (number) add(from, from + number.length, "number");
    else if (keywords.has(anyCase ? word.toLowerCase() : word)) add(from, from + word.length, "keyword");
    else if (call) add(from, from + word.length, "name");
  }
  if (end < code.length) parts.push([code.slice(end), ""]);
  return parts;
}

export function codeBlock(code, language) {
  const copy = h("button", {type: "button", class: "quiet", onclick: () => copyText(code, copy)}, icon("copy"), "Copy");
  return h("div", {class: "code-block"},
    h("div", {class: "code-head"}, h("span", {}, language || "text"), copy),
    h("pre", {tabindex: 0}, h("code", {},
      colouredParts(code, language).map(([text, name]) => name ? h("span", {class: `syntax-${name}`}, text) : text))));
}
