"""A persona template is refused or ends within bounds, whatever its author writes."""

import contextlib
import gc
import sys
import time
import tracemalloc
from collections.abc import Mapping

import pytest

from projects.persona_template import (
    EXAMPLE,
    MAX_OUTPUT_CHARS,
    PersonaTemplateError,
    check,
    render,
)

MAX_SECONDS = 0.2
MAX_BYTES = 20_000_000
# The largest values of a chat: see `MAX_MEMBERS` in chat/prompt/sections.py.
LARGEST: Mapping[str, object] = {
    "project": {"name": "B" * 120},
    "session": {"title": "C" * 200},
    "user": {"name": "A" * 150},
    "members": [f"{number:0150}" for number in range(50)],
    "date": "2026-11-21",
    "time": "14:05",
}


def nested(opening: str, middle: str, closing: str, depth: int) -> str:
    return opening * depth + middle + closing * depth


def loops(depth: int, body: str) -> str:
    return nested("{% for a in members %}", body, "{% endfor %}", depth)


def nesting() -> list[str]:
    return [
        *(loops(depth, body) for depth in (1, 2, 3, 5, 9, 400) for body in ("", "x", "{{ a }}")),
        *(nested("{% if members %}", "x", "{% endif %}", depth) for depth in (40, 100, 900)),
        *("{{ " + nested(left, "1", right, n) + " }}" for left, right in
          (("(", ")"), ("[", "]"), ("{1:", "}"), ("not ", ""), ("-", ""), ("members[", "]"))
          for n in (60, 900, 1_900, 20_000)),
        "{{ " + "1 if user else " * 1_900 + "2 }}",
        "{{ " + "user or " * 1_900 + "user }}",
        "{{ user" + ".name" * 1_900 + " }}",
        "{{ user" + "|lower" * 1_900 + " }}",
        "{% if user %}" + "{% elif user %}" * 1_900 + "{% endif %}",
        loops(2, "{% if 1 > 2 %}{% endif %}" * 500),
        loops(2, "{% for c in a if c == 'x' %}{% endfor %}"),
        "{% for a in session.title %}{% for b in session.title %}{{ b }}{% endfor %}{% endfor %}",
        "{% for a in members recursive %}{{ loop(members) }}{% endfor %}",
    ]  # fmt: skip


def recursion() -> list[str]:
    return [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(1) }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% macro m() %}" + "{{ m() }}" * 40 + "{% endmacro %}{{ m() }}",
        "{% block a %}{{ self.a() }}{% endblock %}",
        "{% call m() %}{% endcall %}",
        *(
            "{% set x = 'x' %}" + ("{% set x = x " + step + " %}") * 20 + loops(2, "{{ x }}")
            for step in ("~ x", "+ x", "* 9", "|replace('x', 'xxxxxxxxx')", "|center(9999999)")
        ),
        *("{% set x = 'xxxxxxxx' %}" + "{% set x = x ~ x %}" * n + "{{ x }}" for n in (9, 30, 400)),
        "{% set n = namespace(x='x') %}" + loops(2, "{% set n.x = n.x ~ n.x %}"),
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% extends 'x' %}",
        "{% filter upper %}" * 200 + "x" + "{% endfilter %}" * 200,
        "{% with x = members %}" * 300 + "{% endwith %}" * 300,
        "{% do members.append(members) %}",
        "{{ self }}{{ self() }}",
    ]


def arithmetic() -> list[str]:
    return [
        *(
            f"{{{{ {left} {operation} {right} }}}}"
            for operation in ("*", "**", "+", "-", "~", "//", "%", "/")
            for left, right in (
                ("'a'", "1000000000"),
                ("members", "1000000000"),
                ("[0]", "1000000000"),
                ("9", "999999999"),
                ("1", "0"),
            )
        ),
        "{{ 9**9**9**9 }}",
        "{{ '%999999999d' % 1 }}",
        *(f"{{{{ '%999999999d' is {test} }}}}" for test in ("even", "odd")),
        "{{ " + "9" * 10_000 + " }}",
        "{{ 0x" + "f" * 9_500 + " }}",
        "{{ 0x" + "f" * 9_500 + " == 0x" + "f" * 9_500 + " }}",
        "{{ 1e999 }}{{ 1_0.0e-99999 }}",
        "{{ [" + "members, " * 900 + "members] }}",
        "{{ [" + "session.title, " * 900 + "session.title] }}",
        "{{ ([" + "session.title, " * 900 + "session.title]|sort|join(session.title)) }}",
        "{{ members[0:1000000000] }}",
        "{{ members[::-1] }}",
        "{{ 'x' in [" + "'x' * 99, " * 400 + "] }}",
    ]


def filters() -> list[str]:
    padding = ("center(999999999)", "indent(99999999)", "format(1)", "wordwrap(1)", "batch(1)",
               "list", "tojson", "pprint", "urlize", "xmlattr", "groupby('a')", "map('upper')",
               "slice(99999999)", "string", "round(99999999)", "random", "attr('__class__')",
               "replace('', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
               "select", "truncate(999999999)", "filesizeformat", "unique", "sum", "dictsort",
               "join(attribute='__class__')", "sort(attribute='__class__')",
               "default(*members)", "join(**user)")  # fmt: skip
    joins = "|join(session.title)"
    return [
        *("{{ session.title|" + name + " }}" for name in padding),
        *("{{ session.title" + joins * n + " }}" for n in (1, 2, 3, 20)),
        *("{{ members" + joins + f"|{name}" * n + " }}" for n in (1, 20)
          for name in ("upper", "title", "sort", "sort|join", "lower", "trim", "capitalize")),
        loops(2, "{{ session.title|title|upper|sort|join }}"),
        loops(2, "{{ members|sort|join(session.title)|length }}"),
        loops(2, "{% if 'x' in members|join(session.title)|sort %}{% endif %}"),
        "{% for a in session.title|join(session.title) %}" + "{{ a }}" * 400 + "{% endfor %}",
        "{% for a in session.title|join(session.title) %}{% for b in members %}{% endfor %}"
        "{% endfor %}",
        "{% for x in [members|join(session.title)] %}{{ [" + "x," * 900 + "]|lower }}{% endfor %}",
        "{{ " + "[" * 30 + "'\\\\\\\\'" + "]|lower" * 30 + " }}",
        "{{ 'ΐ'" + "|upper|lower" * 900 + " }}",
    ]  # fmt: skip


def methods() -> list[str]:
    return [
        *("{{ session.title." + call + " }}" for call in (
            "center(999999999)", "ljust(999999999)", "zfill(999999999)", "expandtabs(99999999)",
            "join(session.title)", "format(session)", "replace('', session.title)", "split('')",
            "translate({67: 'x'})", "encode('utf-32')", "__class__", "__mul__(999999999)",
            "__len__()", "upper", "format_map(user)")),
        *("{{ " + call + " }}" for call in (
            "range(999999999)", "members.append(members)", "members.__class__.__mro__",
            "user.__init__.__globals__", "cycler('a')", "joiner()", "lipsum(999999)", "dict(a=1)",
            "user.update(user)", "user.pop('name')", "[].extend(members)", "namespace()",
            "().__class__.__base__.__subclasses__()", "members.__iter__().__next__()")),
    ]  # fmt: skip


def syntax() -> list[str]:
    return [
        *(unit * (19_000 // len(unit)) for unit in ("{{", "{%", "{#", "{{ 1 }}", "{% raw %}",
            "#}", "{% if 1 %}{% endif %}", "{{ '",
            '{{ "', "{{ a", "{%-", " -}}", "{# x #}", "\n{%+", "{")),
        "{{ " + "'a' " * 9_000 + "}}",
        "{{ " + " " * 9_500 + " }}",
        "{{ '" + "\\" * 9_500 + "' }}",
        "{{ '" + "a" * 19_500 + "' }}",
        "{{ " + "a" * 19_500 + " }}",
        "{% raw %}" + "{% endraw" * 4_000,
        "x" * 3_000_000,
        loops(2, "x" * 19_500),
        "{% for a in members %}" + "x" * 19_500 + "{% endfor %}",
    ]  # fmt: skip


HOSTILE = [*nesting(), *recursion(), *arithmetic(), *filters(), *methods(), *syntax()]
BOMB = "{% set x = 'x' * 999999999 %}"
# Each is false for the values of EXAMPLE, and true in a chat.
CONDITIONS = [
    "{% if project.name != 'Billing' %}#{% endif %}",
    "{% if session.title != 'Cutover' %}#{% endif %}",
    "{% if user.name != 'Ana' %}#{% endif %}",
    "{% if members|length > 2 %}#{% endif %}",
    "{% if members|length != 2 %}#{% endif %}",
    "{% if 'Cleo' in members %}#{% endif %}",
    "{% if 'Ana' not in members %}#{% endif %}",
    "{% if date > '2026-11-21' %}#{% endif %}",
    "{% if time != '14:05' %}#{% endif %}",
    "{% if members|first != 'Ana' %}#{% endif %}",
    "{% if members|last != 'Ben' %}#{% endif %}",
    "{% if not user.name == 'Ana' %}#{% endif %}",
    "{% if user.name == 'Ana' %}{% else %}#{% endif %}",
    "{% if user.name == 'Ana' %}{% elif members %}#{% endif %}",
    "{% if user.name == 'Ana' or members %}{% else %}#{% endif %}",
    "{% if user.name and session.title != 'Cutover' %}#{% endif %}",
    "{% for name in members if name > 'Ben' %}#{% endfor %}",
    "{% for name in members if name == 'Eve' %}{% else %}{% if 1 > 2 %}#{% endif %}{% endfor %}",
    "{% if (members|join)|length > 6 %}#{% endif %}",
    "{% if session.title|lower|title|trim != 'Cutover' %}#{% endif %}",
]


@pytest.fixture
def measured():
    """Yield a function that renders for both sizes of values, and checks time and memory."""

    def run(template: str) -> None:
        # A collection of what the tests before have left takes longer than the bound.
        gc.disable()
        for values in (EXAMPLE, LARGEST):
            began = time.process_time()
            with contextlib.suppress(PersonaTemplateError):
                assert len(render(template, values)) <= MAX_OUTPUT_CHARS
            assert time.process_time() - began < MAX_SECONDS
        tracemalloc.start()
        with contextlib.suppress(PersonaTemplateError):
            render(template, LARGEST)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MAX_BYTES

    yield run
    gc.enable()


def test_there_are_two_hundred_templates_and_twenty_conditions():
    assert len(set(HOSTILE)) >= 200
    assert len(set(CONDITIONS)) == 20


@pytest.mark.parametrize("template", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_template_ends_within_bounds(template, measured):
    measured(template)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_hides_no_bomb(condition, measured):
    template = condition.replace("#", BOMB)
    with pytest.raises(PersonaTemplateError):
        check(template)
    measured(template)
    measured(condition.replace("#", loops(1, "{{ session.title|title|sort|join(a) }}" * 300)))


def test_a_template_near_the_limit_of_recursion_is_refused_too(measured):
    limit = sys.getrecursionlimit()
    frame, depth = sys._getframe(), 0
    while frame:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + 120)
    try:
        with pytest.raises(PersonaTemplateError):
            check("{{ " + "(" * 40 + "1" + ")" * 40 + " }}")
    finally:
        sys.setrecursionlimit(limit)
