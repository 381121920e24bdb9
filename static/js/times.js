// Times are written in the project's zone; whoever reads elsewhere sees their own, and those beside.

const CLOCK = /\d\d:\d\d(?::\d\d)?$/;

/** Minutes that the ISO time `text` is ahead of UTC, as it is written. */
function offset(text) {
  const [, sign, hours, minutes] = text.match(/([+-])(\d\d):(\d\d)$/) ?? [null, "+", 0, 0];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

function localise(time) {
  const written = time.textContent.trim();
  const at = new Date(time.dateTime);
  if (time.title || !CLOCK.test(written) || offset(time.dateTime) === -at.getTimezoneOffset()) return;
  const alone = written.replace(CLOCK, "") === "";
  const sameDay = time.dateTime.slice(8, 10) === String(at.getDate()).padStart(2, "0");
  const shown = alone && sameDay ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
  time.textContent = at.toLocaleString(document.documentElement.lang, shown);
  time.title = `${written} ${time.dateTime.slice(-6)}`;
}

const localiseAll = (root) => root.querySelectorAll("time[datetime]").forEach(localise);

const page = document.querySelector("main");
if (page) {
  localiseAll(page);
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const one of addedNodes) if (one.nodeType === Node.ELEMENT_NODE) localiseAll(one);
    }
  }).observe(page, { childList: true, subtree: true });
}
