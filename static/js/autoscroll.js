// Keeps the end of the chat in view until the reader scrolls up.

const scroller = document.querySelector("[data-scroll]");
const jumpButton = document.querySelector("[data-jump]");
const NEAR_END_PX = 64;
let isFollowing = true;
let lastTop = 0;

export function scrollToEnd() {
  isFollowing = true;
  scroller.scrollTop = scroller.scrollHeight;
}

/** Scrolls to the end, unless the reader scrolled up. */
export function followEnd() {
  if (isFollowing) scroller.scrollTop = scroller.scrollHeight;
}

scroller?.addEventListener(
  "scroll",
  () => {
    const distance = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    // Text that arrives before this event also moves the end away; only the reader scrolls up.
    if (distance < NEAR_END_PX) isFollowing = true;
    else if (scroller.scrollTop < lastTop) isFollowing = false;
    lastTop = scroller.scrollTop;
    if (jumpButton) jumpButton.hidden = isFollowing;
  },
  { passive: true },
);

jumpButton?.addEventListener("click", () => {
  scrollToEnd();
  document.getElementById("main").focus({ preventScroll: true });
});
