// Saved prompts: a message that begins with "/" opens a list, and the chosen text replaces it. Tab
// then goes through the variables of the text, such as {{customer}}.
const VARIABLE = /\{\{ {0,3}\p{L}[\p{L}\p{N}_]{0,39} {0,3}\}\}/u;
const MAX_PROMPTS = 8;

export function initPromptPicker(form) {
  const box = form.querySelector("textarea");
  const list = form.querySelector("[data-prompt-list]");
  if (!box || !list) return;
  let prompts = null;
  let chosen = 0;

  function close() {
    list.hidden = true;
    list.replaceChildren();
    box.removeAttribute("aria-activedescendant");
  }

  function mark(number) {
    chosen = number;
    [...list.children].forEach((item, place) => {
      item.setAttribute("aria-selected", String(place === chosen));
      if (place === chosen) item.scrollIntoView({ block: "nearest" });
    });
    box.setAttribute("aria-activedescendant", list.children[chosen].id);
  }

  async function open() {
    if (!/^\/[\p{L}\p{N}_-]{0,60}$/u.test(box.value)) return close();
    if (prompts === null) {
      prompts = [];
      const response = await fetch(form.dataset.prompts, {
        headers: { Accept: "application/json" },
      }).catch(() => null);
      // Offline or signed out: the next letter tries again.
      if (!response?.ok || response.redirected) prompts = null;
      else prompts = (await response.json()).prompts;
    }
    // The text may have changed meanwhile.
    if (prompts === null || !box.value.startsWith("/")) return close();
    const word = box.value.slice(1).toLowerCase();
    const found = prompts
      .filter(({ name }) => name.toLowerCase().includes(word))
      .slice(0, MAX_PROMPTS);
    if (!found.length) return close();
    list.replaceChildren(
      ...found.map((prompt, place) => {
        const item = document.createElement("li");
        item.id = `saved-prompt-${place}`;
        item.setAttribute("role", "option");
        const name = document.createElement("b");
        name.textContent = `/${prompt.name}`;
        const text = document.createElement("span");
        text.className = "soft";
        text.textContent = prompt.text.slice(0, 120);
        item.append(name, " ", text);
        // The focus stays in the text box.
        item.addEventListener("pointerdown", (event) => event.preventDefault());
        item.addEventListener("click", () => insert(prompt));
        item.prompt = prompt;
        return item;
      }),
    );
    list.hidden = false;
    mark(0);
  }

  function insert(prompt) {
    box.value = prompt.text;
    close();
    box.focus();
    if (!selectVariable(0)) box.setSelectionRange(box.value.length, box.value.length);
    box.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function selectVariable(from) {
    const match = VARIABLE.exec(box.value.slice(from));
    if (!match) return false;
    const start = from + match.index;
    box.setSelectionRange(start, start + match[0].length);
    return true;
  }

  box.addEventListener("input", open);
  box.addEventListener("blur", close);
  // Before the composer's own listener, which sends at Enter.
  box.addEventListener(
    "keydown",
    (event) => {
      if (event.isComposing) return;
      const isOpen = !list.hidden;
      if (isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
        const count = list.children.length;
        mark((chosen + (event.key === "ArrowDown" ? 1 : count - 1)) % count);
      } else if (isOpen && !event.shiftKey && (event.key === "Enter" || event.key === "Tab")) {
        insert(list.children[chosen].prompt);
      } else if (isOpen && event.key === "Escape") close();
      else if (isOpen || event.key !== "Tab" || event.shiftKey || !selectVariable(box.selectionEnd))
        return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    { capture: true },
  );
}
