// Small line charts in SVG, drawn at the size they are shown at.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const EDGE = { top: 12, right: 16, bottom: 26, left: 46 };
const LETTER = 7.5;

function svg(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** About four round numbers from low to high. */
function ticks(low, high) {
  const rough = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) found.push(value);
  return found;
}

/**
 * Draw lines over the observations.
 * series: [{name, className, points: [[x, y|null]]}], the first above the others; band: [[x, low, high]] around it,
 * with a mark at each point; format: y to text.
 */
function chart(place, { series, band = [], format, low = 0, high = null, summary }) {
  const width = Math.max(260, place.clientWidth);
  const height = 220;
  const xs = series.flatMap((s) => s.points.map((p) => p[0]));
  const ys = [...series.flatMap((s) => s.points.map((p) => p[1])), ...band.map((b) => b[2])].filter((y) => y !== null);
  if (ys.length === 0 || Math.max(...xs) === 0) {
    place.replaceChildren(make("p", { className: "muted none", text: "Nothing to draw yet." }));
    return;
  }
  const right = Math.max(...xs);
  const top = high ?? Math.max(...ys, low + 1e-9) * 1.05;
  const left = Math.max(EDGE.left, 12 + LETTER * Math.max(...ticks(low, top).map((value) => format(value).length)));
  const x = (v) => left + ((width - left - EDGE.right) * v) / right;
  const y = (v) => height - EDGE.bottom - ((height - EDGE.top - EDGE.bottom) * (v - low)) / (top - low);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": summary });
  axes(drawing, { width, height, left, right, top, low, x, y, format });
  if (band.length > 1) drawing.append(svg("path", { class: "band", d: outline(band, x, y) }));
  for (const [v, bottom, high] of band) drawing.append(svg("line", { class: "span", x1: x(v), x2: x(v), y1: y(bottom), y2: y(high) }));
  for (const one of [...series].reverse()) drawing.append(svg("path", { class: `line ${one.className}`, d: path(one.points, x, y) }));
  const known = series[0].points.filter((point) => point[1] !== null);
  for (const [v, value] of band.length ? known : known.slice(-1)) {
    drawing.append(svg("circle", { class: "mark", cx: x(v), cy: y(value), r: 4 }));
  }
  place.replaceChildren(drawing, ...(series.length > 1 ? [legend(series)] : []));
}

function axes(drawing, { width, height, left, right, top, low, x, y, format }) {
  for (const value of ticks(low, top)) {
    drawing.append(svg("line", { class: "grid", x1: left, x2: width - EDGE.right, y1: y(value), y2: y(value) }));
    drawing.append(svg("text", { class: "tick", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)));
  }
  const shown = ticks(0, right).filter((value) => x(value) < width - 100);
  for (const value of shown) {
    drawing.append(svg("text", { class: "tick", x: x(value), y: height - 8, "text-anchor": "middle" }, number(value)));
  }
  drawing.append(svg("text", { class: "tick", x: width - EDGE.right, y: height - 8, "text-anchor": "end" }, "observed"));
}

function path(points, x, y) {
  let d = "";
  let drawn = false;
  for (const [px, py] of points) {
    if (py !== null) d += `${drawn ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`;
    drawn = drawn || py !== null;
  }
  return d;
}

function outline(band, x, y) {
  const upper = band.map(([v, , high]) => `${x(v).toFixed(1)} ${y(high).toFixed(1)}`);
  const lower = band.map(([v, low]) => `${x(v).toFixed(1)} ${y(low).toFixed(1)}`).reverse();
  return `M${[...upper, ...lower].join("L")}Z`;
}

function legend(series) {
  const items = series.map((s) => make("li", {}, make("i", { className: `key ${s.className}` }), make("span", { text: s.name })));
  return make("ul", { className: "legend" }, ...items);
}
