// The search field of a long select. While it has text, the select is a list of the options that
// contain all words. The chosen option stays in the list, so that a search changes no value.
const MAX_ROWS = 8;
const optionsOf = new WeakMap();

document.addEventListener("input", ({ target }) => {
  if (target.matches("[data-option-search]")) filter(target.nextElementSibling, target.value);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  if (!event.target.matches("[data-option-search]")) return;
  // The form is not submitted: Enter chooses the first option that was found.
  event.preventDefault();
  const select = event.target.nextElementSibling;
  const found = [...select.options].find((option) => matches(option, event.target.value));
  if (!event.target.value.trim() || !found) return;
  select.value = found.value;
  select.dispatchEvent(new Event("change", { bubbles: true }));
});

document.addEventListener("change", ({ target }) => {
  const search = target.previousElementSibling;
  if (!target.matches("select") || !search?.matches("[data-option-search]")) return;
  search.value = "";
  filter(target, "");
});

function filter(select, text) {
  if (!optionsOf.has(select)) optionsOf.set(select, [...select.children]);
  const { value } = select;
  const rows = optionsOf.get(select).map((row) => row.cloneNode(true));
  select.replaceChildren(...rows);
  for (const option of [...select.options])
    if (option.value !== value && !matches(option, text)) option.remove();
  for (const group of select.querySelectorAll("optgroup"))
    if (!group.children.length) group.remove();
  select.value = value;
  select.size = text.trim() ? Math.min(MAX_ROWS, Math.max(2, select.options.length)) : 0;
}

function matches(option, text) {
  const label = `${option.label} ${option.value}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => label.includes(word));
}
