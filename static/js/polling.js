// Reloads parts of a page every few seconds while the page is visible.

const POLL_INTERVAL_MS = 4000;

async function refresh(box) {
  if (!document.hidden && !box.contains(document.activeElement)) {
    try {
      const response = await fetch(box.dataset.poll);
      if (response.redirected || response.status === 404) return;
      if (response.ok) show(box, await response.text());
    } catch {
      // The next poll tries again.
    }
  }
  schedule(box);
}

function show(box, html) {
  // If nothing changed, text that the reader selected stays selected.
  if (box.dataset.loaded === html) return;
  box.dataset.loaded = html;
  box.innerHTML = html;
}

const schedule = (box) => setTimeout(refresh, POLL_INTERVAL_MS, box);

for (const box of document.querySelectorAll("[data-poll]")) schedule(box);
