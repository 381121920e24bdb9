// How far imports are, asked for again every two seconds while one is under way.

const EVERY = 2000; // milliseconds
const list = document.querySelector("[data-imports]");

async function refresh() {
  if (!document.hidden) {
    try {
      const response = await fetch(list.dataset.imports);
      if (response.redirected) return;
      if (response.ok) show(await response.text());
    } catch {
      // Asked for again below.
    }
  }
  again();
}

/** Puts the part in place; reasons that are being read stay open. */
function show(html) {
  const opened = [...list.querySelectorAll("[data-import] > details[open]")].map(importOf);
  list.innerHTML = html;
  for (const reasons of list.querySelectorAll("[data-import] > details")) {
    reasons.open = opened.includes(importOf(reasons));
  }
}

const importOf = (reasons) => reasons.parentElement.dataset.import;

function again() {
  if (list.querySelector("[data-under-way]")) setTimeout(refresh, EVERY);
}

if (list) again();
