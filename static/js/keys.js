// Keys that work on every page of a project, and the list by which one goes anywhere.

const jump = document.querySelector("[data-jump]");
const help = document.querySelector("[data-keys]");
const PAUSE = 120; // milliseconds
let asked = 0;
let waiting = null;
// The letters that what is listed was found by.
let listed = null;

const isWriting = ({ target }) =>
  target.isContentEditable || target.matches("input, textarea, select");

async function list(letters) {
  asked += 1;
  const mine = asked;
  const address = new URL(jump.dataset.jump, location.href);
  address.searchParams.set("q", letters);
  const response = await fetch(address).catch(() => null);
  // Letters were added meanwhile.
  if (mine !== asked) return;
  // Offline, or signed out: the page stays, with whatever was written in it.
  if (!response?.ok || response.redirected) return jump.close();
  const html = await response.text();
  if (mine !== asked) return;
  jump.querySelector("[data-places]").innerHTML = html;
  listed = letters;
  choose(0);
}

function choose(place) {
  const all = [...jump.querySelectorAll("[data-place]")];
  all.forEach((one, at) => one.classList.toggle("chosen", at === place));
  all[place]?.scrollIntoView({ block: "nearest" });
}

function open() {
  jump.querySelector("[data-letters]").value = "";
  jump.showModal();
  list("");
}

/** Goes to what is chosen, once that was found by what is written. */
async function go() {
  clearTimeout(waiting);
  const { value } = jump.querySelector("[data-letters]");
  if (listed !== value) await list(value);
  if (listed === value) jump.querySelector("[data-place].chosen")?.click();
}

function move(event) {
  const all = [...jump.querySelectorAll("[data-place]")];
  const at = all.findIndex((one) => one.classList.contains("chosen"));
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps && all.length) {
    event.preventDefault();
    choose((at + steps[event.key] + all.length) % all.length);
  } else if (event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    go();
  }
}

function press(event) {
  const command = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (command && key === "k" && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    if (jump.open) jump.close();
    else open();
  } else if (command && event.shiftKey && key === "o" && jump.dataset.new) {
    event.preventDefault();
    location.href = jump.dataset.new;
  } else if (event.key === "?" && !command && !isWriting(event) && !help.open) {
    event.preventDefault();
    help.showModal();
  }
}

if (jump) {
  document.addEventListener("keydown", press);
  jump.addEventListener("keydown", move);
  jump.querySelector("[data-letters]").addEventListener("input", ({ target }) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => list(target.value), PAUSE);
  });
  for (const dialog of [jump, help]) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
  }
  const button = document.querySelector("[data-show-keys]");
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
}
