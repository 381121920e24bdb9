// A reply as it is being said, and at the end the turn that the server made of it.
import { MEDIA_TYPE, events, isStream } from "./events.js";
import { grow } from "./growing.js";
import { follow, toTheEnd } from "./scrolling.js";
import { countSilence } from "./silence.js";
import { add, fragment, remove, replace, turns } from "./turns.js";

const status = document.querySelector("[data-status]");
const trouble = document.querySelector("[data-trouble]");
const TRIES = 5;
// The replies that are being followed here, by id.
const followed = new Set();
let sending = 0;

export const isSpeaking = () => sending > 0;
export const isFollowed = (id) => followed.has(id);
export const says = (what) => status.dataset[`says${what[0].toUpperCase()}${what.slice(1)}`];

/** Shows why something did not work, or takes that away. */
export function complain(text = "") {
  trouble.textContent = text;
  trouble.hidden = !text;
}

export class Refused extends Error {}

/** Sends `form` and shows what comes back. Resolves when the reply is over; `onSent` runs when the
 * server has kept what was sent. Throws Refused, whose message is for people. */
export async function send(form, onSent, to = form.action) {
  sending += 1;
  try {
    const response = await posted(to, new FormData(form), { headers: { Accept: MEDIA_TYPE } });
    if (!isStream(response)) throw new Refused(await reason(response));
    await show(response, null, onSent);
  } finally {
    sending -= 1;
  }
}

/** The answer to a form. Throws Refused when there is none, or a page to sign in. */
export async function posted(to, body, options = {}) {
  let response;
  try {
    response = await fetch(to, { method: "POST", body, ...options });
  } catch {
    throw new Refused(says("refused"));
  }
  if (response.redirected) throw new Refused(says("signedOut"));
  return response;
}

export async function reason(response) {
  try {
    return (await response.json()).detail ?? says("refused");
  } catch {
    return says("refused");
  }
}

/** Follows every reply on the page that is still being said. */
export function followAll() {
  for (const turn of turns.querySelectorAll("[data-stream]")) {
    if (followed.has(turn.dataset.turn)) continue;
    countSilence(turn, says("waiting"));
    resume(turn);
  }
}

/** Follows the reply that `turn` stands for, coming back when the connection breaks. */
async function resume(turn, tries = TRIES) {
  const id = turn.dataset.turn;
  followed.add(id);
  try {
    const response = await fetch(turn.dataset.stream, { headers: { Accept: MEDIA_TYPE } });
    if (isStream(response)) return await show(response, turn);
  } catch {
    // Tried again below.
  } finally {
    followed.delete(id);
  }
  return again(turn, tries - 1);
}

async function again(turn, tries) {
  // Brought up to date meanwhile, by another way.
  if (!turn.isConnected) return;
  if (tries <= 0) return lose(turn);
  followed.add(turn.dataset.turn);
  await new Promise((wake) => setTimeout(wake, 1000 * (TRIES - tries)));
  return resume(turn, tries);
}

async function show(response, turn, onSent = () => {}) {
  let over = false;
  try {
    tell("answering");
    let growing = null;
    for await (const { event, data } of events(response)) {
      if (event === "message") {
        turn = add(data);
        followed.add(turn.dataset.turn);
        countSilence(turn, says("waiting"));
        toTheEnd();
        onSent();
      } else if (event === "delta" || event === "block") {
        const { text, html, rest } = JSON.parse(data);
        growing ??= grow(turn);
        if (event === "delta") growing.add(text);
        else growing.settle(html, rest);
      } else {
        finish(turn, event, data);
        // Whatever the connection does now, the reply is over, and the next message may be sent.
        over = true;
        break;
      }
    }
  } catch {
    // The connection broke: the reply goes on, and is followed again below.
  } finally {
    if (turn) followed.delete(turn.dataset.turn);
  }
  if (!over && turn) await again(turn, TRIES - 1);
}

function finish(turn, event, data) {
  const html = event === "error" ? JSON.parse(data).reply : data;
  if (!html) remove(turn);
  else if (turn.isConnected) replace(turn.dataset.turn, fragment(html).querySelector("[data-turn]"));
  tell(event === "error" ? "failed" : "done");
  follow();
  document.dispatchEvent(new Event("strata:reply"));
}

export function tell(what) {
  announce(says(what));
}

/** Tells who listens to the page rather than looks at it. */
export function announce(text) {
  status.textContent = text;
}

function lose(turn) {
  tell("lost");
  turn.removeAttribute("aria-busy");
  const line = document.createElement("p");
  line.className = "failure";
  line.textContent = says("lost");
  turn.append(line);
}

if (turns) {
  if (!location.hash || location.hash === "#latest") toTheEnd();
  followAll();
}
