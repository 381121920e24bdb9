"""Forgetting: delete text from every store at once, with everything derived from it.

One transaction finds and locks the rows, deletes them, creates the tombstones and writes the
receipt. An entry that also has other sources loses only the lines that are based on the deleted
text or contain particulars of it. If this is not possible, for example because its lines do not
name their messages, the entry is withheld: its text is removed until the next cycle rewrites it
from the other sources.
"""

import logging
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain, zip_longest
from typing import Any
from uuid import UUID

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import OperationalError, transaction
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext as _

from chat.attachments import file_removal
from chat.conversations.search import TEXT_VECTOR
from chat.models import Message, Session, Visibility
from memory.facts.permissions import facts_for
from memory.forgetting import tombstones
from memory.forgetting.closure import (
    excerpts_of,
    exposed_replies,
    find_deletions,
    passages_of,
    unfinished_replies,
)
from memory.forgetting.facts import source_messages
from memory.forgetting.scope import DeletionSet, ForgetScope
from memory.forgetting.stores import STORES
from memory.models import (
    ActivityVerb,
    Block,
    Chunk,
    Entry,
    EntryRevision,
    EntryStatus,
    Fact,
    FilePassage,
    ModerationReason,
    SourceType,
    entries,
    facts,
)
from memory.models.activity import record_activity
from memory.permissions import entries_for, is_moderator
from projects.core.database import fetch, is_lock_conflict
from projects.core.errors import InvalidInputError, NotAllowedError
from projects.core.models import new_id
from projects.models import Membership, Project

log = logging.getLogger(__name__)

__all__ = ["ForgetReceipt", "ForgetScope", "forget", "preview"]

# After the deletion, the database is searched for phrases of the deleted texts. The constants below
# are the maximum number of phrases, and the maximum and minimum number of words in a phrase. Two
# texts rarely share seven words in a row by chance.
MAX_PHRASES = 20
MAX_PHRASE_WORDS = 7
MIN_PHRASE_WORDS = 3
# The number of characters at the beginning of a deleted text from which its phrase is chosen, and
# the maximum number of characters of a word in the phrase.
MAX_TEXT_CHARS = 20_000
MAX_WORD_CHARS = 100
MAX_LISTED_IDS = 100

CHUNK_VECTOR = SearchVector("text", config="simple")
_WORD = re.compile(rf"\w{{1,{MAX_WORD_CHARS}}}")


@dataclass(frozen=True)
class ForgetReceipt:
    """The result of a forget request, as numbers and ids.

    `removed` counts, by store, what was deleted, emptied or replaced, such as rows, lines and
    titles. `rewrites` are the entries that await their rewrite. `withheld` are the entries that
    lost their whole text. `saw_it` are the replies that stay although their prompt contained a
    deleted text, or may contain it because they are unfinished. `found` are the places where
    phrases of the deleted text still occur. `kept_sources` are the messages that stay although a
    forgotten entry or fact was based on them.
    """

    removed: Mapping[str, int]
    awaiting_rewrite: int
    withheld: Sequence[UUID]
    saw_it: Sequence[UUID]
    phrases: int
    found: Sequence[tuple[str, UUID]]
    rewrites: Sequence[UUID] = ()
    kept_sources: Sequence[UUID] = ()
    id: UUID | None = None
    at: datetime | None = None
    # The number of files still to remove at the time of the request. Pages that show the receipt
    # later count again.
    awaiting_files: int = 0

    @property
    def other_places(self) -> list[tuple[str, UUID]]:
        """The places in `found`, without the sources of the forgotten entry or fact."""
        sources = {("message", pk) for pk in self.kept_sources}
        return [place for place in self.found if place not in sources]

    def as_response(self) -> dict[str, Any]:
        """Return the receipt with its id, its time and the number of files still to remove."""
        extra = {"id": self.id, "at": self.at, "awaiting_files": self.awaiting_files}
        return extra | self.as_json()

    def as_json(self) -> dict[str, Any]:
        """Return the receipt as the activity log stores it: numbers and ids, no text."""
        return {
            "removed": dict(self.removed),
            "awaiting_rewrite": self.awaiting_rewrite,
            "rewrites": [str(pk) for pk in self.rewrites],
            "withheld": [str(pk) for pk in self.withheld],
            "saw_it": [str(pk) for pk in self.saw_it],
            "kept_sources": [str(pk) for pk in self.kept_sources],
            "search": {
                "phrases": self.phrases,
                "found": [{"where": where, "id": str(pk)} for where, pk in self.found],
            },
        }


def forget(
    project: Project, scope: ForgetScope, by=None, reason: str = ModerationReason.OTHER
) -> ForgetReceipt:
    """Forget `scope` and return the receipt. Raises `InvalidInputError` for an empty scope.

    `by` is the requesting user, None if Strata itself forgets. Repeating a request is no error; the
    receipt then counts nothing.
    """
    receipt = _apply(project, scope, by, reason)
    assert receipt.id is not None
    return replace(
        receipt, awaiting_files=file_removal.count_pending_removals(project.pk, receipt.id)
    )


def preview(project: Project, scope: ForgetScope, by=None) -> ForgetReceipt:
    """Return the receipt that `forget` would return, without its id, its time and the number of
    files to remove. Change nothing.

    The request is carried out and rolled back, so a preview cannot differ from the result. Raises
    `InvalidInputError` for an empty scope.
    """
    receipt = _apply(project, scope, by, ModerationReason.OTHER, is_preview=True)
    return replace(receipt, id=None, at=None)


def _apply(
    project: Project, scope: ForgetScope, by, reason: str, is_preview: bool = False
) -> ForgetReceipt:
    """Carry out a request in a transaction, which a preview rolls back. If the transaction is the
    victim of a deadlock, repeat it once.
    """
    try:
        return _apply_once(project, scope, by, reason, is_preview)
    except OperationalError as error:
        if not is_lock_conflict(error):
            raise
        log.info("forget_repeated project=%s", project.pk)
    return _apply_once(project, scope, by, reason, is_preview)


@transaction.atomic
def _apply_once(
    project: Project, scope: ForgetScope, by, reason: str, is_preview: bool
) -> ForgetReceipt:
    if scope.is_empty:
        raise InvalidInputError(_("Choose what to forget."))
    # Importers take this lock first too, so that nothing is imported while rows are deleted.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    deletions = find_deletions(project, scope.requested_by(project, by))
    require_own_texts(project, scope, by)
    phrases = deleted_phrases(project, deletions)
    excerpts = excerpts_of(project, deletions)
    kept = kept_sources(project, scope, deletions)
    # `memory.forgetting.replay` inserts the tombstones of `scope` itself.
    created = [] if scope.tombstones else tombstones.create_tombstones(project, deletions)
    act_id = new_id()
    with file_removal.attribute_removals_to(act_id):
        removed = {store.name: store.remove(project, deletions) for store in STORES}
    # Check deferred constraints now, so that a preview fails where the request would.
    fetch("SET CONSTRAINTS ALL IMMEDIATE")
    found = find_phrases(project, deletions, phrases, by)
    replies: set[UUID] = set()
    if not scope.replies:
        replies = exposed_replies(project, deletions, excerpts, unfinished_replies(project))
    elif not is_preview:
        transaction.on_commit(partial(_forget_late, project, deletions, excerpts, by, reason))
    receipt = create_receipt(deletions, removed, phrases, replies, found)
    receipt = replace(receipt, kept_sources=sorted(kept)[:MAX_LISTED_IDS])
    act = record_activity(
        project.pk,
        ActivityVerb.FORGOTTEN,
        id=act_id,
        by=by,
        reason=reason,
        related=deletions.messages,
        count=len(deletions.messages),
        entry_id=scope.entry,
        fact_id=scope.fact,
        session_id=scope.session,
        message_id=scope.message,
        receipt=receipt.as_json(),
    )
    if is_preview:
        transaction.set_rollback(True)
    else:
        tombstones.append_to_file(tombstones.records_of(created))
    return replace(receipt, id=act.pk, at=act.at)


def _forget_late(
    project: Project, deletions: DeletionSet, excerpts: set[UUID], by: Any, reason: str
) -> None:
    """Forget the replies that began during the transaction that deleted `deletions`. Their prompts
    may contain the deleted text, because it was readable until the commit.
    """
    unfinished = unfinished_replies(project)
    for reply in exposed_replies(project, deletions, excerpts, unfinished):
        forget(project, ForgetScope(message=reply), by, reason)


def require_own_texts(project: Project, scope: ForgetScope, by: Any) -> None:
    """If `by` forgets everything of theirs, check the permission again: others may have added to
    these texts since the first check. Raises NotAllowedError. The caller has locked the rows.
    """
    if by is None or scope.user != by.pk:
        return
    member = project.memberships.select_related("user", "project").filter(user=by).first()
    if member is not None and not scope.is_permitted_to(member):
        raise NotAllowedError(_("Only owners can forget this."))


def kept_sources(project: Project, scope: ForgetScope, deletions: DeletionSet) -> set[UUID]:
    """Return the messages that stay although the named entry or fact was based on them."""
    of_fact = source_messages(project, scope.fact) if scope.fact else set()
    return (deletions.unremembered | of_fact) - deletions.messages


def create_receipt(
    deletions: DeletionSet,
    removed: Mapping[str, int],
    phrases: Sequence[str],
    replies: Collection[UUID],
    found: Sequence[tuple[str, UUID]],
) -> ForgetReceipt:
    """Return the receipt of the deletion. `found` is the result of `find_phrases`."""
    rewritten = {pk for pk, trim in deletions.trims.items() if trim.needs_rewrite}
    waiting = Entry.objects.filter(pk__in=deletions.withheld | rewritten, state=EntryStatus.STALE)
    rewrites = sorted(waiting.values_list("pk", flat=True))
    return ForgetReceipt(
        removed=removed,
        awaiting_rewrite=len(rewrites),
        rewrites=rewrites[:MAX_LISTED_IDS],
        withheld=sorted(deletions.withheld)[:MAX_LISTED_IDS],
        saw_it=sorted(replies)[:MAX_LISTED_IDS],
        phrases=len(phrases),
        found=found,
    )


def deleted_phrases(project: Project, deletions: DeletionSet) -> list[str]:
    """Return phrases of the texts to delete. They are searched for after the deletion."""
    messages = Message.objects.filter(project=project, pk__in=sample(deletions.messages))
    summaries = Entry.objects.filter(pk__in=sample(deletions.entries | deletions.withheld))
    lost_lines = [line.text for trim in deletions.trims.values() for line in trim.lost]
    blocks = Block.objects.filter(pk__in=sample(deletions.blocks))
    passages = FilePassage.objects.filter(pk__in=sample(passages_of(project, deletions)))
    # One text of each kind in turn, so that many messages do not use up all phrases.
    texts = zip_longest(
        messages.values_list("text", flat=True),
        summaries.values_list("summary", flat=True),
        lost_lines[:MAX_PHRASES],
        blocks.values_list("content", flat=True),
        passages.values_list("text", flat=True),
        (fact.text for fact in Fact.objects.filter(pk__in=sample(deletions.facts))),
        fillvalue="",
    )
    phrases = dict.fromkeys(
        longest_phrase(text[:MAX_TEXT_CHARS]) for text in chain.from_iterable(texts)
    )
    return [phrase for phrase in phrases if phrase][:MAX_PHRASES]


def longest_phrase(text: str) -> str:
    """Return up to MAX_PHRASE_WORDS words from the middle of the line of `text` with the most
    words.

    Returns "" if that line has fewer than MIN_PHRASE_WORDS words.
    """
    lines = [_WORD.findall(line) for line in text.splitlines()]
    longest = max(lines, key=len, default=[])
    middle = max(0, (len(longest) - MAX_PHRASE_WORDS) // 2)
    words = longest[middle : middle + MAX_PHRASE_WORDS]
    return " ".join(words) if len(words) >= MIN_PHRASE_WORDS else ""


def sample(ids: Iterable[UUID]) -> list[UUID]:
    """Return at most MAX_PHRASES of `ids`, at equal distances in the order of their creation."""
    ordered = sorted(ids)
    step = max(1, math.ceil(len(ordered) / MAX_PHRASES))
    return ordered[::step]


class SearchedTexts:
    """The rows of a project in which a forget request searches for the deleted phrases."""

    def __init__(self, project: Project) -> None:
        self.messages = Message.objects.filter(project=project)
        self.entries = Entry.objects.filter(project=project)
        self.revisions = EntryRevision.objects.filter(project=project)
        self.facts = Fact.objects.filter(project=project, earlier_of=None)
        self.chunks = Chunk.objects.filter(project=project, source_type=SourceType.FILE)
        self.sessions = Session.objects.filter(project=project)

    def limit_to(self, member: Membership) -> None:
        """Leave out the rows with text that `member` may not see."""
        private = self.sessions.filter(visibility=Visibility.PRIVATE)
        of_others = private.exclude(creator=member.user_id)
        self.messages = self.messages.exclude(session__in=of_others)
        self.entries = entries_for(member).filter(withheld=False)
        # Earlier texts of an entry of a private session may contain passages that were removed
        # before approval.
        compared = self.entries.exclude(session__in=of_others)
        self.revisions = self.revisions.filter(entry__in=compared)
        self.facts = facts_for(member).filter(earlier_of=None)
        self.chunks = self.chunks.exclude(session__in=of_others)
        self.sessions = self.sessions.exclude(pk__in=of_others)


def find_phrases(
    project: Project, deletions: DeletionSet, phrases: Sequence[str], by: Any
) -> list[tuple[str, UUID]]:
    """Return where the phrases still occur. All searches except those of titles use an index.

    Text that `by` may not see is searched only if `by` is a moderator or None. Otherwise, members
    could guess at hidden text and confirm their guesses with previews.
    """
    texts = SearchedTexts(project)
    if by is not None and not is_moderator(by):
        member = project.memberships.filter(user=by).first()
        if member is None:  # left the project in the meantime
            return []
        texts.limit_to(member)
    has_files = texts.chunks.exists()
    matches: dict[tuple[str, UUID], None] = {}
    for phrase in phrases:
        query = SearchQuery(phrase, config="simple", search_type="phrase")
        places: list[tuple[str, QuerySet]] = [
            ("message", texts.messages.alias(words=TEXT_VECTOR)),
            ("entry", texts.entries.alias(words=entries.ENTRY_SEARCH_VECTOR)),
            ("revision", texts.revisions.alias(words=entries.ENTRY_REVISION_SEARCH_VECTOR)),
            ("fact", texts.facts.alias(words=facts.FACT_SEARCH_VECTOR)),
        ]
        for where, rows in places:
            pks = rows.filter(words=query).values_list("pk", flat=True)
            matches |= dict.fromkeys((where, pk) for pk in pks[:MAX_LISTED_IDS])
        if has_files:
            # The first condition can use an index.
            words = [project.search_language_name, project.pk, phrase]
            terms = RawSQL("memory_chunk.terms @> memory_terms(%s, %s, %s)", words, BooleanField())
            quoting = texts.chunks.filter(terms).alias(words=CHUNK_VECTOR)
            pks = quoting.filter(words=query).values_list("pk", flat=True)
            # The chunk of a passage has the same id.
            quoted = FilePassage.objects.filter(project=project, pk__in=list(pks[:MAX_LISTED_IDS]))
            documents = quoted.values_list("revision__document", flat=True)
            matches |= dict.fromkeys(("file", pk) for pk in documents)
        titles = texts.sessions.filter(pk__in=deletions.touched, title__icontains=phrase)
        matches |= dict.fromkeys(("title", pk) for pk in titles.values_list("pk", flat=True))
    return list(matches)[:MAX_LISTED_IDS]
