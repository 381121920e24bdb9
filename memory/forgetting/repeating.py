"""The replies that were told something of what goes: whatever they say may rest on it."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from chat.models import Message, Role
from memory.forgetting.found import Found
from memory.models import Chunk
from projects.models import Project

# Conditions of one query.
AT_ONCE = 50
# Ids in one.
MANY = 5_000


def told_of(project: Project, found: Found) -> set[UUID]:
    """The replies that `found` leaves and whose prompts held something of it: their receipts name
    it. Ask before it goes.

    A message stands only in prompts of its own session; an entry, a fact, a block or an excerpt of
    what was said in any.
    """
    replies = Message.objects.filter(project=project, role=Role.ASSISTANT, forgotten_at=None)
    own = Q(session__in=found.touched)
    told = _naming(replies.filter(own), found.messages)
    things = found.entries | found.withheld | found.facts | found.blocks
    told |= _naming(replies, things | _excerpts(project, found))
    return told - found.messages - _in_sessions(project, found, told)


def _naming(replies: QuerySet[Message], ids: Iterable[UUID]) -> set[UUID]:
    """Those of `replies` whose receipts name one of `ids`."""
    told: set[UUID] = set()
    ordered = sorted(ids)
    for start in range(0, len(ordered), AT_ONCE):
        named = Q()
        for pk in ordered[start : start + AT_ONCE]:
            named |= Q(receipt__contains={"sections": [{"items": [{"id": str(pk)}]}]})
        told |= set(replies.filter(named).values_list("pk", flat=True))
    return told


def _excerpts(project: Project, found: Found) -> set[UUID]:
    """The chunks in which something of it stands."""
    chunks = Chunk.objects.filter(project=project)
    pks = set(chunks.filter(session__in=found.sessions).values_list("pk", flat=True))
    ordered = sorted(found.messages | found.unremembered)
    for start in range(0, len(ordered), MANY):
        inside = Message.objects.filter(
            pk__in=ordered[start : start + MANY],
            session=OuterRef("session"),
            seq__gte=OuterRef("first_seq"),
            seq__lte=OuterRef("last_seq"),
        )
        rows = chunks.filter(session__in=found.touched).filter(Exists(inside))
        pks |= set(rows.values_list("pk", flat=True))
    return pks


def _in_sessions(project: Project, found: Found, told: set[UUID]) -> set[UUID]:
    """Those that go with their sessions."""
    rows = Message.objects.filter(project=project, session__in=found.sessions, pk__in=told)
    return set(rows.values_list("pk", flat=True))
