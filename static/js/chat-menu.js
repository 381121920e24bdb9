// The menu of a chat in a list, in a popover beside its link. Without JavaScript the link opens a
// page.
import { request, showError, showReason, signedOutText } from "./connection.js";
import { refresh } from "./live-updates.js";
import { turns } from "./turns.js";

const menu = document.querySelector("[data-chat-menu]");
// The distance between the menu and the edge of the window.
const EDGE_PX = 8;
// The link that opened the menu.
let opener = null;

async function open(event) {
  const link = event.target.closest("[data-chat-menu-link]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const response = await request(`${link.href}?part`);
  if (!response) return;
  if (!response.ok || response.redirected) {
    location.href = link.href;
    return;
  }
  menu.innerHTML = await response.text();
  opener = link;
  menu.showPopover();
  placeBeside(link);
  menu.querySelector("input[name=title]").select();
}

/** Places the menu below the link, inside the window. */
function placeBeside(link) {
  const { left, bottom } = link.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(EDGE_PX, Math.min(left, innerWidth - width - EDGE_PX))}px`;
  menu.style.top = `${Math.max(EDGE_PX, Math.min(bottom, innerHeight - height - EDGE_PX))}px`;
}

/** Moves the focus back to the link, or to its replacement if the list was updated. */
function restoreFocus({ newState }) {
  const { activeElement } = document;
  if (newState !== "closed" || (activeElement !== document.body && !menu.contains(activeElement)))
    return;
  const href = opener.getAttribute("href");
  const link = opener.isConnected
    ? opener
    : document.querySelector(`[data-chat-menu-link][href="${CSS.escape(href)}"]`);
  link?.focus({ preventScroll: true });
}

async function submit(event) {
  const { target: form, submitter } = event;
  if (!form.matches("[data-chat-menu-form]") || "navigates" in submitter.dataset) return;
  event.preventDefault();
  const body = new FormData(form, submitter);
  body.set("back", location.pathname);
  const response = await request(form.action, { method: "POST", body }, form);
  if (!response) return;
  if (!response.redirected) {
    await showReason(form, response, form.action);
    return;
  }
  if (new URL(response.url).pathname !== location.pathname) {
    showError(form, signedOutText());
    return;
  }
  menu.hidePopover();
  if (turns?.dataset.events) await refresh();
  else location.reload();
}

if (menu) {
  document.addEventListener("click", open);
  menu.addEventListener("submit", submit);
  menu.addEventListener("toggle", restoreFocus);
}
