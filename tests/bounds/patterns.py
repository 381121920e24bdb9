"""Print every regular expression that the product compiles, as JSON.

Each is a list of the call's place, the pattern, its flags and whether it is of bytes. Runs in a
process of its own, because patterns are compiled when their modules are imported.
"""

import ast
import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import django
from django.urls import URLResolver, get_resolver

ROOT = Path(__file__).resolve().parents[2]
APPS = ("config", "projects", "chat", "memory")
# It searches the README of the project when the table of settings is written.
EXCLUDED = "config/settings/reference.py"
FUNCTIONS = ("compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub")
recorded: dict[tuple[str, str, int, bool], None] = {}
compile_pattern = re.compile


def record(pattern: str | bytes, flags: int = 0) -> re.Pattern:
    frame = sys._getframe(1)
    path = Path(frame.f_code.co_filename)
    if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in APPS:
        add(f"{path.relative_to(ROOT)}:{frame.f_lineno}", pattern, flags)
    return compile_pattern(pattern, flags)


def add(site: str, pattern: str | bytes, flags: int = 0) -> None:
    is_bytes = isinstance(pattern, bytes)
    recorded[site, pattern.decode() if is_bytes else pattern, int(flags), is_bytes] = None


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Yield the file and the node of each call of a function of `re` in the product."""
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            if path == ROOT / EXCLUDED:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id == "re"
                    and node.func.attr in FUNCTIONS
                ):
                    yield str(path.relative_to(ROOT)), node


def add_routes(resolver: URLResolver) -> None:
    """Add the patterns of addresses, which Django compiles on first use."""
    for route in resolver.url_patterns:
        add(f"address {route.pattern}", route.pattern.regex.pattern)
        if isinstance(route, URLResolver):
            add_routes(route)


def main() -> None:
    re.compile = record  # type: ignore[assignment]
    django.setup()
    for app in APPS:
        package = importlib.import_module(app)
        for module in pkgutil.walk_packages(package.__path__, f"{app}."):
            if ".migrations." not in module.name and "config.asgi" not in module.name:
                importlib.import_module(module.name)
    # These are compiled on first use.
    from chat.conversations.search import word_pattern
    from config.observability.logging.processors import _mask
    from memory.layers.injection_detection import load_patterns

    load_patterns()
    word_pattern("billing cutover 2026")
    _mask("a value")
    add_routes(get_resolver())
    sites = {site for site, *_ in recorded}
    for name, node in calls():
        place = f"{name}:{node.lineno}"
        if isinstance(node.args[0], ast.Constant) and node.func.attr != "compile":
            add(place, node.args[0].value)
        elif not sites & {f"{name}:{line}" for line in range(node.lineno, node.end_lineno + 1)}:
            sys.exit(f"The pattern at {place} was not compiled. Have it compiled here.")
    json.dump(list(recorded), sys.stdout)


main()
