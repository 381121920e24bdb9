// Others are here too: the page is brought up to date whenever the chat's version rises.
import { Refused, complain, followAll, isFollowed, posted, says } from "./chat.js";
import { MEDIA_TYPE, events, isStream } from "./events.js";
import { chatsShown } from "./older-chats.js";
import { leave, patchParts } from "./parts.js";
import { follow } from "./scrolling.js";
import { fragment, patch, timesChanged, turns } from "./turns.js";

const LONGEST_WAIT = 30_000; // milliseconds
let version = 0;
let since = 1;
let refreshing = Promise.resolve(true);
let watching = null;
// Whether this reader may no longer see the chat.
let gone = false;

/** Fetches the turns as they are now and shows them. Resolves to whether it could. */
export function refresh() {
  refreshing = refreshing.then(fetchTurns, fetchTurns);
  return refreshing;
}

async function fetchTurns() {
  const before = timesChanged();
  const from = since;
  let response;
  try {
    response = await fetch(`${location.pathname}?part=turns&since=${since}&chats=${chatsShown()}`);
  } catch {
    return false;
  }
  if (isOver(response)) return false;
  if (!response.ok) {
    complain(says("refused"));
    return false;
  }
  const html = await response.text();
  // What was fetched may not know what was said or finished here meanwhile, and would undo it.
  if (timesChanged() !== before || since !== from) return fetchTurns();
  const made = fragment(html);
  read(made.querySelector("[data-state]"));
  patch(made, isFollowed);
  patchParts(made);
  follow();
  followAll();
  return true;
}

/** From now on the turns from the place `seq` on are brought up to date. */
export function reachBack(seq) {
  since = Math.min(since, seq);
}

function read(state) {
  version = Math.max(version, Number(state.dataset.version));
  const { title } = state.dataset;
  const heading = document.querySelector("[data-title-of-chat]");
  if (!title || heading.textContent === title) return;
  document.title = document.title.replace(heading.textContent, () => title);
  heading.textContent = title;
}

/** Whether `response` says that its reader is signed out, or may not see the chat; then they are told. */
function isOver(response) {
  if (response.redirected) complain(says("signedOut"));
  else if (response.status === 404) lose();
  return response.redirected || response.status === 404;
}

/** Takes away what this reader may no longer see. */
function lose() {
  if (gone) return;
  gone = true;
  watching?.abort();
  complain(says("gone"));
  turns.replaceChildren();
  leave();
  document.dispatchEvent(new Event("strata:gone"));
}

async function reopen(event) {
  if (!event.target.matches("[data-reopen]")) return;
  event.preventDefault();
  try {
    await posted(event.target.action, new FormData(event.target), { redirect: "manual" });
    await refresh();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    complain(error.message);
  }
}

/** Listens until the page is hidden: a browser has few connections to a server, and tabs are many. */
async function watch() {
  if (gone) return;
  watching = new AbortController();
  const { signal } = watching;
  for (let wait = 1000; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      const url = `${turns.dataset.events}?version=${version}`;
      const response = await fetch(url, { headers: { Accept: MEDIA_TYPE }, signal });
      if (isOver(response)) return;
      if (isStream(response)) {
        wait = 500;
        for await (const { event, data } of events(response)) {
          if (event === "version" && Number(data) > version) await refresh();
        }
      }
    } catch {
      // The connection broke; tried again below.
    }
    if (!signal.aborted) await new Promise((wake) => setTimeout(wake, wait));
  }
}

if (turns?.dataset.events) {
  const first = turns.querySelector("[data-turn]");
  if (first?.dataset.parent) since = Number(first.id.slice(1));
  read(turns.querySelector("[data-state]"));
  document.addEventListener("submit", reopen);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) watching?.abort();
    else watch();
  });
  if (!document.hidden) watch();
}
