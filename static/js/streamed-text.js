// The text of a reply while it streams: complete Markdown blocks as HTML from the server, below them
// the rest as plain text.
import { followEnd } from "./autoscroll.js";
import { fragment } from "./turns.js";

/** Fills `turn` from the start. Text is added at most once per frame. */
export function streamText(turn) {
  const blocks = turn.querySelector("[data-blocks]");
  const tail = document.createTextNode("");
  blocks.replaceChildren();
  turn.querySelector("[data-tail]").replaceChildren(tail);
  let pending = "";
  let isScheduled = false;

  function draw() {
    isScheduled = false;
    tail.appendData(pending);
    pending = "";
    followEnd();
  }

  function schedule() {
    if (!isScheduled) requestAnimationFrame(draw);
    isScheduled = true;
  }

  return {
    add(text) {
      pending += text;
      schedule();
    },
    addBlock(html, rest) {
      blocks.append(fragment(html));
      tail.data = rest;
      pending = "";
      schedule();
    },
  };
}
