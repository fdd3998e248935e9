// What tests/http/test_ui.py asks of any page, in the page: contrast of texts, and what is wider than the screen.

function parts(color) {
  const numbers = color.match(/-?[\d.]+(?:e-?\d+)?/g)?.map(Number) ?? [0, 0, 0, 0];
  const [r, g, b, alpha = 1] = numbers;
  return color.startsWith("color(") ? [r * 255, g * 255, b * 255, alpha] : [r, g, b, alpha];
}

const over = (top, bottom) => [0, 1, 2].map(i => top[i] * top[3] + bottom[i] * (1 - top[3])).concat(1);

function groundOf(element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const layer = parts(getComputedStyle(at).backgroundColor);
    if (layer[3] > 0) layers.push(layer);
    if (layer[3] >= 1) break;
  }
  return layers.reduceRight((ground, layer) => over(layer, ground), [255, 255, 255, 1]);
}

function luminance(color) {
  const [r, g, b] = color.map(value => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// WCAG 2.2, 1.4.3. Controls that can't be used now, and what only screen readers get, need none.
function lowContrast(root, lowest) {
  const out = [];
  const seen = new Set();
  const look = (element, color, text) => {
    if (seen.has(element) || element.closest(":disabled, .for-readers, .skip, .noscript, option")) return;
    if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) return;
    seen.add(element);
    const ground = groundOf(element);
    const [a, b] = [luminance(over(parts(color), ground)), luminance(ground)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < lowest) out.push(`${contrast.toFixed(2)} ${element.tagName}.${element.className}: ${text.slice(0, 40)}`);
  };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.data.trim()) look(node.parentElement, getComputedStyle(node.parentElement).color, node.data);
  }
  for (const field of root.querySelectorAll("input, textarea")) {
    if (field.placeholder) look(field, getComputedStyle(field, "::placeholder").color, field.placeholder);
  }
  // Lines and pictures: 3 (1.4.11).
  for (const line of root.querySelectorAll("path.line")) {
    const [a, b] = [luminance(parts(getComputedStyle(line).stroke)), luminance(groundOf(line.closest(".plot")))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 3) out.push(`line ${line.getAttribute("class")}`);
  }
  return out;
}

// What sticks out at the right, unless it stands in something that scrolls.
function tooWide() {
  const width = document.documentElement.clientWidth;
  const scrolls = element => {
    for (let at = element; at; at = at.parentElement) if (["auto", "scroll", "hidden"].includes(getComputedStyle(at).overflowX)) return true;
    return false;
  };
  const out = [...document.body.querySelectorAll("*")].filter(element => element.checkVisibility({visibilityProperty: true})
    && element.getBoundingClientRect().right > width + 1 && !scrolls(element.parentElement));
  return [document.documentElement.scrollWidth > width && "the page", ...out.map(element => `${element.tagName}.${element.className}`)].filter(Boolean);
}
