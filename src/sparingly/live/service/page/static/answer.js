// One question at a time: by mouse, by touch, by key; each answer can be taken back.
"use strict";

const LETTERS = "abcefghijklmnopqrtvwxyz"; // not d, s and u, which have their own meaning
const SHORTCUTS = [..."123456789", ...LETTERS];

let question = null;
let keys = [];
let openNow = 0;
let events = null;
let busy = false;
let running = Promise.resolve();
let last = null;
let unreachable = false; // whether that is the problem that is told
const refused = new Map(); // replies that were not taken, by their ticket

/** Do one thing at a time; what comes while another is done is dropped. */
function act(work) {
  if (!busy) running = attempt(work);
  return running;
}

/** The same, but never dropped: it waits for its turn. */
async function inTurn(work) {
  while (busy) await running;
  return act(work);
}

async function attempt(work) {
  busy = true;
  document.body.classList.add("busy");
  try {
    await work();
    if (unreachable) problem(null);
    unreachable = false;
  } catch (error) {
    unreachable = !error.status;
    if (error.status === 409 || error.status === 404) {
      problem(`${error.message}. Here is the next one.`);
      await next().catch(() => {});
    } else problem(unreachable ? "The service cannot be reached. Nothing was lost; try again." : error.message);
  } finally {
    busy = false;
    document.body.classList.remove("busy");
  }
}

async function next() {
  const told = await call("POST", "/questions");
  counts(told);
  show($("new-class"), told.may_add_classes);
  draw(told.questions[0] || null);
}

function counts({ today, open }) {
  if (today) {
    $("today-answers").textContent = number(today.answers);
    $("today-cost").textContent = money(today.cost);
  }
  if (open === undefined) return;
  openNow = open;
  $("open").textContent = number(open);
}

function draw(found) {
  const another = found && (!question || question.id !== found.id);
  question = found;
  if (found) hold(found.seconds_left);
  show($("question"), Boolean(found));
  show($("idle"), !found);
  if (!found) {
    document.body.classList.remove("picking");
    return idle();
  }
  document.title = document.title.replace(/^(\(1\) )?/, "(1) ");
  $("why").textContent = sentence(found.reason);
  $("numbers").textContent = figures(found);
  const guess = found.prediction;
  $("hint").textContent = guess === null ? "" : `The agent would say ${guess}.`;
  show($("hint"), guess !== null);
  if (another) {
    $("shown").replaceChildren(shown(found));
    $("shown").scrollTop = 0;
  }
  const veryMany = found.choices.length > SHORTCUTS.length;
  document.body.classList.toggle("picking", veryMany);
  show($("picker"), veryMany);
  show($("choices"), !veryMany);
  if (veryMany) pick(found.choices, found.likely ?? [], another, answer);
  else drawChoices(found.choices);
  const types = veryMany && matchMedia("(pointer: fine)").matches; // on a phone the keyboard would cover the question
  if (another) $(types ? "typed" : "ask").focus({ preventScroll: true });
}

function drawChoices(choices) {
  keys = shortcuts(choices);
  $("choices").replaceChildren(...choices.map(choice));
  $("choices").dataset.many = choices.length > 6 ? "yes" : "no";
  const words = choices.flatMap((label) => String(label).split(/[\s_/.:-]+/));
  $("choices").style.setProperty("--longest", `${Math.max(...words.map((word) => word.length)) + 1}ch`);
}

function idle() {
  document.title = document.title.replace(/^\(1\) /, "");
  const others = openNow > 0;
  $("idle-title").textContent = others ? "Nothing for you just now" : "Nothing to answer";
  $("idle-text").textContent = others
    ? "Open questions are with other people, or you have skipped them. The next one appears here by itself."
    : events === 0
      ? "Nothing has been observed yet. The first question appears here by itself."
      : "The agent is sure enough for now. The next question appears here by itself.";
}

/** The keys of the choices: 1 to 9, then letters; classes that are digits are their own keys. */
function shortcuts(choices) {
  return choices.every((label) => /^\d$/.test(String(label))) ? choices.map(String) : SHORTCUTS.slice(0, choices.length);
}

function choice(label, place) {
  const key = keys[place];
  const button = make("button", { type: "button", className: "choice" });
  if (key) button.append(make("kbd", { text: key.toUpperCase(), "aria-hidden": "true" }));
  if (key) button.setAttribute("aria-keyshortcuts", key);
  if (describe(label)) button.title = describe(label);
  button.append(make("span", {}, ...breakable(String(label))));
  button.addEventListener("click", () => answer(label));
  return button;
}

/** A class that is none of those known; it becomes one with the answer. */
function answerNew(event) {
  event.preventDefault();
  const label = $("new-name").value.trim();
  if (!label) return;
  $("new-name").value = "";
  const words = () => `You said ${label}, which is a class now.`;
  reply({ path: "/answer", label, new_class: true, said: `Your answer “${label}”`, words });
}

function answer(label) {
  rememberClass(label);
  reply({ path: "/answer", label, said: `Your answer “${label}”`, words: (told) => verdict(label, told.prediction) });
}

function verdict(label, prediction) {
  if (prediction === null || prediction === undefined) return `You said ${label}.`;
  if (prediction === label) return `You said ${label}. The agent would have said so too.`;
  return `You said ${label}. The agent would have said ${prediction}.`;
}

function setAside(path, said, words) {
  reply({ path, said, words: () => words });
}

/** A reply waits for its turn, and is sent if its question is still the one on the page: it is for what was seen. */
function reply(given) {
  const asked = question;
  if (asked) inTurn(async () => question?.id === asked.id && send({ ...given, asked }));
}

/** Send a reply to a question; one that is not taken stays on the page, to be sent again. */
async function send(given) {
  const { path, asked, label, new_class, words } = given;
  problem(null);
  try {
    const said = { ...(label !== undefined && { label }), ...(new_class && { new_class }) };
    const told = await call("POST", path, { ticket: asked.id, ...said });
    refused.delete(asked.id);
    remember(asked, words(told));
    counts(told);
  } catch (error) {
    refused.set(asked.id, { given, why: error.status ? error.message : "the service cannot be reached" });
    if (!error.status || error.status >= 429) return;
  } finally {
    $("refused").replaceChildren(...[...refused.values()].map(refusal));
    if (refused.has(asked.id)) $("refused").scrollIntoView({ block: "nearest" });
  }
  await next();
}

function refusal({ given, why }) {
  const text = make("p", { text: `${given.said} to question ${given.asked.id} was not taken: ${why}.` });
  const again = make("button", { type: "button", text: "Send it again" });
  const discard = make("button", { type: "button", className: "quiet", text: "Discard it" });
  again.addEventListener("click", () => sendAgain(given));
  discard.addEventListener("click", (event) => {
    refused.delete(given.asked.id);
    event.target.closest(".refusal").remove();
  });
  return make("div", { className: "refusal" }, text, again, discard);
}

function sendAgain(given) {
  return inTurn(async () => {
    // A lease that has run out is taken again if no one else has it; whether it was, the reply will tell.
    await call("POST", "/renew", { ticket: given.asked.id }).catch(() => {});
    await send(given);
  });
}

function remember(asked, words) {
  last = asked;
  $("last-text").textContent = words;
  $("news").textContent = words;
  show($("last"), true);
  loadAnswers().catch(() => {});
}

function undo() {
  return inTurn(async () => last && undoNow(last.id)); // the last when its turn has come
}

/** Take an answer back, the last or an earlier one: its question is open again, and here. */
function takeBack(id) {
  return inTurn(() => undoNow(id));
}

async function undoNow(id) {
  problem(null);
  const told = await call("POST", "/undo", { ticket: id });
  if (last?.id === id) {
    last = null;
    show($("last"), false);
  }
  $("news").textContent = "Taken back. The question is open again.";
  draw(told.question);
  await loadAnswers();
}

/** This person's last answers, each of which can be taken back; loaded when someone wants to see them. */
async function loadAnswers() {
  if (!$("mine").open) return;
  const { answers } = await call("GET", "/answers");
  $("answers").replaceChildren(...answers.map(given));
  show($("no-answers"), answers.length === 0);
}

function given({ ticket, label, closed }) {
  const button = make("button", { type: "button", className: "quiet release", text: "Take back", "aria-label": `Take back ${label} for ${ticket}` });
  button.addEventListener("click", () => takeBack(ticket));
  const when = make("span", { className: "muted small", text: ` ${ticket} · ${ago(closed)}` });
  return make("li", {}, make("span", {}, make("b", { text: String(label) }), when), button);
}

function pressed(event) {
  if (!$("keys").checked || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.target.closest("input:not([type=checkbox]), select, textarea")) return;
  if (document.body.classList.contains("picking") && question) return beginTyping(event);
  const key = event.key.toLowerCase();
  const actions = { u: undo, s: () => $("skip").click(), d: () => $("unknown").click() };
  const place = keys.indexOf(key);
  if (actions[key]) actions[key]();
  else if (question && place >= 0) answer(question.choices[place]);
  else return;
  event.preventDefault();
}

/** Among very many classes a letter is the beginning of a name, wherever it is typed. */
function beginTyping(event) {
  if (event.key.length === 1 && event.key !== " ") $("typed").focus(); // which then gets the letter
}

async function loadDescriptions() {
  const { descriptions } = await call("GET", "/descriptions");
  picker.descriptions = new Map(Object.entries(descriptions));
  if (question) draw(question);
}

function rememberKeys() {
  $("keys").checked = localStorage.getItem("keys") !== "off";
  document.body.classList.toggle("no-keys", !$("keys").checked);
}

$("skip").addEventListener("click", () => setAside("/skip", "Your skip", "Skipped: someone else will be asked."));
$("unknown").addEventListener("click", () => setAside("/dont-know", "Your “don’t know”", "You did not know: the question is closed."));
$("new-class").addEventListener("submit", answerNew);
$("undo").addEventListener("click", undo);
$("mine").addEventListener("toggle", () => loadAnswers().catch((error) => problem(error.message)));
$("keys").addEventListener("change", () => {
  localStorage.setItem("keys", $("keys").checked ? "on" : "off");
  rememberKeys();
});
addEventListener("keydown", pressed);
addEventListener("pagehide", () => {
  if (question) call("POST", "/release", { ticket: question.id }, { keepalive: true }).catch(() => {});
});
addEventListener("pageshow", (event) => event.persisted && act(next));
rememberKeys();
act(next);
loadDescriptions().catch(() => {}); // they are a help, not a need
listen(({ events: happened, open }) => {
  events = happened;
  counts({ open });
  if (!question) idle();
  inTurn(async () => (question && open ? question : next())); // with none open, what is shown was withdrawn
});
setInterval(() => question || act(next), 15000);
setInterval(tick, 500);
document.addEventListener("visibilitychange", tick);
