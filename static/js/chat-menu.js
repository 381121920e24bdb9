// What is done to a chat from a list, in a small sheet beside it; without it the link leads to a page.
import { refresh } from "./live.js";
import { turns } from "./turns.js";

const sheet = document.querySelector("[data-keeping]");
const EDGE = 8; // pixels between the sheet and the window's edge
// The link that opened the sheet.
let opener = null;

async function open(event) {
  const link = event.target.closest("[data-keep]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const response = await fetch(`${link.href}?part`);
  if (!response.ok || response.redirected) {
    location.href = link.href;
    return;
  }
  sheet.innerHTML = await response.text();
  opener = link;
  sheet.showPopover();
  beside(link);
  sheet.querySelector("input[name=title]").select();
}

/** Puts the sheet below the link, or where it has room. */
function beside(link) {
  const { left, bottom } = link.getBoundingClientRect();
  const { width, height } = sheet.getBoundingClientRect();
  sheet.style.left = `${Math.max(EDGE, Math.min(left, innerWidth - width - EDGE))}px`;
  sheet.style.top = `${Math.max(EDGE, Math.min(bottom, innerHeight - height - EDGE))}px`;
}

/** Goes back to the link, or to the one that took its place when the list was brought up to date. */
function leave({ newState }) {
  const { activeElement } = document;
  if (newState !== "closed" || (activeElement !== document.body && !sheet.contains(activeElement))) return;
  const href = opener.getAttribute("href");
  const now = opener.isConnected ? opener : document.querySelector(`[data-keep][href="${CSS.escape(href)}"]`);
  now?.focus({ preventScroll: true });
}

async function submit(event) {
  const { target: form, submitter } = event;
  if (!form.matches("[data-keeps]") || "leaves" in submitter.dataset) return;
  event.preventDefault();
  const body = new FormData(form, submitter);
  const response = await fetch(form.action, { method: "POST", body, redirect: "manual" }).catch(() => null);
  if (response?.type !== "opaqueredirect") {
    location.href = form.action;
    return;
  }
  sheet.hidePopover();
  if (turns?.dataset.events) await refresh();
  else location.reload();
}

if (sheet) {
  document.addEventListener("click", open);
  sheet.addEventListener("submit", submit);
  sheet.addEventListener("toggle", leave);
}
