// People and tokens: made, shown once, revoked.
"use strict";

let tokens = [];

function isValid(token) {
  return token.revoked === null && (token.expires === null || token.expires > Date.now() / 1000);
}

function drawTokens() {
  const chosen = tokens.filter((token) => $("all").checked || isValid(token));
  $("tokens").replaceChildren(...rows(chosen.map(line), 6, "There is no token."));
}

function line(token) {
  const day = (seconds) => new Date(1000 * seconds).toLocaleDateString();
  const ends = token.revoked !== null ? `revoked ${day(token.revoked)}` : token.expires === null ? "never" : day(token.expires);
  const last = make("td");
  if (isValid(token)) {
    const button = make("button", { type: "button", className: "quiet bad release", text: "Revoke", "aria-label": `Revoke ${token.name}` });
    dangerous(button, "Revoke it for good?", async () => {
      tokens = (await callService("DELETE", `/tokens/${token.id}`)).tokens;
      drawTokens();
    });
    last.append(button);
  }
  const name = make("th", { scope: "row", text: token.name });
  return [name, cell(token.role), cell(token.agents?.join(", ") ?? "all"), cell(day(token.created), "when"), cell(ends, "when"), last];
}

onSubmit($("new"), async (given) => {
  const agents = given.getAll("agents");
  const expires = given.get("expires").trim();
  const asked = { name: given.get("name"), role: given.get("role"), ...(agents.length && { agents }), ...(expires && { expires }) };
  const { token, ...made } = await callService("POST", "/tokens", asked);
  tokens.push(made);
  $("secret-name").textContent = made.name;
  $("secret-token").textContent = token;
  show($("secret"), true);
  $("new").reset();
  drawTokens();
});
$("all").addEventListener("change", drawTokens);
attemptTo(async () => {
  tokens = (await callService("GET", "/tokens")).tokens;
  drawTokens();
});
