// What goes on by itself is asked for again every few seconds, while somebody can see it.

const EVERY = 4000; // milliseconds

async function refresh(box) {
  if (!document.hidden && !box.contains(document.activeElement)) {
    try {
      const response = await fetch(box.dataset.poll);
      if (response.redirected || response.status === 404) return;
      if (response.ok) show(box, await response.text());
    } catch {
      // Asked for again below.
    }
  }
  again(box);
}

function show(box, html) {
  // What somebody selected to copy stays selected as long as nothing changes.
  if (box.dataset.shown === html) return;
  box.dataset.shown = html;
  box.innerHTML = html;
}

const again = (box) => setTimeout(refresh, EVERY, box);

for (const box of document.querySelectorAll("[data-poll]")) again(box);
