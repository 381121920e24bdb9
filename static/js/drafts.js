// Drafts of messages in this browser: kept for each user and chat until they are sent, and removed at
// sign-out. A session that expires keeps them.

const PREFIX = "strata-draft/";
// Of a new chat's draft that was sent as a plain form. The page of the chat removes it.
const SENT = "strata-sent-draft";
// Of a new chat's draft while files begin the chat. The page of the chat takes it over.
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
    /** Removes it when the page of a chat opens next. */
    markSent: () => using("sessionStorage", (storage) => storage.setItem(SENT, name)),
    /** Makes it the draft of the chat whose page opens next. */
    moveToNextChat: () => using("sessionStorage", (storage) => storage.setItem(MOVING, name)),
  };
}

/** Removes the draft that was sent, and moves the one of a chat that began with files, if a chat is
 * shown. Any other page means that sending failed. */
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
