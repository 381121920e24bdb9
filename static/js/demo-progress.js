// Follows the making of the demo project, and opens its first chat when it is ready.

const POLL_INTERVAL_MS = 700;
const box = document.querySelector("[data-demo-progress]");

async function poll() {
  const response = await fetch(box.dataset.demoProgress).catch(() => null);
  if (response?.redirected || response?.status === 404) return;
  if (response?.ok) {
    const template = document.createElement("template");
    template.innerHTML = await response.text();
    if (!template.content.firstElementChild) {
      location.reload();
      return;
    }
    show(template.content);
  }
  setTimeout(poll, POLL_INTERVAL_MS);
}

/** A screen reader reads the label again only when it changes. */
function show(update) {
  const [label, newLabel] = [box, update].map((part) => part.querySelector("label"));
  box.querySelector("progress").value = update.querySelector("progress").value;
  if (label.textContent !== newLabel.textContent) label.textContent = newLabel.textContent;
}

if (box) setTimeout(poll, POLL_INTERVAL_MS);
