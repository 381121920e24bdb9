// Adds, replaces and removes the turns on a chat page. An open editor stays open.
import { enhanceText } from "./copy.js";

export const turns = document.querySelector("[data-turns]");
const latest = document.querySelector("[data-latest]");

export function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  enhanceText(template.content);
  return template.content;
}

const allTurns = () => [...turns.querySelectorAll(":scope > [data-turn]")];
export const turnById = (id) => turns.querySelector(`:scope > [data-turn="${CSS.escape(id)}"]`);
const slotOf = (turn) => turn.querySelector("[data-slot]");
const isEdited = (turn) => Boolean(slotOf(turn)?.querySelector("[data-edit]"));

let changes = 0;

/** Returns how often a turn was added, replaced or removed so far. */
export const changeCount = () => changes;

/** Adds the turns in `html` after their parent and returns the last. Turns below the parent belong to
 * another branch now and are removed. */
export function addTurns(html) {
  const added = [...fragment(html).querySelectorAll("[data-turn]")];
  turns.querySelector(":scope > .lead")?.remove();
  const { parent } = added[0].dataset;
  const parentTurn = parent ? turnById(parent) : null;
  for (const turn of parentTurn || !parent ? turnsAfter(parentTurn) : []) turn.remove();
  for (const turn of added) replaceTurn(turn.dataset.turn, turn);
  return added.at(-1);
}

function turnsAfter(turn) {
  const all = allTurns();
  return all.slice(all.indexOf(turn) + 1);
}

/** Puts `newTurn` in the place of the turn with this id, or at the end. */
export function replaceTurn(id, newTurn) {
  changes += 1;
  const turn = turnById(id);
  if (turn) preserveFocus(() => swap(turn, newTurn));
  else latest.before(newTurn);
}

export function removeTurn(turn) {
  changes += 1;
  turn.remove();
}

/** Makes the turns equal to those in `update`, and replaces only turns that differ. Turns that are
 * streaming are not replaced, and turns with an open editor are not removed. */
export function updateTurns(update, isStreaming) {
  preserveFocus(() => applyUpdate(update, isStreaming));
}

function applyUpdate(update, isStreaming) {
  const newTurns = [...update.querySelectorAll("[data-turn]")];
  const ids = new Set(newTurns.map((turn) => turn.dataset.turn));
  for (const turn of allTurns()) if (!ids.has(turn.dataset.turn) && !isEdited(turn)) turn.remove();
  for (const name of ["earlier", "lead"]) {
    turns.querySelector(`:scope > .${name}`)?.remove();
    const line = update.querySelector(`.${name}`);
    if (line) turns.prepend(line);
  }
  let next = latest;
  for (const newTurn of newTurns.reverse()) {
    const oldTurn = turnById(newTurn.dataset.turn);
    let turn = newTurn;
    if (
      oldTurn &&
      (isStreaming(newTurn.dataset.turn) || oldTurn.dataset.key === newTurn.dataset.key)
    )
      turn = oldTurn;
    else if (oldTurn) swap(oldTurn, newTurn);
    if (turn.nextElementSibling !== next) next.before(turn);
    next = turn;
  }
}

/** Replaces the turn, and moves an open editor to the new one. */
function swap(oldTurn, newTurn) {
  const slot = slotOf(oldTurn);
  if (slot?.hasChildNodes()) slotOf(newTurn)?.replaceWith(slot);
  oldTurn.replaceWith(newTurn);
}

/** Runs `change`, then moves the focus back to the same control, in the new turn if it was replaced. */
function preserveFocus(change) {
  const focused = document.activeElement;
  const turn = focused?.closest?.("[data-turn]");
  change();
  if (!turn || document.activeElement === focused) return;
  const { turn: id, parent } = turn.dataset;
  const newTurn =
    turnById(id) ?? turns.querySelector(`:scope > [data-parent="${CSS.escape(parent)}"]`);
  const next = focused.isConnected
    ? focused
    : newTurn && (sameControl(newTurn, focused) ?? newTurn);
  next?.focus({ preventScroll: true });
}

function sameControl(turn, focused) {
  const menu = focused.closest("[data-menu]")?.querySelector("summary");
  const { action } = (menu ?? focused).dataset;
  const fallback = focused.closest(".versions") ? ", .versions button:not([disabled])" : "";
  return (
    action && turn.querySelector(`[data-action="${CSS.escape(action)}"]:not([disabled])${fallback}`)
  );
}
