"""`|markdown`: Markdown as safe HTML.

nh3 sanitises the rendered HTML, so that errors of the renderer or of a lexer are harmless. Text may
be hostile, so each step has a limit. Text above the limit is shown as plain text.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import chain

import nh3
from django import template
from django.utils.html import strip_tags
from django.utils.safestring import SafeString, mark_safe
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.dollarmath.index import math_inline_dollar
from pygments import format as format_tokens
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.lexers.shell import BashLexer
from pygments.token import String

from chat.markdown_budgets import html_cache, limit_blocks
from chat.markdown_syntax import MAX_MATH_CHARS, add_blocks, add_inlines

log = logging.getLogger(__name__)
register = template.Library()

# The maximum length of a text that is rendered. Hostile Markdown takes up to 15 µs per character.
MAX_MARKDOWN_CHARS = 40_000
# Most lexers take quadratic time for hostile text: 0.7 s for 8,000 characters of Python. Therefore
# code is passed to them in chunks of at most LEXER_CHUNK_CHARS, cut between lines, which takes up
# to 0.1 s each. A string or comment that spans two chunks may get wrong colours.
LEXER_CHUNK_CHARS = 1_000
# The maximum number of characters of code that are highlighted in one message.
MAX_HIGHLIGHT_CHARS = 10_000
# The languages that are highlighted. tests/bounds/test_markup_bounds.py measures their lexers.
# Scala and reStructuredText are left out because they take exponential time, HTTP and PostgreSQL
# because they call other lexers.
LEXERS = (
    *("bash", "batch", "c", "clojure", "cmake", "console", "cpp", "csharp", "css", "dart", "diff"),
    *("docker", "elixir", "erlang", "fsharp", "go", "graphql", "groovy", "haskell", "html"),
    *("ini", "java", "javascript", "json", "jsx", "julia", "kotlin", "latex", "less", "lua"),
    *("makefile", "markdown", "nginx", "objective-c", "ocaml", "perl", "php", "powershell"),
    *("properties", "protobuf", "pycon", "python", "r", "ruby", "rust", "scss", "sql", "swift"),
    *("terraform", "toml", "tsx", "typescript", "xml", "yaml", "zig"),
)
TAGS = set(
    """p br hr h1 h2 h3 h4 h5 h6 em strong s blockquote ul ol li a code pre span table thead
        tbody tr th td sup""".split()
)
# The elements of MathML that contain no HTML. https://www.w3.org/TR/mathml-core/
MATH_TAGS = set(
    """math mrow mi mn mo mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd
        mspace mpadded mphantom""".split()
)
LEXER_NAMES = {
    alias: name
    for _, aliases, _, _ in get_all_lexers(plugins=False)
    for name in set(aliases) & set(LEXERS)
    for alias in aliases
}
# Replaces Pygments' rule for $'…', which takes exponential time, also in dependent lexers.
BashLexer.tokens["data"] = [
    (r"(?s)\$'(?:\\.|[^'\\])*'", String.Single) if rule[0].startswith(r"(?s)\$'") else rule
    for rule in BashLexer.tokens["data"]
]
# The maximum number of characters of formulas that are converted in one message.
MAX_MESSAGE_MATH_CHARS = 20_000
# The types of maths tokens, and the types of tokens that show the same text as code.
CODE_FOR_MATHS = {
    "math_inline": "code_inline",
    "math_display": "code_inline",
    "math_block": "code_block",
}
# Shared by all texts, because creating it takes longer than highlighting a few lines.
FORMATTER = HtmlFormatter(nowrap=True)
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "span": {"class"},
    "th": {"class"},
    "td": {"class"},
    "ol": {"start"},
    "li": {"class"},
    "p": {"class"},
    "math": {"display"},
    "mi": {"mathvariant"},
    "mo": {"stretchy", "fence", "form"},
    "mfrac": {"linethickness"},
    "mtd": {"columnalign"},
}
# The allowed classes: Pygments' short names, languages of code blocks, column alignments, task
# lists and footnotes.
CLASS_NAME = re.compile(
    r"[a-z][a-z0-9]{0,2}|language-[\w+#.-]{1,40}|left|center|right|task|footnote"
)
# Environments that the converter does not support. They are replaced by arrays, which look similar.
ALIGNED = re.compile(r"\\(begin|end)\{(?:aligned|align\*?|split|gathered)\}")
# Absolute URLs only, so that a link in a reply never leads to a page of Strata.
LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


@register.filter
def markdown(text: str) -> SafeString:
    """Render CommonMark with tables, strikethrough and the extensions of chat.markdown_syntax. HTML
    is shown as text.

    A text of more than MAX_MARKDOWN_CHARS is shown without formatting.
    """
    return mark_safe(html_cache.get(text, _render))  # noqa: S308


@register.filter
def without_markdown(text: str) -> str:
    """Return the text on one line, without Markdown markers."""
    return " ".join(unescape(strip_tags(markdown(text))).split())


def _render(text: str) -> str:
    if len(text) > MAX_MARKDOWN_CHARS:
        return f"<pre><code>{escapeHtml(text)}</code></pre>"
    return sanitise(_renderer.render(text, {}))


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
    """Return the permitted part of the value, or None to remove the attribute."""
    if attribute == "class":
        return " ".join(name for name in value.split() if CLASS_NAME.fullmatch(name)) or None
    if attribute == "href":
        return value if LINK.match(value) else None
    return value


def _highlight(code: str, label: str, attributes: str) -> str:
    """Return `code` as HTML with Pygments' classes; "" for a language that is not supported."""
    name = LEXER_NAMES.get(label.lower())
    return highlight(code, name) if name else ""


def highlight(code: str, name: str) -> str:
    """Return `code` as HTML with Pygments' classes. `name` must be in LEXERS."""
    # Without `handlecodeblocks`, because the Markdown lexer would call other lexers.
    lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False, handlecodeblocks=False)
    tokens = chain.from_iterable(map(lexer.get_tokens, _chunks(code)))
    return format_tokens(tokens, FORMATTER)


def _chunks(code: str) -> Iterator[str]:
    """Yield `code` in chunks, cut between paragraphs if possible, otherwise between lines."""
    start = 0
    while len(code) - start > LEXER_CHUNK_CHARS:
        limit = start + LEXER_CHUNK_CHARS
        ends = (
            code.rfind(mark, limit - LEXER_CHUNK_CHARS // 2, limit) + len(mark)
            for mark in ("\n\n", "\n")
        )
        end = next((end for end in ends if end > start + 2), limit)
        yield code[start:end]
        start = end
    yield code[start:]


def _limit_code_and_maths(state: StateCore) -> None:
    """Show code and formulas as plain text once the message's limit is reached."""
    code_chars = math_chars = 0
    for token in chain.from_iterable((token, *(token.children or ())) for token in state.tokens):
        if token.type == "fence":
            code_chars += len(token.content)
            if code_chars > MAX_HIGHLIGHT_CHARS:
                token.info = ""
        elif token.type in CODE_FOR_MATHS:
            math_chars += len(token.content)
            if math_chars > MAX_MESSAGE_MATH_CHARS:
                token.type = CODE_FOR_MATHS[token.type]


def _image_as_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Render an image as a link, because loading it would reveal the reader to another host."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    label = renderer.renderInlineAsText(token.children or [], options, env) or source
    return f'<a href="{escapeHtml(source)}">{escapeHtml(label)}</a>'


def _align_by_class(state: StateCore) -> None:
    """Align columns by class, because the content security policy blocks style attributes."""
    for token in state.tokens:
        style = token.attrs.pop("style", None)
        if style:
            token.attrSet("class", str(style).rpartition(":")[2])


def _render_math(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Render LaTeX as MathML, or as code if it is too long or invalid."""
    token = tokens[index]
    source = token.content.strip()
    try:
        if len(source) <= MAX_MATH_CHARS:
            display = "inline" if token.type == "math_inline" else "block"
            arrays = {"begin": r"\begin{array}{rl}", "end": r"\end{array}"}
            return convert(ALIGNED.sub(lambda match: arrays[match[1]], source), display=display)
    except Exception:
        # Catch every error: models write anything, and the converter's errors have no common class.
        log.debug("math_render_failed", exc_info=True)
    return f"<code>{escapeHtml(source)}</code>"


_renderer = MarkdownIt("commonmark", {"html": False, "highlight": _highlight})
_renderer.enable(["table", "strikethrough"])
_renderer.inline.ruler.before(
    "escape", "math_inline", math_inline_dollar(allow_space=False, allow_digits=False)
)
limit_blocks(_renderer)
add_blocks(_renderer)
add_inlines(_renderer)
for token_type in CODE_FOR_MATHS:
    _renderer.add_render_rule(token_type, _render_math)
_renderer.add_render_rule("image", _image_as_link)
_renderer.core.ruler.push("align_by_class", _align_by_class)
_renderer.core.ruler.push("limit_code_and_maths", _limit_code_and_maths)
