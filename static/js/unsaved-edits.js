// On a page with several forms, sending one form loads the page again. This script then restores the
// unsaved edits of the other forms, and those of the sent form if its button saves nothing, or if the
// user had to sign in again.

const KEY = "strata-unsaved";
const page = document.querySelector("[data-keep-edits]");

const isBox = (field) => field.matches("[type=checkbox], [type=radio]");
// The secrets and files of a form are not stored.
const fields = (form) =>
  [...form.elements].filter(
    (field) =>
      field.id && field.matches("input:not([type=file], [type=password]), textarea, select"),
  );
const valueOf = (field) => (isBox(field) ? field.checked : field.value);

function isChanged(field) {
  if (field.type === "hidden" || field.multiple) return false;
  if (isBox(field)) return field.checked !== field.defaultChecked;
  if (!field.options) return field.value !== field.defaultValue;
  const options = [...field.options];
  return !(options.find((option) => option.defaultSelected) ?? options[0])?.selected;
}

function keep({ target: sent, submitter }) {
  const isSaved = (form) => form === sent && !submitter?.hasAttribute("data-saves-nothing");
  const values = [...page.querySelectorAll("form")]
    .filter((form) => fields(form).some(isChanged))
    .flatMap((form) => fields(form).map((field) => [field.id, valueOf(field), isSaved(form)]));
  const { keepEdits: name } = page.dataset;
  // Without a storage, for example when it is full, the edits are lost.
  try {
    if (values.length) sessionStorage.setItem(KEY, JSON.stringify({ name, values }));
  } catch {}
}

const hasSignedIn = () => new URL(document.referrer || location).pathname.startsWith("/accounts/");

function restore() {
  let stored = null;
  try {
    stored = JSON.parse(sessionStorage.getItem(KEY));
    sessionStorage.removeItem(KEY);
  } catch {}
  if (!page || stored?.name !== page.dataset.keepEdits) return;
  for (const [id, value, isSaved] of stored.values) {
    const field = document.getElementById(id);
    if (!field || (isSaved && !hasSignedIn())) continue;
    if (isBox(field)) field.checked = value;
    else field.value = value;
    // The box grows with its text.
    field.dispatchEvent(new Event("input"));
    const details = field.closest("details");
    if (details && isChanged(field)) details.open = true;
  }
}

restore();
if (page)
  window.addEventListener("submit", (event) => {
    if (!event.defaultPrevented && page.contains(event.target)) keep(event);
  });
