// The pages of an account, and those before one is in.
import "./passkeys.js";
