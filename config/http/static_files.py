"""Static files: bundles of scripts and of style sheets, and URLs of other releases.

A page loads a bundle in place of many modules. The pages also work without bundles, which only
reduce the number of requests.
"""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.templatetags.static import static

# Entry points. Each is bundled with its imports into one file of the same name.
ENTRIES = ("js/strata.js", "js/account.js", "css/strata.css")
_JS_IMPORT = re.compile(r'^import (?:(\{[^}]*\}) from )?"\./([\w-]+\.js)";$', re.MULTILINE)
_JS_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_RELEASE = re.compile(r"^[0-9a-f]{12}/")
_CSS_IMPORT = re.compile(r'^@import "([\w-]+\.css)";$', re.MULTILINE)


def bundle(entry: Path) -> str:
    """Return the source `entry` with everything that it imports, each file once."""
    if entry.suffix == ".css":
        return _CSS_IMPORT.sub(
            lambda match: (entry.parent / match[1]).read_text(), entry.read_text()
        )
    return "\n".join(_modules(entry, set()))


def _modules(module: Path, seen: set[str]) -> Iterator[str]:
    """Yield the source of each module that `module` imports, then that of `module`, in the order in
    which browsers run them. Each is wrapped in a function that keeps its names local and returns
    its exports.
    """
    seen.add(module.name)
    text = module.read_text()
    for _names, name in _JS_IMPORT.findall(text):
        if name not in seen:
            yield from _modules(module.parent / name, seen)
    text = _JS_IMPORT.sub(lambda match: _import(match[1], match[2]), text)
    exports = ", ".join(name for _declaration, name in _JS_EXPORT.findall(text))
    text = _JS_EXPORT.sub(r"\1", text)
    yield f"const {_variable(module.name)} = (() => {{\n{text}\nreturn {{ {exports} }};\n}})();"


def _import(names: str, name: str) -> str:
    return f"const {names.replace(' as ', ': ')} = {_variable(name)};" if names else ""


def _variable(name: str) -> str:
    return f"${name.removesuffix('.js').replace('-', '_')}"


class BundleFinder(BaseFinder):
    """Finds the bundles, which it writes into the data folder, also compressed."""

    storage = FileSystemStorage(settings.DATA_DIR / "static")

    def list(self, ignore_patterns: Any) -> Iterator[tuple[str, FileSystemStorage]]:
        for name in ENTRIES:
            self._write(name)
            yield name, self.storage
            yield f"{name}.gz", self.storage

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        found = [self._write(path)] if path in ENTRIES else []
        return found if find_all else found[0] if found else None

    def _write(self, name: str) -> str:
        content = bundle(settings.BASE_DIR / "static" / name).encode()
        target = Path(self.storage.path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        for path, data in (
            (target, content),
            (target.with_name(f"{target.name}.gz"), gzip.compress(content, mtime=0)),
        ):
            if path.exists() and path.read_bytes() == data:
                continue
            # Other processes and threads read and write the same files.
            with NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(data)
            Path(file.name).replace(path)
        return str(target)


def other_release(request: HttpRequest, path: str) -> HttpResponseBase:
    """Redirect a URL of another release, or one without a release, to the current file."""
    url = static(_RELEASE.sub("", path))
    if unquote(url) == request.path:
        raise Http404
    return redirect(url)
