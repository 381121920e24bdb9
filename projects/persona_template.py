"""A project's persona: a small template that can print a few values and do nothing else.

`{{ project.name }}`, `{{ session.title }}`, `{{ user.name }}`, `{{ date }}`, `{{ time }}` and
`{% for name in members %}`; Jinja's expressions in a sandbox, over plain values.
"""

from collections.abc import Mapping

from django.utils.translation import gettext as _
from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

from projects.core.errors import InvalidInputError

# Nested loops could write without end.
MAX_OUTPUT_CHARS = 40_000
# Each level multiplies the time.
MAX_LOOP_DEPTH = 2
# Jinja's other filters can pad a text to any length.
FILTERS = (
    *("capitalize", "default", "first", "join", "last", "length"),
    *("lower", "sort", "title", "trim", "upper"),
)


class PersonaSandbox(ImmutableSandboxedEnvironment):
    """No attributes that begin with an underscore, no calls, no changes, no huge numbers."""

    intercepted_binops = frozenset(["*", "**", "%"])

    def call_binop(self, context, operator, left, right):
        if operator == "**" or isinstance(left, str) or isinstance(right, str):
            raise SecurityError(_("“%(operator)s” is not allowed here.") % {"operator": operator})
        return super().call_binop(context, operator, left, right)


sandbox = PersonaSandbox(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False)
sandbox.globals = {}
sandbox.filters = {name: sandbox.filters[name] for name in FILTERS}

# Values of the same shape as in a chat, with which a template is checked when it is saved.
EXAMPLE: Mapping[str, object] = {
    "project": {"name": "Billing"},
    "session": {"title": "Cutover"},
    "user": {"name": "Ana"},
    "members": ["Ana", "Ben"],
    "date": "2026-11-21",
    "time": "14:05",
}


class PersonaTemplateError(InvalidInputError):
    """An error in a template. `line` is its line, None if that is unknown."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason, self.line = reason, line
        if line is not None:
            reason = _("Line %(line)s: %(reason)s") % {"line": line, "reason": reason}
        super().__init__(reason, field="instructions")


def render(template: str, values: Mapping[str, object]) -> str:
    """Return `template` filled with `values`, which have the names in EXAMPLE.

    Raises `PersonaTemplateError`.
    """
    text = ""
    try:
        _check_loop_depth(sandbox.parse(template))
        for part in sandbox.from_string(template).generate(values):
            text += part
            if len(text) > MAX_OUTPUT_CHARS:
                reason = _("It writes more than %(most)s characters.")
                raise PersonaTemplateError(reason % {"most": MAX_OUTPUT_CHARS})
    except TemplateSyntaxError as error:
        raise PersonaTemplateError(_sentence(error.message), error.lineno) from error
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise PersonaTemplateError(_sentence(str(error)), _line_of(error)) from error
    return text


def check(template: str) -> None:
    """Raise `PersonaTemplateError` if `template` could not be rendered in a chat."""
    render(template, EXAMPLE)


def _check_loop_depth(node: nodes.Node, depth: int = 0) -> None:
    depth += isinstance(node, nodes.For)
    if depth > MAX_LOOP_DEPTH:
        raise PersonaTemplateError(_("There are too many loops inside each other."), node.lineno)
    for child in node.iter_child_nodes():
        _check_loop_depth(child, depth)


def _sentence(message: str | None) -> str:
    text = (message or _("It cannot be read")).strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _line_of(error: BaseException) -> int | None:
    """Return the template's line that raised `error`: Jinja writes it into the traceback."""
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == "<template>":
            line = step.tb_lineno
        step = step.tb_next
    return line
