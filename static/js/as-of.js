// The memory page on an earlier day: a slider below the picture of the layers over time, and a
// button that moves through it. Without JavaScript the page has a date field.
import { request } from "./connection.js";

const form = document.querySelector("[data-as-of]");
const list = document.querySelector("[data-picture]");
const points = JSON.parse(document.getElementById("layers-over-time")?.textContent ?? "[]");
const DAY_MS = 86_400_000;
const PLAY_MS = 8_000;
const FRAME_MS = 80;
let requestCount = 0;

function dayAtOffset(offset) {
  return new Date(Date.parse(form.dataset.asOf) + offset * DAY_MS).toISOString().slice(0, 10);
}

function showDay(day) {
  const url = new URL(location.href);
  url.searchParams.set("at", day);
  history.replaceState(null, "", url);
  return drawList();
}

/** Draws the list for the page's current URL. */
async function drawList() {
  requestCount += 1;
  const count = requestCount;
  const url = new URL(location.href);
  url.searchParams.set("part", "picture");
  const response = await request(url);
  if (!response) return;
  if (!response.ok || response.redirected) return location.reload();
  const html = await response.text();
  // The slider has moved since.
  if (count === requestCount) list.innerHTML = html;
}

// An entry was changed in the drawer.
if (list) document.addEventListener("strata:memory", drawList);

if (form) {
  const slider = form.querySelector("[data-days]");
  const day = form.querySelector("[data-day]");
  const play = form.querySelector("[data-play]");
  const readout = form.querySelector("[data-readout]");
  const marker = document.querySelector("[data-marker]");
  const playLabel = play.textContent;
  let timer = 0;

  /** Moves the marker to the slider's day, and shows the tokens of that day. */
  function mark() {
    day.value = dayAtOffset(slider.value);
    const x = `${(100 * slider.value) / slider.max}%`;
    marker.setAttribute("x1", x);
    marker.setAttribute("x2", x);
    const point = points.findLast((candidate) => candidate.day <= day.value);
    const tokens = point?.tokens.toLocaleString(document.documentElement.lang);
    readout.textContent = tokens ? readout.dataset.tokens.replace("#", tokens) : "";
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    play.textContent = playLabel;
  }

  function step() {
    const days = Math.max(1, Math.round((slider.max * FRAME_MS) / PLAY_MS));
    slider.value = Number(slider.value) + days;
    mark();
    if (slider.value !== slider.max) return;
    pause();
    showDay(day.value);
  }

  slider.hidden = play.hidden = false;
  form.querySelector("[data-submit]").hidden = true;
  play.addEventListener("click", () => {
    if (timer) {
      pause();
      return showDay(day.value);
    }
    if (slider.value === slider.max) slider.value = 0;
    play.textContent = play.dataset.pause;
    timer = setInterval(step, FRAME_MS);
  });
  slider.addEventListener("input", () => {
    pause();
    mark();
  });
  slider.addEventListener("change", () => showDay(day.value));
  day.addEventListener("change", () => {
    if (!day.value) return;
    const value = day.value;
    slider.value = Math.round((Date.parse(value) - Date.parse(form.dataset.asOf)) / DAY_MS);
    mark();
    showDay(day.value);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    showDay(day.value);
  });
  // Changed before this script ran, or restored by the browser.
  if (day.value !== day.defaultValue) day.dispatchEvent(new Event("change"));
  else mark();
}
