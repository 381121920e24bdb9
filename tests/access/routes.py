"""Every route of the URL configuration."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

Values = dict[str, object]


@dataclass(frozen=True)
class Route:
    """`pattern` is such as `projects/<slug:slug>/settings/`; `name` is the pattern where it has no
    name of its own.
    """

    name: str
    pattern: str
    view: Callable

    @property
    def is_api(self) -> bool:
        return self.pattern.startswith(("api/", "v1/"))

    @property
    def methods(self) -> set[str] | None:
        """What the view of a class answers to; None for a function, which does not say."""
        view = getattr(self.view, "cls", None) or getattr(self.view, "view_class", None)
        if view is None:
            return None
        named = {method for method in view.http_method_names if hasattr(view, method)}
        return {method.upper() for method in named} - {"HEAD", "OPTIONS"}


def routes() -> list[Route]:
    """All of them but the admin's."""
    return [one for one in _below(get_resolver().url_patterns, "") if not _is_admin(one)]


def admin_routes() -> list[Route]:
    """Those that let in nobody but the staff."""
    found = [one for one in _below(get_resolver().url_patterns, "") if _is_admin(one)]
    # Who leaves is shown out.
    return [one for one in found if one.pattern != "admin/logout/"]


def _is_admin(route: Route) -> bool:
    return route.pattern.startswith("admin/")


def _below(patterns: list[URLPattern | URLResolver], beginning: str) -> Iterator[Route]:
    for one in patterns:
        pattern = beginning + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from _below(one.url_patterns, pattern)
        else:
            yield Route(one.name or pattern, pattern, one.callback)
