// “Copy” under a reply and on its code, where the browser lets a page write to the clipboard.

const names = document.querySelector("[data-copy-name]")?.dataset;

/** Shows the buttons in `root`, which stay hidden where they could not work, and gives code its own. */
export function reveal(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  if (names) for (const code of root.querySelectorAll("pre:not(.bank) > code")) frame(code.parentNode);
}

function frame(pre) {
  const box = document.createElement("div");
  const button = document.createElement("button");
  box.className = "code";
  Object.assign(button, { type: "button", className: "copy", textContent: names.copyName });
  Object.assign(button.dataset, { copy: "code", copied: names.copied });
  pre.replaceWith(box);
  box.append(pre, button);
}

/** What the button stands for, without the names of the buttons in it. */
function textOf(button) {
  if (button.dataset.copy) return button.parentNode.querySelector("code").textContent;
  const said = button.closest(".turn").querySelector("[data-said]");
  said.classList.add("copying");
  const text = said.innerText;
  said.classList.remove("copying");
  return text;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(textOf(button));
  const name = button.textContent;
  button.textContent = button.dataset.copied;
  setTimeout(() => { button.textContent = name; }, 1500);
});

reveal(document);
