// Polls the progress of imports while one is running.

const POLL_INTERVAL_MS = 2000;
const list = document.querySelector("[data-imports]");

async function refresh() {
  if (!document.hidden) {
    try {
      const response = await fetch(list.dataset.imports);
      if (response.redirected) return;
      if (response.ok) show(await response.text());
    } catch {
      // The next poll tries again.
    }
  }
  schedule();
}

/** Replaces the list. Error lists that the reader opened stay open. */
function show(html) {
  const openIds = [...list.querySelectorAll("[data-import] > details[open]")].map(importOf);
  list.innerHTML = html;
  for (const errors of list.querySelectorAll("[data-import] > details")) {
    errors.open = openIds.includes(importOf(errors));
  }
}

const importOf = (errors) => errors.parentElement.dataset.import;

function schedule() {
  if (list.querySelector("[data-running]")) setTimeout(refresh, POLL_INTERVAL_MS);
}

if (list) schedule();
