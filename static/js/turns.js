// The turns of a chat on its page: put in, brought up to date, and left alone where somebody writes.
import { reveal } from "./copy.js";

export const turns = document.querySelector("[data-turns]");
const latest = document.querySelector("[data-latest]");

export function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  reveal(template.content);
  return template.content;
}

const all = () => [...turns.querySelectorAll(":scope > [data-turn]")];
export const withId = (id) => turns.querySelector(`:scope > [data-turn="${CSS.escape(id)}"]`);
const slot = (turn) => turn.querySelector("[data-slot]");
const isWrittenIn = (turn) => Boolean(slot(turn)?.querySelector("[data-edit]"));

let changes = 0;

/** How often a turn was put in, replaced or taken away here so far. */
export const timesChanged = () => changes;

/** Puts the turns in `html` where they belong and returns the last of them: what stood below the
 * message that they follow is on another branch now. */
export function add(html) {
  const fresh = [...fragment(html).querySelectorAll("[data-turn]")];
  turns.querySelector(":scope > .lead")?.remove();
  const { parent } = fresh[0].dataset;
  const above = parent ? withId(parent) : null;
  for (const old of above || !parent ? after(above) : []) old.remove();
  for (const one of fresh) replace(one.dataset.turn, one);
  return fresh.at(-1);
}

function after(turn) {
  const known = all();
  return known.slice(known.indexOf(turn) + 1);
}

/** Puts `fresh` in the place of the turn with this id, or at the end. */
export function replace(id, fresh) {
  changes += 1;
  const old = withId(id);
  if (old) keepingFocus(() => swap(old, fresh));
  else latest.before(fresh);
}

export function remove(turn) {
  changes += 1;
  turn.remove();
}

/** Makes the page what `made` is, touching only the turns that look different. Those for which
 * `isBusy` is true are being said here, and those that somebody edits stay open. */
export function patch(made, isBusy) {
  keepingFocus(() => bringUpToDate(made, isBusy));
}

function bringUpToDate(made, isBusy) {
  const fresh = [...made.querySelectorAll("[data-turn]")];
  const ids = new Set(fresh.map((one) => one.dataset.turn));
  for (const old of all()) if (!ids.has(old.dataset.turn) && !isWrittenIn(old)) old.remove();
  for (const name of ["earlier", "lead"]) {
    turns.querySelector(`:scope > .${name}`)?.remove();
    const line = made.querySelector(`.${name}`);
    if (line) turns.prepend(line);
  }
  let below = latest;
  for (const one of fresh.reverse()) {
    const old = withId(one.dataset.turn);
    let kept = one;
    if (old && (isBusy(one.dataset.turn) || old.dataset.key === one.dataset.key)) kept = old;
    else if (old) swap(old, one);
    if (kept.nextElementSibling !== below) below.before(kept);
    below = kept;
  }
}

/** Keeps what is open in the turn. */
function swap(old, fresh) {
  const open = slot(old);
  if (open?.hasChildNodes()) slot(fresh)?.replaceWith(open);
  old.replaceWith(fresh);
}

/** Gives the focus back to where it was, or to what does the same in the turn that came in place. */
function keepingFocus(work) {
  const focused = document.activeElement;
  const turn = focused?.closest?.("[data-turn]");
  work();
  if (!turn || document.activeElement === focused) return;
  const { turn: id, parent } = turn.dataset;
  const there = withId(id) ?? turns.querySelector(`:scope > [data-parent="${CSS.escape(parent)}"]`);
  const next = focused.isConnected ? focused : there && (sameIn(there, focused) ?? there);
  next?.focus({ preventScroll: true });
}

function sameIn(turn, focused) {
  const menu = focused.closest("[data-menu]")?.querySelector("summary");
  const { act } = (menu ?? focused).dataset;
  const others = focused.closest(".versions") ? ", .versions button:not([disabled])" : "";
  return act && turn.querySelector(`[data-act="${CSS.escape(act)}"]:not([disabled])${others}`);
}
