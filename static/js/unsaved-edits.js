// On a page with several forms, sending one loads the page again. What was typed in the others, or in
// a form of which a button does something else than save, is put back then.

const KEY = "strata-unsaved";
const page = document.querySelector("[data-keep-edits]");

const fields = (form) =>
  [...form.elements].filter((field) => field.id && field.matches("input, textarea"));
const isChanged = (form) =>
  fields(form).some((field) => field.type !== "hidden" && field.value !== field.defaultValue);

function keep({ target: sent, submitter }) {
  const isSaved = (form) => form === sent && submitter?.matches(".primary");
  const values = [...page.querySelectorAll("form")]
    .filter((form) => isChanged(form) && !isSaved(form))
    .flatMap((form) => fields(form).map(({ id, value }) => [id, value]));
  // Without a storage, for example when it is full, the edits are lost.
  try {
    if (values.length) sessionStorage.setItem(KEY, JSON.stringify([location.pathname, values]));
  } catch {}
}

function restore() {
  let stored = null;
  try {
    stored = JSON.parse(sessionStorage.getItem(KEY));
    sessionStorage.removeItem(KEY);
  } catch {}
  if (!page || stored?.[0] !== location.pathname) return;
  for (const [id, value] of stored[1]) {
    const field = document.getElementById(id);
    if (!field) continue;
    field.value = value;
    // The box grows with its text.
    field.dispatchEvent(new Event("input"));
    const details = field.closest("details");
    if (details) details.open = true;
  }
}

restore();
if (page)
  window.addEventListener("submit", (event) => {
    if (!event.defaultPrevented && page.contains(event.target)) keep(event);
  });
