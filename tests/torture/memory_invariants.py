"""Check memory's invariants (DESIGN, "Invariants") on a whole project after each act."""

from collections import defaultdict
from datetime import datetime
from uuid import UUID

from django.apps import apps
from django.db import connection
from django.db.models import CharField, JSONField, TextField

from memory.layers import bank_cache
from memory.layers.bank_cache import rendered_bank
from memory.layers.coverage import contributes
from memory.layers.history import bank_as_of
from memory.layers.periods import Granularity, ancestor_key
from memory.models import Activity, EntryState, EntryStatus, Ladder, ReviewReason
from memory.moderation.entry_operations import OUTSIDE_LAYERS
from projects.core import token_counting
from tests.torture import facts
from tests.torture.marking_summariser import (
    NAME,
    NOTE_LINE,
    PREVIOUS_LINE,
    SUMMARY_LINE,
    WORD,
    words,
)
from tests.torture.memory_acts import Team
from tests.torture.project_rows import UNSETTLED, Record, words_in

LINES = (SUMMARY_LINE, PREVIOUS_LINE, NOTE_LINE)
# Why somebody is to decide, and not only to look at what the text says.
DECISIONS = (ReviewReason.PROJECT_RULE, ReviewReason.IMPORTED, ReviewReason.SOURCES)


class Promises:
    """Asks after each act; `settled` asks for more, after enough cycles."""

    def __init__(self, team: Team) -> None:
        self.team, self.project = team, team.project
        self.bank: tuple[int, str | None] = (0, None)
        # The words that might stand in the bank, by the moment.
        self.candidates: dict[datetime, set[str]] = {}
        # Entries that somebody has to decide on.
        self.undecided: set[UUID] = set()

    def check(self, is_settled: bool) -> None:
        record = Record.read(self.team)
        self.ranges_are_disjoint(record)
        self.layers_are_a_ladder(record)
        self.counts_are_right(record)
        self.the_bank_holds(record)
        self.nothing_is_shown_that_should_not_be(record)
        self.nobody_is_passed_over(record)
        facts.assert_facts_have_sources(self.team)
        self.what_is_forgotten_is_nowhere()
        self.the_past_tells_nothing_new(record)
        self.no_work_failed(record)
        if is_settled:
            self.everything_is_remembered_once(record)
            self.nothing_waits(record)
            self.texts_say_what_they_were_made_of(record)
            facts.are_found_in_every_message(self.team, record)

    # At any instant.

    def ranges_are_disjoint(self, record: Record) -> None:
        through: dict = defaultdict(int)
        for entry in record.entries:
            if entry.session_id:
                assert through[entry.session_id] < entry.first_seq, f"{entry} is inside another"
                through[entry.session_id] = entry.last_seq
        for cursor in record.cursors:
            assert through[cursor.pk] <= cursor.summarised_through, "covered beyond the cursor"

    def layers_are_a_ladder(self, record: Record) -> None:
        entries = {entry.pk: entry for entry in record.entries}
        digests = [item for item in record.entries if item.granularity != Granularity.CONVERSATION]
        assert len({(digest.granularity, digest.period_key) for digest in digests}) == len(digests)
        for entry in record.entries:
            if entry.parent_id is None:
                assert entry.state != EntryStatus.ABSORBED, f"{entry} is absorbed by nothing"
                continue
            parent, layer = entries[entry.parent_id], Granularity(entry.granularity)
            # In place of a digest that awaits review, or was rejected, its children stand.
            spoken_for = parent.state not in OUTSIDE_LAYERS and not parent.withheld
            stands_in = not spoken_for and entry.state in (EntryStatus.LIVE, EntryStatus.FADED)
            is_below = entry.state in (EntryStatus.ABSORBED, EntryStatus.STALE)
            assert stands_in or is_below, f"{entry} is {entry.state}"
            assert not entry.pinned, f"{entry} is pinned and has a parent"
            above = Granularity(parent.granularity)
            assert above.depth > layer.depth
            assert parent.period_key == ancestor_key(layer, entry.period_key, above)
        last = EntryState.objects.order_by("entry", "-since", "-id").distinct("entry")
        assert {previous.entry_id for previous in last} == set(entries)
        for previous_digest in last:
            entry = entries[previous_digest.entry_id]
            then = (
                previous_digest.state,
                previous_digest.parent_id,
                previous_digest.pinned,
                previous_digest.withheld,
                previous_digest.revision,
            )
            now = (entry.state, entry.parent_id, entry.pinned, entry.withheld, entry.revision)
            assert then == now, f"the history of {entry} ends with {then} instead of {now}"

    def counts_are_right(self, record: Record) -> None:
        """A cursor counts what waits; what is not on the path may be counted, or not."""
        for cursor in record.cursors:
            left = {
                message.pk: message.tokens
                for message in record.messages
                if message.session_id == cursor.pk
                and message.seq > cursor.summarised_through
                and contributes(message)
            }
            on_path = {message.pk for message in record.contributing(cursor.pk)} & left.keys()
            counts = cursor.unsummarised_messages, cursor.unsummarised_tokens
            most = len(left), sum(left.values())
            least = len(on_path), sum(left[pk] for pk in on_path)
            assert all(a <= b <= c for a, b, c in zip(least, counts, most, strict=True)), (
                f"{counts} wait, instead of {least} to {most}"
            )

    def the_bank_holds(self, record: Record) -> None:
        bank, most = record.bank, self.project.bank_max_tokens
        assert token_counting.count(bank.text) == bank.tokens <= most
        fresh = bank_cache._render(self.project, bank_cache.bank_entries(self.project), most)
        assert (bank.text, bank.left_out) == (fresh.text, fresh.left_out), "an old bank is shown"
        assert [entry_id.id for entry_id in bank.included] == [
            entry_id.id for entry_id in fresh.included
        ]
        version, text = self.bank
        assert bank.version >= version
        assert (bank.version == version) == (bank.text == text), "version and text disagree"
        self.bank = bank.version, bank.text
        assert rendered_bank(self.project, most // 2).tokens <= most // 2

    def nothing_is_shown_that_should_not_be(self, record: Record) -> None:
        """What is aside of a digest, its children tell; what was copied stands under the name of
        the original.
        """
        text = record.bank.text
        for label, forbidden in self._unshown(record).items():
            shown_words = words(text, SUMMARY_LINE) & forbidden
            assert not shown_words, f"{label}, and shown: {shown_words}"
        lines = (line for line in text.splitlines() if line.startswith(LINES))
        texts = [
            *(entry.summary for entry in record.entries),
            *(entry.note for entry in record.entries),
        ]
        left = words_in([*texts, *record.were_entries, *lines]) & self.team.unremembered
        assert not left, f"remembered against somebody's will: {left}"

    def _unshown(self, record: Record) -> dict[str, set[str]]:
        own = [message for message in record.messages if message.copied_from_id is None]
        session_entries = [entry for entry in record.entries if entry.session_id]
        return {
            "deleted": record.words_of(message for message in own if message.deleted_at),
            "of deleted sessions": record.words_of(
                message for message in own if message.session.deleted_at
            ),
            "hidden": words_in(
                (o.summary for o in session_entries if o.state == EntryStatus.HIDDEN), SUMMARY_LINE
            ),
            "proposed": words_in(
                (o.summary for o in session_entries if o.state == EntryStatus.PROPOSED),
                SUMMARY_LINE,
            ),
            "withheld": words_in((o.summary for o in session_entries if o.withheld), SUMMARY_LINE),
        }

    def nobody_is_passed_over(self, record: Record) -> None:
        """What waits for somebody's decision waits until then, whatever is written meanwhile."""
        waiting = self.undecided - self.team.decided
        for entry in record.entries:
            if entry.pk in waiting:
                assert entry.state in (EntryStatus.PROPOSED, EntryStatus.STALE), (
                    f"{entry} was taken in"
                )
            elif entry.state == EntryStatus.PROPOSED and entry.waits_because in DECISIONS:
                waiting.add(entry.pk)
        self.undecided = waiting
        self.team.decided.clear()

    def what_is_forgotten_is_nowhere(self) -> None:
        if self.team.forgotten_words:
            pattern = rf"\m({'|'.join(sorted(self.team.forgotten_words))})\M"
            with connection.cursor() as cursor:
                cursor.execute(EVERYWHERE, [pattern] * EVERYWHERE.count("%s"))
                rows = cursor.fetchall()
                assert rows == [], f"forgotten, and there: {rows}"
        for act in Activity.objects.values_list():
            assert not WORD.search(repr(act)), "somebody's words are on the record of what was done"

    def the_past_tells_nothing_new(self, record: Record) -> None:
        """The view of now is what is shown now; one of then tells nothing that stood not there."""
        now = self.team.clock
        assert bank_as_of(self.project, now).text == record.bank.text, "the view of now is another"
        standing = {pk for pk, _ in record.bank.left_out} | {o.id for o in record.bank.included}
        self.candidates[now] = words_in(
            entry.summary for entry in record.entries if entry.pk in standing
        )
        moments, unshown = list(self.candidates), self._unshown(record)
        for moment in {
            moments[0],
            moments[-1],
            moments[len(self.team.forgotten_words) % len(moments)],
        }:
            bank = bank_as_of(self.project, moment)
            assert token_counting.count(bank.text) <= self.project.bank_max_tokens
            assert not words(bank.text) & self.team.forgotten_words, f"shown as of {moment}"
            for label, forbidden in unshown.items():
                shown_words = words(bank.text, SUMMARY_LINE) & forbidden
                assert not shown_words, f"{label}, and shown as of {moment}: {shown_words}"
            mentioned_words = {word for line in LINES for word in words(bank.text, line)}
            assert mentioned_words <= self.candidates[moment], (
                f"as of {moment} it did not stand there"
            )

    def no_work_failed(self, record: Record) -> None:
        for row in (*record.cursors, *Ladder.objects.all()):
            assert not row.last_error, row.last_error

    # After enough cycles.

    def everything_is_remembered_once(self, record: Record) -> None:
        for cursor in record.cursors:
            if cursor.session.deleted_at is not None:
                continue
            own = [entry for entry in record.entries if entry.session_id == cursor.pk]
            ranges = [range(entry.first_seq, entry.last_seq + 1) for entry in own]
            for message in record.contributing(cursor.pk):
                assert message.seq <= cursor.summarised_through, f"{message.text} is not summarised"
                covering = sum(message.seq in stretch for stretch in ranges)
                assert covering == 1, f"{message.text} is covered {covering} times"

    def nothing_waits(self, record: Record) -> None:
        """But what was made of a session that may still be brought back."""
        above = {entry.pk: entry.parent_id for entry in record.entries}
        waiting = {item.pk for item in record.entries if item.session and item.session.deleted_at}
        for _ in Granularity:
            waiting |= {above[pk] for pk in waiting}
            waiting.discard(None)
        for entry in record.entries:
            if entry.pk not in waiting:
                assert entry.state != EntryStatus.STALE, f"{entry} is stale"
                assert not entry.withheld or entry.state in UNSETTLED, f"{entry} is withheld"

    def texts_say_what_they_were_made_of(self, record: Record) -> None:
        children = defaultdict(list)
        for entry in record.entries:
            children[entry.parent_id].append(entry)
        for entry in record.entries:
            below = children[entry.pk]
            if entry.state in UNSETTLED:
                continue
            if entry.session_id:
                stretch = range(entry.first_seq, entry.last_seq + 1)
                contributing_messages = record.contributing(entry.session_id)
                sources = [
                    contributing_message
                    for contributing_message in contributing_messages
                    if contributing_message.seq in stretch
                ]
                assert entry.message_count == len(sources) > 0
                source_words = words_in(source.text for source in sources)
            else:
                assert entry.message_count == sum(child.message_count for child in below) > 0
                assert entry.first_source_at == min(child.first_source_at for child in below)
                assert entry.last_source_at == max(child.last_source_at for child in below)
                source_words = words_in((child.summary for child in below), SUMMARY_LINE)
            if entry.written_by == NAME:
                mentioned_words = words(entry.summary, SUMMARY_LINE)
                assert mentioned_words == source_words, (
                    f"{entry} tells {mentioned_words} of {source_words}"
                )
                assert words(entry.note) <= words(entry.summary, NOTE_LINE)


def _everywhere() -> str:
    """Looks for a pattern in each column that may hold text, of everything of chat and memory."""
    columns = [
        (model._meta.db_table, field.column)
        for app in ("chat", "memory")
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, CharField | TextField | JSONField) and not field.choices
    ]
    return " UNION ALL ".join(
        f'SELECT \'{table}.{name}\', "{name}"::text FROM {table} WHERE "{name}"::text ~ %s'
        for table, name in columns
    )


EVERYWHERE = _everywhere()
