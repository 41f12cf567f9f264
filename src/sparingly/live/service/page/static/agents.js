// The agents: listed, paused and resumed, made with costs that read as sentences.
"use strict";

let costs = [];
let names = [];

async function list() {
  const { agents, states = {}, failures = {} } = await callService("GET", "/agents");
  const lines = agents.map((name) => line(name, states[name] ?? "active", failures[name]));
  $("agents").replaceChildren(...rows(lines, 3, "There is no agent yet: make one below."));
}

function line(name, state, failure) {
  const pages = ["dashboard", "tickets", "settings"].map((view) => make("a", { href: `/agents/${name}/${view}`, text: view, "aria-label": `${view} of ${name}` }));
  const tag = make("span", { className: `tag ${state === "active" ? "said" : "asked"}`, text: state });
  const told = make("td", {}, tag, failure ? make("span", { className: "muted small", text: failure }) : null);
  return [make("th", { scope: "row", text: name }), told, make("td", { className: "links" }, ...pages)];
}

/** The classes and what they mean, from lines such as "lost: the card is gone". */
function classesGiven() {
  const lines = $("new-classes").value.split("\n").map((text) => text.trim()).filter(Boolean);
  const found = lines.map((text) => /^(.*?\S)\s*:\s+(.+)$/.exec(text) ?? [text, text, ""]);
  return { classes: found.map(([, name]) => name), descriptions: Object.fromEntries(found.filter(([, , means]) => means).map(([, name, means]) => [name, means])) };
}

function drawCosts() {
  const { classes } = classesGiven();
  const before = new Map(names.map((name, i) => [name, i]));
  const old = (one, other) => (before.has(one) && before.has(other) ? costs[before.get(one)][before.get(other)] : undefined);
  const next = classes.map((one, i) => classes.map((other, j) => old(one, other) ?? (i === j ? 0 : 1)));
  [names, costs] = [classes, next];
  const fits = classes.length > 1 && classes.length <= MOST_IN_TABLE;
  show($("costs"), fits);
  if (fits) costTable($("cost-table"), names, costs, (i, j, value) => { costs[i][j] = value; read(); });
  read();
}

function read() {
  const sentences = names.length > 1 ? costReading(names, costs, $("query-cost").valueAsNumber) : [];
  $("reading").replaceChildren(...sentences.map((text) => make("li", { text })));
}

onSubmit($("new"), async (given) => {
  const { classes, descriptions } = classesGiven();
  const records = classes.flatMap((announced, i) => classes.map((truth, j) => ({ announced, true: truth, cost: costs[i][j], usual: i === j ? 0 : 1 })));
  const special = records.filter(({ cost, usual }) => cost !== usual).map(({ usual, ...record }) => record);
  const made = await callService("POST", "/agents", {
    name: given.get("name"), classes, query_cost: Number(given.get("query_cost")), reveal: given.get("reveal"),
    ...(special.length && { costs: special }), ...(Object.keys(descriptions).length && { descriptions }),
  });
  location.assign(`/agents/${made.name}/dashboard`);
});
$("new-classes").addEventListener("input", drawCosts);
$("query-cost").addEventListener("input", read);
attemptTo(list);
drawCosts();
