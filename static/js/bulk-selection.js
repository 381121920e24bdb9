// Selects all rows on the page with one checkbox, and shows how many are selected.

for (const form of document.querySelectorAll("[data-bulk]")) {
  const boxes = [...form.querySelectorAll("input[type=checkbox][name]")];
  const label = form.querySelector("[data-select-all]");
  const all = label?.querySelector("input");
  const count = form.querySelector("[data-selected-count]");
  if (!all) continue;
  label.hidden = false;

  const update = () => {
    const selected = boxes.filter((box) => box.checked).length;
    all.checked = selected === boxes.length;
    all.indeterminate = selected > 0 && selected < boxes.length;
    count.textContent = selected ? `${selected} ${count.dataset.label}` : "";
  };
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    update();
  });
  form.addEventListener("change", (event) => {
    if (boxes.includes(event.target)) update();
  });
  // After Back, the browser restores the checkboxes.
  window.addEventListener("pageshow", update);
  update();
}
