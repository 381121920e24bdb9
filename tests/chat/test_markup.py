"""Model output becomes HTML that can neither run code nor load resources."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.templatetags.markup import ATTRIBUTES, TAGS, markdown


class Seen(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def assert_harmless(html: str) -> None:
    for tag, attributes in Seen(html).tags:
        assert tag in TAGS
        assert set(attributes) <= ATTRIBUTES.get(tag, set()) | {"rel"}
        href = attributes.get("href")
        assert href is None or href.lower().startswith(("http://", "https://", "mailto:"))


PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<style>body{display:none}</style>",
    "<iframe src='https://evil.example'></iframe>",
    "<form action='/accounts/logout/'><button>go</button></form>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "[x](/accounts/logout/)",
    "[x](//evil.example/)",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    '![x](https://evil.example/"onerror="alert(1))',
    "<javascript:alert(1)>",
    '```"><script>alert(1)</script>\nx\n```',
    "```python onmouseover=alert(1)\nprint('</code><script>')\n```",
    "```html\n<script>alert(1)</script>\n```",
    "`<script>alert(1)</script>`",
    "| a |\n|:-:|\n| <b onclick=x> |",
    '[x]: https://a.example "\'><script>"\n[x]',
    "<math><mi xlink:href='javascript:alert(1)'>",
    "http://a.example/'onmouseover=alert(1)//",
    'www.a.example/"onmouseover="alert(1)',
    "javascript://www.a.example/%0aalert(1)",
    "[^x]: <script>alert(1)</script>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_does_nothing(payload):
    assert_harmless(markdown(payload))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*PAYLOADS, "**", "`", "\n", "\n\n", "> ", "- ", "[", "](", ")"])))
def test_no_mixture_of_them_does_either(parts):
    assert_harmless(markdown("".join(parts)))


def test_html_is_shown_and_not_obeyed():
    assert markdown("<b>x</b>") == "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"


def test_a_picture_from_elsewhere_becomes_a_link():
    html = markdown("![a chart](https://example.org/chart.png)")
    assert "<img" not in html
    assert '<a href="https://example.org/chart.png"' in html
    assert ">a chart</a>" in html


def test_links_tell_nobody_where_they_were():
    assert 'rel="noopener noreferrer nofollow"' in markdown("[x](https://example.org)")


def test_code_is_highlighted_by_classes():
    html = markdown("```python\ndef f(): pass\n```")
    assert '<span class="k">def</span>' in html
    assert "style=" not in html


def test_unknown_languages_stay_plain():
    assert "<code" in markdown("```klingon\n<qapla>\n```")
    assert "&lt;qapla&gt;" in markdown("```klingon\n<qapla>\n```")


def test_tables_and_strikethrough_are_known_and_columns_align_by_class():
    html = markdown("| a | b |\n|---|--:|\n| 1 | ~~2~~ |")
    assert '<td class="right"><s>2</s></td>' in html


def test_maths_become_mathml():
    inline = markdown(r"It is $\frac{a}{b^2}$ each.")
    assert "<math" in inline and "<mfrac>" in inline and 'display="inline"' in inline
    assert 'display="block"' in markdown("$$\nx^2\n$$")


def test_maths_between_brackets_become_mathml():
    inline = markdown(r"It is \(\frac{a}{b}\) each.")
    assert "<mfrac>" in inline and 'display="inline"' in inline
    for text in ("So\n\\[\nx^2\n\\]\n", r"- So \[x^2\] it is.", "$$\nx^2\n$$", r"\[ x^2 \]"):
        assert 'display="block"' in markdown(text)
    assert "<mtable>" in markdown("\\[\n\\begin{aligned}a &= b\\\\c &= d\\end{aligned}\n\\]")


@pytest.mark.parametrize("text", [r"Escaped \[note\].", "\\[\na\n\nb\n\\]", r"`\(x\)`", r"\\(x\\)"])
def test_other_brackets_are_no_maths(text):
    assert "<math" not in markdown(text)


def test_task_lists_show_their_boxes():
    html = markdown("- [ ] one\n- [x] **two**\n- [y] three")
    assert '<li class="task">☐ one</li>' in html
    assert '<li class="task">☑ <strong>two</strong></li>' in html
    assert "<li>[y] three</li>" in html


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("See https://example.org/a_b?x=1.", "https://example.org/a_b?x=1"),
        ("(https://example.org/a_(b))", "https://example.org/a_(b)"),
        ("WWW.example.org!", "https://WWW.example.org"),
        ("**https://example.org**", "https://example.org"),
    ],
)
def test_a_bare_url_becomes_a_link_without_the_punctuation_behind_it(text, url):
    assert f'<a href="{url}"' in markdown(text)


def test_urls_in_code_and_links_stay_as_they_are():
    assert "<a" not in markdown("`https://example.org` xhttps://example.org")
    assert markdown("[https://a.example](https://b.example)").count("<a") == 1


def test_footnotes_are_shown_where_they_are_written():
    html = markdown("Paid[^1], not[^a-z].\n\n[^1]: In *May*\n[^b]: https://example.org")
    assert "Paid<sup>1</sup>, not[^a-z]." in html
    assert '<p class="footnote"><sup>1</sup> In <em>May</em></p>' in html
    assert '<p class="footnote"><sup>b</sup> <a href="https://example.org"' in html


def test_cells_can_have_several_lines():
    assert "<td>1<br>\n2<br>\n3</td>" in markdown("| a |\n|---|\n| 1<br>2<BR />3 |")
    assert "<br>" not in markdown("1<br>2")


def test_prices_are_no_maths():
    assert markdown("It costs $5 here and $6 there.") == "<p>It costs $5 here and $6 there.</p>\n"


@pytest.mark.parametrize(
    "source",
    [
        r"$\text{<img src=x onerror=alert(1)>}$",
        r"$\href{javascript:alert(1)}{x}$",
        r"$\style{position:fixed}{x}$",
        r"$<script>alert(1)</script>$",
        r"$\unknown{<svg onload=alert(1)>}$",
        "$" + "{" * 1_500 + "$",
        "$" + r"\frac" * 400 + "$",
    ],
)
def test_maths_cannot_harm(source):
    html = markdown(source)
    assert not re.search(r"<(?:script|img|svg|style)|onerror=|href=|style=", html)


def test_maths_that_are_too_long_are_shown_as_they_are(caplog):
    with caplog.at_level("DEBUG", "chat.templatetags.markup"):
        assert markdown("$" + "x" * 3_000 + "$").startswith("<p><code>xxx")
    assert caplog.messages == []
