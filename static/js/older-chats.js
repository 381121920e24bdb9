// Loads older chats at the end of the sidebar's list as the reader scrolls down.

const list = document.querySelector('[data-part="chats"]');
let requestedCount = 0;
let isLoading = false;

/** Returns the requested length of the list; 0 for the default. */
export const chatsShown = () => requestedCount;

async function load(link) {
  if (isLoading) return;
  isLoading = true;
  try {
    const url = new URL(link.href);
    url.searchParams.set("part", "chats");
    url.searchParams.set("chats", link.dataset.moreChats);
    const response = await fetch(url);
    if (!response.ok || response.redirected) return;
    const current = list.querySelector("[aria-current]")?.getAttribute("href");
    list.innerHTML = await response.text();
    requestedCount = Number(url.searchParams.get("chats"));
    if (current)
      list.querySelector(`[href="${CSS.escape(current)}"]`)?.setAttribute("aria-current", "page");
  } catch {
    // The next scroll tries again.
  } finally {
    isLoading = false;
  }
}

if (list) {
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) if (entry.isIntersecting) load(entry.target);
    },
    { root: list.closest("nav"), rootMargin: "0px 0px 600px 0px" },
  );
  const observeLink = () => {
    observer.disconnect();
    const link = list.querySelector("[data-more-chats]");
    if (link) observer.observe(link);
  };
  new MutationObserver(observeLink).observe(list, { childList: true });
  observeLink();
}
