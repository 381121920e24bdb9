// The drawer beside the page, with the sources of a reply, a prompt or an entry. On a narrow screen
// its links open pages instead.
import { whileBusy } from "./busy.js";
import { request, showError, showReason, signedOutText } from "./connection.js";

const drawer = document.querySelector("[data-drawer]");
const shell = document.querySelector("[data-shell]");
const wideScreen = window.matchMedia("(min-width: 70rem)");
let opener = null;
// The URL of the content.
let shownUrl = "";
// Only the response to the latest request is shown.
let requestCount = 0;

document.addEventListener("click", async (event) => {
  if (event.target.closest("[data-drawer-close]")) return close();
  const link = event.target.closest("[data-drawer-link]");
  if (!link || !drawer || !wideScreen.matches || event.metaKey || event.ctrlKey || event.shiftKey)
    return;
  event.preventDefault();
  if (!drawer.hidden && opener === link) return close();
  // A link inside the drawer replaces its content; closing returns to the first link.
  if (!drawer.contains(link)) opener = link;
  await open(link.href);
});

/** Sends a form inside the drawer, and shows the response there. */
function submit(event) {
  const { target: form, submitter } = event;
  if (!form.matches("[data-drawer-form]")) return;
  event.preventDefault();
  whileBusy(submitter, () => send(form, submitter));
}

async function send(form, submitter) {
  requestCount += 1;
  const count = requestCount;
  // form.action is one of the form's fields here.
  const url = new URL(form.getAttribute("action"), location.href);
  url.searchParams.set("part", "drawer");
  const body = new FormData(form, submitter);
  const response = await request(url, { method: "POST", body, redirect: "manual" }, form);
  if (!response || count !== requestCount) return;
  if (response.status === 204) {
    document.dispatchEvent(new Event("strata:memory"));
    await open(shownUrl);
  } else if ([200, 400].includes(response.status)) fill(await response.text(), true);
  else if (response.type === "opaqueredirect") showError(form, signedOutText());
  else await showReason(form, response, shownUrl);
}

async function open(href) {
  const isLoaded = await load(href);
  if (isLoaded === false) location.href = href;
  if (!isLoaded) return;
  drawer.hidden = false;
  shell.classList.add("with-drawer");
  drawer.querySelector("[data-drawer-close]").focus();
}

/** Fills the drawer. Resolves to false if the server refused, and to null without a connection, or if
 * another request was made in the meantime or the chat is deleted. */
async function load(href) {
  requestCount += 1;
  const count = requestCount;
  const url = new URL(href);
  url.searchParams.set("part", "drawer");
  const response = await request(url);
  if (!response) return null;
  if (!response.ok || response.redirected) return false;
  const html = await response.text();
  if (count !== requestCount) return null;
  shownUrl = href;
  fill(html, drawer.contains(document.activeElement));
  return true;
}

function fill(html, hadFocus) {
  drawer.innerHTML = html;
  const button = drawer.querySelector("[data-drawer-close]");
  button.hidden = false;
  if (!hadFocus) return;
  (drawer.querySelector("[data-drawer-form] textarea, [data-drawer-form] select") ?? button).focus({
    preventScroll: true,
  });
}

function close() {
  drawer.hidden = true;
  shell.classList.remove("with-drawer");
  // An update may have replaced the element that opened the drawer.
  (opener?.isConnected ? opener : document.getElementById(opener?.id))?.focus();
}

// The new reply is part of the next prompt.
document.addEventListener("strata:reply", () => {
  if (drawer && !drawer.hidden && opener.hasAttribute("data-drawer-reloads")) load(opener.href);
});

document.addEventListener("strata:chat-deleted", () => {
  if (!drawer) return;
  requestCount += 1;
  close();
  drawer.replaceChildren();
});

drawer?.addEventListener("submit", submit);

drawer?.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing) return;
  // Otherwise Escape would also stop the reply.
  event.preventDefault();
  close();
});
