// Live updates: refreshes a chat page whenever the version of its session increases.
import { followEnd } from "./autoscroll.js";
import { MEDIA_TYPE, events, isStream } from "./events.js";
import { chatsShown } from "./older-chats.js";
import { lockComposer, updateParts } from "./page-parts.js";
import { SendError, followAll, isFollowed, postForm, showError, statusText } from "./replies.js";
import { changeCount, fragment, turns, updateTurns } from "./turns.js";

const MAX_RETRY_DELAY_MS = 30_000;
const REFRESH_RETRY_DELAY_MS = 3000;
let version = 0;
// The `seq` from which turns are updated.
let firstSeq = 1;
let refreshing = Promise.resolve(true);
let listening = null;
let isDeleted = false;

/** Fetches the current turns and shows them. Resolves to whether it succeeded. */
export function refresh() {
  refreshing = refreshing.then(fetchTurns, fetchTurns);
  return refreshing;
}

async function fetchTurns() {
  const changesBefore = changeCount();
  const from = firstSeq;
  let response;
  try {
    response = await fetch(`${location.pathname}?part=turns&since=${from}&chats=${chatsShown()}`);
  } catch {
    return false;
  }
  if (hasLostAccess(response)) return false;
  if (!response.ok) return false;
  const html = await response.text();
  // The response may lack a turn that was added or finished here in the meantime.
  if (changeCount() !== changesBefore || firstSeq !== from) return fetchTurns();
  const update = fragment(html);
  readState(update.querySelector("[data-state]"));
  updateTurns(update, isFollowed);
  updateParts(update);
  followEnd();
  followAll();
  return true;
}

/** Extends the updates to the turns from `seq`. */
export function updateFrom(seq) {
  firstSeq = Math.min(firstSeq, seq);
}

function readState(state) {
  version = Math.max(version, Number(state.dataset.version));
  const { title } = state.dataset;
  const heading = document.querySelector("[data-chat-title]");
  if (!title || heading.textContent === title) return;
  document.title = document.title.replace(heading.textContent, () => title);
  heading.textContent = title;
}

/** Returns whether the user is signed out or may no longer see the chat, and shows that. */
function hasLostAccess(response) {
  if (response.redirected) showError(statusText("signedOut"));
  else if (response.status === 404) removeChat();
  return response.redirected || response.status === 404;
}

/** Removes a chat that the user may no longer see from the page. */
function removeChat() {
  if (isDeleted) return;
  isDeleted = true;
  listening?.abort();
  showError(statusText("gone"));
  turns.replaceChildren();
  lockComposer();
  document.dispatchEvent(new Event("strata:chat-deleted"));
}

async function reopen(event) {
  if (!event.target.matches("[data-reopen]")) return;
  event.preventDefault();
  try {
    await postForm(event.target.action, new FormData(event.target), { redirect: "manual" });
    await refresh();
  } catch (error) {
    if (!(error instanceof SendError)) throw error;
    showError(error.message);
  }
}

/** Listens until the page is hidden, because a browser opens only a few connections to a server. */
async function listen() {
  if (isDeleted) return;
  listening = new AbortController();
  const { signal } = listening;
  for (let delay = 1000; !signal.aborted; delay = Math.min(2 * delay, MAX_RETRY_DELAY_MS)) {
    try {
      const url = `${turns.dataset.events}?version=${version}`;
      const response = await fetch(url, { headers: { Accept: MEDIA_TYPE }, signal });
      if (hasLostAccess(response)) return;
      if (isStream(response)) {
        delay = 500;
        for await (const { event, data } of events(response)) {
          if (event === "version" && Number(data) > version && !(await refresh())) {
            // The server sends the version again.
            delay = REFRESH_RETRY_DELAY_MS;
            break;
          }
        }
      }
    } catch {
      // The connection broke; the loop tries again.
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, delay));
  }
}

if (turns?.dataset.events) {
  const first = turns.querySelector("[data-turn]");
  if (first?.dataset.parent) firstSeq = Number(first.id.slice(1));
  readState(turns.querySelector("[data-state]"));
  document.addEventListener("submit", reopen);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) listening?.abort();
    else listen();
  });
  if (!document.hidden) listen();
}
