// People who answer: how often each is right, how far they agree, and how their answers are checked.
"use strict";

function interval(share, low, high) {
  return share === null ? "–" : `${percent(share, 0)} (${number(100 * low)}–${number(100 * high)})`;
}

function part(right, all) {
  return all ? `${number(right)} of ${number(all)}` : "–";
}

function line(one) {
  const name = make("th", { scope: "row", text: one.expert });
  if (one.kind === "machine") name.append(" ", make("span", { className: "tag said", text: "machine" }));
  if (one.careless !== null) name.append(" ", make("span", { className: "tag asked", text: "careless", title: `After ${one.found_after} answers: ${one.why}` }));
  const last = make("td");
  if (one.kind === "person") last.append(button(one));
  return [
    name,
    cell(number(one.answers), "number"),
    cell(interval(one.accuracy, one.accuracy_low, one.accuracy_high), "number"),
    cell(part(one.known_right, one.known), "number"),
    cell(part(one.settled_right, one.settled), "number"),
    cell(interval(one.model_accuracy, one.model_low, one.model_high), "number"),
    cell(one.seconds === null ? "–" : number(one.seconds, one.seconds < 10 ? 1 : 0), "number"),
    cell(number(one.cost, 2), "number"),
    last,
  ];
}

function button(one) {
  const stopped = one.stopped !== null;
  const words = stopped ? "Ask again" : "Stop asking";
  const made = make("button", { type: "button", className: "quiet release", text: words, "aria-label": `${words}: ${one.expert}` });
  const act = async () => {
    draw(await call("POST", `/people/${stopped ? "allow" : "stop"}`, { person: one.expert }));
    $("done").textContent = stopped ? `${one.expert} gets questions again.` : `${one.expert} gets no questions any more.`;
  };
  if (stopped) made.addEventListener("click", () => attemptTo(act));
  else dangerous(made, "Ask them no more?", act);
  return made;
}

function kappa(value) {
  return value === null ? "–" : number(value, 2);
}

let drawn = null;

/** Draw what has changed: whoever is about to click a button, or has the keyboard on it, keeps it. */
function draw(told) {
  if (JSON.stringify(told) === drawn) return;
  drawn = JSON.stringify(told);
  const { people, agreement, planted } = told;
  $("people").replaceChildren(...rows(people.map(line), 9, "Nobody has answered yet."));
  const { items, alpha, fleiss, pairs } = agreement;
  $("agreement").textContent = items
    ? `${number(items)} ${items === 1 ? "question was" : "questions were"} answered by two or more. Krippendorff’s alpha ${kappa(alpha)}, Fleiss’ kappa ${kappa(fleiss)}; 1 is agreement on everything, 0 is chance.`
    : "No question was answered by two people yet.";
  show($("pairs-table"), pairs.length > 0);
  $("pairs").replaceChildren(...rows(pairs.map((pair) => [make("th", { scope: "row", text: pair.first }), cell(pair.second), cell(number(pair.items), "number"), cell(number(pair.agreed), "number"), cell(kappa(pair.kappa), "number")]), 5, ""));
  $("planted").textContent = planted.items
    ? `${number(planted.items)} items with known answers are planted; ${number(planted.answers)} answers to them have cost ${number(planted.cost, 2)}.`
    : "No items with known answers are planted: “sparingly agent plant” does so.";
}

onSubmit($("checks"), async (given) => {
  const share = (name) => Number(given.get(name)) / 100;
  const checks = { disagreements: given.get("disagreements"), stop_careless: given.get("stop_careless") !== null };
  for (const name of ["second_opinions", "known_answers", "careless_below"]) checks[name] = share(name);
  await call("PUT", "/checks", checks);
  $("done").textContent = "Saved.";
});

const load = () => attemptTo(async () => draw(await call("GET", "/people")));
load();
let last = null;
listen(({ events }) => {
  if (last !== null && events !== last) {
    clearTimeout(load.timer);
    load.timer = setTimeout(load, 500);
  }
  last = events;
});
