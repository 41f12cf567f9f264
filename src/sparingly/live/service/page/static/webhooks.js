// An agent's webhooks: added, tried, removed; what could not be delivered is looked at and sent again.
"use strict";

async function drawWebhooks() {
  const { webhooks } = await call("GET", "/webhooks");
  $("webhooks").replaceChildren(...rows(webhooks.map(webhookLine), 4, "Nobody is told yet."));
}

function webhookLine(hook) {
  const told = hook.failures ? `failing (${hook.error}), tried again` : hook.arrived ? `last arrived ${ago(hook.arrived)}` : "nothing sent yet";
  const counts = [hook.waiting && `${number(hook.waiting)} waiting`, hook.dead && `${number(hook.dead)} given up`].filter(Boolean);
  const test = make("button", { type: "button", className: "quiet", text: "Test", "aria-label": `Test ${hook.url}` });
  test.addEventListener("click", () => attemptTo(async () => {
    await call("POST", `/webhooks/${hook.id}/test`);
    done("A test message is on its way.");
    setTimeout(() => attemptTo(drawWebhooks), 1500);
  }));
  const remove = make("button", { type: "button", className: "quiet", text: "Remove", "aria-label": `Remove ${hook.url}` });
  dangerous(remove, "Remove it?", async () => {
    await call("DELETE", `/webhooks/${hook.id}`);
    await drawWebhooks();
  });
  const buttons = [test, remove];
  if (hook.dead) {
    const look = make("button", { type: "button", className: "quiet", text: "Given up", "aria-label": `Messages to ${hook.url} that were given up` });
    look.addEventListener("click", () => attemptTo(() => drawDead(hook)));
    buttons.push(look);
  }
  const state = make("td", { className: "words", text: [told, ...counts].join(" · ") });
  return [make("th", { scope: "row", className: "id", text: hook.url }), cell(hook.events.join(", "), "words"), state, make("td", { className: "links" }, ...buttons)];
}

async function drawDead(hook) {
  const { messages } = await call("GET", `/webhooks/${hook.id}/dead`);
  const lines = messages.map(({ event, body, attempts, error }) => make("li", { text: `${event} ${body.ticket?.id ?? body.alert?.kind ?? ""}: ${error}, ${attempts} times` }));
  const again = make("button", { type: "button", text: "Send all of them again" });
  again.addEventListener("click", () => attemptTo(async () => {
    const { resent } = await call("POST", `/webhooks/${hook.id}/resend`, {});
    done(`${number(resent)} messages are sent again.`);
    show($("dead"), false);
    await drawWebhooks();
  }));
  $("dead-letters").replaceChildren(...lines, make("li", {}, again));
  show($("dead"), true);
}

onSubmit($("webhook"), async (given) => {
  const made = await call("POST", "/webhooks", { url: given.get("url"), events: given.getAll("events") });
  $("webhook-secret").textContent = made.secret;
  show($("secret"), true);
  $("webhook").reset();
  await drawWebhooks();
});
attemptTo(drawWebhooks);
