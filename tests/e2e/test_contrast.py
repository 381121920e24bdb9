"""Colours as the browser shows them: text at 4.5:1 (WCAG 1.4.3), what is drawn at 3:1 (1.4.11)."""

import pytest
from playwright.sync_api import Page, expect

LAYERS = ("conversation", "day", "week", "month")
PARTS = (
    *(
        "persona",
        "blocks",
        "facts",
        "bank",
        "matching_facts",
        "gists",
        "details",
        "history",
        "message",
    ),
    *LAYERS,
)

# `contrast` of two colours, the `ground` on which an element stands, and an element `made` there.
MEASURE = """() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const painted = (colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) {
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
    }
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const [r, g, b] = painted([colour]).map((one) => one / 255)
      .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  window.contrast = (one, other) => {
    const [less, more] = [light(one), light(other)].sort((a, b) => a - b);
    return (more + 0.05) / (less + 0.05);
  };
  window.ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.unshift(getComputedStyle(at).backgroundColor);
    }
    return `rgb(${painted(layers).slice(0, 3)})`;
  };
  window.made = (name, place) => {
    const one = document.createElement("b");
    one.className = name;
    document.querySelector(place).append(one);
    return one;
  };
}"""


@pytest.fixture(params=["light", "dark"])
def chat_page(request, open_page, sign_in, begin, say) -> Page:
    """The page of a chat with what it is told beside it."""
    page = open_page(color_scheme=request.param, viewport={"width": 1400, "height": 900})
    sign_in(page)
    begin(page)
    say(page, "When is the cutover?")
    expect(page.locator(".turn").nth(1)).to_contain_text("Scripted.")
    page.get_by_role("link", name="Context").click()
    page.locator("[data-drawer] .meter").wait_for()
    page.evaluate(MEASURE)
    return page


def least(page: Page, measured: str, among: object = None) -> tuple[float, str]:
    """The least contrast among the [number, name] pairs that the script `measured` returns."""
    pairs = page.evaluate(measured, among)
    assert pairs
    return min((number, name) for number, name in pairs)


def test_the_bar_stands_out_from_what_it_stands_on(chat_page):
    bars = """() => [...document.querySelectorAll("svg.meter rect")].map((part) =>
        [contrast(getComputedStyle(part).fill, ground(part)), part.getAttribute("class")])"""
    assert least(chat_page, bars) >= (3, "")


def test_every_part_of_a_bar_would_stand_out(chat_page):
    dots = """(names) => names.flatMap((name) => ["[data-drawer]", "[data-turns]"].map((place) => {
        const dot = made(`dot c-${name}`, place);
        return [contrast(getComputedStyle(dot).backgroundColor, ground(dot.parentElement)), name];
    }))"""
    assert least(chat_page, dots, PARTS) >= (3, "")


def test_the_words_beside_the_bar_can_be_read(chat_page):
    words = """() => {
        document.querySelectorAll("[data-drawer] details").forEach((one) => { one.open = true; });
        const speaks = ({ childNodes }) =>
            [...childNodes].some((one) => one.nodeName === "#text" && one.data.trim());
        return [...document.querySelectorAll("[data-drawer] *, .turn .sources-link *")]
            .filter((one) => one.checkVisibility() && speaks(one))
            .map((one) => [contrast(getComputedStyle(one).color, ground(one)), one.textContent]);
    }"""
    assert least(chat_page, words) >= (4.5, "")


def test_words_on_the_layers_can_be_read(chat_page):
    blocks = """(names) => names.flatMap((name) => ["", " faded"].map((state) => {
        const block = made(`block ${name} c-${name}${state}`, "[data-turns]");
        return [contrast(getComputedStyle(block).color, ground(block)), name + state];
    }))"""
    assert least(chat_page, blocks, LAYERS) >= (4.5, "")
