// Entry module of the account and sign-in pages.
import "./drafts.js";
import "./passkeys.js";
