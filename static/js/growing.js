// A reply as it grows: blocks that are whole as the server set them, below them plain words.
import { follow } from "./scrolling.js";
import { fragment } from "./turns.js";

/** Fills `turn` from its beginning. What comes faster than the screen is drawn is put in at once. */
export function grow(turn) {
  const settled = turn.querySelector("[data-settled]");
  const words = document.createTextNode("");
  settled.replaceChildren();
  turn.querySelector("[data-tail]").replaceChildren(words);
  let waiting = "";
  let scheduled = false;

  function draw() {
    scheduled = false;
    words.appendData(waiting);
    waiting = "";
    follow();
  }

  function schedule() {
    if (!scheduled) requestAnimationFrame(draw);
    scheduled = true;
  }

  return {
    add(text) {
      waiting += text;
      schedule();
    },
    settle(html, rest) {
      settled.append(fragment(html));
      words.data = rest;
      waiting = "";
      schedule();
    },
  };
}
