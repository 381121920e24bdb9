"""Fail queries of recall, prompts and cycles that do not name the project of each table.

Each use of a tenant table has to be bound to a project: its column compared with a value, or with
that of a table that is bound, here or in the query around it.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any

from pglast import ast, enums, parse_sql

from tests.server import ROOT
from tests.sharding.known_queries import KNOWN
from tests.sharding.tables import tenants

# Whose queries are held to it, and by which function each was put.
WATCHED = ("memory/recall/", "memory/layers/", "chat/prompt/builder.py", "chat/prompt/sections.py")
WATCHED += ("memory/prompt/sections.py",)
PRODUCT = ("chat/", "memory/", "projects/")
OWN = "tests/sharding/"
# Puts the queries of others.
FOR_OTHERS = "projects/core/database.py"
# Where psycopg puts a value, or one sign of percent.
PLACE = re.compile(r"%(?:s|%|\(\w+\)s)")
QUERIES = (ast.SelectStmt, ast.UpdateStmt, ast.DeleteStmt)


# What was refused. Whoever works on goes on after any error, so a test looks here at its end.
refused: list[str] = []


class Unbound(AssertionError):
    """A query that would have to ask every shard."""


def guard(execute, sql, params, many, context):
    """A wrapper for `connection.execute_wrapper`."""
    loose = unbound(sql) if isinstance(sql, str) else ()
    if loose and (place := _place()) and place not in KNOWN:
        refused.append(f"{place} asks for {', '.join(loose)} without a project: {sql}")
        raise Unbound(refused[-1])
    return execute(sql, params, many, context)


def _place() -> str:
    """The function of Strata that asks, if it is in what is watched, or below that; nothing where
    a test itself asks, in the midst of Strata's work.
    """
    frame = sys._getframe()
    place, watched = "", False
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(f"{ROOT}/"):
            inside = path.removeprefix(f"{ROOT}/")
            if not place and inside.startswith("tests/") and not inside.startswith(OWN):
                return ""
            if inside.startswith(PRODUCT) and inside != FOR_OTHERS:
                place = place or f"{inside}:{frame.f_code.co_name}"
                watched = watched or inside.startswith(WATCHED)
        frame = frame.f_back
    return place if watched else ""


@lru_cache(maxsize=4_096)
def unbound(sql: str) -> tuple[str, ...]:
    """The tenant tables of a statement, with its placeholders, that are not bound to a project."""
    numbers = count(1)
    plain = PLACE.sub(lambda item: "%" if item[0] == "%%" else f"${next(numbers)}", sql)
    problems: list[str] = []
    for statement in parse_sql(plain):
        _look(statement.stmt, None, problems)
    return tuple(problems)


@dataclass
class Level:
    """One SELECT, UPDATE or DELETE: its tables by alias, and whose projects are equal.

    `equal` has pairs of aliases; None stands for a value.
    """

    above: "Level | None"
    tables: dict[str, str] = field(default_factory=dict)
    equal: list[tuple[str, str | None]] = field(default_factory=list)

    def bound(self) -> set[str]:
        """The aliases whose project is known."""
        known = {item for item, other in self.equal if other is None}
        pairs = [(item, other) for item, other in self.equal if other is not None]
        pairs += [(other, item) for item, other in pairs]
        while more := {item for item, other in pairs if self._leads(other, known)} - known:
            known |= more
        return known

    def _leads(self, alias: str, known: set[str]) -> bool:
        """Whether that alias has its project: bound here, of a query around this one, which is
        looked at by itself, or of a subquery, as well.
        """
        return alias in known or alias not in self.tables


def _look(node: Any, above: Level | None, problems: list[str]) -> None:
    if isinstance(node, ast.SelectStmt) and node.op != enums.SetOperation.SETOP_NONE:
        for part in (node.larg, node.rarg):
            _look(part, above, problems)
        return
    level = Level(above)
    if isinstance(node, QUERIES):
        for source in _sources(node):
            _take(source, level)
        _compare(node.whereClause, level)
        bound, keys = level.bound(), tenants()
        problems += [
            table for alias, table in level.tables.items() if table in keys and alias not in bound
        ]
    for inner in _queries(node):
        _look(inner, level, problems)


def _sources(node: Any) -> list[Any]:
    if isinstance(node, ast.SelectStmt):
        return list(node.fromClause or ())
    more = node.fromClause if isinstance(node, ast.UpdateStmt) else node.usingClause
    return [node.relation, *(more or ())]


def _take(source: Any, level: Level) -> None:
    if isinstance(source, ast.RangeVar):
        level.tables[source.alias.aliasname if source.alias else source.relname] = source.relname
    elif isinstance(source, ast.JoinExpr):
        _take(source.larg, level)
        _take(source.rarg, level)
        _compare(source.quals, level)


def _compare(condition: Any, level: Level) -> None:
    """Notes what a condition says of projects, as far as it says it for every row."""
    if isinstance(condition, ast.BoolExpr):
        if condition.boolop == enums.BoolExprType.AND_EXPR:
            for part in condition.args:
                _compare(part, level)
    elif isinstance(condition, ast.BooleanTest):
        if condition.booltesttype == enums.BoolTestType.IS_TRUE:
            _compare(condition.arg, level)
    elif isinstance(condition, ast.A_Expr):
        if condition.name[-1].sval == "=":
            first_item, other = _whose(condition.lexpr, level), _whose(condition.rexpr, level)
            if first_item or other:
                first, second = (first_item, other) if first_item else (other, first_item)
                level.equal.append((str(first), second))
    elif isinstance(condition, ast.SubLink) and (first_item := _whose(condition.testexpr, level)):
        level.equal.append((first_item, None))


def _whose(expression: Any, level: Level) -> str | None:
    """The alias of the table whose project that is, None for anything else."""
    if not isinstance(expression, ast.ColumnRef):
        return None
    *of, column = (getattr(item, "sval", "*") for item in expression.fields)
    alias = of[-1] if of else next(iter(level.tables), "")
    table, around = None, level
    while table is None and around is not None:
        table, around = around.tables.get(alias), around.above
    key = "id" if table == "projects_project" else "project_id"
    return alias if column == key else None


def _queries(node: Any) -> Iterator[Any]:
    """The queries just inside a node."""
    for name in node:
        value = getattr(node, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, QUERIES):
                yield item
            elif isinstance(item, ast.Node):
                yield from _queries(item)
