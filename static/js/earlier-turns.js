// Loads the earlier turns of a chat above the others as the reader scrolls up, or clicks the link.
import { enhanceText } from "./copy.js";
import { updateFrom } from "./live-updates.js";
import { turns } from "./turns.js";

const scroller = document.querySelector("[data-scroll]");
let isLoading = false;

const earlierLink = () => turns.querySelector(":scope > .earlier a");

async function load() {
  const link = earlierLink();
  if (!link || isLoading) return;
  isLoading = true;
  try {
    const response = await fetch(link.href);
    if (!response.ok || response.redirected) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    // A live update may have replaced the link.
    if (link.isConnected) insert(page.querySelector("[data-turns]"), link.parentNode);
  } catch {
    // The next scroll tries again.
  } finally {
    isLoading = false;
  }
  observeLink();
}

function insert(loaded, placeholder) {
  const distanceFromEnd = scroller.scrollHeight - scroller.scrollTop;
  const added = [...loaded.querySelectorAll(":scope > .earlier, :scope > [data-turn]")];
  const dates = loaded.querySelectorAll(".date");
  const firstDate = turns.querySelector(":scope > [data-turn] .date");
  if (dates.length && firstDate?.textContent === [...dates].at(-1).textContent) firstDate.remove();
  placeholder.replaceWith(...added);
  for (const element of added) enhanceText(element);
  const first = turns.querySelector(":scope > [data-turn]");
  updateFrom(first.dataset.parent ? Number(first.id.slice(1)) : 1);
  // The text in view keeps its place.
  scroller.scrollTop = scroller.scrollHeight - distanceFromEnd;
}

const observer = new IntersectionObserver(
  (entries) => {
    if (entries.some((entry) => entry.isIntersecting)) load();
  },
  { root: scroller, rootMargin: "400px 0px 0px 0px" },
);

function observeLink() {
  observer.disconnect();
  const link = earlierLink();
  if (link) observer.observe(link);
}

if (turns?.dataset.events) {
  turns.addEventListener("click", (event) => {
    if (!event.target.closest(".earlier a") || event.ctrlKey || event.metaKey || event.shiftKey)
      return;
    event.preventDefault();
    load();
  });
  // Only after the page has scrolled to its end.
  requestAnimationFrame(observeLink);
  new MutationObserver(observeLink).observe(turns, { childList: true });
}
