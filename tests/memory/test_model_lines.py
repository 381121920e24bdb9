"""The lines that a model writes rest on the messages that it names, as far as these exist."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from chat.conversations.messages import draft, post_messages
from chat.models import Session
from memory.layers import conversations, cycle
from memory.layers.lines import Line
from memory.layers.summarising.answers import Bullet
from memory.layers.summarising.base import MAX_LINES, DigestChild
from memory.layers.summarising.llm import ModelSummariser
from memory.models import Entry, EntryStatus
from projects.core import token_counting
from tests.memory.daily_entries import NOW, START, remember

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGES = ("The cutover is on 3 March.", "The replica stays a week.", "Ana owns billing now.")


@pytest.fixture
def session(project, owner):
    chat = Session.objects.create(project=project, creator=owner, title="Cutover")
    post_messages(chat, [draft(text) for text in MESSAGES])
    return chat


def summarise(session) -> Entry | None:
    later = datetime.now(UTC) + timedelta(hours=1)
    return conversations.summarise(session.pk, later, force=True)


def cited(entry: Entry, session: Session) -> list[list[int]]:
    """For each line, the numbers of its messages in the session."""
    seqs = dict(session.messages.values_list("pk", "seq"))
    return [[seqs[source] for source in line.sources] for line in entry.read_lines()]


def answer(*bullets) -> str:
    return json.dumps({"summary": bullets, "facts": []})


@pytest.mark.parametrize(
    ("reply_text", "expected"),
    [
        (answer({"text": "a", "lines": [1, 3]}, {"text": "b", "lines": [2]}), [[1, 3], [2]]),
        (answer({"text": "a", "lines": [0, 4, 99]}, {"text": "b", "lines": [4, 2]}), [[], [2]]),
        (answer({"text": "a"}, {"text": "b", "lines": []}), [[], []]),
        (answer({"text": "a", "lines": [2, 2, 2]}), [[2]]),
        (answer("a [3]", "b [1-2]"), [[3], [1, 2]]),
        ("- a [3]\n- b [1, 2]\n- c", [[3], [1, 2], []]),
        ("\n".join(f"- {word} [{n}]" for n, word in enumerate("abcde", 1)), [[1], [2], [3]]),
        ('{"summary": [{"text": "a", "lines": [1]}], "facts": [{"subject": "An', [[1]]),
    ],
    ids=["right", "wrong", "missing", "repeated", "texts", "plain", "too many", "half facts"],
)
def test_lines_have_the_messages_of_the_valid_numbers(session, scripted, reply_text, expected):
    scripted.say(reply_text)
    entry = summarise(session)
    assert cited(entry, session) == expected
    assert "[" not in entry.summary


@pytest.mark.parametrize(
    "half", ['{"summary": [{"text": "a", "lines": [1]}, {"text": "b", "li', '{"summary": [{"te']
)
@pytest.mark.parametrize("finish", ["length", "stop"])
def test_a_half_written_summary_is_no_entry(session, scripted, half, finish):
    scripted.say(half, finish=finish)
    assert summarise(session) is None
    assert not Entry.objects.exists()


def test_the_parts_of_a_long_conversation_keep_their_messages(session, scripted, settings):
    settings.CONTEXT_TOKENS = 4_000
    long = "And so on. " * 30
    post_messages(session, [draft(f"Part P-{n} weighs {n} grams. {long}") for n in range(120)])

    def says(request):
        last = request["messages"][-1]["content"]
        number = int(last.split("<transcript>")[1].split()[0])
        texts = (f"Part {number} weighs much", f"Ana owns box {number}")
        return answer(*({"text": text, "lines": [number]} for text in texts))

    scripted.default = says
    entry = summarise(session)
    numbers = cited(entry, session)
    # The first bullets of all parts come before the second ones.
    parts = len(scripted.requests)
    assert 2 < parts < len(numbers) == min(2 * parts, MAX_LINES)
    assert ["weighs" in line.text for line in entry.read_lines()] == [
        place < parts for place in range(len(numbers))
    ]
    assert numbers[0] == [1]
    assert numbers[:parts] == sorted(numbers[:parts])


def test_a_digest_rests_on_the_messages_of_the_lines_that_it_cites(project, owner, scripted):
    project.bank_max_tokens = 200
    project.save()
    messages = []
    for number in range(3):
        text = f"Talk {number} " + "about the cutover. " * 20
        entry = remember(project, owner, f"- {text}")
        messages.append(entry.session.messages.get().pk)
        entry.set_lines([Line(text.strip(), entry.day, sources=(messages[-1],))])
        entry.save()
    scripted.default = "- The cutover is planned. [1, 3]\n- Somebody talked."
    cycle.run(NOW, project)
    [day] = Entry.objects.filter(granularity="day")
    planned, talked = day.read_lines()
    assert planned.sources == (messages[0], messages[2])
    assert planned.day == START.date()
    assert talked.sources == ()
    assert day.state == EntryStatus.LIVE
    [request] = scripted.requests
    assert "\n3 (2026-01-05) Talk 2" in request["messages"][1]["content"]


def test_the_best_lines_of_a_digest_fit_into_the_context(settings):
    settings.CONTEXT_TOKENS = 2_600
    day, ids = START.date(), [uuid4() for _ in range(8)]
    filler = " and so on" * 20
    children = [
        DigestChild(
            f"Chat {n}",
            [
                Line(f"Less about L-{n}{filler}", day, score=1.0),
                Line(f"Much about M-{n}{filler}", day, sources=(ids[n],), score=2.0),
            ],
        )
        for n in range(8)
    ]
    prompts = []

    class Recorder:
        def ask(self, name, kind, messages, *limits):
            prompts.append(messages)
            rows = messages[1].text.splitlines()
            [number] = [int(row.split()[0]) for row in rows if "M-7" in row]
            return [Bullet("All of it.", (number,))]

    digest = ModelSummariser("openai:gpt-4o").digest("Week 1", children, Recorder())
    text = prompts[0][1].text
    assert all(f"M-{n} " in text for n in range(8))
    assert 1 <= sum(f"L-{n} " in text for n in range(8)) < 8
    assert token_counting.count(text) < 1_100
    assert digest.lines[0].sources == (ids[7],)
    # The audit compares all lines.
    assert {f"L-{n}" for n in range(8)} <= {loss.text for loss in digest.audit.missing}
