// Earlier turns of a chat come in above as one scrolls up, and where the link to them is followed.
import { reveal } from "./copy.js";
import { reachBack } from "./live.js";
import { turns } from "./turns.js";

const box = document.querySelector("[data-scroll]");
let loading = false;

const link = () => turns.querySelector(":scope > .earlier a");

async function load() {
  const way = link();
  if (!way || loading) return;
  loading = true;
  try {
    const response = await fetch(way.href);
    if (!response.ok || response.redirected) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    // The page was brought up to date meanwhile: the link in it now is another one.
    if (way.isConnected) put(page.querySelector("[data-turns]"), way.parentNode);
  } catch {
    // Asked for again at the next scroll.
  } finally {
    loading = false;
  }
  watch();
}

function put(made, place) {
  const below = box.scrollHeight - box.scrollTop;
  const fresh = [...made.querySelectorAll(":scope > .earlier, :scope > [data-turn]")];
  const days = made.querySelectorAll(".date");
  const next = turns.querySelector(":scope > [data-turn] .date");
  if (days.length && next?.textContent === [...days].at(-1).textContent) next.remove();
  place.replaceWith(...fresh);
  for (const one of fresh) reveal(one);
  const first = turns.querySelector(":scope > [data-turn]");
  reachBack(first.dataset.parent ? Number(first.id.slice(1)) : 1);
  // What is read stays where it is.
  box.scrollTop = box.scrollHeight - below;
}

const seen = new IntersectionObserver(
  (entries) => { if (entries.some((one) => one.isIntersecting)) load(); },
  { root: box, rootMargin: "400px 0px 0px 0px" },
);

function watch() {
  seen.disconnect();
  const way = link();
  if (way) seen.observe(way);
}

if (turns?.dataset.events) {
  turns.addEventListener("click", (event) => {
    if (!event.target.closest(".earlier a") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    load();
  });
  // Not before the page stands at its end.
  requestAnimationFrame(watch);
  new MutationObserver(watch).observe(turns, { childList: true });
}
