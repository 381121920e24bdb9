// Drafts of messages in this browser: kept for each user and chat until they are sent, and removed at
// sign-out, but not when a session expires.

const PREFIX = "strata-draft/";
// Has the name of a new chat's draft that was sent as a plain form. The chat's page removes the draft.
const SENT = "strata-sent-draft";
// Has the name of a new chat's draft if files begin the chat. The chat's page takes the draft over.
const MOVING = "strata-moving-draft";
const MAX_AGE_MS = 30 * 24 * 3600 * 1000;

/** Runs `action` with a storage. Without one, for example when it is full, drafts are not kept. */
function using(storageName, action) {
  try {
    return action(window[storageName]);
  } catch {
    return null;
  }
}

const draftKeys = (storage) => Object.keys(storage).filter((key) => key.startsWith(PREFIX));

function removeAll() {
  using("localStorage", (storage) => {
    for (const key of draftKeys(storage)) storage.removeItem(key);
  });
}

function removeOld() {
  using("localStorage", (storage) => {
    for (const key of draftKeys(storage)) {
      const { savedAt } = JSON.parse(storage.getItem(key));
      if (!(Date.now() - savedAt < MAX_AGE_MS)) storage.removeItem(key);
    }
  });
}

/** Returns the draft of a composer; `name` names its user and its chat. */
export function draftOf(name) {
  const key = PREFIX + name;
  return {
    text: () => using("localStorage", (storage) => JSON.parse(storage.getItem(key))?.text) ?? "",
    save: (text) =>
      using("localStorage", (storage) => {
        if (text) storage.setItem(key, JSON.stringify({ text, savedAt: Date.now() }));
        else storage.removeItem(key);
      }),
    /** Removes the draft when the next page of a chat opens. */
    markSent: () => using("sessionStorage", (storage) => storage.setItem(SENT, name)),
    /** Moves the draft to the chat whose page opens next. */
    moveToNextChat: () => using("sessionStorage", (storage) => storage.setItem(MOVING, name)),
  };
}

/** On the page of a chat, removes the draft that was sent, or takes over that of a chat that files
 * began. Any other page means that sending failed. */
function settle() {
  const [sent, moving] = [SENT, MOVING].map((name) =>
    using("sessionStorage", (storage) => {
      const key = storage.getItem(name);
      storage.removeItem(name);
      return key;
    }),
  );
  if (!document.querySelector("[data-turns]")) return;
  const composer = document.querySelector("[data-composer]");
  if (moving && composer) draftOf(composer.dataset.draft).save(draftOf(moving).text());
  for (const key of [sent, moving])
    if (key) using("localStorage", (storage) => storage.removeItem(PREFIX + key));
}

settle();
removeOld();
document.addEventListener("submit", (event) => {
  if (event.target.matches('form[action$="/logout/"]')) removeAll();
});
