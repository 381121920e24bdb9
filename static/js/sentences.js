// Decisions on the sentences of "What this project knows", without loading the page again: a message
// that is not sent yet keeps its images, and a correction that is refused keeps its text.
import { whileBusy } from "./busy.js";
import { request, showError, signedOutText } from "./connection.js";

const list = () => document.querySelector(".knows");
const keyOf = (form) => `${form.elements.source.value} ${form.elements.place.value}`;
const editors = () => [...document.querySelectorAll(".knows .edit-sentence")];
const isChanged = ({ elements: { text } }) => text.value !== text.defaultValue;

async function decide(form, submitter) {
  // Without the header, the server would report an error as JSON.
  const headers = { Accept: "text/html" };
  const options = { method: "POST", headers, body: new FormData(form, submitter) };
  // form.action is one of the form's fields here.
  const response = await request(form.getAttribute("action"), options, form);
  if (!response) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (new URL(response.url).pathname !== location.pathname) {
    showError(form, response.ok ? signedOutText() : page.querySelector("h1 ~ p").textContent);
    return;
  }
  const refusal = page.querySelector("main > .notice[role=status].error")?.textContent.trim();
  const kept = editors().filter((editor) => isChanged(editor) && (refusal || editor !== form));
  showList(page);
  for (const old of kept) reopen(old);
  const editor = editors().find((other) => keyOf(other) === keyOf(form));
  if (!refusal) document.getElementById("knows").focus({ preventScroll: true });
  else if (editor && form.elements.text) showError(editor, refusal);
}

/** Shows the sentences and the messages of `page`. */
function showList(page) {
  const newList = page.querySelector(".knows");
  if (newList) list().replaceWith(newList);
  else list().replaceChildren();
  for (const notice of document.querySelectorAll("main > .notice[role=status]")) notice.remove();
  document
    .querySelector("[data-scroll]")
    .before(...page.querySelectorAll("main > .notice[role=status]"));
}

/** Opens the editor of the same sentence with the text of `old`. */
function reopen(old) {
  const editor = editors().find((other) => keyOf(other) === keyOf(old));
  if (!editor) return;
  editor.elements.text.value = old.elements.text.value;
  editor.closest("details").open = true;
  editor.elements.text.focus();
}

document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (!form.closest(".knows") || !submitter) return;
  event.preventDefault();
  whileBusy(submitter, () => decide(form, submitter));
});

// Only if the user opened the editor, not `reopen`.
document.addEventListener(
  "toggle",
  ({ target }) => {
    if (target.open && document.activeElement.matches(".knows summary"))
      target.querySelector("textarea").focus();
  },
  true,
);
