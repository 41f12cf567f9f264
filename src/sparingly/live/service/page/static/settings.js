// An agent's settings: its state, its costs in words, what people are told, how long contents are kept, its name.
"use strict";

const STATES = {
  active: { pause: "Pause: no observations, questions stay answerable", archive: "Archive: only reading" },
  paused: { resume: "Resume", archive: "Archive: only reading" },
  archived: { unarchive: "Bring back" },
};

function done(words) {
  $("done").textContent = words;
}

function drawState(state) {
  $("state").textContent = state;
  const buttons = Object.entries(STATES[state] ?? {}).map(([what, words]) => {
    const button = make("button", { type: "button", className: "quiet", text: words });
    button.addEventListener("click", () => attemptTo(async () => {
      drawState((await call("POST", `/state/${what}`)).state);
      done(`The agent is ${$("state").textContent} now.`);
    }));
    return button;
  });
  $("states").replaceChildren(...buttons);
}

/** The descriptions, from lines such as "lost: the card is gone"; a class's own name may have a colon. */
function descriptionsGiven(text, classes) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const name = classes.map(String).filter((one) => line.startsWith(`${one}:`)).sort((one, other) => other.length - one.length)[0] ?? line.split(":")[0];
    return [name, line.slice(name.length + 1).trim()];
  }));
}

/** Costs in a table that can be edited, read back in sentences as they are typed. */
async function drawCosts() {
  const { classes, costs, actions } = await call("GET", "");
  const names = classes.map(String);
  const prices = costs.slice(names.length).map((line) => Math.max(...line));
  const price = () => (prices.length > 1 ? Math.min(...prices) : $("query-cost").valueAsNumber);
  const read = () => {
    const sentences = costReading(names, costs, price());
    if (prices.length > 1) sentences.push(`Questions: ${actions.slice(names.length).map((name, i) => `${name} ${prices[i]}`).join(", ")}.`);
    $("reading").replaceChildren(...sentences.map((text) => make("li", { text })));
  };
  $("query-cost").value = String(prices[0]);
  $("query-cost").disabled = prices.length > 1;
  show($("price"), prices.length === 1);
  $("query-cost").addEventListener("input", read);
  read();
  if (names.length <= MOST_IN_TABLE) costTable($("cost-table"), names, costs, (i, j, value) => { costs[i][j] = value; read(); });
  onSubmit($("costs"), async () => {
    const records = classes.flatMap((announced, i) => classes.map((truth, j) => ({ announced, true: truth, cost: costs[i][j], usual: i === j ? 0 : 1 })));
    const special = records.filter(({ cost, usual }) => cost !== usual).map(({ usual, ...record }) => record);
    await call("PUT", "/costs", { costs: special, ...(prices.length === 1 && { query_cost: price() }) });
    done("The costs are saved: the agent decides with them from now on.");
  });
  onSubmit($("descriptions"), async (given) => {
    await call("PUT", "/descriptions", { descriptions: descriptionsGiven(given.get("descriptions"), classes) });
    done("The descriptions are saved.");
  });
}

onSubmit($("reveal"), async (given) => {
  await call("PUT", "/reveal", { reveal: given.get("reveal") });
  done("Saved.");
});
onSubmit($("retention"), async (given) => {
  await call("PUT", "/retention", { days: given.get("days") === "" ? null : Number(given.get("days")) });
  done("Saved.");
});
onSubmit($("rename"), async (given) => {
  const { name } = await call("POST", "/rename", { name: given.get("name") });
  location.assign(`/agents/${name}/settings`);
});
onSubmit($("delete"), async (given) => {
  if (given.get("name") !== page.agent) throw new Refused(422, `That is not its name: type ${page.agent}`);
  await call("DELETE", "");
  location.assign("/admin/agents");
});
drawState($("state").textContent);
attemptTo(drawCosts);
