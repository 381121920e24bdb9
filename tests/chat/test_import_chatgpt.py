"""Import of ChatGPT exports. All content is invented."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection, transaction

from chat.conversations.branches import path_to
from chat.conversations.edits import clear
from chat.conversations.messages import post_message
from chat.importers import FileResult, ImportRejectedError, chatgpt, import_file
from chat.importers.base import ImportedSession
from chat.importers.writer import ImportWriter
from chat.models import Message, Session
from tests.chat.exports import BEGAN, BRANCHES, chatgpt_message, document, file_of, node, zip_of

BEGUN = datetime.fromtimestamp(BEGAN, UTC)
PAGE = [
    ("olive", "Where is the cape?"),
    ("Assistant", "It lies in the south."),
    ("olive", "[image: map.png]\n\nDraw its lighthouse on this.\n\n[file: notes.pdf]"),
    ("Assistant", "[image: A tower]"),
    ("olive", "And how high is it?"),
    ("Assistant", "Forty metres."),
]


def read(*conversations: object) -> tuple[list[ImportedSession], FileResult]:
    result = FileResult()
    return list(chatgpt.sessions(document(file_of(*conversations)), result)), result


def conversation(mapping: dict, current: object = None, **fields) -> dict:
    return {
        "id": "c",
        "title": "T",
        "create_time": BEGAN,
        "mapping": mapping,
        "current_node": current,
    } | fields


def page(session: Session) -> list[tuple[str, str]]:
    active_messages = path_to(session.messages.select_related("author"), session.head_id)
    return [(message.speaker, message.text) for message in active_messages]


@pytest.mark.django_db
def test_a_conversation_with_branches_becomes_what_its_page_showed(project, owner):
    result = import_file(project, owner, "conversations.json", file_of(BRANCHES))
    session = Session.objects.get()
    assert page(session) == PAGE
    assert (session.title, session.creator) == ("Lighthouse", owner)
    assert (result.sessions, result.imported, result.refused) == (1, 13, 0)
    assert not session.messages.filter(text__contains="Never say so").exists()


@pytest.mark.django_db
def test_the_same_file_again_adds_nothing(project, owner):
    import_file(project, owner, "conversations.json", file_of(BRANCHES))
    before = list(Session.objects.values())
    repeated_import = import_file(
        project, owner, "export.zip", zip_of({"conversations.json": file_of(BRANCHES).read()})
    )
    assert (repeated_import.imported, repeated_import.skipped) == (0, 13)
    assert list(Session.objects.values()) == before


@pytest.mark.django_db
def test_versions_are_siblings(project, owner):
    import_file(project, owner, "conversations.json", file_of(BRANCHES))
    by_key = {message.source_key: message for message in Message.objects.all()}
    question = by_key["u1b"]
    versions = Message.objects.filter(parent=question).order_by("seq")
    assert {it.text for it in versions} == {
        "In the north.",
        "Perhaps in the west.",
        "It lies in the south.",
    }
    assert by_key["u1a"].parent_id is by_key["u1b"].parent_id is None
    assert all(it.parent is None or it.parent.seq < it.seq for it in by_key.values())


@pytest.mark.django_db(transaction=True)
def test_a_message_during_an_import_stays_on_the_active_path(project, owner, monkeypatch):
    import_file(project, owner, "conversations.json", file_of(BRANCHES))
    session = Session.objects.get()
    known = ImportWriter._known

    def post() -> bool:
        """Post a message on a connection of its own; return False if the session is locked."""
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = 100")
                post_message(Session.objects.get(), "And how old?", author=owner)
        except OperationalError:
            return False
        finally:
            connection.close()
        return True

    def post_meanwhile(writer, sessions):
        with ThreadPoolExecutor(1) as pool:
            posted.append(pool.submit(post).result())
        return known(writer, sessions)

    posted: list[bool] = []
    monkeypatch.setattr(ImportWriter, "_known", post_meanwhile)
    longer = deepcopy(BRANCHES)
    longer["mapping"]["u4"] = node("a4", chatgpt_message("user", "Thanks", at=BEGAN + 100))
    longer["current_node"] = "u4"
    import_file(project, owner, "conversations.json", file_of(longer))
    if posted == [False]:
        post_message(session, "And how old?", author=owner)
    session.refresh_from_db()
    assert page(session)[-1] == ("olive", "And how old?")


@pytest.mark.django_db
def test_a_continued_chat_keeps_its_numbers_when_the_source_has_more(project, owner):
    import_file(project, owner, "conversations.json", file_of(BRANCHES))
    session = Session.objects.get()
    ours = post_message(session, "And how old?", author=owner)
    longer = deepcopy(BRANCHES)
    longer["mapping"]["u4"] = node("a4", chatgpt_message("user", "Thanks", at=BEGAN + 100))
    longer["current_node"] = "u4"
    assert import_file(project, owner, "conversations.json", file_of(longer)).imported == 1
    session.refresh_from_db()
    assert session.head_id == ours.pk
    assert Message.objects.get(source_key="u4").parent.source_key == "a4"


@pytest.mark.django_db
def test_a_longer_export_moves_the_path_on(project, owner):
    import_file(project, owner, "conversations.json", file_of(BRANCHES))
    longer = deepcopy(BRANCHES)
    longer["mapping"]["u4"] = node("a4", chatgpt_message("user", "Thanks", at=BEGAN + 100))
    longer["current_node"] = "u4"
    import_file(project, owner, "conversations.json", file_of(longer))
    assert page(Session.objects.get()) == [*PAGE, ("olive", "Thanks")]


@pytest.mark.django_db
@pytest.mark.parametrize("current", ["u4", "a4"])
def test_a_longer_export_does_not_bring_back_a_path_from_before_a_clearing(project, owner, current):
    import_file(project, owner, "conversations.json", file_of(BRANCHES))
    clear(Session.objects.get())
    longer = deepcopy(BRANCHES)
    longer["mapping"]["u4"] = node("a4", chatgpt_message("user", "Thanks", at=BEGAN + 100))
    longer["current_node"] = current
    assert import_file(project, owner, "conversations.json", file_of(longer)).imported == 1
    session = Session.objects.get()
    assert page(session) == ([("olive", "Thanks")] if current == "u4" else [])
    assert Message.objects.get(text="Thanks").parent_id is None


def test_times_are_kept_and_missing_ones_are_those_of_the_message_before():
    [session], _ = read(BRANCHES)
    at = {message.key: message.at for message in session.messages}
    assert at["u1b"] == BEGUN + timedelta(seconds=60)
    assert at["a3"] == BEGUN - timedelta(seconds=50)
    assert at["u2"] == at["a3"]
    assert at["lost"] == BEGUN


def test_the_model_is_kept():
    [session], _ = read(BRANCHES)
    assert {it.key: it.model for it in session.messages}["a3"] == "gpt-4o"


def test_a_circle_on_the_path_ends_it():
    circle = {
        "a": node("b", chatgpt_message("user", "A")),
        "b": node("a", chatgpt_message("assistant", "B")),
        "c": node("b", chatgpt_message("user", "C")),
        "self": node("self", chatgpt_message("user", "Me")),
    }
    [session], _ = read(conversation(circle, "c"))
    parents = {message.key: message.parent for message in session.messages}
    assert parents == {"a": None, "b": "a", "c": "b", "self": None}
    assert session.head == "c"


@pytest.mark.parametrize("current", [None, "gone", 7, {"no": "name"}])
def test_without_a_current_node_the_latest_counts(current):
    talk = {
        "a": node(None, chatgpt_message("user", "A")),
        "b": node("a", chatgpt_message("assistant", "B", at=BEGAN + 1)),
    }
    [session], _ = read(conversation(talk, current))
    assert session.head == "b"


def test_a_deep_conversation_is_no_recursion():
    talk = {"0": node(None, chatgpt_message("user", "0"))}
    talk |= {
        str(n): node(str(n - 1), chatgpt_message("user", str(n), at=None)) for n in range(1, 5000)
    }
    [session], _ = read(conversation(talk, "4999"))
    assert len(session.messages) == 5000
    assert session.head == "4999"


@pytest.mark.parametrize(
    "hidden",
    [
        chatgpt_message("system", "You are"),
        chatgpt_message("tool", "42"),
        chatgpt_message("assistant", "x", recipient="python"),
        chatgpt_message("assistant", "x", channel="analysis"),
        chatgpt_message("assistant", "x", metadata={"is_visually_hidden_from_conversation": True}),
        chatgpt_message("assistant", content={"content_type": "code", "text": "1 + 1"}),
        chatgpt_message(
            "assistant", content={"content_type": "reasoning_recap", "content": "Thought"}
        ),
        chatgpt_message(
            "user", content={"content_type": "user_editable_context", "user_profile": "x"}
        ),
        chatgpt_message("assistant", ""),
        chatgpt_message("user", {"content_type": "audio_asset_pointer"}),
        None,
    ],
)
def test_hidden_messages_are_left_out(hidden):
    talk = {
        "u": node(None, chatgpt_message("user", "Hi")),
        "h": node("u", hidden),
        "a": node("h", chatgpt_message("assistant", "Hello", at=BEGAN + 1)),
    }
    [session], result = read(conversation(talk, "a"))
    assert [(it.text, it.parent) for it in session.messages] == [("Hi", None), ("Hello", "u")]
    assert result.errors == []


def test_spoken_messages_are_imported_as_text():
    spoken = {"content_type": "audio_transcription", "text": "Good morning"}
    [session], _ = read(conversation({"a": node(None, chatgpt_message("user", spoken))}, "a"))
    assert session.messages[0].text == "Good morning"


def test_a_reference_shows_what_the_page_shows():
    mark = '\ue200entity\ue202["city","Bern"]\ue201'
    text = chatgpt_message(
        "assistant",
        f"In {mark} it rains.",
        metadata={"content_references": [{"matched_text": mark, "alt": "Bern"}, 7]},
    )
    [session], _ = read(conversation({"a": node(None, text)}, "a"))
    assert session.messages[0].text == "In Bern it rains."


@pytest.mark.parametrize(
    ("mark", "shown"),
    [
        ('\ue200entity\ue202["city","Bern","capital of Switzerland"]\ue201', "Bern"),
        ("\ue200url\ue202the forecast\ue202turn0search1\ue201", "the forecast"),
        ("\ue200link_title\ue202the forecast\ue202turn0search1\ue201", "the forecast"),
        ('\ue200genui\ue202{"math_block_widget":{"content":"a^2"}}\ue201', "\\(a^2\\)"),
        ("\ue203it\ue204", "it"),
        ("\ue200entity\ue202[7]\ue201", ""),
        ("\ue200entity\ue202[\ue201", ""),
        ("\ue200genui\ue201", ""),
    ],
)
def test_a_reference_that_the_export_does_not_explain_keeps_its_own_text(mark, shown):
    text = chatgpt_message("assistant", f"In {mark} it rains.")
    [session], _ = read(conversation({"a": node(None, text)}, "a"))
    assert session.messages[0].text == f"In {shown} it rains."


def test_a_reference_without_a_text_shows_its_name():
    mark = "\ue200product\ue202turn0product1\ue201"
    text = chatgpt_message(
        "assistant",
        f"Take the {mark}.",
        metadata={"content_references": [{"matched_text": mark, "alt": None, "name": "Umbrella"}]},
    )
    [session], _ = read(conversation({"a": node(None, text)}, "a"))
    assert session.messages[0].text == "Take the Umbrella."


def canvas_call(function: str, arguments: dict, kind: str = "code") -> dict:
    call = json.dumps(arguments)
    content = {"content_type": kind} | ({"text": call} if kind == "code" else {"parts": [call]})
    return chatgpt_message("assistant", recipient=f"canmore.{function}", content=content)


@pytest.mark.parametrize("kind", ["code", "text"])
def test_documents_of_the_canvas_are_kept(kind):
    created = {"name": "Tides", "type": "code/python", "content": "print('high')"}
    updates = [
        {"pattern": ".*", "multiple": False, "replacement": "print('low')"},
        {"pattern": "x", "replacement": ""},
        7,
    ]
    talk = {
        "u": node(None, chatgpt_message("user", "Write it.")),
        "c": node("u", canvas_call("create_textdoc", created, kind)),
        "t": node("c", chatgpt_message("tool", "Successfully created text document")),
        "d": node("t", canvas_call("update_textdoc", {"updates": updates}, kind)),
        "x": node("d", canvas_call("comment_textdoc", {"comments": []}, kind)),
        "y": node("x", canvas_call("create_textdoc", {}, kind)),
        "a": node("y", chatgpt_message("assistant", "Done.", at=BEGAN + 1)),
    }
    [session], result = read(conversation(talk, "a"))
    assert [it.text for it in session.messages] == [
        "Write it.",
        "[file: Tides]\n\n```python\nprint('high')\n```",
        "[file: Canvas]\n\n```\nprint('low')\n```",
        "Done.",
    ]
    assert result.errors == []


def test_the_name_of_a_document_does_not_make_a_text_grow_without_limit():
    updates = [{"replacement": "x"}] * 100
    call = canvas_call("update_textdoc", {"name": "n" * 10_000, "updates": updates})
    [session], _ = read(conversation({"c": node(None, call)}, "c"))
    assert len(session.messages[0].text) < 30_000


def test_a_document_cannot_close_its_code_block():
    created = {"name": "A", "type": "code/x\n", "content": "```\nx\n````"}
    talk = {"c": node(None, canvas_call("create_textdoc", created))}
    [session], _ = read(conversation(talk, "c"))
    assert session.messages[0].text == "[file: A]\n\n`````\n```\nx\n````\n`````"


@pytest.mark.parametrize("stored_as", [dict, json.dumps])
def test_a_report_of_deep_research_is_kept(stored_as):
    mark = "\ue200cite\ue202turn1view0\ue201"
    report = {
        "id": "r",
        "content": {"content_type": "text", "parts": [f"# Tides\nTwice a day.{mark}"]},
        "metadata": {"content_references": [{"matched_text": mark, "alt": " (noaa.gov)"}]},
    }
    state = stored_as({"status": "completed", "report_message": report})
    widget = chatgpt_message("tool", "", metadata={"chatgpt_sdk": {"widget_state": state}})
    talk = {"u": node(None, chatgpt_message("user", "Research it.")), "w": node("u", widget)}
    [session], _ = read(conversation(talk, "w"))
    assert session.messages[1].text == "# Tides\nTwice a day. (noaa.gov)"
    assert session.messages[1].role == "assistant"


@pytest.mark.django_db
def test_an_archived_chat_stays_archived_and_an_unremembered_one_unremembered(project, owner):
    talk = {"a": node(None, chatgpt_message("user", "Hi"))}
    archived = conversation(talk, "a", id="1", is_archived=True, update_time=BEGAN + 60)
    unremembered = conversation(talk, "a", id="2", is_do_not_remember=True, is_archived=False)
    file = file_of(*(it | {"conversation_id": it["id"]} for it in (archived, unremembered)))
    import_file(project, owner, "conversations.json", file)
    first, second = Session.objects.order_by("source_key")
    assert (first.archived_at.timestamp(), first.remembered) == (BEGAN + 60, True)
    assert (second.archived_at, second.remembered) == (None, False)
    assert [it.remembered for it in second.messages.all()] == [False]


@pytest.mark.django_db
def test_a_project_that_does_not_remember_does_not_remember_imported_messages(project, owner):
    project.memory_enabled = False
    project.save()
    import_file(project, owner, "conversations.json", file_of(BRANCHES))
    assert not Message.objects.filter(remembered=True).exists()


@pytest.mark.parametrize(
    "damaged",
    [7, node("u", {"author": {"role": "user"}, "content": {"content_type": "text"}}), node("u", 7)],
)
def test_a_damaged_message_costs_only_itself(damaged):
    talk = {
        "u": node(None, chatgpt_message("user", "Hi")),
        "x": damaged,
        "a": node("x", chatgpt_message("assistant", "Hello", at=BEGAN + 1)),
    }
    [session], result = read(conversation(talk, "a"))
    assert [it.text for it in session.messages] == ["Hi", "Hello"]
    [reason] = result.errors
    assert reason.startswith("Conversation 1: Message x: ")


def test_a_damaged_conversation_costs_only_itself():
    good = conversation({"a": node(None, chatgpt_message("user", "Hi"))}, "a")
    timeless = conversation(
        {"a": node(None, chatgpt_message("user", "Hi", at=None))}, "a", create_time=None
    )
    sessions, result = read(None, {}, {"mapping": []}, timeless, good, [])
    assert [session.key for session in sessions] == ["c"]
    assert len(result.errors) == 5


def test_a_truncated_file_keeps_its_complete_conversations():
    whole = file_of(BRANCHES, BRANCHES | {"id": "2", "conversation_id": "2"}).read()
    result = FileResult()
    [session] = chatgpt.sessions(document(io.BytesIO(whole[: len(whole) * 3 // 4])), result)
    assert session.title == "Lighthouse"
    assert result.errors == ["Conversation 2: The file breaks off here."]


@pytest.mark.parametrize("other", [b"", b"[]", b"{}", b"[1, 2]", b"nonsense", b'{"mapping": 1'])
def test_a_file_without_conversations_is_refused(other):
    with pytest.raises(ImportRejectedError, match="contains no conversation"):
        list(chatgpt.sessions(document(io.BytesIO(other)), FileResult()))


def test_the_format_is_recognised_by_its_content():
    assert chatgpt.recognises("anything", file_of(BRANCHES).read()[:600])
    assert chatgpt.recognises("anything", json.dumps(BRANCHES, indent=2).encode())
    assert not chatgpt.recognises("conversations.json", b'[{"chat_messages": []}]')


def test_references_do_not_make_a_text_grow_without_limit():
    mark = "\ue200a\ue201"
    references = [{"matched_text": mark, "alt": mark * 2}] * 20
    text = chatgpt_message(
        "assistant", f"In {mark} it rains.", metadata={"content_references": references}
    )
    [session], _ = read(conversation({"a": node(None, text)}, "a"))
    assert session.messages[0].text == "In  it rains."
    text = chatgpt_message(
        "assistant",
        mark * 1_000,
        metadata={"content_references": [{"matched_text": mark, "alt": "x" * 10_000}]},
    )
    [session], _ = read(conversation({"a": node(None, text)}, "a"))
    assert session.messages[0].text == "x" * 500_000
