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

/** Call a route of this agent; a refusal is thrown with the service's own words. */
async function call(method, path, body, more = {}) {
  const response = await fetch(`/api/agents/${page.agent}${path}`, {
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

/** Listen to the agent; the browser connects again by itself. */
function listen(moved, connected = () => {}) {
  const source = new EventSource(`/api/agents/${page.agent}/events`);
  source.addEventListener("moved", (event) => moved(JSON.parse(event.data)));
  source.addEventListener("open", () => connected(true));
  source.addEventListener("error", () => connected(false));
  addEventListener("pagehide", () => source.close());
}
