// Marks the tab of the section that CSS shows: the one of the fragment of the URL, or the first.

const links = [...document.querySelectorAll("[data-tabs] a")];

function markCurrent() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const current = links.find((link) => document.querySelector(link.hash).contains(target || null));
  for (const link of links) link.removeAttribute("aria-current");
  (current ?? links[0])?.setAttribute("aria-current", "true");
}

window.addEventListener("hashchange", markCurrent);
markCurrent();
