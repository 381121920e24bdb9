"""`manage.py audit_memory`: what the digests carry of what they were made of, by kind."""

import json

import pytest
from django.core.management import CommandError, call_command

from memory.layers import digests
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
    name, head, day = capsys.readouterr().out.splitlines()
    assert name == settled.slug
    assert head.split() == ["layer", "digests", "identifiers", "dates", "names", "numbers", "all"]
    assert day.split() == ["day", "1", "100%", "100%", "33%", "0%", "50%"]


def test_as_json_the_shares_are_numbers(settled, capsys):
    call_command("audit_memory", "--json")
    [day] = json.loads(capsys.readouterr().out)[settled.slug].items()
    assert day == (
        "day",
        {
            "digests": 1,
            "identifiers": 1.0,
            "dates": 1.0,
            "names": pytest.approx(1 / 3),
            "numbers": 0.0,
            "all": 0.5,
        },
    )


def test_it_finds_what_was_counted_when_the_digests_were_written(settled):
    shares = {
        layer: statistics.share(ALL) for layer, statistics in particulars_by_layer(settled).items()
    }
    assert shares == kept_by_layer(settled)


def test_what_waits_or_is_hidden_is_not_told_of(settled, capsys):
    Entry.objects.filter(granularity="day").update(state=EntryStatus.HIDDEN)
    call_command("audit_memory")
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_of_what_the_children_do_not_hold_there_is_no_share(settled, capsys):
    Entry.objects.filter(granularity="conversation").update(summary="- Ana was in Vienna.")
    call_command("audit_memory")
    assert "–" in capsys.readouterr().out.splitlines()[2]


def test_an_unknown_project_is_named():
    with pytest.raises(CommandError, match="no project “nowhere”"):
        call_command("audit_memory", "--project", "nowhere")
