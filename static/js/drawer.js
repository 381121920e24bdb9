// What a reply was told, or the next would be, beside the chat where there is room; on a narrow screen
// the link opens its page.

const drawer = document.querySelector("[data-drawer]");
const shell = document.querySelector("[data-shell]");
const roomy = window.matchMedia("(min-width: 70rem)");
let opener = null;
// The address of what the drawer shows.
let shown = "";
// How often something was asked for: only the last answer is shown.
let asked = 0;

document.addEventListener("click", async (event) => {
  if (event.target.closest("[data-drawer-close]")) return close();
  const link = event.target.closest("[data-drawer-link]");
  if (!link || !drawer || !roomy.matches || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  if (!drawer.hidden && opener === link) return close();
  // What is opened from inside the drawer takes its place; closing goes back to where it began.
  if (!drawer.contains(link)) opener = link;
  await open(link.href);
});

/** Sends a form inside the drawer, and shows there what comes back, or what became of its entry. */
async function submit(event) {
  const { target: form, submitter } = event;
  if (!form.matches("[data-drawer-form]")) return;
  event.preventDefault();
  asked += 1;
  const mine = asked;
  // Not form.action, which here is one of its fields.
  const address = new URL(form.getAttribute("action"), location.href);
  address.searchParams.set("part", "drawer");
  const body = new FormData(form, submitter);
  const response = await fetch(address, { method: "POST", body, redirect: "manual" }).catch(() => null);
  if (mine !== asked) return;
  if (response?.status === 204) {
    document.dispatchEvent(new Event("strata:memory"));
    await open(shown);
  } else if ([200, 400].includes(response?.status)) fill(await response.text(), true);
  // Signed out, gone, or no answer: its page says so.
  else location.href = shown;
}

async function open(href) {
  const filled = await load(href);
  if (filled === false) location.href = href;
  if (!filled) return;
  drawer.hidden = false;
  shell.classList.add("with-drawer");
  drawer.querySelector("[data-drawer-close]").focus();
}

/** Fills the drawer. Resolves to false when the server would not, and to null when something else was
 * asked for meanwhile, or the chat is gone. */
async function load(href) {
  asked += 1;
  const mine = asked;
  const address = new URL(href);
  address.searchParams.set("part", "drawer");
  const response = await fetch(address);
  if (!response.ok || response.redirected) return false;
  const html = await response.text();
  if (mine !== asked) return null;
  shown = href;
  fill(html, drawer.contains(document.activeElement));
  return true;
}

function fill(html, isUsed) {
  drawer.innerHTML = html;
  const button = drawer.querySelector("[data-drawer-close]");
  button.hidden = false;
  if (!isUsed) return;
  (drawer.querySelector("[data-drawer-form] textarea, [data-drawer-form] select") ?? button).focus({ preventScroll: true });
}

function close() {
  drawer.hidden = true;
  shell.classList.remove("with-drawer");
  // What it was opened from may have been drawn anew.
  (opener?.isConnected ? opener : document.getElementById(opener?.id))?.focus();
}

// What was just said is part of what the next reply will be told.
document.addEventListener("strata:reply", () => {
  if (drawer && !drawer.hidden && opener.hasAttribute("data-drawer-grows")) load(opener.href);
});

document.addEventListener("strata:gone", () => {
  if (!drawer) return;
  asked += 1;
  close();
  drawer.replaceChildren();
});

drawer?.addEventListener("submit", submit);

drawer?.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  // Nor does it stop the reply that is being said.
  event.preventDefault();
  close();
});
