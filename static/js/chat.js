// A reply as it is being said: its words as plain text, at the end the page the server made of it.
import { MEDIA_TYPE, events, isStream } from "./events.js";
import { reveal } from "./copy.js";
import { follow, toTheEnd } from "./scrolling.js";

const turns = document.querySelector("[data-turns]");
const latest = document.querySelector("[data-latest]");
const status = document.querySelector("[data-status]");
const TRIES = 5;
let speaking = 0;

export const isSpeaking = () => speaking > 0;

export class Refused extends Error {}

/** Sends `form` and shows what comes back. Resolves when the reply is over; `onSent` runs when the
 * server has kept what was sent. Throws Refused, whose message is for people. */
export async function send(form, onSent) {
  let response;
  try {
    response = await fetch(form.action, {
      method: "POST",
      body: new FormData(form),
      headers: { Accept: MEDIA_TYPE },
    });
  } catch {
    throw new Refused(says("refused"));
  }
  if (response.redirected) throw new Refused(says("signedOut"));
  if (!isStream(response)) throw new Refused(await reason(response));
  await show(response, null, onSent);
}

async function reason(response) {
  try {
    return (await response.json()).detail ?? says("refused");
  } catch {
    return says("refused");
  }
}

/** Follows the reply that `turn` stands for, coming back when the connection breaks. */
async function resume(turn, tries = TRIES) {
  try {
    const response = await fetch(turn.dataset.stream, { headers: { Accept: MEDIA_TYPE } });
    if (isStream(response)) return await show(response, turn);
  } catch {
    // Tried again below.
  }
  return again(turn, tries - 1);
}

async function again(turn, tries) {
  if (tries <= 0 || !turn.isConnected) return tell("lost", turn);
  await new Promise((wake) => setTimeout(wake, 1000 * (TRIES - tries)));
  return resume(turn, tries);
}

async function show(response, turn, onSent = () => {}) {
  speaking += 1;
  let over = false;
  try {
    tell("answering");
    let text = "";
    for await (const { event, data } of events(response)) {
      if (event === "message") {
        turn = add(data);
        onSent();
      } else if (event === "delta") {
        text += JSON.parse(data).text;
        write(turn, text);
      } else {
        over = true;
        finish(turn, event, data);
      }
    }
  } catch {
    // The connection broke: the reply goes on, and is followed again below.
  } finally {
    speaking -= 1;
  }
  if (!over && turn) await again(turn, TRIES - 1);
}

/** Puts the turns in `html` at the end and returns the last, the one that will be said. */
function add(html) {
  turns.querySelector(":scope > .lead")?.remove();
  for (const old of turns.querySelectorAll("[data-again]")) old.remove();
  latest.before(fragment(html));
  toTheEnd();
  return turns.querySelector("[data-stream]:last-of-type") ?? latest.previousElementSibling;
}

function write(turn, text) {
  turn.querySelector("[data-said]").textContent = text;
  follow();
}

function finish(turn, event, data) {
  const html = event === "error" ? JSON.parse(data).reply : data;
  if (html) {
    const made = fragment(html);
    reveal(made);
    turn.replaceWith(made);
  } else turn.remove();
  tell(event === "error" ? "failed" : "done");
  follow();
  document.dispatchEvent(new Event("strata:reply"));
}

function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

const says = (what) => status.dataset[`says${what[0].toUpperCase()}${what.slice(1)}`];

function tell(what, turn) {
  status.textContent = says(what);
  if (turn?.isConnected) {
    turn.removeAttribute("aria-busy");
    const line = document.createElement("p");
    line.className = "failure";
    line.textContent = says(what);
    turn.append(line);
  }
}

async function retry(event) {
  const form = event.target.closest("[data-again]");
  if (!form || isSpeaking()) return;
  event.preventDefault();
  const old = form.closest(".turn");
  try {
    await send(form, () => old.remove());
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    form.submit();
  }
}

if (turns) {
  turns.addEventListener("submit", retry);
  if (!location.hash || location.hash === "#latest") toTheEnd();
  for (const turn of turns.querySelectorAll("[data-stream]")) resume(turn);
}
