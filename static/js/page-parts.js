// The parts of a chat page around the turns: the sidebar's chats, the chips, the settings, and the
// foot with the composer or the reason why there is none.
import { initComposer } from "./composer.js";
import { announce } from "./replies.js";

const main = document.getElementById("main");
const foot = () => document.querySelector("[data-foot]");
// The replaced composer with its draft. It is shown again when the user may write again.
let replacedComposer = null;

/** Replaces the parts of the page with those in `update`. */
export function updateParts(update) {
  for (const newPart of update.querySelectorAll("[data-part]")) {
    const part = document.querySelector(`[data-part="${newPart.dataset.part}"]`);
    if (part && !isInUse(part))
      preserveFocus(part, () => part.replaceChildren(...newPart.childNodes));
  }
  const newFoot = update.querySelector("[data-foot]");
  if (newFoot && foot() && foot().dataset.foot !== newFoot.dataset.foot) replaceFoot(newFoot);
}

/** Returns whether the part is a settings form that is open or shows errors. */
const isInUse = (part) =>
  part.matches("[popover]") && (part.matches(":popover-open") || part.querySelector(".invalid"));

/** Runs `change`, then moves the focus back to the link with the same URL. */
function preserveFocus(part, change) {
  const href = part.contains(document.activeElement) && document.activeElement.getAttribute("href");
  change();
  if (href) part.querySelector(`[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true });
}

function replaceFoot(newFoot) {
  const oldFoot = foot();
  const next = newFoot.dataset.foot === "open" && replacedComposer ? replacedComposer : newFoot;
  const hadFocus = oldFoot.contains(document.activeElement);
  if (oldFoot.dataset.foot === "open") replacedComposer = oldFoot;
  oldFoot.replaceWith(next);
  if (next.dataset.foot === "open") {
    announce("");
    if (next === newFoot) initComposer(next.querySelector("[data-composer]"));
    if (hadFocus || document.activeElement === main) textBox(next).focus({ preventScroll: true });
    return;
  }
  const draftNote = next.querySelector("[data-draft-note]");
  if (draftNote) draftNote.hidden = !hasDraft(replacedComposer);
  // Not to a button, which a user who is typing would press.
  if (hadFocus) main.focus({ preventScroll: true });
  announce(next.querySelector("p").textContent);
}

const textBox = (composer) => composer.querySelector("textarea");
const hasDraft = (composer) =>
  Boolean(composer && (textBox(composer).value || composer.querySelector(".picture")));

/** Locks the composer after the chat was deleted for this user. A draft can still be copied. */
export function lockComposer() {
  const oldFoot = foot();
  if (oldFoot.dataset.foot !== "open" || !hasDraft(oldFoot)) {
    const template = document.querySelector("[data-chat-deleted]");
    const next = template.content.firstElementChild.cloneNode(true);
    oldFoot.replaceWith(hasDraft(replacedComposer) ? replacedComposer : next);
  }
  if (foot().dataset.foot !== "open") return;
  textBox(foot()).readOnly = true;
  for (const control of foot().querySelectorAll("button, input")) control.disabled = true;
}
