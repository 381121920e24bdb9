// Keyboard shortcuts of the project pages, and the command palette.

import { offlineText } from "./connection.js";

const palette = document.querySelector("[data-palette]");
const help = document.querySelector("[data-shortcuts]");
const DEBOUNCE_MS = 120;
let requestCount = 0;
let timer = null;
// The query whose results are listed.
let listedQuery = null;

const isTextInput = ({ target }) =>
  target.isContentEditable || target.matches("input, textarea, select");

async function loadResults(query) {
  requestCount += 1;
  const request = requestCount;
  const url = new URL(palette.dataset.palette, location.href);
  url.searchParams.set("q", query);
  const response = await fetch(url).catch(() => null);
  // The query has changed since.
  if (request !== requestCount) return;
  if (!response) return showOffline();
  // Signed out: the page stays, with everything the user typed in it.
  if (!response.ok || response.redirected) return palette.close();
  const html = await response.text();
  if (request !== requestCount) return;
  palette.querySelector("[data-palette-results]").innerHTML = html;
  listedQuery = query;
  select(0);
}

function showOffline() {
  const line = document.createElement("li");
  line.className = "error";
  line.role = "presentation";
  line.textContent = offlineText();
  palette.querySelector("[data-palette-results]").replaceChildren(line);
  listedQuery = null;
  select(0);
}

function select(index) {
  const results = [...palette.querySelectorAll("[data-palette-result]")];
  results.forEach((result, position) => {
    result.id = `palette-result-${position}`;
    result.classList.toggle("selected", position === index);
    result.ariaSelected = position === index;
  });
  results[index]?.scrollIntoView({ block: "nearest" });
  // The focus stays in the field, and screen readers announce the result that it refers to.
  palette
    .querySelector("[data-palette-query]")
    .setAttribute("aria-activedescendant", results[index]?.id ?? "");
}

function openPalette() {
  palette.querySelector("[data-palette-query]").value = "";
  palette.showModal();
  loadResults("");
}

/** Opens the selected result, after the results of the current query have arrived. */
async function openSelected() {
  clearTimeout(timer);
  const { value } = palette.querySelector("[data-palette-query]");
  if (listedQuery !== value) await loadResults(value);
  if (listedQuery === value) palette.querySelector("[data-palette-result].selected")?.click();
}

function onPaletteKeydown(event) {
  if (event.key === "Escape") {
    // A search field would only be emptied by the first Escape.
    event.preventDefault();
    palette.close();
    return;
  }
  const results = [...palette.querySelectorAll("[data-palette-result]")];
  const index = results.findIndex((result) => result.classList.contains("selected"));
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps && results.length) {
    event.preventDefault();
    select((index + steps[event.key] + results.length) % results.length);
  } else if (event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    openSelected();
  }
}

/** Closes an open panel of filters, and returns the focus to its button. */
function closeFilters(event) {
  const menu = document.querySelector(".filter-menu[open]");
  if (!menu || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  menu.open = false;
  menu.querySelector("summary").focus();
}

function onKeydown(event) {
  if (event.key === "Escape") closeFilters(event);
  const command = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (command && key === "k" && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    if (palette.open) palette.close();
    else openPalette();
  } else if (command && event.shiftKey && key === "o" && palette.dataset.new) {
    event.preventDefault();
    location.href = palette.dataset.new;
  } else if (event.key === "?" && !command && !isTextInput(event) && !help.open) {
    event.preventDefault();
    help.showModal();
  }
}

if (palette) {
  document.addEventListener("keydown", onKeydown);
  palette.addEventListener("keydown", onPaletteKeydown);
  palette.querySelector("[data-palette-query]").addEventListener("input", ({ target }) => {
    clearTimeout(timer);
    timer = setTimeout(() => loadResults(target.value), DEBOUNCE_MS);
  });
  for (const dialog of [palette, help]) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
  }
  const button = document.querySelector("[data-show-shortcuts]");
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
}
