"""Forgetting single messages one after the other removes their lines and changes nothing else."""

import random
from datetime import timedelta
from typing import Any

import pytest

from chat.models import Message
from memory.forgetting.service import ForgetScope, forget
from memory.layers import cycle
from memory.layers.bank_cache import rendered_bank
from memory.models import Call, Entry, EntryStatus
from tests.memory.test_forgotten_lines import START, talk_about

pytestmark = pytest.mark.django_db

NOUNS = ("invoice", "server", "contract", "garden", "bridge", "lesson", "recipe", "budget")


def texts_of_entries() -> dict[Any, dict]:
    """Return all that the page, the bank and the search show of each entry, except its losses."""
    columns = ("summary", "lines", "revision", "tokens", "state", "withheld", "parent")
    return {row.pop("pk"): row for row in Entry.objects.values("pk", *columns)}


def test_forgetting_removes_the_lines_of_each_message_and_nothing_else(project, owner, scale):
    project.bank_max_tokens = 300
    project.save()
    chance = random.Random(7)
    for talk in range(scale(30, 10)):
        texts = [
            f"We decided that {chance.choice(NOUNS)} {chance.choice('ABC')}-{talk}{place} costs"
            f" {chance.randint(100, 999)} euros and Ana owns {chance.choice(NOUNS)} {place}{talk}."
            for place in range(8)
        ]
        # Two on every other day.
        talk_about(project, owner, talk * 2 // 3, texts)
    cycle.run(START + timedelta(days=40))
    layers = set(Entry.objects.values_list("granularity", flat=True))
    assert layers >= {"conversation", "day", "week"}
    messages = list(Message.objects.order_by("pk"))
    chance.shuffle(messages)
    lost_lines = 0
    for message in messages[: scale(200, 30)]:
        before, source = texts_of_entries(), str(message.pk)
        receipt = forget(project, ForgetScope(message=message.pk))
        after = texts_of_entries()
        for pk, row in before.items():
            rest = [line for line in row["lines"] if source not in line["sources"]]
            if rest:
                assert after[pk]["lines"] == rest and not after[pk]["withheld"]
            if rest and rest == row["lines"]:
                assert after[pk] == row
        lost_lines += receipt.removed["lines"]
        assert message.text not in str(list(Entry.objects.values_list("summary", "lines")))
        assert message.text not in rendered_bank(project).text
    assert lost_lines > scale(60, 8)
    assert not Call.objects.exists()
    assert not Entry.objects.filter(state=EntryStatus.STALE, withheld=False).exists()
    cycle.run(START + timedelta(days=40))
    assert not Entry.objects.filter(state=EntryStatus.STALE).exists()
