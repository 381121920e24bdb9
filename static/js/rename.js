// Renames the chat in its heading. Without JavaScript the title is in the chat's settings.
import { request, showError, showReason, signedOutText } from "./connection.js";
import { updateToken } from "./csrf.js";
import { refresh } from "./live-updates.js";
import { turns } from "./turns.js";

const heading = document.querySelector("[data-chat-title]");
const button = document.querySelector("[data-rename]");
const form = document.querySelector("[data-rename-form]");

function show(isEditing) {
  form.querySelector("[data-lost]")?.remove();
  form.hidden = !isEditing;
  heading.hidden = button.hidden = isEditing;
}

function open() {
  const { title } = form.elements;
  // The heading follows changes by others.
  if (title.value) title.value = heading.textContent;
  title.defaultValue = title.value;
  show(true);
  title.focus();
  title.select();
}

async function save() {
  const { title } = form.elements;
  const isChanged = title.value.trim() !== title.defaultValue;
  if (form.hidden) return;
  show(false);
  if (!isChanged) return;
  updateToken(form);
  const body = new FormData(form);
  body.set("back", location.pathname);
  const response = await request(form.action, { method: "POST", body });
  if (!response) {
    show(true);
    return;
  }
  if (!response.redirected) {
    show(true);
    await showReason(form, response, form.action);
    return;
  }
  if (new URL(response.url).pathname !== location.pathname) {
    show(true);
    showError(form, signedOutText());
    return;
  }
  if (turns?.dataset.events) await refresh();
  else location.reload();
}

if (form) {
  button.hidden = false;
  button.addEventListener("click", open);
  heading.addEventListener("dblclick", open);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await save();
    (form.hidden ? button : form.elements.title).focus({ preventScroll: true });
  });
  form.elements.title.addEventListener("blur", save);
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    // Otherwise it would also stop a reply.
    event.stopPropagation();
    form.elements.title.value = form.elements.title.defaultValue;
    show(false);
    button.focus({ preventScroll: true });
  });
}
