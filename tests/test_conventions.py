"""The rules of STYLE that a program can check: names, and the size of functions, files, folders."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
APPS = ("config", "projects", "chat", "memory")
# Names that Django looks up in a class or module.
REPEATED = {"Meta", "Command", "Media"}
MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 400
MAX_FOLDER_MODULES = 20
MAX_APP_MODULES = MAX_APP_PACKAGES = 15


@cache
def modules() -> dict[Path, ast.Module]:
    """Parse the product's modules once, in the process that runs these tests."""
    return {
        path: ast.parse(path.read_text())
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        if "migrations" not in path.parts
    }


def classes() -> list[tuple[ast.ClassDef, Path]]:
    return [
        (node, path)
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]


def test_a_class_name_exists_once():
    count = Counter(node.name for node, _ in classes() if node.name not in REPEATED)
    assert [name for name, times in count.items() if times > 1] == []


def test_exceptions_end_in_error():
    roots = {"Exception", "BaseException"}
    wrong = [
        f"{path}: {node.name}"
        for node, path in classes()
        for base in node.bases
        if isinstance(base, ast.Name)
        and (base.id in roots or base.id.endswith("Error"))
        and not node.name.endswith("Error")
    ]
    assert wrong == []


def test_functions_and_files_are_short():
    long_functions = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert long_functions == []
    long_files = [path for path in modules() if path.read_text().count("\n") > MAX_FILE_LINES]
    assert long_files == []


def test_a_folder_holds_few_modules():
    count = Counter(path.parent for path in modules())
    assert [folder for folder, modules in count.items() if modules > MAX_FOLDER_MODULES] == []


@pytest.mark.parametrize("app", APPS)
def test_an_app_has_few_modules_and_packages_side_by_side(app):
    assert len(list((ROOT / app).glob("*.py"))) <= MAX_APP_MODULES
    packages = {path.relative_to(ROOT / app).parts[0] for path in (ROOT / app).glob("*/**/*.py")}
    assert len(packages) <= MAX_APP_PACKAGES
