// Requests of links and forms that stay on the page. Without a connection, the page shows a message
// and keeps the text of the form.

const notice = document.querySelector("[data-offline]");

export const offlineText = () => notice.textContent.trim();
export const signedOutText = () => notice.dataset.textSignedOut;

/** Returns the response, or null without a connection. That is shown in `form`, whose text stays, or
 * at the top of the page. */
export async function request(url, options = {}, form = null) {
  form?.querySelector("[data-lost]")?.remove();
  const response = await fetch(url, options).catch(() => null);
  if (!form) notice.hidden = Boolean(response);
  else if (!response) showError(form, notice.dataset.textLost);
  return response;
}

/** Resolves to the reason in the response to a refused request, if it has one. */
export async function reasonIn(response) {
  const body = await response.json().catch(() => null);
  return body?.detail;
}

/** Shows the reason why the form was not sent. */
export function showError(form, text) {
  form.querySelector("[data-lost]")?.remove();
  const line = document.createElement("p");
  line.className = "error";
  line.dataset.lost = "";
  line.setAttribute("role", "alert");
  line.textContent = text;
  form.append(line);
}

/** Shows in `form` why the server refused it. Without a reason, for example if its chat is deleted,
 * opens `url`, whose page shows it. */
export async function showReason(form, response, url) {
  const reason = response.status === 404 ? null : await reasonIn(response);
  if (reason) showError(form, reason);
  else location.href = url;
}

window.addEventListener("online", () => {
  if (notice) notice.hidden = true;
});
