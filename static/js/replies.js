// Sends messages, follows the streams of their replies, and at the end replaces each with the turn
// that the server rendered.
import { followEnd, scrollToEnd } from "./autoscroll.js";
import { offlineText, reasonIn } from "./connection.js";
import { MEDIA_TYPE, events, isStream } from "./events.js";
import { streamText } from "./streamed-text.js";
import { addTurns, fragment, removeTurn, replaceTurn, turns } from "./turns.js";
import { showWaitingTime } from "./waiting-time.js";

const status = document.querySelector("[data-status]");
const errorBox = document.querySelector("[data-error]");
const MAX_TRIES = 5;
// The ids of the replies whose streams this page follows.
const followedIds = new Set();
let sendingCount = 0;

export const isSending = () => sendingCount > 0;
export const isFollowed = (id) => followedIds.has(id);
export const statusText = (name) => status.dataset[`text${name[0].toUpperCase()}${name.slice(1)}`];

/** Shows the error, or hides the last one. */
export function showError(text = "") {
  errorBox.textContent = text;
  errorBox.hidden = !text;
}

/** A request that failed; the message is for the user. */
export class SendError extends Error {}

/** Sends `form` and shows the reply as it streams. Resolves when the reply has ended; `onSent` runs
 * when the server has stored the message. Throws SendError. */
export async function send(form, onSent, url = form.action, body = new FormData(form)) {
  sendingCount += 1;
  try {
    const response = await postForm(url, body, { headers: { Accept: MEDIA_TYPE } });
    if (!isStream(response)) throw new SendError(await errorDetail(response));
    await showStream(response, null, onSent);
  } finally {
    sendingCount -= 1;
  }
}

/** Returns the response to a form. Throws SendError if there is none or the user is signed out. */
export async function postForm(url, body, options = {}) {
  let response;
  try {
    response = await fetch(url, { method: "POST", body, ...options });
  } catch {
    throw new SendError(body.has("content") ? statusText("refused") : offlineText());
  }
  if (response.redirected) throw new SendError(statusText("signedOut"));
  return response;
}

export async function errorDetail(response) {
  return (await reasonIn(response)) ?? statusText("refused");
}

/** Follows each reply on the page that has not ended. */
export function followAll() {
  for (const turn of turns.querySelectorAll("[data-stream]")) {
    if (followedIds.has(turn.dataset.turn)) continue;
    showWaitingTime(turn, statusText("waiting"));
    document.dispatchEvent(new Event("strata:reply-begun"));
    followReply(turn);
  }
}

/** Follows the reply of `turn`, and reconnects if the connection breaks. */
async function followReply(turn, tries = MAX_TRIES) {
  const id = turn.dataset.turn;
  followedIds.add(id);
  try {
    const response = await fetch(turn.dataset.stream, { headers: { Accept: MEDIA_TYPE } });
    if (isStream(response)) return await showStream(response, turn);
  } catch {
    // Retried below.
  } finally {
    followedIds.delete(id);
  }
  return retry(turn, tries - 1);
}

async function retry(turn, tries) {
  // A live update has replaced the turn, or the reply ended before it was shown.
  if (!turn.isConnected || !turn.dataset.stream) return;
  if (tries <= 0) return showConnectionLost(turn);
  followedIds.add(turn.dataset.turn);
  await new Promise((resolve) => setTimeout(resolve, 1000 * (MAX_TRIES - tries)));
  return followReply(turn, tries);
}

async function showStream(response, turn, onSent = () => {}) {
  let hasEnded = false;
  try {
    announceStatus("answering");
    let text = null;
    for await (const { event, data } of events(response)) {
      if (event === "message") {
        turn = addTurns(data);
        followedIds.add(turn.dataset.turn);
        showWaitingTime(turn, statusText("waiting"));
        scrollToEnd();
        document.dispatchEvent(new Event("strata:reply-begun"));
        onSent();
      } else if (event === "lookups") {
        turn.querySelector("[data-lookups]")?.replaceChildren(fragment(data));
        followEnd();
      } else if (event === "thinking") {
        showThinking(turn, JSON.parse(data).text);
      } else if (event === "delta" || event === "block") {
        const payload = JSON.parse(data);
        text ??= streamText(turn);
        if (event === "delta") text.add(payload.text);
        else text.addBlock(payload.html, payload.rest);
      } else {
        finish(turn, event, data);
        // Even if the connection stays open, the next message may be sent.
        hasEnded = true;
        break;
      }
    }
  } catch {
    // The connection broke. The reply continues on the server, and is followed again below.
  } finally {
    if (turn) followedIds.delete(turn.dataset.turn);
  }
  // The message may have been stored.
  if (!turn) throw new SendError(statusText("lost"));
  if (!hasEnded) await retry(turn, MAX_TRIES - 1);
}

/** Stops the last reply that is being written. */
export function stopLatest() {
  const buttons = turns.querySelectorAll("[data-stop]");
  buttons.item(buttons.length - 1)?.click();
}

function finish(turn, event, data) {
  const html = event === "error" ? JSON.parse(data).reply : data;
  if (!html) removeTurn(turn);
  else if (turn.isConnected) {
    const newTurn = fragment(html).querySelector("[data-turn]");
    keepThinking(turn, newTurn);
    replaceTurn(turn.dataset.turn, newTurn);
  }
  announceStatus(event === "error" ? "failed" : "done");
  followEnd();
  document.dispatchEvent(new Event("strata:reply"));
}

/** Adds text to the folded reasoning of the reply. The server does not store it. */
function showThinking(turn, text) {
  const details = turn.querySelector("[data-thinking]");
  if (!details) return;
  details.hidden = false;
  details.querySelector("[data-thinking-text]").append(text);
  followEnd();
}

/** Keeps the reasoning on the page, until it is reloaded. */
function keepThinking(turn, newTurn) {
  const details = turn.querySelector("[data-thinking]:not([hidden])");
  if (details) newTurn.querySelector("[data-message-text]")?.before(details);
}

function announceStatus(name) {
  announce(statusText(name));
}

/** Announces the text to screen readers. */
export function announce(text) {
  status.textContent = text;
}

function showConnectionLost(turn) {
  announceStatus("lost");
  turn.removeAttribute("aria-busy");
  const line = document.createElement("p");
  line.className = "failure";
  line.textContent = statusText("lost");
  turn.append(line);
}

if (turns) {
  if (!location.hash || location.hash === "#latest") scrollToEnd();
  followAll();
}
