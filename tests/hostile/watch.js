// Runs before any script of a page, in each of its frames: tells the test what a hostile text did.
(() => {
  const tell = (...what) => window.strataWitness(...what.map(String));
  for (const name of ["alert", "confirm", "prompt", "print"]) {
    window[name] = (...what) => void tell("ran", name, ...what);
  }
  document.addEventListener("securitypolicyviolation", (event) =>
    tell("policy", event.effectiveDirective, event.blockedURI, event.sample),
  );

  const NEVER =
    "iframe object embed applet frame frameset portal base bgsound isindex marquee audio video " +
    "foreignobject animate set annotation-xml maction style";
  const LOADS = ["src", "srcset", "poster", "data", "action", "formaction", "background", "ping"];
  const never = new Set(NEVER.split(" "));

  function wrong(one) {
    const name = one.localName;
    const found = [];
    // No text knows this page's nonce.
    if (never.has(name) && !(name === "style" && one.nonce)) found.push(`<${name}>`);
    if (["link", "meta"].includes(name) && one.parentElement?.localName !== "head") {
      found.push(`<${name}> outside of the head`);
    }
    if (name === "script" && !isOurs(one.src) && one.type !== "application/json") {
      found.push("<script> of another");
    }
    for (const { name: attribute, value } of one.attributes) {
      const plain = attribute.toLowerCase().replace(/^.*:/, "");
      if (plain.startsWith("on") || plain === "srcdoc") found.push(`<${name} ${attribute}>`);
      if (plain === "style" && /url|expression|@import|image-set/i.test(value)) {
        found.push(`<${name} style="${value}">`);
      }
      const loads = LOADS.includes(plain) || (plain === "href" && name !== "a");
      if (loads && !isOurs(value)) found.push(`<${name} ${attribute}="${value}">`);
      if (plain === "href" && !leads(value)) found.push(`<${name} ${attribute}="${value}">`);
    }
    return found;
  }

  function isOurs(value) {
    const address = parsed(value);
    if (address?.protocol === "data:") return address.href.startsWith("data:image/");
    return !!address && (address.origin === location.origin || address.protocol === "blob:");
  }

  function leads(value) {
    return ["http:", "https:", "mailto:"].includes(parsed(value)?.protocol);
  }

  function parsed(value) {
    try {
      return new URL(value, location.href);
    } catch {
      return null;
    }
  }

  window.strataLook = () => [...document.querySelectorAll("*")].flatMap(wrong);
  // What stands there for a moment only counts too.
  new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) {
        if (node.nodeType !== Node.ELEMENT_NODE) continue;
        for (const one of [node, ...node.querySelectorAll("*")]) wrong(one).forEach((it) => tell(it));
      }
    }
  }).observe(document, { childList: true, subtree: true });
})();
