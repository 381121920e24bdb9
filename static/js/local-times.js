// Times are rendered in the project's zone. A reader in another zone sees local times; the original
// is in the tooltip.

const CLOCK = /\d\d:\d\d(?::\d\d)?$/;

/** Returns the UTC offset of the ISO time `text`, in minutes. */
function offset(text) {
  const [, sign, hours, minutes] = text.match(/([+-])(\d\d):(\d\d)$/) ?? [null, "+", 0, 0];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

function localise(time) {
  const original = time.textContent.trim();
  const date = new Date(time.dateTime);
  if (time.title || !CLOCK.test(original) || offset(time.dateTime) === -date.getTimezoneOffset())
    return;
  const isTimeOnly = original.replace(CLOCK, "") === "";
  const isSameDay = time.dateTime.slice(8, 10) === String(date.getDate()).padStart(2, "0");
  const format =
    isTimeOnly && isSameDay ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
  time.textContent = date.toLocaleString(document.documentElement.lang, format);
  time.title = `${original} ${time.dateTime.slice(-6)}`;
}

const localiseAll = (root) => root.querySelectorAll("time[datetime]").forEach(localise);

const page = document.querySelector("main");
if (page) {
  localiseAll(page);
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) localiseAll(node);
    }
  }).observe(page, { childList: true, subtree: true });
}
