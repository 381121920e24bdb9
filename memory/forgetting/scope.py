"""The conditions of a forget request, the members who may make it, and the ids that it deletes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from chat.models import Import, Message, Session, Visibility
from memory.layers.lines import Line
from memory.models import Entry, Fact, File, FileRevision, Tombstone, TombstoneKind
from memory.models.facts import FactQuerySet
from memory.permissions import is_moderator
from projects.core.errors import InvalidInputError
from projects.models import MemberRole, Membership, Project

# The maximum number of ids in one query.
ID_BATCH_SIZE = 5_000


@dataclass(frozen=True)
class TombstoneScope:
    """Ids of one project that are read from tombstones, to forget them again after a restore or an
    import.

    `unremembered` are messages that stay in their chats, and files that stay in the project,
    without being remembered. `user` is a user whose reactions, unsent images, saved prompts and
    versions of files are deleted, if they are older than the moment `before`. Entries of which this
    user wrote a text by hand before that moment are withheld, or deleted if they have no other
    source.
    """

    messages: frozenset[UUID] = frozenset()
    unremembered: frozenset[UUID] = frozenset()
    sessions: frozenset[UUID] = frozenset()
    entries: frozenset[UUID] = frozenset()
    blocks: frozenset[UUID] = frozenset()
    facts: frozenset[UUID] = frozenset()
    uploads: frozenset[UUID] = frozenset()
    files: frozenset[UUID] = frozenset()
    user: int | None = None
    before: datetime | None = None

    def __bool__(self) -> bool:
        return self != TombstoneScope()

    @classmethod
    def from_subjects(cls, subjects: Iterable[tuple[str, str]]) -> "TombstoneScope":
        """Return the scope of `subjects`, pairs of a kind and an id. Users are ignored."""
        subjects = list(subjects)

        def ids(kind: TombstoneKind) -> frozenset[UUID]:
            return frozenset(UUID(subject) for other, subject in subjects if other == kind)

        return cls(
            messages=ids(TombstoneKind.MESSAGE),
            unremembered=ids(TombstoneKind.UNKEPT),
            sessions=ids(TombstoneKind.SESSION),
            entries=ids(TombstoneKind.ENTRY),
            blocks=ids(TombstoneKind.BLOCK),
            facts=ids(TombstoneKind.RECORD),
            uploads=ids(TombstoneKind.UPLOAD),
            files=ids(TombstoneKind.FILE),
        )


# For each condition that is the id of an object: the name of the object in error messages, its
# model, and the kind of its tombstones.
NAMED_OBJECTS: dict[str, tuple[str, type[Any], TombstoneKind]] = {
    "session": ("session", Session, TombstoneKind.SESSION),
    "message": ("message", Message, TombstoneKind.MESSAGE),
    "entry": ("entry", Entry, TombstoneKind.ENTRY),
    "fact": ("fact", Fact, TombstoneKind.RECORD),
    "upload": ("import", Import, TombstoneKind.UPLOAD),
    "file": ("file", File, TombstoneKind.FILE),
}


@dataclass(frozen=True)
class ForgetScope:
    """The selection of a forget request. At least one condition is required.

    These conditions select messages, and are combined with AND:

    - `message`, `session`: the id of the object.
    - `upload`: the id of an import. Selects the sessions that it created, including later messages
      in them, and the messages that it added to other sessions.
    - `user`: the id of a user. Selects the messages of this user and the replies to them. Without
      an id of an object, also selects the blocks, files, facts, saved prompts, reactions and unsent
      images of this user, the versions that this user added to files of others, and the entries
      that this user wrote or edited by hand. Entries that have other sources are withheld until
      they are rewritten from these.
    - `before`: a moment. Selects earlier messages. Without an id of an object, also the blocks and
      files whose last change was earlier, and the versions of hand-written facts that were recorded
      earlier. Together with `user`, the objects that are listed under `user` are selected only if
      they are earlier.

    These conditions are used alone. Raises `InvalidInputError` if they are combined with others:

    - `entry`: the id of an entry, which is deleted with the entries that it was made from.
    - `fact`: the id of a fact.
    - `file`: the id of a file, which is deleted in all its versions.

    Options and replays:

    - `sources`: also deletes the source messages of `entry` or `fact`. Without it, the messages of
      the entry are no longer remembered, and the fact is not extracted again from its sessions.
    - `copies_only`: if a selected message is a copy in a fork, its original in the other chat is
      not deleted.
    - `reach_of`: the id of a user. In other chats, deletes only copies and originals that this user
      wrote, or that are in a private session of this user.
    - `replies`: also forgets replies whose prompt contained a deleted text, with everything derived
      from these replies.
    - `tombstones`: objects that were forgotten earlier, and are forgotten again (a replay) after a
      restore or an import. Used without conditions.
    """

    message: UUID | None = None
    session: UUID | None = None
    entry: UUID | None = None
    fact: UUID | None = None
    upload: UUID | None = None
    file: UUID | None = None
    user: int | None = None
    before: datetime | None = None
    sources: bool = False
    replies: bool = False
    copies_only: bool = False
    reach_of: int | None = None
    tombstones: TombstoneScope = TombstoneScope()

    def __post_init__(self) -> None:
        alone = (self.entry, self.fact, self.file)
        if len(self.conditions) > 1 and any(pk is not None for pk in alone):
            raise InvalidInputError(_("An entry, a fact or a file can only be forgotten alone."))

    @property
    def is_empty(self) -> bool:
        return not self.conditions and not self.tombstones

    @property
    def covers_whole_sessions(self) -> bool:
        """True if the only condition is a session or an import, so that whole sessions are
        selected.
        """
        named = self.session is not None or self.upload is not None
        return named and len(self.conditions) == 1

    @property
    def names_object(self) -> bool:
        """True if an object is named. `user` and `before` then only select its messages."""
        named = (self.message, self.session, self.upload, self.entry, self.fact, self.file)
        return any(pk is not None for pk in named)

    @property
    def conditions(self) -> list[object]:
        ids = (self.message, self.session, self.entry, self.fact, self.upload, self.file)
        return [value for value in (*ids, self.user, self.before) if value is not None]

    @property
    def named_files(self) -> Q:
        """The files that the conditions select: the named file, or the files that `user` added and
        whose latest version is older than `before`. If one of these two is not set, only the other
        one applies.
        """
        if self.tombstones:
            return Q(pk__in=self.tombstones.files)
        if self.file is not None:
            return Q(pk=self.file)
        if self.names_object or (self.user is None and self.before is None):
            return Q(pk__in=())
        added = Q() if self.user is None else Q(added_by=self.user)
        return added if self.before is None else added & Q(changed_at__lt=self.before)

    @property
    def reach(self) -> Q:
        """The copies and originals of selected messages in other chats that may be deleted."""
        if self.reach_of is None:
            return Q()
        private = Q(session__visibility=Visibility.PRIVATE, session__creator=self.reach_of)
        return private | Q(author=self.reach_of)

    @property
    def originals(self) -> Q | None:
        """The originals that are deleted with their selected copies; None for no original.

        A replay needs none, because its tombstones cover all messages that were deleted.
        """
        return None if self.copies_only or self.tombstones else self.reach

    def requested_by(self, project: Project, user: Any) -> "ForgetScope":
        """Return the scope for a request of `user`. Unless the user is a moderator or an owner,
        `reach_of` is set. Editors may delete messages of other users in their own private chats.
        The originals and copies of these messages stay if they are in other chats.
        """
        if user is None or is_moderator(user):
            return self
        roles = Membership.objects.filter(project=project, user=user)
        if roles.filter(role=MemberRole.OWNER).exists():
            return self
        return replace(self, reach_of=user.pk)

    def is_permitted_to(self, member: Membership) -> bool:
        """Return whether `member` may make this request.

        Owners may forget anything in their project. Editors may forget:

        - their own messages, files of which they added all versions, and a fact that is only about
          them or that nobody else supports, but not the sources of the fact,
        - messages, files and entries of their private sessions, and sessions that they created if
          nobody else wrote in them,
        - their own imports, if they may forget every session that the import created or extended,
        - everything of theirs (`user`), if this includes no text that others also wrote.

        In a shared session, editors cannot forget a reply alone: it is forgotten with the message
        that it answers. Editors may not use the option `replies`, which reaches replies to other
        members.
        """
        if member.role == MemberRole.OWNER:
            return True
        if not member.may_write or self.replies:
            return False
        private = Q(session__creator=member.user_id, session__visibility=Visibility.PRIVATE)
        if self.user is not None:
            own = self.user == member.user_id
            return own and (self.names_object or not shares_texts(member))
        if self.file is not None:
            files = File.objects.filter(project=member.project, pk=self.file)
            return files.filter(private | added_only_by(member)).exists()
        if self.message is not None:
            messages = Message.objects.filter(project=member.project, pk=self.message)
            return messages.filter(private | Q(author=member.user_id)).exists()
        if self.fact is not None:
            version = Q(pk=self.fact) | Q(earlier=self.fact)
            facts = own_facts(member).filter(version)
            return facts.exists() and not self.sources
        if self.entry is not None:
            return Entry.objects.filter(private, project=member.project, pk=self.entry).exists()
        if self.session is not None:
            created = Session.objects.filter(pk=self.session, creator=member.user_id)
            written = Message.objects.filter(session=self.session).exclude(author=None)
            return created.exists() and not written.exclude(author=member.user_id).exists()
        if self.upload is not None:
            imports = Import.objects.filter(project=member.project, pk=self.upload)
            return imports.only_by(member.user_id).exists()
        return False

    def missing_object(self, project: Project) -> str:
        """Return an error message if the request names an id that `project` never had, else "".

        An id that was forgotten earlier is no error. A mistyped id is reported instead of returning
        an empty receipt.
        """
        for condition, (name, model, kind) in NAMED_OBJECTS.items():
            pk = getattr(self, condition)
            if pk is None or model.objects.filter(project=project, pk=pk).exists():
                continue
            tombstones = Tombstone.objects.filter(project=project, kind=kind, subject=str(pk))
            if not tombstones.exists():
                return f"There is no such {name} in this project."
        return ""


def own_facts(member: Membership) -> FactQuerySet:
    """Return the current versions of the facts about `member`, and of the facts that only `member`
    supports.
    """
    facts = Fact.objects.filter(project=member.project, earlier_of=None)
    return facts.filter(user=member.user_id) | facts.written_only_by(member.user)


def added_only_by(member: Membership) -> Q:
    """Return the condition for files of which `member` added all versions."""
    others = FileRevision.objects.filter(document=OuterRef("pk")).exclude(added_by=member.user_id)
    return Q(~Exists(others), added_by=member.user_id)


def shares_texts(member: Membership) -> bool:
    """Return whether forgetting everything of `member` would include texts of others: a fact that
    others support too, a file of `member` to which others added versions, or an entry that `member`
    edited, unless it is from a private session of theirs. An edited entry counts because its first
    text is not by `member`.
    """
    name = member.user.get_username()
    private = Q(session__creator=member.user_id, session__visibility=Visibility.PRIVATE)
    edited = Q(written_by=name) | Q(revisions__written_by=name)
    if member.project.entries.filter(edited).exclude(private).exists():
        return True
    files = File.objects.filter(project=member.project, added_by=member.user_id)
    if files.exclude(added_only_by(member)).exists():
        return True
    changed = Q(written_by=name) | Q(earlier__written_by=name)
    facts = Fact.objects.filter(changed, project=member.project, earlier_of=None)
    return facts.exclude(pk__in=own_facts(member).values("pk")).exists()


@dataclass(frozen=True)
class Trim:
    """An entry with the lines that it loses and the lines that stay."""

    entry: Entry
    lost: list[Line]
    kept: list[Line]

    @property
    def needs_rewrite(self) -> bool:
        """True if a lost line is based on several messages, some of which may stay."""
        return any(len(line.sources) > 1 for line in self.lost)


@dataclass
class DeletionSet:
    """The ids that a forget request deletes or changes.

    The rows of `messages` are emptied. The rows of `sessions` are deleted with all their messages.
    """

    messages: set[UUID] = field(default_factory=set)
    # Messages that stay in their chats but are no longer remembered.
    unremembered: set[UUID] = field(default_factory=set)
    sessions: set[UUID] = field(default_factory=set)
    # Sessions that stay, but in which a message is deleted or changed.
    touched: set[UUID] = field(default_factory=set)
    # The entries to delete: named entries with those that they were made from, entries of deleted
    # sessions and files, and entries without a remaining source. Others lose lines (`trims`) or are
    # withheld.
    entries: set[UUID] = field(default_factory=set)
    trims: dict[UUID, Trim] = field(default_factory=dict)
    withheld: set[UUID] = field(default_factory=set)
    blocks: set[UUID] = field(default_factory=set)
    uploads: set[UUID] = field(default_factory=set)
    files: set[UUID] = field(default_factory=set)
    # The versions that the forgotten user added to files that stay, and these files.
    versions: set[UUID] = field(default_factory=set)
    changed_files: set[UUID] = field(default_factory=set)
    # The files whose entries are deleted, with or without the files themselves.
    summarised_files: set[UUID] = field(default_factory=set)
    facts: set[UUID] = field(default_factory=set)
    fact_sources: set[UUID] = field(default_factory=set)
    # The entry that the request names and the entries that it was made from.
    named_entries: set[UUID] = field(default_factory=set)
    named_facts: set[UUID] = field(default_factory=set)
    # The user whose reactions, unsent images and hand-written texts are deleted too, and the moment
    # before which they were added; None: all.
    user: int | None = None
    before: datetime | None = None

    @property
    def changed_entries(self) -> set[UUID]:
        """The entries that are deleted, withheld, or lose a line."""
        trimmed = {pk for pk, trim in self.trims.items() if trim.lost}
        return self.entries | self.withheld | trimmed

    def is_earlier(self, path: str) -> Q:
        """Return the condition that the time at the lookup path `path` is earlier than `before`."""
        return Q() if self.before is None else Q(**{f"{path}__lt": self.before})


def id_batches(ids: Iterable[UUID]) -> Iterator[list[UUID]]:
    """Yield `ids` in order, `ID_BATCH_SIZE` at a time."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), ID_BATCH_SIZE):
        yield ordered[start : start + ID_BATCH_SIZE]


def pks(rows: QuerySet) -> set[UUID]:
    return set(rows.values_list("pk", flat=True))


def lock(rows: QuerySet) -> set[UUID]:
    """Lock the rows in the order of their ids, and return the ids."""
    return pks(rows.select_for_update(of=("self",)).order_by("pk"))
