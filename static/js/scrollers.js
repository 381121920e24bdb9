// Code blocks, tables and formulas that are wider than the page scroll sideways. Those that do can be
// focused, so that they scroll with the keyboard too.

const SELECTOR = "pre, .prose table, .prose math[display='block']";

const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scrolls =
      target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight;
    if (scrolls) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});

/** Watches the scrollable elements in `root`, also before it is added to the page. */
export function watchScrollers(root) {
  for (const element of root.querySelectorAll(SELECTOR))
    if (!element.matches(".bank")) observer.observe(element);
}
