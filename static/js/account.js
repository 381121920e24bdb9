// Entry module of the account and sign-in pages.
import "./drafts.js";
import "./local-times.js";
import "./option-search.js";
import "./passkeys.js";
