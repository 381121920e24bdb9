// Files for a project or a chat: what is dropped on the page or pasted goes into the file field.

const form = document.querySelector("[data-files]");
const box = form?.closest("[popover]");

/** Puts files into the field. On the page of files they are sent at once; in a chat the reader
 * chooses first who gets them. */
export function take(files) {
  if (!form || !files.length) return;
  const transfer = new DataTransfer();
  for (const file of files) transfer.items.add(file);
  form.querySelector("input[type=file]").files = transfer.files;
  if (box) box.showPopover();
  else form.requestSubmit();
}

if (form) {
  const target = box ? form : document.getElementById("main");
  target.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    form.dataset.dragover = "";
  });
  target.addEventListener("dragleave", () => delete form.dataset.dragover);
  target.addEventListener("drop", (event) => {
    delete form.dataset.dragover;
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    take([...event.dataTransfer.files]);
  });
  if (!box) {
    document.addEventListener("paste", (event) => take([...(event.clipboardData?.files ?? [])]));
  }
}
