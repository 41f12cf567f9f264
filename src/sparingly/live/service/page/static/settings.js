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

async function drawCosts() {
  const { classes, costs, actions } = await call("GET", "");
  const names = classes.map(String);
  const prices = costs.slice(names.length).map((line) => Math.max(...line));
  const sentences = costReading(names, costs, Math.min(...prices));
  if (prices.length > 1) sentences.push(`Questions: ${actions.slice(names.length).map((name, i) => `${name} ${prices[i]}`).join(", ")}.`);
  $("reading").replaceChildren(...sentences.map((text) => make("li", { text })));
  if (names.length <= MOST_IN_TABLE) costTable($("cost-table"), names, costs, null);
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
