// Many at once: all on the page with one tick, and how many are ticked.

for (const form of document.querySelectorAll("[data-picks]")) {
  const boxes = [...form.querySelectorAll("input[name=entries]")];
  const label = form.querySelector("[data-pick-all]");
  const all = label?.querySelector("input");
  const count = form.querySelector("[data-picked]");
  if (!all) continue;
  label.hidden = false;

  const tell = () => {
    const picked = boxes.filter((box) => box.checked).length;
    all.checked = picked === boxes.length;
    all.indeterminate = picked > 0 && picked < boxes.length;
    count.textContent = picked ? `${picked} ${count.dataset.says}` : "";
  };
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    tell();
  });
  form.addEventListener("change", (event) => { if (boxes.includes(event.target)) tell(); });
  // A browser that comes back keeps what was ticked.
  window.addEventListener("pageshow", tell);
  tell();
}
