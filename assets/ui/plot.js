// A plot of some series over the last minutes, drawn as SVG. Its text is text of the page: a screen reader gets the newest values.
import {h, svg} from "./dom.js";

const kWidth = 300;
const kHeight = 90;

// 1, 2 or 5 times a power of ten, at least `value`.
function niceTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find(step => step * power >= value * 0.999) * power;
}

export class Plot {
  /** `series`: [{name, values}] is given to show(); `format` makes text of a value; `top`: the highest, when it is known. */
  constructor(title, format, {top} = {}) {
    this.format = format;
    this.fixedTop = top;
    this.drawing = svg("svg", {viewBox: `0 0 ${kWidth} ${kHeight}`, preserveAspectRatio: "none", "aria-hidden": "true"});
    this.topLabel = h("span", {class: "plot-top"});
    this.legend = h("ul", {class: "legend"});
    this.element = h("section", {class: "plot", "aria-label": title}, h("h3", {}, title),
      h("div", {class: "plot-area"}, this.drawing, this.topLabel), this.legend);
  }

  show(series, numSamples) {
    const known = series.flatMap(({values}) => values).filter(Number.isFinite);
    const top = this.fixedTop ?? niceTop(Math.max(...known, 0));
    this.topLabel.textContent = this.format(top);
    const x = i => (i / (numSamples - 1)) * kWidth;
    const y = value => kHeight - 1 - (value / top) * (kHeight - 3);
    const lines = series.flatMap(({values}, k) => {
      let path = "";
      let pen = "M";
      values.forEach((value, i) => {
        if (!Number.isFinite(value)) {
          pen = "M";
          return;
        }
        path += `${pen}${x(numSamples - values.length + i).toFixed(1)} ${y(value).toFixed(1)}`;
        // A value with nothing beside it is a dot.
        if (pen === "M" && !Number.isFinite(values[i + 1])) path += "h.1";
        pen = "L";
      });
      return path ? [svg("path", {d: path, class: `line series-${k + 1}`})] : [];
    });
    this.drawing.replaceChildren(
      ...[0, 0.5, 1].map(share => svg("path", {class: "rule", d: `M0 ${y(share * top)}H${kWidth}`})), ...lines);
    this.legend.replaceChildren(...series.map(({name, values}, k) => {
      const last = values.findLast(Number.isFinite);
      return h("li", {class: `series-${k + 1}`}, h("span", {class: "swatch", "aria-hidden": "true"}), `${name} `,
        h("strong", {}, last === undefined ? "–" : this.format(last)));
    }));
  }
}
