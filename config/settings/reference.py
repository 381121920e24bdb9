"""Generates `.env.example` and the tables in the documentation from the declared variables.

To generate them, run `python -m config.settings.reference`.
"""

import re
from collections.abc import Iterator
from typing import Any

from config.settings.api import LimitVariables
from config.settings.auth import AccountVariables
from config.settings.database import DatabaseVariables
from config.settings.env import BASE_DIR, Variables, declaration
from config.settings.files import FileVariables
from config.settings.models import ModelVariables, RecallVariables
from config.settings.observability import LogVariables
from config.settings.security import ServerVariables

GROUPS: tuple[type[Variables], ...] = (
    ServerVariables,
    ModelVariables,
    RecallVariables,
    DatabaseVariables,
    FileVariables,
    AccountVariables,
    LimitVariables,
    LogVariables,
)
HEADER = "| variable | default | |\n| --- | --- | --- |\n"
BEGIN, END = "<!-- settings -->\n", "<!-- end of settings -->\n"


def declared(group: type[Variables]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the name, the description and the declaration of each variable of `group`."""
    for field in group.model_fields.values():
        yield str(field.validation_alias), field.description or "", declaration(field)


def env_example() -> str:
    """Return the text of `.env.example`: each variable as a comment, with an example value."""
    lines = ["# Copy to .env beside manage.py. Every line is optional; see docs/configuration.md."]
    for group in GROUPS:
        lines += ["", f"# {group.title}"]
        for name, description, extra in declared(group):
            example = extra["example"] or extra["default"].strip("`")
            value = "" if extra["secret"] and not extra["example"] else example
            lines += [f"# {description.replace('`', '')}", f"#{name}={value}"]
    return "\n".join(lines) + "\n"


def _row(variable: tuple[str, str, dict[str, Any]]) -> str:
    name, description, extra = variable
    file = " Also `…_FILE`." if extra["secret"] else ""
    return f"| `{name}` | {extra['default']} | {description}{file} |\n"


def inserted(text: str, table: str) -> str:
    """Return `text` with `table` between its markers."""
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    return re.sub(pattern, lambda _: f"{BEGIN}\n{table}\n{END}", text, flags=re.DOTALL)


def documents() -> dict[str, str]:
    """Return the expected content of the generated files by path."""
    # README.md lists the variables that most installations set, docs/configuration.md all of them.
    rows = [row for group in GROUPS for row in declared(group) if row[2]["in_readme"]]
    groups = (
        f"## {group.title}\n\n{HEADER}{''.join(map(_row, declared(group)))}" for group in GROUPS
    )
    tables = {
        "README.md": HEADER + "".join(map(_row, rows)),
        "docs/configuration.md": "\n".join(groups),
    }
    return {".env.example": env_example()} | {
        path: inserted((BASE_DIR / path).read_text(), table) for path, table in tables.items()
    }


if __name__ == "__main__":
    for path, text in documents().items():
        (BASE_DIR / path).write_text(text)
