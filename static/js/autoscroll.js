// Keeps the end of the chat in view until the reader scrolls up.

const scroller = document.querySelector("[data-scroll]");
const NEAR_END_PX = 64;
let isFollowing = true;

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
    isFollowing = distance < NEAR_END_PX;
  },
  { passive: true },
);
