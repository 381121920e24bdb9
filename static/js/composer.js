// The composer: Enter sends, Shift+Enter starts a new line, the text box grows with its text.
import { draftOf } from "./drafts.js";
import { showNotice, showUnadded } from "./files.js";
import { imageUploads } from "./image-uploads.js";
import { initPromptPicker } from "./prompt-picker.js";
import { SendError, isSending, send, stopLatest } from "./replies.js";

export function initComposer(form) {
  const box = form.querySelector("textarea");
  const images = imageUploads(form);
  const draft = draftOf(form.dataset.draft);
  // First, so that it takes the keys of its list.
  initPromptPicker(form);

  box.addEventListener("keydown", (event) => {
    // While an input method composes, Enter belongs to it (229: the same, in older Safari).
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229)
      return;
    event.preventDefault();
    form.requestSubmit();
  });

  if ("streams" in form.dataset) {
    const stop = form.querySelector("[data-stop-latest]");
    stop.hidden = false;
    stop.addEventListener("click", () => {
      // The button disappears with the reply.
      if (stop.matches(":focus-visible")) box.focus();
      stopLatest();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!(box.value.trim() || images.any()) || isSending() || showUnadded()) return;
      sendMessage(form, box, images, draft);
    });
  } else
    form.addEventListener("submit", (event) => {
      // The button of the files begins a chat without a message; the text is not sent yet.
      if (event.submitter?.hasAttribute("formaction")) {
        if (images.any()) {
          event.preventDefault();
          showNotice("images");
        } else draft.moveToNextChat();
      } else if (!(box.value.trim() || images.any()) || form.dataset.sent || showUnadded())
        event.preventDefault();
      else {
        form.dataset.sent = "yes";
        draft.markSent();
      }
    });
  window.addEventListener("pageshow", ({ persisted }) => {
    delete form.dataset.sent;
    // Back shows the page as it was, with a text that was sent since.
    if (persisted) box.value = draft.text();
  });
  const modelName = form.querySelector("[data-model-name]");
  const projectModel = modelName?.textContent;
  modelName?.closest("details").addEventListener("change", ({ target }) => {
    if (target.name === "chat_model") modelName.textContent = target.value || projectModel;
  });
  autogrow(box);
  // Text from the server or typed while the page loaded is newer than the draft.
  if (!box.value) box.value = draft.text();
  resize(box);
  box.addEventListener("input", () => draft.save(box.value));
  document.addEventListener("strata:chat-deleted", () => draft.save(""));
}

async function sendMessage(form, box, images, draft) {
  const button = form.querySelector("[data-send]");
  if (button.disabled) return;
  const errorBox = document.querySelector("[data-error]");
  errorBox.hidden = true;
  button.disabled = true;
  try {
    // The reason is shown in the place of the image.
    if (!(await images.ready())) return;
    const sent = { text: box.value, images: images.list() };
    await send(form, () => {
      // Text and images that were added since stay for the next message.
      if (box.value.startsWith(sent.text)) box.value = box.value.slice(sent.text.length);
      draft.save(box.value);
      images.clear(sent.images);
      resize(box);
    });
  } catch (error) {
    if (!(error instanceof SendError)) throw error;
    errorBox.textContent = error.message;
    errorBox.hidden = false;
  } finally {
    button.disabled = false;
  }
}

// Browsers with field-sizing grow the box by themselves.
const growsByCss = CSS.supports("field-sizing", "content");

function autogrow(box) {
  if (growsByCss) return;
  box.addEventListener("input", () => resize(box));
  resize(box);
}

function resize(box) {
  if (growsByCss) return;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
}

for (const form of document.querySelectorAll("[data-composer]")) initComposer(form);
for (const box of document.querySelectorAll("[data-autogrow]"))
  if (!box.closest("[data-composer]")) autogrow(box);

// On a touch screen, the focus would open a keyboard that covers half the page.
if (window.matchMedia("(pointer: fine)").matches) {
  document.querySelector("[data-composer] textarea")?.focus({ preventScroll: true });
}
