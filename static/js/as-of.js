// The layers chart on an earlier day: a slider over the days since the first memory. Without
// JavaScript the page has a date field.

const form = document.querySelector("[data-as-of]");
const chart = document.querySelector("[data-picture]");
const DAY_MS = 86_400_000;
let requestCount = 0;

function dayAtOffset(offset) {
  return new Date(Date.parse(form.dataset.asOf) + offset * DAY_MS).toISOString().slice(0, 10);
}

function showDay(day) {
  const url = new URL(location.href);
  url.searchParams.set("at", day);
  history.replaceState(null, "", url);
  return drawChart();
}

/** Draws the chart for the page's current URL. */
async function drawChart() {
  requestCount += 1;
  const request = requestCount;
  const url = new URL(location.href);
  url.searchParams.set("part", "picture");
  const response = await fetch(url);
  if (!response.ok || response.redirected) return location.reload();
  const html = await response.text();
  // The slider has moved since.
  if (request !== requestCount) return;
  chart.innerHTML = html;
  // Style elements in HTML that is inserted later would need the page's nonce.
  const strata = chart.querySelector("[data-scale]");
  strata?.style.setProperty("--scale", strata.dataset.scale);
  for (const block of chart.querySelectorAll("[data-tokens]")) {
    block.style.setProperty("--tokens", block.dataset.tokens);
  }
}

// An entry was changed in the drawer.
if (chart) document.addEventListener("strata:memory", drawChart);

if (form) {
  const slider = form.querySelector("[data-days]");
  const day = form.querySelector("[data-day]");
  slider.hidden = false;
  form.querySelector("[data-submit]").hidden = true;
  slider.addEventListener("input", () => {
    day.value = dayAtOffset(slider.value);
  });
  slider.addEventListener("change", () => showDay(day.value));
  day.addEventListener("change", () => {
    if (!day.value) return;
    slider.value = Math.round((Date.parse(day.value) - Date.parse(form.dataset.asOf)) / DAY_MS);
    showDay(day.value);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    showDay(day.value);
  });
  // Changed before this script ran, or restored by the browser.
  if (day.value !== day.defaultValue) day.dispatchEvent(new Event("change"));
}
