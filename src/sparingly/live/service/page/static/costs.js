// What mistakes and questions cost: a table that can be edited, and what it means in plain words.
"use strict";

const MOST_IN_TABLE = 20;
const SENTENCES = 8;

/** Draw a table of costs, announced by row and true by column; `changed` is called whenever a cost is. */
function costTable(table, classes, costs, changed) {
  const head = make("tr", {}, make("td", { className: "muted small", text: "announced ↓ · true →" }));
  head.append(...classes.map((name) => make("th", { scope: "col", text: name })));
  const body = classes.map((announced, i) => {
    const line = make("tr", {}, make("th", { scope: "row", text: announced }));
    line.append(...classes.map((truth, j) => make("td", {}, costCell(announced, truth, costs[i][j], changed && ((value) => changed(i, j, value))))));
    return line;
  });
  table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

function costCell(announced, truth, value, changed) {
  const label = `Announced ${announced}, true ${truth}`;
  if (!changed) return make("span", { text: String(value) });
  const input = make("input", { type: "number", min: "0", step: "any", value: String(value), "aria-label": label, required: "" });
  input.addEventListener("input", () => changed(input.valueAsNumber));
  return input;
}

/** The costs in sentences: what is usual, what differs from it, and how sure the agent must be. */
function costReading(classes, costs, price) {
  const errors = classes.flatMap((announced, i) => classes.map((truth, j) => ({ announced, truth, cost: costs[i][j], isError: i !== j })));
  if (errors.some(({ cost }) => !(cost >= 0)) || !(price >= 0)) return ["Every cost must be a number from 0 on."];
  const wrong = errors.filter(({ isError }) => isError);
  const counts = new Map();
  for (const { cost } of wrong) counts.set(cost, (counts.get(cost) ?? 0) + 1);
  const [usual] = [...counts].sort((one, other) => other[1] - one[1])[0];
  const told = [`A mistake costs ${usual}, and a question ${price}: ${compared(usual, price)}`];
  const special = wrong.filter(({ cost }) => cost !== usual).sort((one, other) => other.cost - one.cost);
  told.push(...special.slice(0, SENTENCES).map(({ announced, truth, cost }) => `Saying “${announced}” when it is “${truth}” costs ${cost}, ${times(cost, price)}.`));
  if (special.length > SENTENCES) told.push(`And ${special.length - SENTENCES} other mistakes have a cost of their own.`);
  const paid = errors.filter(({ isError, cost }) => !isError && cost > 0);
  told.push(...paid.slice(0, 3).map(({ announced, cost }) => `Saying “${announced}” rightly costs ${cost}, too.`));
  return told;
}

function compared(usual, price) {
  if (price === 0) return "asking is free, so it asks about everything.";
  const sure = 1 - price / usual;
  if (usual === 0 || sure <= 0) return "a question pays only by what the agent learns from it.";
  return `once it has learned, it asks where it is less than ${Math.round(100 * sure)} % sure.`;
}

function times(cost, price) {
  if (price === 0 || cost === price) return price === 0 ? "and a question nothing" : "as much as a question";
  const share = cost / price;
  return share > 1 ? `as much as ${Number(share.toPrecision(3))} questions` : `less than a question, which costs ${price}`;
}
