// Entry module of the account and sign-in pages.
import "./passkeys.js";
