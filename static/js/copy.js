// “Copy” under a reply, where the browser lets a page write to the clipboard.

/** Shows the buttons in `root`, which stay hidden where they could not work. */
export function reveal(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.closest(".turn").querySelector("[data-said]").innerText);
  const name = button.textContent;
  // Pressed again while it says so.
  if (name === button.dataset.copied) return;
  button.textContent = button.dataset.copied;
  setTimeout(() => { button.textContent = name; }, 1500);
});

reveal(document);
