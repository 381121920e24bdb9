// The bar of code blocks with language, Wrap and Copy, the copy buttons of replies, and the folds of
// long messages. Copying needs a browser that lets a page write to the clipboard.
import { watchScrollers } from "./scrollers.js";

const FOLD_AFTER_CHARS = 4000;
const FOLD_AFTER_LINES = 40;
const labels = document.querySelector("[data-copy-name]")?.dataset;

/** Prepares the texts in `root`: copy buttons, bars of code blocks, folds of long messages, focus of
 * scrollable elements. */
export function enhanceText(root) {
  watchScrollers(root);
  if (navigator.clipboard)
    for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  if (!labels) return;
  for (const code of root.querySelectorAll("pre:not(.bank) > code")) addBar(code.parentNode);
  for (const text of root.querySelectorAll(".person > .message-text")) if (isLong(text)) fold(text);
}

const isLong = ({ textContent: text }) =>
  text.length > FOLD_AFTER_CHARS || text.split("\n").length > FOLD_AFTER_LINES;

function fold(text) {
  const button = barButton(labels.unfoldName);
  button.className = "link";
  button.dataset.fold = "";
  button.setAttribute("aria-expanded", "false");
  text.classList.add("folded");
  text.after(button);
}

function toggleFold(button) {
  const isFolded = button.previousElementSibling.classList.toggle("folded");
  button.setAttribute("aria-expanded", String(!isFolded));
  button.textContent = isFolded ? labels.unfoldName : labels.foldName;
  if (isFolded) button.scrollIntoView({ block: "nearest" });
}

function addBar(pre) {
  const box = document.createElement("div");
  const bar = document.createElement("div");
  const language = document.createElement("span");
  box.className = "code";
  bar.className = "code-bar";
  language.textContent = pre.firstElementChild.className.replace("language-", "");
  const wrap = barButton(labels.wrapName);
  wrap.dataset.wrap = "";
  wrap.setAttribute("aria-pressed", "false");
  bar.append(language, wrap);
  if (navigator.clipboard) {
    const copy = barButton(labels.copyName);
    Object.assign(copy.dataset, { copy: "code", copied: labels.copied });
    bar.append(copy);
  }
  pre.replaceWith(box);
  box.append(bar, pre);
}

function barButton(name) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  return button;
}

/** Copies what the button belongs to. Replies are copied with their formatting, too. */
async function copyText(button) {
  if (button.dataset.copy)
    return navigator.clipboard.writeText(button.closest(".code").querySelector("code").textContent);
  const element = button.closest(".turn").querySelector("[data-message-text]");
  // Without the labels of the buttons inside it.
  element.classList.add("copying");
  const text = element.innerText;
  element.classList.remove("copying");
  if (!window.ClipboardItem || !element.matches(".prose"))
    return navigator.clipboard.writeText(text);
  const formatted = element.cloneNode(true);
  for (const bar of formatted.querySelectorAll(".code-bar")) bar.remove();
  const types = { "text/plain": text, "text/html": formatted.innerHTML };
  const blobs = Object.entries(types).map(([type, value]) => [type, new Blob([value], { type })]);
  return navigator.clipboard.write([new ClipboardItem(Object.fromEntries(blobs))]);
}

document.addEventListener("click", async (event) => {
  const wrap = event.target.closest("[data-wrap]");
  if (wrap) {
    const isWrapped = wrap.closest(".code").classList.toggle("wrapped");
    wrap.setAttribute("aria-pressed", String(isWrapped));
  }
  const toggle = event.target.closest("[data-fold]");
  if (toggle) toggleFold(toggle);
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await copyText(button);
  const label = button.textContent;
  // Clicked again while it shows “Copied”.
  if (label === button.dataset.copied) return;
  button.textContent = button.dataset.copied;
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
});

enhanceText(document);
