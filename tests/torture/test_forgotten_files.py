"""A file that many chats quote is forgotten, with all that was made of it."""

from datetime import timedelta
from io import BytesIO

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.conversations.generation import finalise
from chat.conversations.messages import ask, draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import Message
from chat.prompt import builder
from memory.files.adding import add_file
from memory.forgetting.service import ForgetScope, forget
from memory.models import Entry, EntryStatus, FileState, SourceType
from memory.recall import RecallScope, indexing, recall
from memory.recall.search import TRANSCRIPT_SOURCES
from projects.services import create_project
from tests.memory.file_helpers import read
from tests.memory.files.samples import pdf
from tests.scripted import Answer
from tests.torture.test_forgetting import CANARY, everywhere, settle

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = (
    "Page {number} describes the valve number {number} of the pump. "
    "The supplier of the valve number {number} is the company canary{number}x in Husum."
)
QUESTION = "Who is the supplier of the valve number {number}?"
PAGES = ("files", "memory", "memory-search", "project")


@pytest.fixture
def repeating_model(scripted):
    """A model that repeats every canary that it is shown."""

    def repeat(request):
        text = " ".join(message["content"] for message in request["messages"])
        birds = list(dict.fromkeys(CANARY.findall(text)))
        return Answer(f"- The supplier is {', '.join(birds[:20])}, and the pump is blue.")

    scripted.default = repeat
    return scripted


def canaries_of_a_prompt(turn: builder.Turn) -> list[str]:
    messages = [it.text for section in builder.build(turn).sections for it in section.messages]
    return CANARY.findall(" ".join(messages))


def talk_about(project, user, number: int, at) -> Message:
    """A chat whose reply quotes the file, as old as `at`."""
    session = create_session(project, user)
    question, reply = ask(session, QUESTION.format(number=number), user)
    turn = builder.Turn(session, question)
    birds = canaries_of_a_prompt(turn)
    assert birds, "No passage of the file was found."
    receipt = builder.build(turn).receipt()
    finalise(reply, f"It is {', '.join(birds)} [1].", "complete", {"receipt": receipt})
    Message.objects.filter(session=session).update(created_at=at)
    return reply


def test_nothing_is_left_of_a_file_that_chats_quote(owner, repeating_model, bucket, scale, tally):
    pages, chats = scale(500, 12), scale(40, 8)
    project = create_project(owner, name="Pumps", bank_max_tokens=160, idle_minutes=1)
    content = pdf(*(PAGE.format(number=number) for number in range(1, pages + 1)))
    document = add_file(project, owner, "valves of canary0x.pdf", BytesIO(content))
    assert read(document).state == FileState.READY
    now = timezone.now() + timedelta(hours=1)
    replies = [
        talk_about(
            project, owner, 1 + number * pages // chats, now - timedelta(days=40 - number // 2)
        )
        for number in range(chats)
    ]
    indexing.catch_up()
    settle(now)
    before = everywhere()
    digests = Entry.objects.exclude(granularity="conversation")
    assert digests.filter(summary__contains="canary").exists()
    assert any(CANARY.search(data.decode("latin-1")) for data in bucket.objects.values())
    tally("columns and files with canaries before", len(before))

    receipt = forget(project, ForgetScope(file=document.pk, replies=True), owner)
    assert receipt.removed["files"] == 1
    assert set(receipt.saw_it) == set()
    assert canaries_on_pages(project, owner, replies) == set()
    settle(now)
    indexing.catch_up()

    assert everywhere() == {}
    assert not any(CANARY.search(data.decode("latin-1")) for data in bucket.objects.values())
    assert canaries_on_pages(project, owner, replies) == set()
    for kinds in (TRANSCRIPT_SOURCES, (SourceType.FILE,), tuple(SourceType)):
        scope = RecallScope(project, owner, source_types=kinds)
        found = recall(scope, QUESTION.format(number=1), limit=50)
        assert not CANARY.search(" ".join(result.text for result in found))
    session = create_session(project, owner)
    [question] = post_messages(session, [draft(QUESTION.format(number=1), author=owner)])
    assert canaries_of_a_prompt(builder.Turn(session, question)) == []
    waiting = Entry.objects.filter(state=EntryStatus.STALE) | Entry.objects.filter(withheld=True)
    assert not waiting.exists()
    tally("replies that quoted the file", len(replies))


def canaries_on_pages(project, user, replies) -> set[str]:
    client = Client()
    client.force_login(user)
    paths = [reverse(name, args=[project.slug]) for name in PAGES]
    paths += [f"{path}?q=supplier+of+the+valve" for path in paths]
    paths += [reverse("session", args=[project.slug, reply.session_id]) for reply in replies]
    pages = [client.get(path) for path in paths]
    assert {page.status_code for page in pages} == {200}
    return {bird for page in pages for bird in CANARY.findall(page.content.decode())}
