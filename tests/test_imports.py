"""Imports run one way: memory → chat → projects, and in each app from its surfaces inwards."""

import ast
import subprocess
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
AGREED = set(
    """manage.py config projects chat memory templates static tests requirements.txt
        requirements-dev.txt requirements-demo.txt pyproject.toml Makefile README.md LICENSE
        CHANGELOG.md SECURITY.md CONTRIBUTING.md docs deploy .ci .gitignore .env.example
        .git-blame-ignore-revs .prettierrc.json""".split()
)
APPS = ("config", "projects", "chat", "memory")
FORBIDDEN = {"projects": {"chat", "memory"}, "chat": {"memory"}, "memory": set()}


def named(path: Path) -> Iterator[tuple[str, str]]:
    """What a module imports, also inside functions: modules, with "" or the name taken of them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    return {module.split(".")[0] for module, _ in named(path)}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("app", FORBIDDEN)
def test_an_app_imports_only_what_lies_below_it(app):
    modules = list((ROOT / app).rglob("*.py"))
    assert modules
    upward = {
        str(module.relative_to(ROOT)): imported(module) & (FORBIDDEN[app] | {"tests"})
        for module in modules
    }
    assert {name: names for name, names in upward.items() if names} == {}


# The surfaces of an app. They may import everything in it; nothing else imports them.
SURFACES = {"views", "api", "admin", "templatetags", "management"}
# What one surface may import of the others.
ALLOWED = {
    "views": {"views", "templatetags"},
    "api": {"api"},
    "admin": {"admin", "views", "templatetags"},
    "templatetags": {"templatetags"},
    "management": {"management"},
    # The entry point of another protocol takes the API's authentication and serializers.
    "openai_api": {"api"},
    "urls": {"views", "api"},
    "apps": SURFACES,
}


def surface_of(module: str) -> str:
    """Return the part of an app to which a module belongs: the second name of its path."""
    app, _, rest = module.partition(".")
    part = rest.split(".")[0]
    return part if app in FORBIDDEN else ""


@pytest.mark.parametrize("app", FORBIDDEN)
def test_nothing_but_surfaces_imports_surfaces(app):
    wrong = {}
    for path in (ROOT / app).rglob("*.py"):
        module = module_of(path)
        allowed = ALLOWED.get(surface_of(module), set())
        surfaces = {surface_of(f"{other}.{name}") for other, name in named(path)} & SURFACES
        if surfaces - allowed:
            wrong[module] = surfaces - allowed
    assert wrong == {}


def test_no_modules_import_each_other():
    paths = {module_of(path): path for app in APPS for path in (ROOT / app).rglob("*.py")}
    assert "memory.forgetting.scope" in paths
    imports = {
        module: {
            imported_name if (imported_name := f"{other}.{name}") in paths else other
            for other, name in named(path)
        }
        & paths.keys() - {module}
        for module, path in paths.items()
    }
    TopologicalSorter(imports).prepare()


@pytest.mark.parametrize("app", FORBIDDEN)
def test_only_config_reads_the_environment(app):
    for module in (ROOT / app).rglob("*.py"):
        text = module.read_text()
        assert "os.environ" not in text and "getenv" not in text, module


def test_the_top_level_holds_only_what_was_agreed():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert {path.split("/")[0] for path in listed} <= AGREED
