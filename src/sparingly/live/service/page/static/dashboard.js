// The dashboard: numbers, charts and tables, drawn again whenever the agent has moved.
"use strict";

let board = null;
let loading = false;
let newest = 0;
/** Questions left to chance from which on an accuracy, or a saving that rests on it, is worth telling. */
const ENOUGH = 20;

/** Load the board until it shows the newest event; the service may give one that is some seconds old. */
async function load() {
  if (loading) return;
  loading = true;
  try {
    board = await call("GET", "/board");
    draw();
    problem(null);
  } catch (error) {
    problem(error.status ? error.message : "The service cannot be reached. These are the last numbers known.");
  }
  setTimeout(() => {
    loading = false;
    if (!board || board.events < newest) load();
  }, 700);
}

function draw() {
  tiles(board.statistics);
  $("alerts").replaceChildren(...board.alerts.map(({ text }) => make("li", { text })));
  bill(board.statistics.bill);
  show($("alerts"), board.alerts.length > 0);
  charts(board.over_time);
  $("recent").replaceChildren(...rows(board.recent.map(decision), 5, "No observations yet."));
  $("waiting").replaceChildren(...rows(board.open.map(waiting), 3, "No one is asked anything."));
  $("experts").replaceChildren(...rows(board.experts.map(expert), 4, "No answers yet."));
}

function tiles(s) {
  show($("start"), s.observations === 0);
  $("cost").textContent = s.cost === null ? `${money(s.questions_cost)} +` : money(s.cost);
  $("cost-text").textContent = saved(s);
  const most = Math.max(s.cost ?? s.questions_cost, s.always_asking, s.never_asking ?? 0, 1e-9);
  const bars = [
    ["So far", s.cost ?? s.questions_cost, "ours"],
    ["Always asking", s.always_asking, "always"],
    ["Never asking", isEarly(s) ? null : s.never_asking, "never"],
  ];
  $("versus").replaceChildren(...bars.map(([name, value, kind]) => bar(name, value, kind, most)));
  $("questions").textContent = number(s.questions);
  const share = s.observations ? percent(s.questions / s.observations) : "–";
  $("questions-text").textContent = `${share} of ${number(s.observations)} observations · ${number(s.answered)} answered${
    s.taught ? ` · ${number(s.taught)} labels taught` : ""
  }`;
  const isKnown = s.accuracy !== null && s.sample >= ENOUGH;
  $("accuracy").textContent = isKnown ? percent(s.accuracy) : "–";
  $("accuracy-text").textContent =
    !isKnown
      ? `Known once ${ENOUGH} questions left to chance are answered${s.sample >= 1 ? `, ${number(s.sample)} by now` : ""}`
      : `between ${percent(s.accuracy_low)} and ${percent(s.accuracy_high)}, from ${number(s.sample)} random questions`;
  outlook(s.outlook);
  $("open").textContent = number(s.open);
  const oldest = board.open[0];
  const aside = `${number(s.skipped + s.unknown)} set aside · ${number(s.withdrawn)} withdrawn`;
  $("open-text").textContent = oldest ? `oldest from ${ago(oldest.at)} · ${aside}` : aside;
}

/** When one can stop: what the next questions save, and what asking no more would cost. */
function outlook(o) {
  show($("outlook"), Boolean(o));
  if (!o) return;
  const worth = o.saves >= o.price ? "more than they cost" : "less than they cost: asking could stop";
  $("next").textContent = `The next ${o.questions} questions cost ${money(o.price)} and save about ${money(Math.max(0, o.saves))} (${money(Math.max(0, o.saves_low))} to ${money(o.saves_high)}) in ${number(o.rounds)} observations to come, ${worth}.`;
  show($("stopping"), o.per_day !== null);
  if (o.per_day === null) return;
  $("stopping").textContent = `Asking no more would cost about ${money(Math.max(0, o.stopping_costs))} by tomorrow (${money(Math.max(0, o.stopping_low))} to ${money(o.stopping_high)}) and save ${money(o.stopping_saves)} of questions, at ${number(o.per_day)} observations a day.`;
}

/** Whether too little is known to compare costs: few announcements were checked, or few labels came where all is asked. */
function isEarly({ observations, questions, sample, answered }) {
  return observations > questions ? sample < ENOUGH : answered < ENOUGH;
}

/** What was saved against the cheaper of the two simple ways; nothing while the cost is not known. */
function saved(s) {
  const { cost, always_asking: always, never_asking: never, held } = s;
  if (cost === null) return "and the errors of announcements, not known yet";
  if (isEarly(s)) return held ? `${number(held)} are held until there is a model` : "too early to say what it saves";
  const [cheaper, name] = never !== null && never < always ? [never, "never asking"] : [always, "always asking"];
  if (!cheaper) return "";
  const share = percent(Math.abs(1 - cost / cheaper), 0);
  return cost <= cheaper ? `${share} less than ${name}` : `${share} more than ${name}, so far`;
}

function bar(name, value, kind, most) {
  const drawing = svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "bar-track", "aria-hidden": "true" });
  drawing.append(svg("rect", { class: `bar-fill ${kind}`, width: (100 * (value ?? 0)) / most, height: 8 }));
  return make("li", {}, make("span", { text: name }), drawing, make("b", { text: money(value) }));
}

/** Neighbouring parts put together until each rests on enough questions, with Wilson's interval. */
function pooled(points, enough) {
  const found = [];
  let right = 0;
  let size = 0;
  points.forEach((point) => {
    if (point.accuracy === null) return;
    right += point.accuracy * point.sample;
    size += point.sample;
    if (size < enough) return;
    const share = right / size;
    const z = 1.96;
    const middle = (share + (z * z) / (2 * size)) / (1 + (z * z) / size);
    const half = (z / (1 + (z * z) / size)) * Math.sqrt((share * (1 - share)) / size + (z * z) / (4 * size * size));
    found.push([point.observations, share, Math.max(0, middle - half), Math.min(1, middle + half)]);
    right = size = 0;
  });
  return found;
}

/** Questions in a hundred observations, over neighbouring parts put together until each has enough. */
function rates(points, enough = 20) {
  const found = [];
  let before = { questions: 0, observations: 0 };
  points.forEach((point, i) => {
    const observed = point.observations - before.observations;
    if (observed < enough && (i < points.length - 1 || found.length)) return;
    found.push([point.observations, (100 * (point.questions - before.questions)) / Math.max(1, observed)]);
    before = point;
  });
  return found;
}

function charts(points) {
  const at = (name) => [[0, 0], ...points.map((p) => [p.observations, p[name]])];
  const end = points.at(-1);
  const of = (name) => (end ? money(end[name]) : "–");
  chart($("chart-cost"), {
    series: [
      { name: "So far", className: "ours", points: at("cost") },
      { name: "Always asking", className: "always", points: at("always_asking") },
      { name: "Never asking", className: "never", points: at("never_asking") },
    ],
    format: (v) => number(v),
    summary: `Cost so far ${of("cost")}; always asking ${of("always_asking")}; never asking ${of("never_asking")}.`,
  });
  const shares = rates(points);
  chart($("chart-questions"), {
    series: [{ name: "Questions", className: "ours", points: shares }],
    format: (v) => number(v),
    high: 100,
    summary: `Questions in a hundred observations, lately ${shares.length ? number(shares.at(-1)[1]) : "unknown"}.`,
  });
  const known = pooled(points, ENOUGH);
  chart($("chart-accuracy"), {
    series: [{ name: "Accuracy", className: "ours", points: known.map(([x, share]) => [x, share]) }],
    band: known.map(([x, , low, high]) => [x, low, high]),
    format: (v) => percent(v, 0),
    high: 1,
    summary: `Estimated accuracy over time, lately ${known.length ? percent(known.at(-1)[1]) : "unknown"}.`,
  });
}

function decision(entry) {
  const asked = entry.asks
    ? make("span", { className: "tag asked", text: "asked" })
    : make("span", { className: "tag said", text: entry.status === "held" ? "held" : "said" });
  const said = make("td", { className: "decision" }, asked, entry.asks || entry.prediction === null ? "" : make("b", { text: String(entry.prediction) }));
  const outcome = entry.label !== null ? entry.label : entry.status === "announced" ? "" : entry.status;
  return [cell(ago(entry.at), "when"), ticketCell(entry.id), said, make("td", { className: "words", text: entry.reason, title: figures(entry) }), cell(outcome, entry.label === null ? "when" : "")];
}

function waiting(open) {
  const holder = cell(open.expert ?? "no one yet");
  if (open.expert !== null) {
    const button = make("button", { type: "button", className: "quiet release", text: "Release", title: "Let the others have it" });
    button.addEventListener("click", () => release(open));
    holder.append(" ", button);
  }
  return [cell(ago(open.at), "when"), ticketCell(open.id), holder];
}

async function release(open) {
  try {
    await call("POST", "/release", { ticket: open.id, expert: open.expert });
    open.expert = null;
    draw();
    problem(null);
  } catch (error) {
    problem(error.status ? error.message : "The service cannot be reached.");
  }
}

/** What each expert has cost, dearest first, where experts have names. */
function bill(costs) {
  const lines = Object.entries(costs ?? {}).sort((one, other) => other[1] - one[1]);
  show($("bill"), lines.length > 0);
  $("bill").replaceChildren(...lines.map(([name, cost]) => make("li", {}, make("span", { text: name }), make("b", { text: number(cost, 2) }))));
}

function expert(one) {
  const share = one.answers ? percent(one.agreed / one.answers, 0) : "–";
  const name = make("th", { scope: "row", text: one.expert ?? "unnamed" });
  return [name, cell(number(one.answers), "number"), cell(share, "number"), cell(one.last ? ago(one.last) : "–", "when")];
}

addEventListener("resize", () => board && charts(board.over_time));
setInterval(() => board && draw(), 10000);
load();
listen(
  ({ events }) => {
    newest = events;
    load();
  },
  (connected) => {
    $("live").textContent = connected ? "live" : "connecting again";
    $("live").classList.toggle("on", connected);
  },
);
