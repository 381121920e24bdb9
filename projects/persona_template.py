"""A project's persona: a small template that can say who is there, and do nothing else.

`{{ project.name }}`, `{{ session.title }}`, `{{ user.name }}`, `{{ date }}`, `{{ time }}` and
`{% for name in members %}`; Jinja's expressions in a sandbox, over plain values.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

# Characters. A loop over a loop could write without end.
LONGEST = 40_000
# Loops inside loops take time without end.
DEEPEST_LOOP = 2
# What a text may go through; others pad it to any length.
FILTERS = (
    *("capitalize", "default", "first", "join", "last", "length"),
    *("lower", "sort", "title", "trim", "upper"),
)


class Sandbox(ImmutableSandboxedEnvironment):
    """No attribute that begins with an underscore, no call, no change; and no huge numbers."""

    intercepted_binops = frozenset(["*", "**", "%"])

    def call_binop(self, context, operator, left, right):
        if operator == "**" or isinstance(left, str) or isinstance(right, str):
            raise SecurityError(_("“%(operator)s” is not allowed here.") % {"operator": operator})
        return super().call_binop(context, operator, left, right)


_sandbox = Sandbox(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False)
_sandbox.globals = {}
_sandbox.filters = {name: _sandbox.filters[name] for name in FILTERS}

# What a template is tried with when it is saved: of the same shape as the real thing.
EXAMPLE: Mapping[str, object] = {
    "project": {"name": "Billing"},
    "session": {"title": "Cutover"},
    "user": {"name": "Ana"},
    "members": ["Ana", "Ben"],
    "date": "2026-11-21",
    "time": "14:05",
}


@dataclass
class Mistake(Exception):
    """What is wrong with a template, and on which line; `line` is None where it is not known."""

    reason: str
    line: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return self.reason
        return _("Line %(line)s: %(reason)s") % {"line": self.line, "reason": self.reason}


def render(template: str, values: Mapping[str, object]) -> str:
    """The text that `template` gives with `values`, of the names in EXAMPLE. Raises Mistake."""
    written = ""
    try:
        _refuse_deep_loops(_sandbox.parse(template))
        for piece in _sandbox.from_string(template).generate(values):
            written += piece
            if len(written) > LONGEST:
                raise Mistake(_("It writes more than %(most)s characters.") % {"most": LONGEST})
    except TemplateSyntaxError as error:
        raise Mistake(_sentence(error.message), error.lineno) from error
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise Mistake(_sentence(str(error)), _line_of(error)) from error
    return written


def check(template: str) -> None:
    """Raises Mistake, with the line, if `template` could not be rendered in a chat."""
    render(template, EXAMPLE)


def _refuse_deep_loops(node: nodes.Node, depth: int = 0) -> None:
    depth += isinstance(node, nodes.For)
    if depth > DEEPEST_LOOP:
        raise Mistake(_("There are too many loops inside each other."), node.lineno)
    for child in node.iter_child_nodes():
        _refuse_deep_loops(child, depth)


def _sentence(message: str | None) -> str:
    text = (message or _("It cannot be read")).strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _line_of(error: BaseException) -> int | None:
    """The template's line in which `error` was raised: Jinja writes it into the traceback."""
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == "<template>":
            line = step.tb_lineno
        step = step.tb_next
    return line
