// The actions of a message, without leaving the page: forms are sent in the background, and links
// open inside the turn. On a page without live updates they work as plain forms and links.
import { whileBusy } from "./busy.js";
import { request } from "./connection.js";
import { refresh } from "./live-updates.js";
import {
  SendError,
  errorDetail,
  isSending,
  postForm,
  send,
  showError,
  stopLatest,
} from "./replies.js";
import { fragment, turnById, turns } from "./turns.js";

const isLive = Boolean(turns?.dataset.events);
const slotOf = (element) => element.closest(".turn").querySelector("[data-slot]");

async function onSubmit(event) {
  const form = event.target;
  const button = event.submitter;
  if (!button || "navigates" in button.dataset) return;
  event.preventDefault();
  closeMenus();
  showError();
  try {
    if ("streamsReply" in button.dataset) await requestReply(form, button);
    else await whileBusy(button, () => submitChange(form, button));
  } catch (error) {
    if (!(error instanceof SendError)) throw error;
    showError(error.message);
  }
}

/** Sends a form that returns a reply, and shows the reply as it streams. */
async function requestReply(form, button) {
  if (isSending()) return;
  button.disabled = true;
  try {
    await send(form, undefined, targetUrl(form, button), formBody(form, button));
  } finally {
    button.disabled = false;
  }
}

/** Sends a form that changes a message, and shows the result. An editor closes only on success. */
async function submitChange(form, button) {
  const url = new URL(targetUrl(form, button));
  url.searchParams.set("part", "turn");
  const response = await postForm(url, formBody(form, button), { redirect: "manual" });
  if (response.type === "opaqueredirect") {
    if ((await refresh()) && form.isConnected && !form.matches("[data-actions]"))
      closeSlot(slotOf(form));
  } else if (
    [400, 409, 412].includes(response.status) &&
    form.isConnected &&
    form.matches("[data-edit]")
  ) {
    fillSlot(slotOf(form), await response.text());
  } else throw new SendError(await errorDetail(response));
}

function formBody(form, button) {
  const body = new FormData(form);
  if (button.name) body.append(button.name, button.value);
  return body;
}

// Without the attribute, the property `formAction` is the page's own URL.
const targetUrl = (form, button) =>
  button.hasAttribute("formaction") ? button.formAction : form.action;

/** Opens the page of a link inside its turn. A second click on the link closes it. */
async function openInSlot(event, link) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  closeMenus();
  const slot = slotOf(link);
  if (slot.dataset.loaded === link.href) {
    const editor = slot.querySelector("textarea, select");
    if (editor) editor.focus();
    else closeSlot(slot);
    return;
  }
  const { turn: id } = link.closest("[data-turn]").dataset;
  const response = await request(`${link.href}?part=turn`);
  if (!response) return;
  if (!response.ok || response.redirected) {
    location.href = link.href;
    return;
  }
  const html = await response.text();
  // In the meantime the turn may have been replaced, or a second click answered.
  const currentSlot = turnById(id)?.querySelector("[data-slot]");
  if (!currentSlot || currentSlot.dataset.loaded === link.href) return;
  currentSlot.dataset.loaded = link.href;
  fillSlot(currentSlot, html);
}

function fillSlot(slot, html) {
  slot.replaceChildren(fragment(html));
  const first = slot.querySelector("textarea, select, button, a");
  first?.focus();
  if (first?.matches("textarea")) first.setSelectionRange(first.value.length, first.value.length);
  slot.scrollIntoView({ block: "nearest" });
}

function closeSlot(slot) {
  const { loaded } = slot.dataset;
  delete slot.dataset.loaded;
  slot.replaceChildren();
  const link = [...slot.closest(".turn").querySelectorAll("a[data-inline]")].find(
    (candidate) => candidate.href === loaded,
  );
  (link?.checkVisibility?.() ? link : slot.closest(".turn")).focus({ preventScroll: true });
}

function closeMenus(except) {
  for (const menu of turns.querySelectorAll("[data-menu][open]"))
    if (menu !== except) menu.open = false;
}

/** Closes what is open: a menu, then an editor without changes. If nothing is, stops the reply. */
function onEscape(event) {
  if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
  const menu = turns.querySelector("[data-menu][open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
    return;
  }
  const slot = event.target.closest?.("[data-slot]");
  if (slot) {
    const box = slot.querySelector("textarea");
    if (!box || box.value === box.defaultValue) closeSlot(slot);
    return;
  }
  if (document.querySelector(":popover-open, dialog[open]")) return;
  stopLatest();
}

function onKeydown(event) {
  if (
    event.key === "Enter" &&
    (event.ctrlKey || event.metaKey) &&
    event.target.closest("[data-edit]")
  ) {
    event.target.form.requestSubmit(event.target.form.querySelector("button"));
  }
}

if (isLive) {
  turns.addEventListener("submit", onSubmit);
  turns.addEventListener("keydown", onKeydown);
  turns.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-inline]");
    if (link) openInSlot(event, link);
    const cancel = event.target.closest("[data-cancel]");
    if (!cancel) return;
    event.preventDefault();
    closeSlot(slotOf(cancel));
  });
  document.addEventListener("click", (event) => closeMenus(event.target.closest("[data-menu]")));
  document.addEventListener("keydown", onEscape);
}
