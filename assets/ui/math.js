// Formulas: KaTeX (a library of Debian's), loaded when the first one is to be shown, makes MathML of TeX; the browser draws it with the
// system's fonts. What KaTeX does not know stays as it was written.
import {h} from "./dom.js";

const kSource = new URL("./lib/katex.js", import.meta.url).href;
let loading = null;

function load() {
  loading ??= new Promise(resolve => {
    const script = h("script", {src: kSource, onload: () => resolve(globalThis.katex), onerror: () => resolve(undefined)});
    document.head.append(script);
  });
  return loading;
}

function draw(element, tex, display) {
  try {
    globalThis.katex.render(tex, element, {output: "mathml", displayMode: display, trust: false, strict: "ignore",
      maxExpand: 500, errorColor: "currentColor"});
    element.classList.remove("as-written");
  } catch {
    element.textContent = tex;
  }
}

export function formula(tex, display) {
  const element = h("span", {class: display ? "formula display as-written" : "formula as-written"}, tex);
  if (display) element.tabIndex = 0;  // wide ones are scrolled
  if (globalThis.katex) draw(element, tex, display);
  else load().then(katex => katex && draw(element, tex, display));
  return element;
}
