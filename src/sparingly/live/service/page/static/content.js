// What was observed, as a person sees it: an image, a text, or a table of fields.
"use strict";

const FIELDS = { first: 40, more: 2000 };

function shown({ payload, features, feature_names: names }) {
  if (payload && payload.kind === "image") {
    const image = make("img", { alt: "The image to classify", src: `data:${payload.media};base64,${payload.image}` });
    image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 200));
    return make("div", { className: "content" }, image);
  }
  const wide = make("div", { className: "content wide" });
  if (payload && payload.kind === "text") wide.append(...parts(payload.text));
  else wide.append(...table(payload ? Object.entries(payload.fields) : named(features, names)));
  return wide;
}

/** A text in its parts: code is what stands between fences of three backticks, or looks like it. */
function parts(text) {
  return text.split(/(^```[^\n]*\n[^]*?^```[^\n]*$)/m).filter((part) => part.trim()).map((part) =>
    make("div", {
      className: part.startsWith("```") || looksLikeCode(part) ? "text code" : "text",
      text: part.replace(/^\n/, ""),
    }),
  );
}

/** Whether most lines of a text are indented, or end as statements and blocks do. */
function looksLikeCode(text) {
  const lines = text.slice(0, 5000).split("\n").filter((line) => line.trim());
  const like = lines.filter((line) => /^(\t| {2,})\S/.test(line) || /[;{}\])]\s*$|^\s*(#|\/\/|def |class |import |return )/.test(line));
  return lines.length > 2 && like.length > lines.length / 2;
}

/** A table of fields, the first of them at once and the others on request. */
function table(fields) {
  const body = make("tbody");
  const more = make("button", { type: "button", className: "quiet more" });
  const grow = (count) => {
    const begin = body.rows.length;
    body.append(...fields.slice(begin, begin + count).map(row));
    const left = fields.length - body.rows.length;
    show(more, left > 0);
    more.textContent =
      left > FIELDS.more
        ? `Show ${number(FIELDS.more)} more of ${number(fields.length)} fields`
        : `Show all ${number(fields.length)} fields`;
    return body.rows[begin];
  };
  more.addEventListener("click", () => {
    const first = grow(FIELDS.more);
    first.tabIndex = -1;
    first.focus({ preventScroll: true });
  });
  grow(FIELDS.first);
  return [make("table", { className: "fields", "aria-label": "What is known" }, body), more];
}

function row([name, value]) {
  const text = value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return make("tr", {}, make("th", { scope: "row", text: name }), make("td", { text }));
}

function named(features, names) {
  return features.map((value, i) => [names ? names[i] : `feature ${i}`, Number(value.toPrecision(6))]);
}
