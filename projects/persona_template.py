"""Templates for a project's instructions. They can print a few values and do nothing else.

Supported are `{{ project.name }}`, `{{ session.title }}`, `{{ user.name }}`, `{{ date }}`, `{{ time
}}`, `{{ context.KEY }}` for the project's own texts, `{% for name in members %}`, `{% if %}` and a
few filters. Jinja only parses the template; this module evaluates the nodes, because Jinja's
sandbox limits neither time nor memory.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from jinja2 import (
    Environment,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
    Undefined,
    nodes,
)
from jinja2.filters import do_title

from projects.core.errors import InvalidInputError
from projects.core.text import translate_reason

# The maximum length of a template. Checked here, because imports do not run the model's validators.
MAX_TEMPLATE_CHARS = 20_000
MAX_OUTPUT_CHARS = 40_000
# The maximum number of Jinja's tokens: texts, names, dots, spaces and operators.
MAX_TEMPLATE_TOKENS = 4_000
MAX_NESTING_DEPTH = 50
MAX_LOOP_DEPTH = 2
# The maximum number of steps: one for each node, and for each CHARS_PER_STEP of its value.
MAX_STEPS = 10_000
CHARS_PER_STEP = 50
# The maximum length of an unknown name in an error message.
MAX_NAME_CHARS = 100

_QUOTED = re.compile(r"'([^'“”]{0,200})'")
# The frequent messages of Jinja. Listed here so that `makemessages` adds them to the catalogue.
JINJA_MESSAGES = (
    gettext_noop("%s is undefined."),
    gettext_noop("Unexpected end of template, expected %s."),
    gettext_noop("Expected token %s, got %s."),
    gettext_noop("Unexpected %s."),
    gettext_noop("Unexpected char %s at %s."),
    gettext_noop(
        "Unexpected end of template. Jinja was looking for the following tags: %s. "
        "The innermost block that needs to be closed is %s."
    ),
    gettext_noop(
        "Unexpected end of template. Jinja was looking for the following tags: %s or %s. "
        "The innermost block that needs to be closed is %s."
    ),
    gettext_noop(
        "Unexpected end of template. Jinja was looking for the following tags: %s or %s or %s. "
        "The innermost block that needs to be closed is %s."
    ),
    gettext_noop("Encountered unknown tag %s."),
)

# The permitted nodes, which are also checked in branches that are not taken. Assignments, macros,
# calls, arithmetic and slices are not permitted, because they could make a value or the running
# time grow without limit.
ALLOWED_NODES = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For),
    *(nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Getattr, nodes.Getitem),
    *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr),
    nodes.Keyword,
)

Scope = Mapping[str, object]


class _AnyText(dict):
    """A mapping that returns a text for every key."""

    def __missing__(self, key: str) -> str:
        return "text"


# Example values in the same form as in a chat. Templates are checked with them when they are saved.
EXAMPLE: Scope = {
    "project": {"name": "Billing"},
    "session": {"title": "Cutover"},
    "user": {"name": "Ana"},
    "members": ["Ana", "Ben"],
    "date": "2026-11-21",
    "time": "14:05",
    "context": _AnyText(),
}

_environment = Environment(autoescape=False, keep_trailing_newline=False)  # noqa: S701


class PersonaTemplateError(InvalidInputError):
    """An error in a template. `line` is the line of the error, None if it is unknown."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason, self.line = reason, line
        if line is not None:
            reason = _("Line %(line)s: %(reason)s") % {"line": line, "reason": reason}
        super().__init__(reason, field="instructions")


def render(template: str, values: Scope) -> str:
    """Return `template` filled in with `values`, which must have the same names as EXAMPLE.

    Raises `PersonaTemplateError`.
    """
    tree = _parse(template)
    rendering = _Rendering()
    try:
        return "".join(rendering.write(tree.body, values))
    except (TemplateError, TypeError, ValueError, LookupError) as error:
        raise PersonaTemplateError(_sentence(str(error)), rendering.line) from error


def check(template: str, context: Mapping[str, str] | None = None) -> None:
    """Raise `PersonaTemplateError` if `template` could not be rendered in a chat.

    `context` is the project's custom context. If it is None, every key is accepted.
    """
    render(template, EXAMPLE if context is None else {**EXAMPLE, "context": context})


def _parse(template: str) -> nodes.Template:
    """Return the syntax tree of a template that contains only permitted nodes."""
    too_long = PersonaTemplateError(_("The template is too long."))
    if len(template) > MAX_TEMPLATE_CHARS:
        raise too_long
    try:
        if next(islice(_environment.lex(template), MAX_TEMPLATE_TOKENS, None), None):
            raise too_long
        tree = _environment.parse(template)
    except TemplateSyntaxError as error:
        raise PersonaTemplateError(_sentence(error.message), error.lineno) from error
    except (ValueError, SyntaxError, RecursionError) as error:
        # Jinja passes numbers with digits of other scripts to Python's parser.
        raise PersonaTemplateError(_sentence("")) from error
    _check_nodes(tree)
    return tree


def _check_nodes(tree: nodes.Template) -> None:
    """Check each node, without recursion: a chain of filters can be 2,000 nodes deep."""
    waiting: list[tuple[nodes.Node, int, int]] = [(tree, 0, 0)]
    while waiting:
        node, depth, loops = waiting.pop()
        loops += isinstance(node, nodes.For)
        if reason := _reason_against(node, depth, loops):
            raise PersonaTemplateError(reason, node.lineno)
        waiting += [(child, depth + 1, loops) for child in node.iter_child_nodes()]


def _reason_against(node: nodes.Node, depth: int, loops: int) -> str:
    if depth > MAX_NESTING_DEPTH:
        return _("The template is nested too deeply.")
    if loops > MAX_LOOP_DEPTH:
        return _("The loops are nested too deeply.")
    name = type(node).__name__
    is_allowed = isinstance(node, ALLOWED_NODES)
    match node:
        case nodes.Filter() | nodes.Test():
            name = node.name
            known = FILTERS if isinstance(node, nodes.Filter) else TESTS
            is_allowed = name in known and not (node.dyn_args or node.dyn_kwargs)
        case nodes.For():
            is_allowed = isinstance(node.target, nodes.Name) and not node.recursive
    return "" if is_allowed else _("“%(name)s” is not allowed in a template.") % {"name": name}


class _Rendering:
    """One evaluation of a syntax tree: the steps and characters so far, and the current line.

    A value is a string, a number or a flat list of these. Variables can also be mappings.
    """

    def __init__(self) -> None:
        self.line: int | None = None
        self.steps = self.chars = 0

    def write(self, body: Sequence[nodes.Node], scope: Scope) -> Iterator[str]:
        for node in body:
            self.line = node.lineno
            self.spend(1)
            match node:
                case nodes.TemplateData():
                    yield self.printed(node.data)
                case nodes.Output():
                    yield from self.write(node.nodes, scope)
                case nodes.If():
                    yield from self.write(self.branch(node, scope), scope)
                case nodes.For():
                    yield from self.loop(node, scope)
                case _:
                    yield self.printed(str(self.value(node, scope)))

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise PersonaTemplateError(_("The template is too complex."), self.line)

    def printed(self, text: str) -> str:
        self.chars += len(text)
        if self.chars > MAX_OUTPUT_CHARS:
            raise PersonaTemplateError(_too_much_output())
        return text

    def branch(self, node: nodes.If, scope: Scope) -> Sequence[nodes.Node]:
        for choice in (node, *node.elif_):
            if self.value(choice.test, scope):
                return choice.body
        return node.else_

    def loop(self, node: nodes.For, scope: Scope) -> Iterator[str]:
        name = node.target.name  # type: ignore[attr-defined]
        items = list(_sequence(self.value(node.iter, scope)))
        if node.test is not None:
            items = [it for it in items if self.value(node.test, {**scope, name: it})]
        for index, item in enumerate(items):
            loop = {
                "index": index + 1,
                "index0": index,
                "first": index == 0,
                "last": index == len(items) - 1,
                "length": len(items),
            }
            self.spend(1)
            yield from self.write(node.body, {**scope, name: item, "loop": loop})
        if not items:
            yield from self.write(node.else_, scope)

    def value(self, node: nodes.Node, scope: Scope) -> Any:
        """Evaluate an expression. Counts as one step, and more for a long value."""
        result = self._evaluate(node, scope)
        size = len(result) if isinstance(result, str | list) else 0
        self.spend(1 + size // CHARS_PER_STEP)
        return result

    def _evaluate(self, node: nodes.Node, scope: Scope) -> Any:
        match node:
            case nodes.Const():
                return node.value
            case nodes.Name():
                return scope.get(node.name, StrictUndefined(name=node.name))
            case nodes.Getattr():
                return _member(self.value(node.node, scope), node.attr)
            case nodes.Getitem():
                return _member(self.value(node.node, scope), self.value(node.arg, scope))
            case nodes.List() | nodes.Tuple():
                items = [self.value(item, scope) for item in node.items]
                if any(isinstance(item, list | Mapping) for item in items):
                    raise TypeError(_("A list cannot contain lists."))
                return items
            case nodes.And():
                return self.value(node.left, scope) and self.value(node.right, scope)
            case nodes.Or():
                return self.value(node.left, scope) or self.value(node.right, scope)
            case nodes.Not():
                return not self.value(node.node, scope)
            case nodes.CondExpr():
                if self.value(node.test, scope):
                    return self.value(node.expr1, scope)
                return self.value(node.expr2, scope) if node.expr2 else ""
            case nodes.Compare():
                return self._compare(node, scope)
            case nodes.Filter() | nodes.Test():
                known = FILTERS if isinstance(node, nodes.Filter) else TESTS
                operands: list[Any] = [node.node, *node.args]
                named = {str(it.key): self.value(it.value, scope) for it in node.kwargs}
                return known[node.name](*(self.value(it, scope) for it in operands), **named)
        raise TypeError(type(node).__name__)

    def _compare(self, node: nodes.Compare, scope: Scope) -> bool:
        left = self.value(node.expr, scope)
        for operand in node.ops:
            right = self.value(operand.expr, scope)
            if not COMPARISONS[operand.op](left, right):
                return False
            left = right
        return True


def _member(value: Any, key: Any) -> Any:
    if isinstance(value, Undefined):
        str(value)  # Raises the error that names the variable.
    is_known = isinstance(key, str) if isinstance(value, Mapping) else isinstance(key, int)
    if is_known and isinstance(value, str | list | Mapping):
        with suppress(LookupError):
            return value[key]
    return StrictUndefined(name=str(key)[:MAX_NAME_CHARS])


def _sequence(value: Any) -> Sequence[Any]:
    if isinstance(value, str | list):
        return value
    if isinstance(value, Mapping | Undefined):
        return list(value)
    raise TypeError(_("This is not a list."))


def _join(value: Any, separator: Any = "") -> str:
    texts = [str(item) for item in _sequence(value)]
    if sum(map(len, texts)) + len(texts) * len(str(separator)) > MAX_OUTPUT_CHARS:
        raise ValueError(_too_much_output())
    return str(separator).join(texts)


def _sort(value: Any, reverse: bool = False, case_sensitive: bool = False) -> list[Any]:
    def key(item: Any) -> Any:
        return item.casefold() if isinstance(item, str) and not case_sensitive else item

    return sorted(_sequence(value), key=key, reverse=bool(reverse))


def _default(value: Any, default: Any = "", boolean: bool = False) -> Any:
    return default if isinstance(value, Undefined) or (boolean and not value) else value


def _remainder(value: Any) -> Any:
    # For a text, `%` would replace its placeholders, which can have any width.
    if isinstance(value, str):
        raise TypeError(_("This is not a number."))
    return value % 2


def _too_much_output() -> str:
    return _("The result is longer than %(most)s characters.") % {"most": MAX_OUTPUT_CHARS}


# Filters and tests of Jinja that are supported. Those that can pad a text to any length are not.
FILTERS: Mapping[str, Callable[..., Any]] = {
    "capitalize": lambda value: str(value).capitalize(),
    "default": _default,
    "first": lambda value: _member(list(_sequence(value)), 0),
    "join": _join,
    "last": lambda value: _member(list(_sequence(value)), -1),
    "length": lambda value: len(_sequence(value)),
    "lower": lambda value: str(value).lower(),
    "sort": _sort,
    "title": lambda value: do_title(str(value)),
    "trim": lambda value, chars=None: str(value).strip(chars),
    "upper": lambda value: str(value).upper(),
}
TESTS: Mapping[str, Callable[..., bool]] = {
    "defined": lambda value: not isinstance(value, Undefined),
    "undefined": lambda value: isinstance(value, Undefined),
    "none": lambda value: value is None,
    "odd": lambda value: _remainder(value) == 1,
    "even": lambda value: _remainder(value) == 0,
}
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gteq": operator.ge,
    "lt": operator.lt,
    "lteq": operator.le,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}


def _sentence(message: str | None) -> str:
    """Return an error message of Jinja as a sentence, translated if it is a frequent one."""
    text = (message or _("The template could not be read")).strip().rstrip(".")
    text = _QUOTED.sub(r"“\1”", text)
    return translate_reason(f"{text[:1].upper()}{text[1:]}.")
