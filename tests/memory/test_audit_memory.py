"""`manage.py audit_memory`: what the layers carry of what they were made of, by kind."""

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from chat.conversations import sessions
from chat.conversations.messages import draft, post_messages
from chat.models import Session, Visibility
from memory.layers import cycle, digests, losses
from memory.layers.statistics import ALL, kept_by_layer, particulars_by_layer
from memory.models import Entry, EntryStatus
from tests.memory.daily_entries import NOW, remember

pytestmark = pytest.mark.django_db(transaction=True)

ONE = "- Ana moved the cutover to 3 March; see INFRA-2231. " + "It was talked over at length. " * 9
OTHER = "- Ben Adler budgets €1,200 for Vienna. " + "Nobody objected to that in the end. " * 9


@pytest.fixture
def settled(project, owner, scripted):
    project.bank_max_tokens = 150
    project.save()
    for summary in (ONE, OTHER):
        remember(project, owner, summary)
    scripted.default = "- Ben Adler moved it to 3 March, INFRA-2231."
    digests.update_layers(project.pk, NOW)
    return project


def test_it_tells_the_share_of_each_kind_layer_by_layer(settled, capsys):
    call_command("audit_memory", "--project", settled.slug)
    name, head, spoken, day = capsys.readouterr().out.splitlines()
    assert name == settled.slug
    assert head.split() == ["layer", "digests", "identifiers", "dates", "names", "numbers", "all"]
    # Their messages hold nothing of the kind.
    assert spoken.split() == ["conversation", "2", *["–"] * 5]
    assert day.split() == ["day", "1", "100%", "100%", "33%", "0%", "50%"]


def test_as_json_the_shares_are_numbers(settled, capsys):
    call_command("audit_memory", "--json")
    layers = json.loads(capsys.readouterr().out)[settled.slug]
    assert set(layers) == {"conversation", "day"}
    assert layers["day"] == {
        "digests": 1,
        "identifiers": 1.0,
        "dates": 1.0,
        "names": pytest.approx(1 / 3),
        "numbers": 0.0,
        "all": 0.5,
    }


def test_it_finds_what_was_counted_when_the_digests_were_written(settled):
    shares = {
        layer: statistics.share(ALL) for layer, statistics in particulars_by_layer(settled).items()
    }
    assert shares == {"conversation": None} | kept_by_layer(settled)


def test_proposed_and_hidden_entries_are_not_reported(settled, capsys):
    Entry.objects.filter(granularity="day").update(state=EntryStatus.HIDDEN)
    call_command("audit_memory")
    assert "day" not in capsys.readouterr().out


def test_of_what_the_children_do_not_hold_there_is_no_share(settled, capsys):
    Entry.objects.filter(granularity="conversation").update(summary="- Ana was in Vienna.")
    call_command("audit_memory")
    assert "–" in capsys.readouterr().out.splitlines()[3]


def test_details_missing_in_an_entry_are_counted(project, owner, scripted):
    session = Session.objects.create(project=project, creator=owner, title="Talk")
    text = "Ana moved the cutover to 3 March; see INFRA-2231. Ben Adler budgets €1,200 for Vienna."
    post_messages(session, [draft(text)])
    scripted.say("- Ana moved the cutover to 3 March. [1]")
    cycle.run(timezone.now() + timedelta(hours=1), project)
    [entry] = session.entries.all()
    assert entry.particulars == 6
    lost = losses.count_losses(entry.losses)
    assert 0 < lost < 6
    assert kept_by_layer(project) == {"conversation": 1 - lost / 6}
    sessions.update_session(session, visibility=Visibility.PRIVATE)
    entry.refresh_from_db()
    assert entry.losses == [{"kind": "more", "text": str(lost)}]


def test_a_private_chat_lists_no_losses(project, owner, scripted):
    fields = {"title": "Talk", "visibility": Visibility.PRIVATE}
    session = Session.objects.create(project=project, creator=owner, **fields)
    text = "Ana moved the cutover to 3 March; see INFRA-2231. Ben Adler budgets €1,200 for Vienna."
    post_messages(session, [draft(text)])
    scripted.say("- Ana moved the cutover to 3 March. [1]")
    cycle.run(timezone.now() + timedelta(hours=1), project)
    [entry] = session.entries.all()
    assert [loss["kind"] for loss in entry.losses] == ["more"]


def test_an_unknown_project_is_named():
    with pytest.raises(CommandError, match="no project “nowhere”"):
        call_command("audit_memory", "--project", "nowhere")
