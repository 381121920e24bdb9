"""`{% project_pages %}`: the links to a project's pages in the sidebar."""

from typing import NamedTuple

from django import template
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

register = template.Library()


class NavigationItem(NamedTuple):
    """A link in the sidebar.

    `icon` is the path data of an SVG icon with a 24 × 24 view box. `below` has the URL names of
    other pages on which the item is also marked as current.
    """

    url_name: str
    label: str | Promise
    icon: str
    below: tuple[str, ...] = ()
    for_writers: bool = False


MEMORY_PAGES = (
    NavigationItem(
        "memory",
        _("Memory"),
        "M3 7q4.5-3 9 0t9 0M3 12q4.5-3 9 0t9 0M3 17q4.5-3 9 0t9 0",
        ("entry", "memory-forget", "memory-receipt"),
    ),
    NavigationItem(
        "facts", _("Facts"), "M5 5h14v14H5zM8.5 12l2.5 2.5 5-5", ("fact", "fact-change")
    ),
    NavigationItem("notes", _("Notes"), "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6"),
    NavigationItem("files", _("Files"), "M4 7V4h6l2 3h8v13H4zM4 11h16", ("file",)),
    NavigationItem(
        "memory-blocks", pgettext_lazy("page", "Pinned text"), "M9 3h6l-1 7 4 4H6l4-4zM12 14v7"
    ),
    NavigationItem(
        "memory-review", _("Review"), "M4 6h9M4 12h6M4 18h5M13 16l3 3 5-7", ("memory-act",), True
    ),
    NavigationItem("about-me", _("About me"), "M8 8a4 4 0 1 0 8 0 4 4 0 1 0-8 0M4 21q8-9 16 0"),
)
PROJECT_PAGES = (
    NavigationItem("overview", _("Overview"), "M4 20V10M10 20V4M16 20v-7M21 20H3"),
    NavigationItem("memory-activity", _("Activity"), "M3 12h4l3-8 4 16 3-8h4"),
    NavigationItem("saved-prompts", _("Prompts"), "M5 4h14v13H9l-4 4zM14 7l-4 7"),
    NavigationItem("costs", _("Costs"), "M12 3v18M16 7q-8-4-8 1t8 4-8 5"),
    NavigationItem("imports", _("Imports"), "M12 3v11M8 10l4 4 4-4M4 16v4h16v-4", for_writers=True),
    NavigationItem(
        "project-settings",
        _("Settings"),
        "M4 7h9M17 7h3M4 17h3M11 17h9"
        "M13 7a2 2 0 1 0 4 0 2 2 0 1 0-4 0M7 17a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
        (
            "project-members",
            "project-invitations",
            "project-archive",
            "project-delete",
            "webhooks",
            "webhook",
        ),
    ),
)


@register.inclusion_tag("_project_nav.html", takes_context=True)
def project_pages(context: template.Context) -> dict[str, object]:
    """Return the groups of items that the member may open, and the item of the current page."""
    is_writer = context["membership"].is_writer
    page = context["request"].resolver_match.url_name
    groups = [
        [item for item in group if is_writer or not item.for_writers]
        for group in (MEMORY_PAGES, PROJECT_PAGES)
    ]
    current = (item for group in groups for item in group if page in (item.url_name, *item.below))
    return {"slug": context["project"].slug, "groups": groups, "current": next(current, None)}
