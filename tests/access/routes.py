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
    return [child for child in _below(get_resolver().url_patterns, "") if not _is_admin(child)]


def admin_routes() -> list[Route]:
    """Those that let in nobody but the staff."""
    routes_found = [child for child in _below(get_resolver().url_patterns, "") if _is_admin(child)]
    # Who leaves is shown out.
    return [item for item in routes_found if item.pattern != "admin/logout/"]


def _is_admin(route: Route) -> bool:
    return route.pattern.startswith("admin/")


def _below(patterns: list[URLPattern | URLResolver], beginning: str) -> Iterator[Route]:
    for item in patterns:
        pattern = beginning + str(item.pattern)
        if isinstance(item, URLResolver):
            yield from _below(item.url_patterns, pattern)
        else:
            yield Route(item.name or pattern, pattern, item.callback)
