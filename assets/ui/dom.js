// Builds elements. Nothing in this page is ever made of HTML that comes as text: strings become text nodes.

const kSvg = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name === "value" && "value" in element) element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter(child => child !== undefined && child !== null && child !== false));
  return element;
}

/** h("p", {class: "note", onclick: f}, "text", node, ...): an element of HTML. */
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same of SVG. */
export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(kSvg, tag), properties, children);
}

/** One of the pictures that index.html begins with. */
export function icon(name) {
  return svg("svg", {class: "icon-image", "aria-hidden": "true"}, svg("use", {href: `#i-${name}`}));
}

/** A button that shows a picture alone; `label` is what it is called. */
export function iconButton(name, label, onclick, more = {}) {
  return h("button", {type: "button", class: "icon", "aria-label": label, title: label, onclick, ...more}, icon(name));
}

export const byId = id => document.getElementById(id);

/** Tells it to who listens to a screen reader. */
export function announce(text) {
  const place = byId("announcer");
  if (place) place.textContent = text;
}

/** Offers a text as a file. */
export function download(name, text, type = "application/json") {
  const address = URL.createObjectURL(new Blob([text], {type}));
  const link = h("a", {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Copies, and shows for a moment on the button that it did. */
export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Not a secure context (plain http from elsewhere): the old way.
    const area = h("textarea", {class: "for-readers", "aria-hidden": "true"});
    area.value = text;
    (button.closest("dialog") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  const before = [...button.childNodes];
  button.replaceChildren(icon("check"), ...(before.length > 1 ? ["Copied"] : []));
  announce("Copied");
  setTimeout(() => button.replaceChildren(...before), 1200);
}
