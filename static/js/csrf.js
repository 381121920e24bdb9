// Signing in again in another tab replaces the CSRF token. Forms of an open page take the new one from
// its cookie, so that their texts can still be sent.

/** Returns the current CSRF token, or that of the page if there is no cookie. */
export function csrfToken(form) {
  const [, token] = document.cookie.match(/(?:^|; )(?:__Host-)?csrftoken=([^;]+)/) ?? [];
  return token ?? form.elements.csrfmiddlewaretoken.value;
}

/** Updates the token of the form, if it has one. */
export function updateToken(form) {
  const field = form.elements.namedItem("csrfmiddlewaretoken");
  if (field) field.value = csrfToken(form);
}

// Before the form's own listeners.
document.addEventListener("submit", ({ target }) => updateToken(target), { capture: true });
