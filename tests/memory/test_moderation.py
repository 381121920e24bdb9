"""Moderation of one or many entries, with a preview."""

import pytest

from memory.forgetting.service import ForgetScope, forget
from memory.layers.bank_cache import rendered_bank
from memory.models import (
    Activity,
    ActivityVerb,
    Entry,
    EntryRevision,
    EntryStatus,
    RenderedBank,
)
from memory.moderation import entry_operations
from memory.moderation.actions import ModerationAction, ModerationRequest, apply_action
from memory.moderation.preview import preview

pytestmark = pytest.mark.django_db


def nothing_against(entry, act) -> str:
    return ""


@pytest.fixture
def foresee(project, owner):
    def run(act: ModerationAction, *entries: Entry, **fields):
        return preview(project, ModerationRequest(act, owner, **fields), entries, nothing_against)

    return run


@pytest.fixture
def three(remember, project, editor):
    """Three summaries that wait for review, each of its own chat."""
    from chat.models import Session

    sessions = [Session.objects.create(project=project, creator=editor) for _ in range(3)]
    return [
        remember(
            f"- Point {number}", chat_session, state=EntryStatus.PROPOSED, waits_because="asked"
        )
        for number, chat_session in enumerate(sessions)
    ]


def test_each_is_done_by_itself_with_its_reason_on_the_record(three, owner):
    Entry.objects.filter(pk=three[1].pk).update(state=EntryStatus.LIVE)
    outcome = apply_action(
        ModerationRequest(ModerationAction.APPROVE, owner, "checked"), three, nothing_against
    )
    assert [entry.pk for entry in outcome.done] == [three[0].pk, three[2].pk]
    assert outcome.refused == [(three[1], "Someone else has already decided this.")]
    acts = Activity.objects.filter(verb=ActivityVerb.APPROVED)
    assert {(act.entry_id, act.by, act.reason) for act in acts} == {
        (three[0].pk, owner, "checked"),
        (three[2].pk, owner, "checked"),
    }


def test_an_entry_that_was_deleted_meanwhile_is_refused(three, owner, project):
    forget(project, ForgetScope(entry=three[0].pk))
    outcome = apply_action(
        ModerationRequest(ModerationAction.APPROVE, owner), three[:1], nothing_against
    )
    assert outcome.refused == [(three[0], "This no longer exists.")]


def test_a_preview_changes_nothing(three, foresee):
    before = list(Entry.objects.order_by("pk").values())
    acts = Activity.objects.count()
    impact = foresee(ModerationAction.APPROVE, *three)
    assert len(impact.outcome.done) == 3
    assert list(Entry.objects.order_by("pk").values()) == before
    assert Activity.objects.count() == acts


def test_the_preview_has_the_bank_before_and_after(three, foresee):
    impact = foresee(ModerationAction.APPROVE, *three[:2])
    assert (impact.before.text, impact.before.tokens) == ("", 0)
    assert "Point 0" in impact.after.text
    assert "Point 1" in impact.after.text
    assert "Point 2" not in impact.after.text
    assert impact.after.tokens > 0


@pytest.mark.parametrize("act", [ModerationAction.HIDE, ModerationAction.PIN])
def test_all_digests_above_are_counted(entry, day, remember, foresee, act):
    week = remember("- A week", granularity="week", period_key="2026-W11")
    Entry.objects.filter(pk=day.pk).update(parent=week, state=EntryStatus.ABSORBED)
    impact = foresee(act, entry)
    assert (impact.summaries, impact.digests) == (0, 2)


def test_an_edit_counts_digests_once_however_many_are_below(remember, entry, day, foresee):
    assert foresee(ModerationAction.EDIT, entry, text="- Another").digests == 1


def test_a_summary_to_rewrite_is_counted_separately(entry, day, foresee):
    impact = foresee(ModerationAction.RESUMMARISE, entry)
    assert (impact.summaries, impact.digests) == (1, 1)


def test_unavailable_actions_are_listed_with_the_reason(three, foresee):
    impact = foresee(ModerationAction.HIDE, *three)
    assert [reason for _, reason in impact.outcome.refused] == ["This memory is not in use."] * 3
    assert impact.digests == 0


def test_several_forgettings_are_summed_and_a_digest_takes_its_own_along(entry, day, foresee):
    total = foresee(ModerationAction.FORGET, entry, day).total
    assert total.removed["entries"] == 2
    assert total.awaiting_rewrite == 0
    assert foresee(ModerationAction.FORGET, entry, day, sources=True).total.removed["messages"] == 2
    assert Entry.objects.count() == 2


def test_a_digest_left_with_something_is_counted_once(remember, entry, day, project, foresee):
    from chat.models import Session

    others = [Session.objects.create(project=project) for _ in range(2)]
    more = [
        remember(f"- More {other_item.pk}", other_item, parent=day, state="absorbed")
        for other_item in others
    ]
    total = foresee(ModerationAction.FORGET, entry, more[0]).total
    assert total.removed["entries"] == 2
    assert total.awaiting_rewrite == 1


def test_a_redaction_leaves_no_rendered_bank_with_the_words(entry, project, owner):
    assert "seven days" in rendered_bank(project).text
    entry_operations.redact(entry, "seven days", owner)
    assert "seven days" not in RenderedBank.objects.get(project=project).text


def test_a_redaction_leaves_no_revision_with_the_words(entry, day, owner):
    apply_action(
        ModerationRequest(ModerationAction.EDIT, owner, text="- Ana says seven days"),
        [entry],
        nothing_against,
    )
    apply_action(
        ModerationRequest(ModerationAction.REDACT, owner, text="seven days"),
        [entry],
        nothing_against,
    )
    assert not EntryRevision.objects.filter(summary__contains="seven days").exists()
    assert Entry.objects.get(pk=day.pk).withheld


def test_an_edit_of_a_text_that_was_changed_meanwhile_is_refused(entry, owner, editor):
    apply_action(
        ModerationRequest(ModerationAction.EDIT, editor, text="- Theirs"), [entry], nothing_against
    )
    outcome = apply_action(
        ModerationRequest(ModerationAction.EDIT, owner, text="- Mine", revision=1),
        [entry],
        nothing_against,
    )
    assert "changed this text while you were editing" in outcome.refused[0][1]
    assert Entry.objects.get(pk=entry.pk).summary == "- Theirs"


def test_a_digest_that_waits_to_be_rewritten_anyway_is_counted_too(entry, day, foresee):
    Entry.objects.filter(pk=day.pk).update(state=EntryStatus.STALE)
    assert foresee(ModerationAction.HIDE, entry).digests == 1
