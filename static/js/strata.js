// Everything here makes a page that works without it nicer. Each module looks for its data- attribute.
import "./acts.js";
import "./as-of.js";
import "./chat.js";
import "./composer.js";
import "./copy.js";
import "./drawer.js";
import "./earlier.js";
import "./keeping.js";
import "./keys.js";
import "./live.js";
import "./older-chats.js";
import "./picking.js";
import "./polling.js";
import "./times.js";
