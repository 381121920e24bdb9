// "Remember now": asks for a summary of the chat, and shows it below the turns without a reload.
import { scrollToEnd } from "./autoscroll.js";
import { whileBusy } from "./busy.js";
import { SendError, errorDetail, postForm, showError } from "./replies.js";

const POLL_INTERVAL_MS = 700;
const form = document.querySelector("[data-remember]");
const box = document.querySelector("[data-remembered]");

async function remember() {
  showError();
  try {
    const url = `${form.action}?part`;
    await show(await postForm(url, new FormData(form)));
  } catch (error) {
    if (!(error instanceof SendError)) throw error;
    showError(error.message);
  }
}

async function show(response) {
  if (!response.ok) throw new SendError(await errorDetail(response));
  box.innerHTML = await response.text();
  scrollToEnd();
  await poll();
}

/** Replaces the text "Writing the summary…" by the summary when it is written. */
async function poll() {
  const pending = box.querySelector("[data-remember-poll]");
  if (!pending) return;
  await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  // A new reply has removed it.
  if (!pending.isConnected) return;
  const response = await fetch(pending.dataset.rememberPoll).catch(() => null);
  if (response?.redirected || response?.status === 404) return;
  if (response?.ok) {
    const html = await response.text();
    if (!pending.isConnected) return;
    const template = document.createElement("template");
    template.innerHTML = html;
    // If nothing changed, the box stays, so that a screen reader does not repeat it.
    if (template.content.querySelector("[data-remember-poll]")) return poll();
    box.replaceChildren(template.content);
    scrollToEnd();
    return;
  }
  await poll();
}

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    whileBusy(event.submitter ?? form.querySelector("button"), remember);
  });
  // The box is no longer at the end of the chat.
  document.addEventListener("strata:reply-begun", () => box.replaceChildren());
  document.addEventListener("strata:chat-deleted", () => {
    box.replaceChildren();
    form.remove();
  });
} else if (box) poll();
