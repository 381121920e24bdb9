// What is done with a turn, without leaving the page: its forms are sent and its links opened in
// place. Where the page is not live, they are the forms and links that they are.
import { Refused, complain, isSpeaking, posted, reason, send } from "./chat.js";
import { refresh } from "./live.js";
import { fragment, turns, withId } from "./turns.js";

const live = Boolean(turns?.dataset.events);
const slotOf = (element) => element.closest(".turn").querySelector("[data-slot]");

async function submit(event) {
  const form = event.target;
  const button = event.submitter;
  if (!button || "leaves" in button.dataset) return;
  event.preventDefault();
  closeMenus();
  complain();
  try {
    if ("answers" in button.dataset) await ask(form, button);
    else await change(form, button);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    complain(error.message);
  }
}

/** Has something answered, and shows the answer as it comes. */
async function ask(form, button) {
  if (isSpeaking()) return;
  button.disabled = true;
  try {
    await send(form, undefined, target(form, button));
  } finally {
    button.disabled = false;
  }
}

/** Changes a turn, and shows what became of it. An editor stays open until that is sure. */
async function change(form, button) {
  const to = new URL(target(form, button));
  to.searchParams.set("part", "turn");
  const body = new FormData(form);
  if (button.name) body.append(button.name, button.value);
  const response = await posted(to, body, { redirect: "manual" });
  if (response.type === "opaqueredirect") {
    if ((await refresh()) && form.isConnected && !form.matches("[data-acts]")) shut(slotOf(form));
  } else if ([400, 409, 412].includes(response.status) && form.isConnected && form.matches("[data-edit]")) {
    fill(slotOf(form), await response.text());
  } else throw new Refused(await reason(response));
}

// An attribute, since the property of one that is missing is the page's own address.
const target = (form, button) =>
  button.hasAttribute("formaction") ? button.formAction : form.action;

/** Opens what a link leads to inside its turn; the same link closes it again. */
async function open(event, link) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  closeMenus();
  const slot = slotOf(link);
  if (slot.dataset.shows === link.href) {
    const writing = slot.querySelector("textarea");
    if (writing) writing.focus();
    else shut(slot);
    return;
  }
  const { turn: id } = link.closest("[data-turn]").dataset;
  const response = await fetch(`${link.href}?part=turn`);
  if (!response.ok || response.redirected) {
    location.href = link.href;
    return;
  }
  const html = await response.text();
  // The turn may have been brought up to date meanwhile, and a second click answered before.
  const there = withId(id)?.querySelector("[data-slot]");
  if (!there || there.dataset.shows === link.href) return;
  there.dataset.shows = link.href;
  fill(there, html);
}

function fill(slot, html) {
  slot.replaceChildren(fragment(html));
  const first = slot.querySelector("textarea, button, a");
  first?.focus();
  if (first?.matches("textarea")) first.setSelectionRange(first.value.length, first.value.length);
  slot.scrollIntoView({ block: "nearest" });
}

function shut(slot) {
  const { shows } = slot.dataset;
  delete slot.dataset.shows;
  slot.replaceChildren();
  const link = [...slot.closest(".turn").querySelectorAll("a[data-inline]")].find((one) => one.href === shows);
  (link?.checkVisibility?.() ? link : slot.closest(".turn")).focus({ preventScroll: true });
}

function closeMenus(except) {
  for (const menu of turns.querySelectorAll("[data-menu][open]")) if (menu !== except) menu.open = false;
}

/** What is open closes first; then the reply that is being said stops. */
function escape(event) {
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
    if (!box || box.value === box.defaultValue) shut(slot);
    return;
  }
  if (document.querySelector(":popover-open, dialog[open]")) return;
  const stops = turns.querySelectorAll("[data-stop]");
  stops.item(stops.length - 1)?.click();
}

function keys(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.closest("[data-edit]")) {
    event.target.form.requestSubmit(event.target.form.querySelector("button"));
  }
}

if (live) {
  turns.addEventListener("submit", submit);
  turns.addEventListener("keydown", keys);
  turns.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-inline]");
    if (link) open(event, link);
    const cancel = event.target.closest("[data-cancel]");
    if (!cancel) return;
    event.preventDefault();
    shut(slotOf(cancel));
  });
  document.addEventListener("click", (event) => closeMenus(event.target.closest("[data-menu]")));
  document.addEventListener("keydown", escape);
}
