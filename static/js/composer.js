// Where people write: Enter sends, Shift+Enter begins a new line, the box grows with its text.
import { Refused, isSpeaking, send } from "./chat.js";
import { pictures } from "./images.js";

export function begin(form) {
  const box = form.querySelector("textarea");
  const images = pictures(form);

  box.addEventListener("keydown", (event) => {
    // While an input method composes, Enter belongs to it (229: the same, in older Safari).
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    form.requestSubmit();
  });

  if ("streams" in form.dataset) form.addEventListener("submit", (event) => {
    event.preventDefault();
    if ((box.value.trim() || images.any()) && !isSpeaking()) say(form, box, images);
  });
  else form.addEventListener("submit", (event) => {
    if (!(box.value.trim() || images.any()) || form.dataset.sent) event.preventDefault();
    else form.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => delete form.dataset.sent);
  letGrow(box);
}

async function say(form, box, images) {
  const button = form.querySelector("[data-send]");
  if (button.disabled) return;
  const trouble = document.querySelector("[data-trouble]");
  trouble.hidden = true;
  button.disabled = true;
  try {
    await images.ready();
    const sent = { text: box.value, images: images.kept() };
    await send(form, () => {
      // What was typed or added since goes with the next message.
      if (box.value.startsWith(sent.text)) box.value = box.value.slice(sent.text.length);
      images.clear(sent.images);
      grow(box);
    });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    trouble.textContent = error.message;
    trouble.hidden = false;
  } finally {
    button.disabled = false;
  }
}

// Browsers that know field-sizing grow the box themselves.
const grows = CSS.supports("field-sizing", "content");

function letGrow(box) {
  if (grows) return;
  box.addEventListener("input", () => grow(box));
  grow(box);
}

function grow(box) {
  if (grows) return;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
}

for (const form of document.querySelectorAll("[data-composer]")) begin(form);
for (const box of document.querySelectorAll("[data-grows]")) if (!box.closest("[data-composer]")) letGrow(box);

// On a touch screen this would cover half the page with a keyboard.
if (window.matchMedia("(pointer: fine)").matches) {
  document.querySelector("[data-composer] textarea")?.focus({ preventScroll: true });
}
