"""`|markdown`: Markdown as safe HTML.

The HTML is sanitised by nh3 after rendering, whatever the renderer or a lexer lets through.
"""

import logging
import re
from collections.abc import Sequence

import nh3
from django import template
from django.utils.safestring import SafeString, mark_safe
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

log = logging.getLogger(__name__)
register = template.Library()

# Lexers are regular expressions; a longer block is not highlighted.
MAX_HIGHLIGHT_CHARS = 20_000
TAGS = set(
    """p br hr h1 h2 h3 h4 h5 h6 em strong s blockquote ul ol li a code pre span table thead
        tbody tr th td""".split()
)
# The elements of MathML that contain no HTML text. https://www.w3.org/TR/mathml-core/
MATH_TAGS = set(
    """math mrow mi mn mo mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd
        mspace mpadded mphantom""".split()
)
MAX_MATH_CHARS = 2_000
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "span": {"class"},
    "th": {"class"},
    "td": {"class"},
    "ol": {"start"},
    "math": {"display"},
    "mi": {"mathvariant"},
    "mo": {"stretchy", "fence", "form"},
    "mfrac": {"linethickness"},
    "mtd": {"columnalign"},
}
# Pygments' short names, the language of a code block, and the alignment of a column.
CLASS_NAME = re.compile(r"[a-z][a-z0-9]{0,2}|language-[\w+#.-]{1,40}|left|center|right")
# Absolute URLs only: a link in an answer never leads to a page of Strata.
LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


@register.filter
def markdown(text: str) -> SafeString:
    """Render CommonMark with tables, strikethrough and maths. HTML is shown as text."""
    return mark_safe(sanitise(_renderer.render(text)))  # noqa: S308


def sanitise(html: str) -> str:
    return nh3.clean(
        html,
        tags=TAGS | MATH_TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_filter_attribute,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def _filter_attribute(tag: str, attribute: str, value: str) -> str | None:
    """Return the allowed part of the value, or None to remove the attribute."""
    if attribute == "class":
        return " ".join(name for name in value.split() if CLASS_NAME.fullmatch(name)) or None
    if attribute == "href":
        return value if LINK.match(value) else None
    return value


def _highlight(code: str, language: str, attributes: str) -> str:
    """Add Pygments' classes, unless the language is unknown or the block too long."""
    try:
        lexer = get_lexer_by_name(language) if len(code) <= MAX_HIGHLIGHT_CHARS else None
    except ClassNotFound:
        lexer = None
    if lexer is None:
        return escapeHtml(code)
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def _image_as_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Render an image as a link, since loading it would reveal the reader to another host."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    label = renderer.renderInlineAsText(token.children or [], options, env) or source
    return f'<a href="{escapeHtml(source)}">{escapeHtml(label)}</a>'


def _align_by_class(state: StateCore) -> None:
    """Align columns by class; the content security policy blocks style attributes."""
    for token in state.tokens:
        style = token.attrs.pop("style", None)
        if style:
            token.attrSet("class", str(style).rpartition(":")[2])


def _render_math(source: str, options: dict[str, bool]) -> str:
    """Render LaTeX as MathML; if it is too long or invalid, as code."""
    display = "block" if options["display_mode"] else "inline"
    try:
        if len(source) <= MAX_MATH_CHARS:
            return convert(source, display=display)
    except Exception:
        # A model may write anything between dollars; the converter has no common error class.
        log.debug("math_render_failed", exc_info=True)
    return f"<code>{escapeHtml(source)}</code>"


_renderer = MarkdownIt("commonmark", {"html": False, "highlight": _highlight})
_renderer.enable(["table", "strikethrough"])
_renderer.use(dollarmath_plugin, allow_space=False, allow_digits=False, renderer=_render_math)
_renderer.add_render_rule("image", _image_as_link)
_renderer.core.ruler.push("align_by_class", _align_by_class)
