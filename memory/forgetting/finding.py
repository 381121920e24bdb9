"""What a wish to forget comes to: which messages, sessions and entries, all of them locked."""

from collections.abc import Iterable
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet

from chat.models import ImportedStretch, Message, Role, Session
from memory.forgetting import facts
from memory.forgetting.found import Found
from memory.forgetting.repeating import told_of
from memory.forgetting.scope import Scope
from memory.layers.coverage import CONTRIBUTING
from memory.layers.periods import Granularity
from memory.models import Entry
from memory.models.entries import CONVERSATION
from projects.models import Project

# A reply, and what tools told on the way to it.
ANSWERING = (Role.ASSISTANT, Role.TOOL)
# Ids in one query.
AT_ONCE = 5_000


def find(project: Project, scope: Scope) -> Found:
    """Everything that `scope` means, locked: sessions first, then entries from the finest layer
    upward, as whoever else locks several does.
    """
    found = _found(project, scope, set())
    told: set[UUID] = set()
    # What was made of a reply was told to others in turn.
    while scope.replies and (more := told_of(project, found)):
        told |= more
        found = _found(project, scope, told)
    return found


def _found(project: Project, scope: Scope, told: set[UUID]) -> Found:
    """As `find`; the messages `told`, and what rests on them, go too."""
    found = Found(user=scope.user or scope.buried.user)
    named = found.named_entries = named_entries(project, scope)
    found.sessions = _whole_sessions(project, scope)
    found.uploads = _whole_imports(project, scope)
    locked: set[UUID] = set()
    while True:
        found.messages = _messages(project, scope, named, told)
        found.unremembered = _unremembered(project, scope, named) - found.messages
        concerned = found.sessions | _homes(project, found.messages | found.unremembered)
        if concerned <= locked:
            break
        locked |= _lock(Session.objects.filter(project=project, pk__in=concerned))
        # A session that went meanwhile took its messages along.
        found.sessions &= locked
    found.touched = concerned - found.sessions
    if any(one is not None for one in (scope.user, scope.before, scope.upload)):
        _empty_sessions(project, found)
    _entries(project, found)
    found.blocks = _blocks(project, scope)
    facts.find(project, found, scope)
    return found


def _whole_sessions(project: Project, scope: Scope) -> set[UUID]:
    if not scope.is_whole:
        return set(scope.buried.sessions)
    if scope.session is not None:
        return {scope.session}
    made = ImportedStretch.objects.filter(project=project, upload=scope.upload).whole()
    return set(made.values_list("session", flat=True))


def _whole_imports(project: Project, scope: Scope) -> set[UUID]:
    named = {scope.upload} if scope.is_whole and scope.upload else scope.buried.uploads
    return _lock(project.imports.filter(pk__in=named)) if named else set()


def named_entries(project: Project, scope: Scope) -> set[UUID]:
    """The entries that were named, with everything they were made of."""
    meant = scope.buried.entries if scope.entry is None else {scope.entry}
    level = set(_ids(project.entries.filter(pk__in=meant))) if meant else set()
    below: set[UUID] = set()
    while level:
        below |= level
        level = set(_ids(project.entries.filter(parent__in=level))) - below
    return below


def _ids(rows: QuerySet) -> Iterable[UUID]:
    return rows.values_list("pk", flat=True)


def covered(project: Project, entries: set[UUID]) -> set[UUID]:
    """The messages that entries were written from."""
    covering = Entry.objects.filter(
        pk__in=entries,
        granularity=CONVERSATION,
        session=OuterRef("session"),
        first_seq__lte=OuterRef("seq"),
        last_seq__gte=OuterRef("seq"),
    )
    sessions = Entry.objects.filter(pk__in=entries).exclude(session=None).values("session")
    rows = Message.objects.filter(CONTRIBUTING, project=project, session__in=sessions)
    return set(_ids(rows.filter(Exists(covering))))


def _unremembered(project: Project, scope: Scope, named: set[UUID]) -> set[UUID]:
    if scope.buried:
        return _still_said(project, scope.buried.unkept)
    return set() if scope.sources or not named else covered(project, named)


def _still_said(project: Project, ids: Iterable[UUID]) -> set[UUID]:
    """Which of these messages are there, and not forgotten."""
    rows = Message.objects.filter(project=project, pk__in=list(ids), forgotten_at=None)
    return set(_ids(rows)) if ids else set()


def _messages(project: Project, scope: Scope, named: set[UUID], told: set[UUID]) -> set[UUID]:
    """The messages that were meant or are `told`, their originals and copies, and the replies to
    any of them.
    """
    if scope.buried:
        meant = _still_said(project, scope.buried.messages)
    elif scope.fact is not None:
        meant = facts.messages_of(project, scope.fact) if scope.sources else set()
    elif scope.entry is not None:
        meant = covered(project, named) if scope.sources else set()
    else:
        meant = set(_ids(_meant(project, scope)))
    meant |= told
    found: set[UUID] = set()
    while meant - found:
        new = meant - found
        found |= new
        meant = set()
        for some in _in_batches(new):
            rows = Message.objects.filter(project=project)
            copies = Q(copied_from__in=some)
            replies = Q(parent__in=some, role__in=ANSWERING)
            meant |= set(_ids(rows.filter(copies | replies, forgotten_at=None)))
            originals = rows.filter(copies__in=some)
            meant |= set(_ids(originals))
    return found


def _meant(project: Project, scope: Scope) -> QuerySet[Message]:
    rows = Message.objects.filter(project=project, forgotten_at=None)
    if scope.message is not None:
        rows = rows.filter(pk=scope.message)
    if scope.session is not None:
        rows = rows.filter(session=scope.session)
    if scope.upload is not None:
        rows = rows.filter(Exists(_stretches(project, scope.upload)))
    if scope.user is not None:
        rows = rows.filter(author=scope.user)
    if scope.before is not None:
        rows = rows.filter(created_at__lt=scope.before)
    return rows


def _stretches(project: Project, upload: UUID) -> QuerySet[ImportedStretch]:
    """Those of an import in which a message stands, or that made its session."""
    here = Q(first_seq__lte=OuterRef("seq"), last_seq__gte=OuterRef("seq"))
    made = Q(first_seq=1)
    rows = ImportedStretch.objects.filter(project=project, upload=upload)
    return rows.filter(made | here, session=OuterRef("session"))


def _in_batches(ids: set[UUID]) -> Iterable[list[UUID]]:
    ordered = sorted(ids)
    return (ordered[start : start + AT_ONCE] for start in range(0, len(ordered), AT_ONCE))


def _homes(project: Project, messages: set[UUID]) -> set[UUID]:
    homes: set[UUID] = set()
    for some in _in_batches(messages):
        rows = Message.objects.filter(project=project, pk__in=some).order_by()
        homes |= set(rows.values_list("session", flat=True).distinct())
    return homes


def _lock(rows: QuerySet) -> set[UUID]:
    return set(_ids(rows.select_for_update(of=("self",)).order_by("pk")))


def _empty_sessions(project: Project, found: Found) -> None:
    """Sessions in which nothing would be left to read go whole."""
    for some in _in_batches(found.touched):
        standing = Message.objects.filter(
            project=project, session=OuterRef("pk"), forgotten_at=None
        ).exclude(pk__in=found.messages)
        rows = Session.objects.filter(project=project, pk__in=some).filter(~Exists(standing))
        found.sessions |= set(_ids(rows))
    found.touched -= found.sessions


def _entries(project: Project, found: Found) -> None:
    """Which entries go and which are withheld, locked from the finest layer upward."""
    named = found.named_entries
    meant = named | set(_ids(project.entries.filter(session__in=found.sessions)))
    level = _lock_of(project, CONVERSATION, meant | _resting_on(project, found))
    found.entries = {pk for pk in level if pk in meant} | _sourceless(project, found, level)
    found.withheld = level - found.entries
    for granularity in list(Granularity)[1:]:
        above = set(_ids(project.entries.above([project.pk], level)))
        level = _lock_of(project, granularity, above | named | _by_hand(project, found))
        sources = Entry.objects.in_the_layers().filter(parent__in=level, pinned=False)
        standing = set(sources.exclude(pk__in=found.entries).values_list("parent", flat=True))
        gone = (level & named) | (level - standing)
        found.entries |= gone
        found.withheld |= level - gone


def _blocks(project: Project, scope: Scope) -> set[UUID]:
    """A user's own blocks and those that nobody else wrote in; what was written before a moment."""
    rows = project.blocks.all()
    if scope.buried:
        return _lock(rows.filter(pk__in=scope.buried.blocks))
    if scope.user is None and scope.before is None:
        return set()
    if scope.names_one:
        return set()
    if scope.user is not None:
        rows = rows.filter(Q(user=scope.user) | Q(user=None, written_by=scope.user))
    if scope.before is not None:
        rows = rows.filter(updated_at__lt=scope.before)
    return _lock(rows)


def _lock_of(project: Project, granularity: str, ids: set[UUID]) -> set[UUID]:
    return _lock(project.entries.filter(granularity=granularity, pk__in=ids))


def _resting_on(project: Project, found: Found) -> set[UUID]:
    """The conversation entries that were written from what goes, or knowing it: each is told what
    the one before it in its session came to.
    """
    resting = _by_hand(project, found)
    for some in _in_batches(found.messages | found.unremembered):
        gone = Message.objects.filter(
            project=project,
            pk__in=some,
            session=OuterRef("session"),
            seq__lte=OuterRef("last_seq"),
        )
        rows = project.entries.filter(session__in=found.touched).filter(Exists(gone))
        resting |= set(_ids(rows))
    return resting


def _by_hand(project: Project, found: Found) -> set[UUID]:
    """The entries that the user whose words go wrote, or wrote in, by hand."""
    if found.user is None:
        return set()
    name = get_user_model().objects.filter(pk=found.user).values("username")
    rows = project.entries.filter(Q(written_by__in=name) | Q(revisions__written_by__in=name))
    return set(_ids(rows))


def _sourceless(project: Project, found: Found, level: set[UUID]) -> set[UUID]:
    """Those conversation entries of `level` that nothing is left to write from."""
    left = Message.objects.filter(
        CONTRIBUTING,
        project=project,
        session=OuterRef("session"),
        seq__gte=OuterRef("first_seq"),
        seq__lte=OuterRef("last_seq"),
    ).exclude(pk__in=found.messages | found.unremembered)
    return set(_ids(project.entries.filter(pk__in=level).filter(~Exists(left))))
