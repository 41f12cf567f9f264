// Tickets: found by search and filter, opened, corrected, released, taken back, withdrawn, erased.
"use strict";

let listed = [];
let older = null;
let opened = null;

function wanted() {
  const given = [...new FormData($("filter"))].filter(([, value]) => value.trim());
  return new URLSearchParams(given.map(([name, value]) => [name, value.trim()]));
}

async function find(before = null) {
  const query = wanted();
  if (before) query.set("before", before);
  const told = await call("GET", `/search?${query}`);
  listed = before ? [...listed, ...told.tickets] : told.tickets;
  older = told.next;
  $("tickets").replaceChildren(...rows(listed.map(line), 6, "No ticket is like that."));
  $("found-title").textContent = `${number(listed.length)} ${listed.length === 1 ? "ticket" : "tickets"}${older ? ", newest first" : ""}`;
  show($("older"), older !== null);
}

function line(entry) {
  const tag = make("span", { className: `tag ${entry.asks ? "asked" : "said"}`, text: entry.asks ? "asked" : "said" });
  const decision = make("td", { className: "decision" }, tag, entry.asks || entry.prediction === null ? "" : make("b", { text: String(entry.prediction) }));
  const outcome = cell(entry.label ?? (entry.status === "announced" ? "" : entry.status), entry.label === null ? "when" : "");
  return [cell(ago(entry.at), "when"), ticketCell(entry.id), decision, cell(entry.reason, "words"), outcome, cell(entry.expert ?? "")];
}

async function open(id, focus = true) {
  opened = await call("GET", `/details?ticket=${encodeURIComponent(id)}`);
  const { status, label, erased, payload, features, holder } = opened;
  $("ticket-id").textContent = `Ticket ${opened.id}`;
  const stands = label === null ? status : `${status}: ${label}`;
  $("ticket-status").textContent = `${stands}${holder ? `, with ${holder} now` : ""}${opened.prediction === null ? "" : ` · would say ${opened.prediction}`}`;
  const nothing = erased ? "What was observed is erased." : "What was observed is no longer kept.";
  $("shown").replaceChildren(payload || features ? shown(opened) : make("p", { className: "muted", text: nothing }));
  $("reason").textContent = sentence(opened.reason);
  $("numbers").textContent = figures(opened);
  $("likely").replaceChildren(...opened.probabilities.map(held));
  const calls = opened.calls.map(({ at, expert, state, label, detail }) => ({ at, what: `asked ${expert}: ${detail || state}`, who: null, label }));
  $("events").replaceChildren(...[...opened.events, ...calls].sort((one, other) => one.at - other.at).map(happened));
  $("asked").textContent = `Asked: ${opened.asked.join(", then ")}; paid for calls${opened.opinions.length ? " and second opinions" : ""}: ${money(opened.paid)}.`;
  show($("asked"), opened.asked.length > 0);
  $("correct-label").value = label ?? "";
  const isOpen = status === "open";
  $("correct-button").textContent = status === "answered" ? "Correct" : "Answer";
  show($("correct"), !["withdrawn", "unknown", "consulting"].includes(status) && erased !== "everything");
  show($("release"), isOpen && holder !== null);
  show($("reopen"), opened.asks && ["answered", "unknown", "skipped"].includes(status) && erased !== "everything");
  show($("withdraw"), isOpen);
  show($("erase"), erased !== "everything");
  show($("ticket"), true);
  history.replaceState(null, "", `?ticket=${encodeURIComponent(id)}`);
  if (focus) {
    $("ticket-id").focus({ preventScroll: true });
    $("ticket").scrollIntoView({ block: "start" });
  }
}

function held([name, probability]) {
  const drawing = document.createElement("meter");
  drawing.value = probability;
  drawing.setAttribute("aria-label", String(name));
  return make("li", {}, make("span", { text: String(name) }), drawing, make("b", { text: percent(probability, 0) }));
}

function happened({ at, what, who, label }) {
  const when = new Date(1000 * at).toLocaleString();
  const by = [who ? `by ${who}` : "", label !== null ? `as ${label}` : ""].filter(Boolean).join(" ");
  return make("li", {}, make("b", { text: what }), ` ${by} `, make("span", { className: "muted small", text: when }));
}

/** Change the ticket, and show it and the list as they stand then. */
async function change(path, more = {}) {
  const { id } = opened;
  await call("POST", path, { ticket: id, ...more });
  await open(id, false);
  await find();
}

/** The class as the agent knows it: a number is no text. */
function classOf(text) {
  const choices = JSON.parse($("ticket").dataset.classes);
  return choices.find((one) => String(one) === text.trim()) ?? text.trim();
}

onSubmit($("filter"), () => find());
onSubmit($("correct"), (given) => change(opened.status === "answered" ? "/correct" : "/answer", { label: classOf(given.get("label")) }));
$("older").addEventListener("click", () => attemptTo(() => find(older)));
$("release").addEventListener("click", () => attemptTo(() => change("/release", { expert: opened.holder })));
dangerous($("reopen"), "Take the answer back?", async () => {
  await change("/undo");
  await change("/release");
});
dangerous($("withdraw"), "Withdraw it for good?", () => change("/withdraw"));
dangerous($("erase"), "Erase content and features for good?", () => change("/erase"));
$("close").addEventListener("click", () => {
  show($("ticket"), false);
  history.replaceState(null, "", location.pathname);
});
$("tickets").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  attemptTo(() => open(link.textContent));
});
attemptTo(async () => {
  await find();
  const asked = new URLSearchParams(location.search).get("ticket");
  if (asked) await open(asked);
});
