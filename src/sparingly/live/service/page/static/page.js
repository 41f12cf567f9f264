// What every page shares: calls to the service, small pieces of document, live updates.
"use strict";

const page = document.body.dataset;
const $ = (id) => document.getElementById(id);

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Call a route of this agent. */
function call(method, path, body, more = {}) {
  return callService(method, `/agents/${page.agent}${path}`, body, more);
}

/** Call a route of the service; a refusal is thrown with the service's own words. */
async function callService(method, path, body, more = {}) {
  const response = await fetch(`/api${path}`, {
    method,
    headers: { "x-csrf-token": page.csrf, ...(body && { "content-type": "application/json" }) },
    body: body && JSON.stringify(body),
    credentials: "same-origin",
    ...more,
  });
  if (response.status === 401) {
    location.assign("/sign-in");
    throw new Refused(401, "You are signed out.");
  }
  const told = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, told.error || `The service said ${response.status}.`);
  return told;
}

/** An element with text, never markup: whatever a payload contains stays text. */
function make(tag, { text, className, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function number(value, digits = 0) {
  if (value === null || value === undefined) return "–";
  return new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
}

function money(value) {
  return number(value, value !== null && Math.abs(value) < 100 && !Number.isInteger(value) ? 2 : 0);
}

function percent(value, digits = 1) {
  return value === null || value === undefined ? "–" : `${number(100 * value, digits)} %`;
}

function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 60) return `${Math.floor(past)} s ago`;
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86400) return `${Math.floor(past / 3600)} h ago`;
  return new Date(seconds * 1000).toLocaleDateString();
}

/** The agent's own words for a reason, and its numbers. */
function figures({ why, numbers }) {
  const told = Object.entries(numbers ?? {}).map(([name, value]) => `${name} ${typeof value === "number" ? Number(value.toPrecision(3)) : value}`);
  return [sentence(why), told.join(" · ")].filter(Boolean).join(" ");
}

function sentence(words) {
  const text = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function show(element, visible) {
  element.hidden = !visible;
}

function problem(message) {
  const place = $("problem");
  if (!place) return;
  place.textContent = message || "";
  show(place, Boolean(message));
}

/** Do what a button or a form asks for; what is refused is told, and nothing is lost. */
async function attemptTo(work) {
  problem(null);
  try {
    return await work();
  } catch (error) {
    problem(error.status ? sentence(error.message) : "The service cannot be reached. Nothing was changed; try again.");
    $("problem").scrollIntoView({ block: "nearest" });
    return undefined;
  }
}

/** A form that does something without leaving the page. */
function onSubmit(form, work) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attemptTo(() => work(new FormData(form)));
  });
}

/** A button that asks for a second click before it does what cannot be undone. */
function dangerous(button, question, work) {
  const words = button.textContent;
  let asked = null;
  button.addEventListener("click", () => {
    clearTimeout(asked);
    if (button.dataset.asked) {
      delete button.dataset.asked;
      button.textContent = words;
      attemptTo(work);
      return;
    }
    button.dataset.asked = "yes";
    button.textContent = question;
    asked = setTimeout(() => {
      delete button.dataset.asked;
      button.textContent = words;
    }, 8000);
  });
}

function rows(cells, columns, none) {
  if (cells.length === 0) return [make("tr", {}, make("td", { colspan: columns, className: "muted", text: none }))];
  return cells.map((row) => make("tr", {}, ...row));
}

function cell(text, className) {
  return make("td", { text: String(text), ...(className && { className }) });
}

/** A ticket's id, which leads to all about it. */
function ticketCell(id) {
  const link = make("a", { href: `/agents/${page.agent}/tickets?ticket=${encodeURIComponent(id)}`, text: id });
  return make("td", { className: "id" }, link);
}

/** Listen to the agent; the browser connects again by itself. */
function listen(moved, connected = () => {}) {
  const source = new EventSource(`/api/agents/${page.agent}/events`);
  source.addEventListener("moved", (event) => moved(JSON.parse(event.data)));
  source.addEventListener("open", () => connected(true));
  source.addEventListener("error", () => connected(false));
  addEventListener("pagehide", () => source.close());
}
