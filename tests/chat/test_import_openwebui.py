"""Import of Open WebUI exports. All content is invented."""

from copy import deepcopy

import pytest

from chat.importers import FileResult, ImportRejectedError, import_file, openwebui
from chat.importers.base import ImportedSession
from chat.models import Session
from tests.chat.exports import OPENWEBUI, document, file_of


def read(*chats: object) -> tuple[list[ImportedSession], FileResult]:
    result = FileResult()
    return list(openwebui.sessions(document(file_of(*chats)), result)), result


@pytest.fixture
def export() -> dict:
    return deepcopy(OPENWEBUI)


@pytest.mark.django_db
def test_a_chat_is_imported_with_its_versions(project, owner):
    result = import_file(project, owner, "chat-export.json", file_of(OPENWEBUI))
    session = Session.objects.get()
    [question, vega, sirius] = session.messages.order_by("seq")
    assert (result.imported, session.title) == (3, "Stars")
    assert (question.text, question.author) == ("Name a star.\n\n[image]", owner)
    assert (vega.text, vega.model, vega.parent_id) == ("Vega.", "llama3.2:3b", question.pk)
    assert sirius.parent_id == question.pk
    assert session.head_id == vega.pk


def test_an_archived_chat_stays_archived(export):
    archived = export | {"id": "2", "archived": True, "updated_at": 1_740_998_500}
    [chat, old], _ = read(export | {"archived": False}, archived)
    assert chat.archived_at is None
    assert old.archived_at.timestamp() == 1_740_998_500


def test_a_chat_without_history_is_read_in_a_row(export):
    export["chat"] = {
        "title": "Old",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
    }
    [session], _ = read(export)
    assert [(it.text, it.parent) for it in session.messages] == [("Hi", None), ("Hello", "1")]


def test_other_users_speak_under_their_ids(export):
    other = export | {"id": "2", "user_id": "abcdef0123"}
    [mine, theirs], _ = read(export, other)
    assert mine.messages[0].own
    assert (theirs.messages[0].own, theirs.messages[0].speaker) == (False, "User abcdef01")


def test_a_damaged_message_costs_only_itself(export):
    messages = export["chat"]["history"]["messages"]
    messages["b"]["content"] = None
    messages["c"] = 7
    [session], result = read(export)
    assert [it.key for it in session.messages] == ["q", "a"]
    assert len(result.errors) == 2


def test_a_damaged_message_keeps_the_path_above_it(export):
    history = export["chat"]["history"]
    history["messages"]["a"]["content"] = None
    history["messages"]["next"] = history["messages"]["q"] | {"id": "next", "parentId": "a"}
    history["currentId"] = "next"
    [session], _ = read(export)
    assert {it.key: it.parent for it in session.messages} == {"q": None, "b": "q", "next": "q"}
    assert session.head == "next"


def test_the_text_of_an_attached_document_is_kept(export):
    question = export["chat"]["history"]["messages"]["q"]
    question["files"] = [
        {"type": "file", "name": "stars.txt", "file": {"data": {"content": "Vega\n```"}}},
        {"type": "file", "name": "moons.txt", "file": {"data": {"status": "pending"}}},
        {"type": "file", "name": "x", "file": ""},
    ]
    [session], _ = read(export)
    assert session.messages[0].text == (
        "Name a star.\n\n[file: stars.txt]\n\n````\nVega\n```\n````\n\n"
        "[file: moons.txt]\n\n[file: x]"
    )


def test_the_items_of_an_answer_replace_its_content(export):
    answers = export["chat"]["history"]["messages"]
    message = {"type": "message", "content": [{"type": "output_text", "text": "Vega, of course."}]}
    thought = {"type": "reasoning", "content": [{"type": "output_text", "text": "Hm"}]}
    answers["a"] |= {"content": "", "output": [thought, message, 7]}
    answers["b"]["output"] = [thought]
    [session], _ = read(export)
    assert [it.text for it in session.messages[1:]] == ["Vega, of course.", "Sirius."]


def test_a_file_without_chats_is_refused():
    with pytest.raises(ImportRejectedError):
        read({"id": "x"}, 7)


def test_the_format_is_recognised_by_its_content():
    assert openwebui.recognises("anything", file_of(OPENWEBUI).read()[:500])
    assert not openwebui.recognises("chat-export.json", b'[{"mapping": {}}]')
