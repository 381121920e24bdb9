// Passkeys. The device fills in a form with data-passkey="create" or "get", and the form is sent.
// The options for the device are in the page, or at the URL in data-options-at.

// A passkey is bound to a domain name, so it does not work on an IP address.
const hasDomainName = !/^[\d.]+$|:/.test(location.hostname);
const isSupported =
  window.isSecureContext &&
  hasDomainName &&
  Boolean(window.PublicKeyCredential?.parseCreationOptionsFromJSON);

async function loadOptions(form) {
  if (!form.dataset.optionsAt) return JSON.parse(form.querySelector("script").textContent);
  const response = await fetch(form.dataset.optionsAt, { headers: { Accept: "application/json" } });
  return response.json();
}

async function create(form) {
  const options = (await loadOptions(form)).creation_options.publicKey;
  const isPasswordless = form.elements.passwordless.checked;
  Object.assign(options.authenticatorSelection, {
    residentKey: isPasswordless ? "required" : "discouraged",
    requireResidentKey: isPasswordless,
    ...(isPasswordless && { userVerification: "required" }),
  });
  return navigator.credentials.create({
    publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
  });
}

async function get(form) {
  const options = (await loadOptions(form)).request_options.publicKey;
  return navigator.credentials.get({
    publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
  });
}

async function fillAndSubmit(form) {
  const errorMessage = form.querySelector("[data-failed]");
  errorMessage.hidden = true;
  try {
    const credential = await (form.dataset.passkey === "create" ? create(form) : get(form));
    form.elements.credential.value = JSON.stringify(credential.toJSON());
  } catch {
    // The user cancelled, or the device has no passkey.
    errorMessage.hidden = false;
    return;
  }
  form.submit();
}

for (const form of isSupported ? document.querySelectorAll("[data-passkey]") : []) {
  for (const button of form.querySelectorAll("button[hidden]")) button.hidden = false;
  for (const notice of form.querySelectorAll("[data-unsupported]")) notice.hidden = true;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    fillAndSubmit(form);
  });
}
