// Others are here too: the page is brought up to date whenever the chat's version rises.
import { complain, followAll, isFollowed, says } from "./chat.js";
import { MEDIA_TYPE, events, isStream } from "./events.js";
import { follow } from "./scrolling.js";
import { fragment, patch, turns } from "./turns.js";

const LONGEST_WAIT = 30_000; // milliseconds
let version = 0;
let since = 1;
let refreshing = Promise.resolve(true);
let watching = null;

/** Fetches the turns as they are now and shows them. Resolves to whether it could. */
export function refresh() {
  refreshing = refreshing.then(fetchTurns, fetchTurns);
  return refreshing;
}

async function fetchTurns() {
  let response;
  try {
    response = await fetch(`${location.pathname}?part=turns&since=${since}`);
  } catch {
    return false;
  }
  if (response.redirected || !response.ok) {
    complain(says(response.redirected ? "signedOut" : response.status === 404 ? "gone" : "refused"));
    return false;
  }
  const made = fragment(await response.text());
  read(made.querySelector("[data-state]"));
  patch(made, isFollowed);
  follow();
  followAll();
  return true;
}

function read(state) {
  version = Math.max(version, Number(state.dataset.version));
  const { title } = state.dataset;
  const heading = document.querySelector("[data-title-of-chat]");
  if (!title || heading.textContent === title) return;
  document.title = document.title.replace(heading.textContent, title);
  heading.textContent = title;
}

/** Listens until the page is hidden: a browser has few connections to a server, and tabs are many. */
async function watch() {
  watching = new AbortController();
  const { signal } = watching;
  for (let wait = 1000; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      const url = `${turns.dataset.events}?version=${version}`;
      const response = await fetch(url, { headers: { Accept: MEDIA_TYPE }, signal });
      if (response.redirected || response.status === 404) return;
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
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) watching?.abort();
    else watch();
  });
  if (!document.hidden) watch();
}
