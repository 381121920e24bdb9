// “What it is told” beside the chat where there is room; on a narrow screen the link opens its page.

const drawer = document.querySelector("[data-drawer]");
const shell = document.querySelector("[data-shell]");
const roomy = window.matchMedia("(min-width: 70rem)");
let opener = null;

document.addEventListener("click", async (event) => {
  if (event.target.closest("[data-drawer-close]")) return close();
  const link = event.target.closest("[data-drawer-link]");
  if (!link || !drawer || !roomy.matches || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  if (!drawer.hidden) return close();
  opener = link;
  await open(link.href);
});

async function open(href) {
  const response = await fetch(`${href}?part=drawer`);
  if (!response.ok || response.redirected) {
    location.href = href;
    return;
  }
  drawer.innerHTML = await response.text();
  drawer.hidden = false;
  shell.classList.add("with-drawer");
  const button = drawer.querySelector("[data-drawer-close]");
  button.hidden = false;
  button.focus();
}

function close() {
  drawer.hidden = true;
  shell.classList.remove("with-drawer");
  opener?.focus();
}

drawer?.addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
});
