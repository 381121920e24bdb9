// The settings of a chat are saved without leaving the page, so that a message that is not sent yet
// keeps its images.
import { whileBusy } from "./busy.js";
import { request, showError, showReason, signedOutText } from "./connection.js";
import { refresh } from "./live-updates.js";
import { turns } from "./turns.js";

const settings = document.getElementById("chat-settings");

async function save(form) {
  const options = { method: "POST", body: new FormData(form) };
  const response = await request(form.action, options, form);
  if (!response) return;
  if (response.status === 400) {
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    settings.replaceChildren(...page.getElementById(settings.id).childNodes);
    settings.querySelector(".invalid :is(input, select)")?.focus();
  } else if (!response.ok) await showReason(form, response, form.action);
  else if (new URL(response.url).pathname !== location.pathname) showError(form, signedOutText());
  else {
    settings.hidePopover();
    // Settings with errors are not refreshed.
    for (const field of settings.querySelectorAll(".invalid")) field.classList.remove("invalid");
    await refresh();
  }
}

if (settings && turns?.dataset.events)
  settings.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    if (!form.matches("[data-settings]")) return;
    event.preventDefault();
    whileBusy(submitter, () => save(form));
  });
