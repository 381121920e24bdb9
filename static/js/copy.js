// Copy buttons of replies and code blocks, where the browser lets a page write to the clipboard.

const labels = document.querySelector("[data-copy-name]")?.dataset;

/** Shows the copy buttons in `root`, and adds one to each code block. */
export function showCopyButtons(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  if (labels)
    for (const code of root.querySelectorAll("pre:not(.bank) > code")) wrapCode(code.parentNode);
}

function wrapCode(pre) {
  const box = document.createElement("div");
  const button = document.createElement("button");
  box.className = "code";
  Object.assign(button, { type: "button", className: "copy", textContent: labels.copyName });
  Object.assign(button.dataset, { copy: "code", copied: labels.copied });
  pre.replaceWith(box);
  box.append(pre, button);
}

/** Returns the text that the button copies, without the labels of the buttons inside it. */
function textOf(button) {
  if (button.dataset.copy) return button.parentNode.querySelector("code").textContent;
  const element = button.closest(".turn").querySelector("[data-message-text]");
  element.classList.add("copying");
  const text = element.innerText;
  element.classList.remove("copying");
  return text;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(textOf(button));
  const label = button.textContent;
  // Clicked again while it shows “Copied”.
  if (label === button.dataset.copied) return;
  button.textContent = button.dataset.copied;
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
});

showCopyButtons(document);
