// Tells who waits for the first word of a reply how long it has been, once that is long: a model may
// read for half a minute before it speaks.
import { follow } from "./scrolling.js";

const LONG = 4; // seconds

/** Counts while the reply `turn` has no word. What it tells stands below the caret, see strata.css. */
export function countSilence(turn, text) {
  const said = turn.querySelector("[data-said]");
  if (!said || said.textContent.trim()) return;
  const began = Date.now();
  const timer = setInterval(() => {
    const seconds = Math.round((Date.now() - began) / 1000);
    const isSilent = said.isConnected && turn.hasAttribute("aria-busy") && !said.textContent.trim();
    if (!isSilent) clearInterval(timer);
    if (!isSilent || seconds < LONG) return;
    said.dataset.silence = `${text}: ${seconds} s`;
    follow();
  }, 1000);
}
