// The page follows what is being said until its reader scrolls up.

const box = document.querySelector("[data-scroll]");
const NEAR = 64;
let following = true;

export function toTheEnd() {
  following = true;
  box.scrollTop = box.scrollHeight;
}

export function follow() {
  if (following) box.scrollTop = box.scrollHeight;
}

box?.addEventListener(
  "scroll",
  () => { following = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR; },
  { passive: true },
);
