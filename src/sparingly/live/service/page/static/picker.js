// The choice among very many classes: typing filters them, Enter answers; the likeliest and the recent ones come first.
"use strict";

const RECENT = 6;
const picker = { labels: [], likely: [], descriptions: new Map(), options: [], active: -1, answer: null, groups: [] };

/** Words without accents, capitals and separators, so that "card lost" finds "Banking/card_lost". */
function plain(text) {
  const spaced = String(text).replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").normalize("NFD").replace(/\p{M}/gu, "");
  return spaced.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
}

/** What a class means, in the words of whoever made the agent. */
function describe(label) {
  return picker.descriptions.get(String(label)) ?? "";
}

/** How well a class fits what was typed: 0 best, 4 not at all. */
function fit(label, typed) {
  const name = plain(label);
  const words = typed.split(" ");
  if (name.startsWith(typed)) return 0;
  if (words.every((word) => ` ${name}`.includes(` ${word}`))) return 1;
  if (words.every((word) => name.includes(word))) return 2;
  const described = `${name} ${plain(describe(label))}`;
  return words.every((word) => ` ${described}`.includes(` ${word}`)) ? 3 : 4;
}

function matching(typed) {
  const whole = String($("typed").value).trim().toLowerCase();
  const fits = picker.labels.map((label) => [String(label).toLowerCase() === whole ? -1 : fit(label, typed), label]);
  return fits.filter(([how]) => how < 4).sort((one, other) => one[0] - other[0]).map(([, label]) => label);
}

/** The classes by what stands before the first slash of their names, if several share it; the others come last. */
function grouped(labels) {
  const groups = new Map();
  for (const label of labels) {
    const [, name] = /^([^/]+)\/./.exec(String(label)) ?? [];
    const key = name === undefined ? "" : name.trim();
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(label);
  }
  const named = [...groups].filter(([name, members]) => name && members.length > 1);
  if (!named.length) return [["All classes", labels, String]];
  const inGroup = new Set(named.flatMap(([, members]) => members));
  const others = labels.filter((label) => !inGroup.has(label));
  const within = (label) => String(label).slice(String(label).indexOf("/") + 1).trim();
  const sections = named.map(([name, members]) => [name, members, within]);
  return others.length ? [...sections, ["Others", others, String]] : sections;
}

function recentClasses() {
  const kept = JSON.parse(localStorage.getItem(recentKey()) ?? "[]");
  return kept.filter((label) => picker.labels.includes(label));
}

function recentKey() {
  return `recent ${page.agent} ${page.person}`;
}

function rememberClass(label) {
  const others = recentClasses().filter((one) => one !== label);
  localStorage.setItem(recentKey(), JSON.stringify([label, ...others].slice(0, RECENT)));
}

function sections(typed) {
  if (typed) return [[null, matching(typed), String]];
  const recent = recentClasses().filter((label) => !picker.likely.includes(label));
  const first = [["Likely", picker.likely, String], ["Recent", recent, String]];
  return [...first.filter(([, labels]) => labels.length), ...picker.groups];
}

function drawOptions() {
  const typed = plain($("typed").value);
  picker.options = [];
  const drawn = sections(typed).map(([name, labels, text]) => section(name, labels, text));
  $("options").replaceChildren(...drawn.filter((part) => part.childElementCount));
  $("options").scrollTop = 0;
  const found = picker.options.length;
  const [all, entered] = [number(picker.labels.length), $("typed").value.trim()];
  $("found").textContent = !typed ? `${all} classes` : found ? `${number(found)} of ${all} classes` : `No class has “${entered}” in it`;
  activate(typed && found ? 0 : -1);
}

function section(name, labels, text) {
  const options = labels.map((label) => option(label, text(label)));
  if (name === null) return make("div", { role: "presentation" }, ...options);
  const heading = make("div", { className: "section", role: "presentation", text: name });
  return make("div", { role: "group", "aria-label": name }, heading, ...options);
}

function option(label, text) {
  const place = picker.options.length;
  const description = describe(label);
  const attributes = { role: "option", id: `option-${place}`, className: "option", "aria-selected": "false" };
  const element = make("div", { ...attributes, ...(description && { title: description }) }, ...breakable(text));
  element.addEventListener("click", () => picker.answer(label));
  picker.options.push({ label, element });
  return element;
}

/** A name that may go on in the next line after a separator, and not within a word. */
function breakable(text) {
  return text.split(/(?<=[_/.:-])(?=.)/).flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));
}

function activate(place) {
  picker.options[picker.active]?.element.setAttribute("aria-selected", "false");
  picker.active = place;
  const now = picker.options[place];
  if (now) {
    now.element.setAttribute("aria-selected", "true");
    now.element.scrollIntoView({ block: "nearest" });
    $("typed").setAttribute("aria-activedescendant", now.element.id);
  } else $("typed").removeAttribute("aria-activedescendant");
  $("described").textContent = now ? describe(now.label) : "";
}

function moveBy(steps) {
  const last = picker.options.length - 1;
  if (last < 0) return;
  if (Math.abs(steps) === 1) activate((picker.active + steps + (picker.active < 0 && steps < 0 ? 1 : 0) + last + 1) % (last + 1));
  else activate(Math.min(last, Math.max(0, picker.active + steps)));
}

function typedKey(event) {
  const takesBack = (event.ctrlKey || event.metaKey) && event.key === "z" && !event.target.value && $("keys").checked;
  if (takesBack) undo();
  if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
  if (steps) moveBy(steps);
  else if (event.key === "Enter") {
    if (picker.active >= 0 && !event.repeat) picker.answer(picker.options[picker.active].label);
  } else if (event.key === "Escape" && $("typed").value) clearTyped();
  else return;
  event.preventDefault();
}

function clearTyped() {
  $("typed").value = "";
  drawOptions();
}

/** Let the person choose among these classes; `isNew` begins anew. */
function pick(labels, likely, isNew, answer) {
  const same = labels.length === picker.labels.length && labels.every((label, i) => label === picker.labels[i]);
  if (!same) picker.groups = grouped(labels);
  Object.assign(picker, { labels, likely, answer });
  if (isNew) $("typed").value = "";
  if (isNew || !same) drawOptions();
}

$("typed").addEventListener("input", drawOptions);
$("typed").addEventListener("keydown", typedKey);
$("options").addEventListener("mousedown", (event) => event.target.closest(".option") && event.preventDefault()); // the field keeps the focus
