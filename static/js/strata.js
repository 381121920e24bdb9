// Entry module of the project pages. Every page also works without JavaScript; each module looks
// for its data attribute and does nothing when it is missing.
import "./as-of.js";
import "./bulk-selection.js";
import "./busy.js";
import "./chat-menu.js";
import "./chat-settings.js";
import "./rename.js";
import "./composer.js";
import "./copy.js";
import "./csrf.js";
import "./demo-progress.js";
import "./drawer.js";
import "./earlier-turns.js";
import "./live-updates.js";
import "./local-times.js";
import "./message-actions.js";
import "./older-chats.js";
import "./option-search.js";
import "./polling.js";
import "./remember.js";
import "./replies.js";
import "./sentences.js";
import "./shortcuts.js";
import "./tabs.js";
import "./unsaved-edits.js";

// A page that the browser kept in its memory may show text that was forgotten in the meantime.
window.addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.reload();
});
