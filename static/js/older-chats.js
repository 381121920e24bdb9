// Older chats come in at the end of the list beside the page as one scrolls down to it.

const list = document.querySelector('[data-part="chats"]');
let shown = 0;
let loading = false;

/** How many chats the list was asked for; 0 for as many as there are at first. */
export const chatsShown = () => shown;

async function load(link) {
  if (loading) return;
  loading = true;
  try {
    const address = new URL(link.href);
    address.searchParams.set("part", "chats");
    address.searchParams.set("chats", link.dataset.moreChats);
    const response = await fetch(address);
    if (!response.ok || response.redirected) return;
    const current = list.querySelector("[aria-current]")?.getAttribute("href");
    list.innerHTML = await response.text();
    shown = Number(address.searchParams.get("chats"));
    if (current) list.querySelector(`[href="${CSS.escape(current)}"]`)?.setAttribute("aria-current", "page");
  } catch {
    // Asked for again at the next scroll.
  } finally {
    loading = false;
  }
}

if (list) {
  const seen = new IntersectionObserver(
    (entries) => { for (const one of entries) if (one.isIntersecting) load(one.target); },
    { root: list.closest("nav"), rootMargin: "0px 0px 600px 0px" },
  );
  const watch = () => {
    seen.disconnect();
    const link = list.querySelector("[data-more-chats]");
    if (link) seen.observe(link);
  };
  new MutationObserver(watch).observe(list, { childList: true });
  watch();
}
