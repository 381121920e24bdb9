"""The command palette: finds pages, chats, memories and facts by a few letters."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Case, When
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from chat import permissions
from chat.conversations import search
from memory.facts import facts_for
from memory.models import EntryStatus
from memory.permissions import entries_for
from memory.templatetags.layers import headline, period_label
from memory.views import project_page, render_page
from projects.core.text import translate_name
from projects.models import Membership
from projects.templatetags.navigation import MEMORY_PAGES, PROJECT_PAGES, NavigationItem

MAX_RESULTS_PER_KIND = 6
NEW_CHAT_PAGE = NavigationItem("project", _("New chat"), "", for_writers=True)
SEARCH_PAGE = NavigationItem("memory-search", _("Search"), "")
PAGES = (NEW_CHAT_PAGE, SEARCH_PAGE, *MEMORY_PAGES, *PROJECT_PAGES)
Place = dict[str, Any]


@project_page()
def command_palette(request: HttpRequest, member: Membership) -> HttpResponse:
    """Return the list of matches for `q`: first pages, then content."""
    query = request.GET.get("q", "").replace("\0", "").strip()[: search.MAX_QUERY_CHARS]
    # Without a query, show the latest chats.
    places = [
        _place(member, page.label, _("page"), page.url_name)
        for page in (PAGES if query else [NEW_CHAT_PAGE])
        if member.is_writer or not page.for_writers
        if query.casefold() in str(page.label).casefold()
    ]
    places += _chats(member, query)
    if query:
        places += [*_memories(member, query), *_facts(member, query)]
    context = {"places": places, "query": query}
    return render_page(request, member, "_command_palette.html", context)


def _place(member: Membership, name: Any, kind: Any, route: str, *args: object) -> Place:
    address = reverse(route, args=[member.project.slug, *args])
    return {"name": name, "kind": kind, "address": address}


def _chats(member: Membership, query: str) -> Iterator[Place]:
    chats = permissions.sessions_for(member.user).chats().filter(project=member.project)
    chats = search.search_sessions(chats, query) if query else chats.filter(archived_at=None)
    # Chats with a matching title come before chats with a matching message.
    by_title = Case(When(title__icontains=query, then=0), default=1)
    page = chats.order_by(by_title, "-last_activity_at", "-id")[:MAX_RESULTS_PER_KIND]
    found = search.excerpts(page, query) if query else {}
    for chat in page:
        place = _place(member, translate_name(chat.label), _("chat"), "session", chat.pk)
        yield place | {"excerpt": found.get(chat.pk), "moment": chat.last_activity_at}


def _memories(member: Membership, query: str) -> Iterator[Place]:
    entries = entries_for(member).exclude(state=EntryStatus.HIDDEN).matching(query)
    for entry in entries.newest_first()[:MAX_RESULTS_PER_KIND]:
        yield _place(member, headline(entry), period_label(entry), "entry", entry.pk)


def _facts(member: Membership, query: str) -> Iterator[Place]:
    facts = facts_for(member).with_validity().matching(query)
    for fact in facts.newest_first()[:MAX_RESULTS_PER_KIND]:
        yield _place(member, fact.text, _("fact"), "fact", fact.pk)
