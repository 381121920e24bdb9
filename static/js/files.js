// Puts files that are dropped on the page or pasted into the file field of a project or a chat.

const form = document.querySelector("[data-files]");
const field = form?.querySelector("input[type=file]");
const box = form?.closest("[popover]");

/** Puts files into the field. The page of files sends them at once. In a chat, the user first chooses
 * whether the chat or the project gets them. */
export function take(files) {
  if (!form || !files.length) return;
  const transfer = new DataTransfer();
  for (const file of files) transfer.items.add(file);
  field.files = transfer.files;
  if (box) showNotice();
  else form.requestSubmit();
}

/** Returns whether files of a chat are chosen but not added. If so, shows them, because a message would
 * be sent without them. */
export function showUnadded() {
  if (!box || !field.files.length) return false;
  showNotice("unadded");
  return true;
}

/** Shows the files, with the notice `name` of their form if there is a name. */
export function showNotice(name) {
  for (const notice of form.querySelectorAll("[data-notice]"))
    notice.hidden = notice.dataset.notice !== name;
  if (!box.matches(":popover-open")) box.showPopover();
}

if (form) {
  form.querySelector("[data-cancel]")?.addEventListener("click", () => {
    field.value = "";
  });
  // Adding files reloads the page, which would lose the images of the composer.
  if (box)
    form.addEventListener("submit", (event) => {
      if (!document.querySelector("[data-composer] .picture:not(.refused)")) return;
      event.preventDefault();
      showNotice("images");
    });
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
    document.addEventListener("paste", (event) => {
      // Word processors add a picture of the text to a text that is pasted into a search field.
      if (!event.target.matches("input, textarea")) take([...(event.clipboardData?.files ?? [])]);
    });
  }
}
