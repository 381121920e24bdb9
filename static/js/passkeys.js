// Passkeys: a form with data-passkey="create" or "get" is filled in by the device, and sent. What the
// device is asked comes with the page, or from the address in data-options-at.

// A passkey belongs to a name, and so to no address of numbers.
const named = !/^[\d.]+$|:/.test(location.hostname);
const able = window.isSecureContext && named && Boolean(window.PublicKeyCredential?.parseCreationOptionsFromJSON);

async function asked(form) {
  if (!form.dataset.optionsAt) return JSON.parse(form.querySelector("script").textContent);
  const answer = await fetch(form.dataset.optionsAt, { headers: { Accept: "application/json" } });
  return answer.json();
}

async function create(form) {
  const wish = (await asked(form)).creation_options.publicKey;
  const alone = form.elements.passwordless.checked;
  Object.assign(wish.authenticatorSelection, {
    residentKey: alone ? "required" : "discouraged",
    requireResidentKey: alone,
    ...(alone && { userVerification: "required" }),
  });
  return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(wish) });
}

async function get(form) {
  const wish = (await asked(form)).request_options.publicKey;
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(wish) });
}

async function fill(form) {
  const failed = form.querySelector("[data-failed]");
  failed.hidden = true;
  try {
    const made = await (form.dataset.passkey === "create" ? create(form) : get(form));
    form.elements.credential.value = JSON.stringify(made.toJSON());
  } catch {
    // Closed by its user, or the device has none.
    failed.hidden = false;
    return;
  }
  form.submit();
}

for (const form of able ? document.querySelectorAll("[data-passkey]") : []) {
  for (const button of form.querySelectorAll("button[hidden]")) button.hidden = false;
  for (const why of form.querySelectorAll("[data-cannot]")) why.hidden = true;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    fill(form);
  });
}
