// The picture of the layers on another day: a slider over the days there are, the page without it a date.

const form = document.querySelector("[data-as-of]");
const picture = document.querySelector("[data-picture]");
const DAY = 86_400_000; // milliseconds
let wanted = 0;

function dayAt(place) {
  return new Date(Date.parse(form.dataset.asOf) + place * DAY).toISOString().slice(0, 10);
}

function show(day) {
  const address = new URL(location.href);
  address.searchParams.set("at", day);
  history.replaceState(null, "", address);
  return draw();
}

/** Draws the picture of the page's address as it is now. */
async function draw() {
  wanted += 1;
  const mine = wanted;
  const address = new URL(location.href);
  address.searchParams.set("part", "picture");
  const response = await fetch(address);
  if (!response.ok || response.redirected) return location.reload();
  const html = await response.text();
  // The slider has gone on.
  if (mine !== wanted) return;
  picture.innerHTML = html;
  // Style elements inside what is put in later would need the page's nonce.
  const strata = picture.querySelector("[data-scale]");
  strata?.style.setProperty("--scale", strata.dataset.scale);
  for (const block of picture.querySelectorAll("[data-tokens]")) {
    block.style.setProperty("--tokens", block.dataset.tokens);
  }
}

// Something in it was changed in the drawer.
if (picture) document.addEventListener("strata:memory", draw);

if (form) {
  const slider = form.querySelector("[data-days]");
  const day = form.querySelector("[data-day]");
  slider.hidden = false;
  form.querySelector("[data-look]").hidden = true;
  slider.addEventListener("input", () => { day.value = dayAt(slider.value); });
  slider.addEventListener("change", () => show(day.value));
  day.addEventListener("change", () => {
    if (!day.value) return;
    slider.value = Math.round((Date.parse(day.value) - Date.parse(form.dataset.asOf)) / DAY);
    show(day.value);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show(day.value);
  });
}
