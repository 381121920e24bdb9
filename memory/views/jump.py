"""The jump list: pages, chats, memories and facts, by a few letters."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Case, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from chat import access, search
from memory.access import entries_for
from memory.facts import facts_for
from memory.models import State
from memory.templatetags.layers import headline, period
from projects.access import membership
from projects.models import Membership
from projects.templatetags.translated import named

# Of each kind.
MOST = 6
NEW_CHAT = "project"
# Pages of which readers have nothing.
FOR_WRITERS = {NEW_CHAT, "memory-review", "imports"}
PAGES = (
    (_("New chat"), NEW_CHAT),
    (_("Overview"), "overview"),
    (_("Notes"), "notes"),
    (_("Search"), "memory-search"),
    (_("Memory"), "memory"),
    (_("Facts"), "facts"),
    (_("Blocks"), "memory-blocks"),
    (_("Review"), "memory-review"),
    (_("Activity"), "memory-activity"),
    (_("Imports"), "imports"),
    (_("About me"), "about-me"),
    (_("Settings"), "project-settings"),
)


@dataclass(frozen=True)
class Place:
    """Somewhere to go: what it is called, what it is, and its address."""

    name: Any
    kind: Any
    address: str


@login_required
@require_GET
def jump(request: HttpRequest, slug: str) -> HttpResponse:
    """Where `q` may mean to go: pages that are called so, then what says so. Part of a page."""
    member = membership(request.user, slug)
    query = request.GET.get("q", "").replace("\0", "").strip()[: search.LONGEST]
    places = [*_pages(member, query), *_chats(member, query)]
    if query:
        places += [*_memories(member, query), *_facts(member, query)]
    context = {"places": places, "query": query, "project": member.project}
    return render(request, "memory/_jump.html", context)


def _pages(member: Membership, query: str) -> Iterator[Place]:
    # Without a word the list is of the latest chats.
    for name, route in PAGES if query else PAGES[:1]:
        shown = member.may_write or route not in FOR_WRITERS
        if shown and query.casefold() in str(name).casefold():
            yield Place(name, _("page"), reverse(route, args=[member.project.slug]))


def _chats(member: Membership, query: str) -> Iterator[Place]:
    chats = access.sessions_for(member.user).chats().filter(project=member.project)
    chats = search.containing(chats, query) if query else chats.filter(archived_at=None)
    # One that is called so comes before those in which it was said.
    by_title = Case(When(title__icontains=query, then=0), default=1)
    for chat in chats.order_by(by_title, "-last_activity_at", "-id")[:MOST]:
        address = reverse("session", args=[member.project.slug, chat.pk])
        yield Place(named(chat.label), _("chat"), address)


def _memories(member: Membership, query: str) -> Iterator[Place]:
    entries = entries_for(member).exclude(state=State.HIDDEN).matching(query)
    for entry in entries.newest_first()[:MOST]:
        address = reverse("entry", args=[member.project.slug, entry.pk])
        yield Place(headline(entry), period(entry), address)


def _facts(member: Membership, query: str) -> Iterator[Place]:
    for fact in facts_for(member).known().matching(query).newest_first()[:MOST]:
        yield Place(fact.text, _("fact"), reverse("fact", args=[member.project.slug, fact.pk]))
