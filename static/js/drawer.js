// What a reply was told, or the next would be, beside the chat where there is room; on a narrow screen
// the link opens its page.

const drawer = document.querySelector("[data-drawer]");
const shell = document.querySelector("[data-shell]");
const roomy = window.matchMedia("(min-width: 70rem)");
let opener = null;

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

async function open(href) {
  if (!(await load(href))) {
    location.href = href;
    return;
  }
  drawer.hidden = false;
  shell.classList.add("with-drawer");
  drawer.querySelector("[data-drawer-close]").focus();
}

/** Fills the drawer; false when the server would not. */
async function load(href) {
  const address = new URL(href);
  address.searchParams.set("part", "drawer");
  const response = await fetch(address);
  if (!response.ok || response.redirected) return false;
  drawer.innerHTML = await response.text();
  drawer.querySelector("[data-drawer-close]").hidden = false;
  return true;
}

function close() {
  drawer.hidden = true;
  shell.classList.remove("with-drawer");
  opener?.focus();
}

// What was just said is part of what the next reply will be told.
document.addEventListener("strata:reply", () => {
  if (drawer && !drawer.hidden && opener.hasAttribute("data-drawer-grows")) load(opener.href);
});

document.addEventListener("strata:gone", () => {
  if (!drawer) return;
  close();
  drawer.replaceChildren();
});

drawer?.addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
});
