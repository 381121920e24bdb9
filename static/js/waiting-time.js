// Shows how long the reader has waited for the first word of a reply. A model may read for half a
// minute before it writes.
import { followEnd } from "./autoscroll.js";

const SHOW_AFTER_S = 2;

/** Counts until the reply `turn` has text. chat.css shows the count below the caret. */
export function showWaitingTime(turn, label) {
  const text = turn.querySelector("[data-message-text]");
  if (!text || text.textContent.trim()) return;
  const startedAt = Date.now();
  const timer = setInterval(() => {
    const seconds = Math.round((Date.now() - startedAt) / 1000);
    const isWaiting =
      text.isConnected && turn.hasAttribute("aria-busy") && !text.textContent.trim();
    if (!isWaiting) clearInterval(timer);
    if (!isWaiting || seconds < SHOW_AFTER_S) return;
    text.dataset.waiting = `${label} ${seconds} s`;
    followEnd();
  }, 1000);
}
