"""`|markdown`: what a model wrote, as HTML that cannot harm.

Rendered first, sanitised afterwards: whatever the renderer or a lexer lets through, nh3 stops.
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

# Lexers are regular expressions; a block longer than this stays plain.
LONGEST_HIGHLIGHT = 20_000
TAGS = set(
    """p br hr h1 h2 h3 h4 h5 h6 em strong s blockquote ul ol li a code pre span table thead
        tbody tr th td""".split()
)
# Of MathML, what has no text of HTML in it. https://www.w3.org/TR/mathml-core/
MATHS = set(
    """math mrow mi mn mo mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd
        mspace mpadded mphantom""".split()
)
LONGEST_MATHS = 2_000  # characters
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
# Pygments' short names, the fence's language, and the alignment of a table's column.
CLASSES = re.compile(r"[a-z][a-z0-9]{0,2}|language-[\w+#.-]{1,40}|left|center|right")
# Written out in full: a link in an answer leads out of Strata, never to a page of it.
LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


@register.filter
def markdown(text: str) -> SafeString:
    """CommonMark with tables, strikethrough and maths. HTML in it is shown, not obeyed."""
    return mark_safe(_sanitised(_renderer.render(text)))  # noqa: S308


def _sanitised(html: str) -> str:
    return nh3.clean(
        html,
        tags=TAGS | MATHS,
        attributes=ATTRIBUTES,
        attribute_filter=_kept,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def _kept(tag: str, attribute: str, value: str) -> str | None:
    """The attribute's value as it may stand, None to drop it."""
    if attribute == "class":
        return " ".join(name for name in value.split() if CLASSES.fullmatch(name)) or None
    if attribute == "href":
        return value if LINK.match(value) else None
    return value


def _highlighted(code: str, language: str, attributes: str) -> str:
    """`code` with Pygments' classes; plain when the language is unknown or the block too long."""
    try:
        lexer = get_lexer_by_name(language) if len(code) <= LONGEST_HIGHLIGHT else None
    except ClassNotFound:
        lexer = None
    if lexer is None:
        return escapeHtml(code)
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def _image_as_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """An image would be fetched from elsewhere and tell its host who reads; a link waits."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    label = renderer.renderInlineAsText(token.children or [], options, env) or source
    return f'<a href="{escapeHtml(source)}">{escapeHtml(label)}</a>'


def _align_by_class(state: StateCore) -> None:
    """Columns are aligned by a class, since a style attribute would not pass the page's policy."""
    for token in state.tokens:
        style = token.attrs.pop("style", None)
        if style:
            token.attrSet("class", str(style).rpartition(":")[2])


def _maths(source: str, options: dict[str, bool]) -> str:
    """LaTeX as MathML; as code where it is too long or none."""
    display = "block" if options["display_mode"] else "inline"
    try:
        if len(source) <= LONGEST_MATHS:
            return convert(source, display=display)
    except Exception:
        # Whatever a model writes between dollars, and the converter has no one error for it.
        log.debug("maths_not_read", exc_info=True)
    return f"<code>{escapeHtml(source)}</code>"


def _made() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "highlight": _highlighted})
    made.enable(["table", "strikethrough"])
    made.use(dollarmath_plugin, allow_space=False, allow_digits=False, renderer=_maths)
    made.add_render_rule("image", _image_as_link)
    made.core.ruler.push("align_by_class", _align_by_class)
    return made


_renderer = _made()
