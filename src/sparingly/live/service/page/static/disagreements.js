// Disagreements: two answers, what both people saw, and which of them stands.
"use strict";

let waiting = [];
let current = null;

async function load() {
  waiting = (await call("GET", "/disagreements")).disagreements;
  const settled = (await call("GET", "/disagreements?settled=true")).disagreements;
  const count = waiting.length;
  $("t-waiting").textContent = count ? `${number(count)} ${count === 1 ? "waits" : "wait"} to be settled` : "Nothing is to be settled";
  $("waiting").replaceChildren(...rows(waiting.map(line), 5, "All who were asked twice agree, or it was settled."));
  $("settled").replaceChildren(...rows(settled.map(settledLine), 6, "Nothing was settled yet."));
}

function side(who, label) {
  return cell(`${who ?? "someone"}: ${label}`);
}

function line(one) {
  const open = make("button", { type: "button", className: "quiet", text: one.ticket, "aria-label": `Settle ${one.ticket}` });
  open.addEventListener("click", () => attemptTo(() => draw(one)));
  const whose = one.state === "admin" ? "an admin" : "a third person";
  return [cell(ago(one.at), "when"), make("td", { className: "id" }, open), side(one.first, one.first_label), side(one.second, one.second_label), cell(whose)];
}

function settledLine(one) {
  return [cell(ago(one.closed), "when"), ticketCell(one.ticket), side(one.first, one.first_label), side(one.second, one.second_label), cell(one.label), cell(one.settled_by ?? "")];
}

async function draw(one, focus = true) {
  current = one;
  show($("dispute"), one !== null);
  if (one === null) return;
  $("dispute-title").textContent = `Ticket ${one.ticket}`;
  $("dispute-state").textContent = one.state === "admin" ? "It waits for an admin." : "A third person is asked, too; you may settle it now.";
  const nothing = make("p", { className: "muted", text: "What was observed is no longer kept." });
  $("shown").replaceChildren(one.payload || one.features ? shown(one) : nothing);
  $("reason").textContent = sentence(one.reason);
  const sides = [[one.first, one.first_label], [one.second, one.second_label], [one.third, one.third_label]];
  $("sides").replaceChildren(...sides.filter(([, label]) => label !== null).map(([who, label]) => choice(who, label)));
  $("other").reset();
  const { events } = await call("GET", `/details?ticket=${encodeURIComponent(one.ticket)}`);
  $("events").replaceChildren(...events.map(happened));
  if (focus) {
    $("dispute-title").focus({ preventScroll: true });
    $("dispute").scrollIntoView({ block: "start" });
  }
}

function choice(who, label) {
  const button = make("button", { type: "button", className: "side" }, make("b", { text: String(label) }), make("span", { className: "small", text: `${who ?? "someone"} said so` }));
  button.addEventListener("click", () => attemptTo(() => settle(label)));
  return button;
}

async function settle(label) {
  const { ticket } = current;
  await call("POST", "/adjudicate", { ticket, label });
  $("done").textContent = `${ticket} is ${label}.`;
  await load();
  await draw(waiting[0] ?? null);
}

function happened({ at, what, who, label }) {
  const by = [who ? `by ${who}` : "", label !== null ? `as ${label}` : ""].filter(Boolean).join(" ");
  return make("li", {}, make("b", { text: what }), ` ${by} `, make("span", { className: "muted small", text: new Date(1000 * at).toLocaleString() }));
}

onSubmit($("other"), (given) => {
  const classes = JSON.parse($("dispute").dataset.classes);
  const text = given.get("label").trim();
  return settle(classes.find((one) => String(one) === text) ?? text);
});
attemptTo(async () => {
  await load();
  await draw(waiting[0] ?? null, false);
});
let last = null;
listen(({ events }) => {
  if (last !== null && events !== last) {
    clearTimeout(load.timer);
    load.timer = setTimeout(() => attemptTo(load), 500);
  }
  last = events;
});
