// What stands around the turns: the chats beside them, the chips above, the settings, and below them
// where people write, or why they cannot.
import { announce } from "./chat.js";
import { begin } from "./composer.js";

const main = document.getElementById("main");
const foot = () => document.querySelector("[data-foot]");
// A composer that had to go, with what was being written in it. It comes back when people may write again.
let aside = null;

/** Makes the parts of the page what they are in `made`. */
export function patchParts(made) {
  for (const fresh of made.querySelectorAll("[data-part]")) {
    const old = document.querySelector(`[data-part="${fresh.dataset.part}"]`);
    if (old && !isInUse(old)) keepingFocus(old, () => old.replaceChildren(...fresh.childNodes));
  }
  const fresh = made.querySelector("[data-foot]");
  if (fresh && foot() && foot().dataset.foot !== fresh.dataset.foot) replaceFoot(fresh);
}

/** Settings that are open, or were refused, are left to who fills them in. */
const isInUse = (part) => part.matches("[popover]") && (part.matches(":popover-open") || part.querySelector(".wrong"));

/** Gives the focus back to the link to the same place. */
function keepingFocus(part, work) {
  const href = part.contains(document.activeElement) && document.activeElement.getAttribute("href");
  work();
  if (href) part.querySelector(`[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true });
}

function replaceFoot(fresh) {
  const old = foot();
  const next = fresh.dataset.foot === "open" && aside ? aside : fresh;
  const wasUsed = old.contains(document.activeElement);
  if (old.dataset.foot === "open") aside = old;
  old.replaceWith(next);
  if (next.dataset.foot === "open") {
    announce("");
    if (next === fresh) begin(next.querySelector("[data-composer]"));
    if (wasUsed || document.activeElement === main) box(next).focus({ preventScroll: true });
    return;
  }
  const kept = next.querySelector("[data-kept]");
  if (kept) kept.hidden = !isWrittenIn(aside);
  // Not to a button: whoever was typing would press it.
  if (wasUsed) main.focus({ preventScroll: true });
  announce(next.querySelector("p").textContent);
}

const box = (composer) => composer.querySelector("textarea");
const isWrittenIn = (composer) => Boolean(composer && (box(composer).value || composer.querySelector(".picture")));

/** The chat is gone for this reader: nothing can be sent, but words that were being written can still be
 * copied. */
export function leave() {
  const old = foot();
  if (old.dataset.foot !== "open" || !isWrittenIn(old)) {
    const next = document.querySelector("[data-gone]").content.firstElementChild.cloneNode(true);
    old.replaceWith(isWrittenIn(aside) ? aside : next);
  }
  if (foot().dataset.foot !== "open") return;
  box(foot()).readOnly = true;
  for (const control of foot().querySelectorAll("button, input")) control.disabled = true;
}
