// Shows which button is busy, and ignores further clicks on it.

const BUSY_AFTER_MS = 300;
// A form that did not leave the page by then, such as a download, can be sent again.
const MAX_BUSY_MS = 20_000;

/** Runs `work` unless the work of `button` is running already. */
export async function whileBusy(button, work) {
  if (isBusy(button)) return;
  const release = makeBusy(button);
  try {
    await work();
  } finally {
    release();
  }
}

const isBusy = (button) => button.getAttribute("aria-disabled") === "true";

function makeBusy(button) {
  button.setAttribute("aria-disabled", "true");
  const timer = setTimeout(() => button.setAttribute("aria-busy", "true"), BUSY_AFTER_MS);
  return () => {
    clearTimeout(timer);
    button.removeAttribute("aria-disabled");
    button.removeAttribute("aria-busy");
  };
}

// For forms that lead to another page. The window gets the event last, after all other scripts.
window.addEventListener("submit", (event) => {
  const { target: form, submitter: button } = event;
  if (event.defaultPrevented || !button || form.getAttribute("method") !== "post") return;
  if (isBusy(button)) {
    event.preventDefault();
    return;
  }
  const release = makeBusy(button);
  setTimeout(release, MAX_BUSY_MS);
  window.addEventListener("pageshow", release, { once: true });
});
