"""Import of Claude exports. All content is invented."""

import json
from copy import deepcopy
from datetime import UTC, datetime
from functools import partial

import pytest

from chat.importers import FileResult, ImportRejectedError, claude, import_file
from chat.importers.base import ImportedFile, ImportedSession
from chat.models import Message, Session
from chat.signals import memories_imported
from tests.chat.exports import CLAUDE, document, file_of, zip_of

MEMORIES = [
    {
        "conversations_memory": "Bakes on Sundays.",
        "project_memories": {"p1": "Rye only.", "p2": ""},
        "account_uuid": "ac",
    }
]
PROJECTS = [
    {"uuid": "p1", "name": "Bakery", "description": "Bread", "prompt_template": "Be brief."}
]


def read(*conversations: object) -> tuple[list[ImportedSession], FileResult]:
    result = FileResult()
    return list(claude.sessions(document(file_of(*conversations)), result)), result


@pytest.fixture
def export() -> dict:
    return deepcopy(CLAUDE)


@pytest.fixture
def whole():
    """The zip file as exported."""
    return zip_of(
        {
            "users.json": b"[{}]",
            "memories.json": json.dumps(MEMORIES).encode(),
            "projects.json": json.dumps(PROJECTS).encode(),
            "conversations.json": file_of(CLAUDE).read(),
        }
    )


@pytest.mark.django_db
def test_a_conversation_is_imported_with_its_times_and_speakers(project, owner):
    import_file(project, owner, "conversations.json", file_of(CLAUDE))
    session = Session.objects.get()
    [question, reply] = session.messages.order_by("seq")
    assert (session.title, session.head_id) == ("Bread", reply.pk)
    assert (question.author, question.created_at) == (
        owner,
        datetime(2025, 3, 3, 10, 0, 1, tzinfo=UTC),
    )
    assert (reply.role, reply.parent_id, reply.speaker) == ("assistant", question.pk, "Assistant")


def test_thoughts_and_tools_are_left_out_and_files_are_noted(export):
    del export["chat_messages"][0]["attachments"][0]["extracted_content"]
    [session], _ = read(export)
    assert [message.text for message in session.messages] == [
        "How long does dough rest?\n\n[file: recipe.txt]\n\n[image: dough.jpeg]",
        "Two hours.",
    ]


def test_the_text_of_an_attached_document_is_kept(export):
    [session], _ = read(export)
    assert session.messages[0].text == (
        "How long does dough rest?\n\n[file: recipe.txt]\n\n```\nx\n```\n\n[image: dough.jpeg]"
    )


def test_a_message_that_is_only_pasted_text_is_kept(export):
    """Claude makes a long text that is pasted an attachment, without a name."""
    export["chat_messages"][0] |= {
        "text": "",
        "content": [],
        "attachments": [{"file_name": "", "file_size": 40, "extracted_content": "Rest it.\n"}],
        "files": [],
    }
    [session], _ = read(export)
    assert session.messages[0].text == "[file: pasted text]\n\n```\nRest it.\n\n```"


def test_artifacts_and_files_for_the_user_are_kept(export):
    def call(name: str, **arguments) -> dict:
        return {"type": "tool_use", "name": name, "input": arguments}

    export["chat_messages"][1]["content"] = [
        {"type": "text", "text": "Here it is."},
        call(
            "artifacts",
            command="create",
            id="plan",
            title="Plan",
            type="application/vnd.ant.code",
            language="python",
            content="rest(2)",
        ),
        {"type": "tool_result", "content": [{"type": "text", "text": "OK"}]},
        call("artifacts", command="update", id="plan", old_str="2", new_str="3"),
        call("create_file", path="/mnt/user-data/outputs/bread.md", file_text="# Bread"),
        call("create_file", path="/home/claude/try.py", file_text="print()"),
        call("artifacts", command="create", id="empty"),
        call("bash_tool", command="ls"),
        {"type": "tool_use", "name": "artifacts", "input": None},
        {"type": "text", "text": "Enjoy."},
    ]
    [session], _ = read(export)
    assert session.messages[1].text == (
        "Here it is.\n\n"
        "[file: Plan]\n\n```python\nrest(2)\n```\n\n"
        "[file: plan]\n\n```\n3\n```\n\n"
        "[file: bread.md]\n\n```\n# Bread\n```\n\n"
        "Enjoy."
    )


def of_organisation(export: dict, **files: object):
    other = deepcopy(export) | {"uuid": "c2", "account": {"uuid": "bo000000-1"}}
    for number, message in enumerate(other["chat_messages"]):
        message["uuid"] = f"n{number}"
    conversations = {"conversations.json": file_of(export, other).read()}
    others = {f"{name}.json": json.dumps(value).encode() for name, value in files.items()}
    return zip_of(conversations | others)


USERS = [
    {"uuid": "ac000000-0000-4000-8000-000000000001", "full_name": "Ana Lund"},
    {"uuid": "bo000000-1", "full_name": ""},
]


@pytest.mark.django_db
def test_users_of_an_organisation_are_not_the_importer(project, owner, export):
    import_file(project, owner, "export.zip", of_organisation(export, users=USERS))
    questions = Message.objects.filter(role="user").order_by("session__source_key")
    assert [(it.author, it.author_name) for it in questions] == [
        (None, "Ana Lund"),
        (None, "User bo000000"),
    ]
    replies = Message.objects.filter(role="assistant")
    assert {(it.author, it.author_name) for it in replies} == {(None, "")}


def test_without_a_list_of_users_the_first_is_the_importer(export):
    other = deepcopy(export) | {"uuid": "c2", "account": {"uuid": "bo000000-1"}}
    [mine, theirs], _ = read(export, other)
    assert (mine.messages[0].own, mine.messages[0].speaker) == (True, "")
    assert (theirs.messages[0].own, theirs.messages[0].speaker) == (False, "User bo000000")


def test_a_long_name_of_a_user_or_project_is_cut_in_each_memory():
    """A small file could name it in each of thousands of memories."""
    users = [{"uuid": "a", "full_name": "n" * 10_000}, {"uuid": "b"}]
    memories = {"project_memories": {"p": "Rye."}, "account_uuid": "a"}
    projects = {"uuid": "p", "name": "n" * 10_000}
    contents = {"users.json": users, "memories.json": [memories], "projects.json": [projects]}
    files = [ImportedFile(name, partial(file_of, *content)) for name, content in contents.items()]
    [text] = claude.memories(files, FileResult())
    assert text.endswith(": Rye.") and len(text) < 500


@pytest.mark.django_db
def test_memories_of_an_organisation_name_their_users(project, owner, export):
    memories = [
        {"conversations_memory": "Bakes.", "account_uuid": USERS[0]["uuid"]},
        {"project_memories": {"p": "Rye."}, "account_uuid": "bo000000-1"},
        {"conversations_memory": " ", "account_uuid": "x"},
    ]
    import_file(
        project, owner, "export.zip", of_organisation(export, users=USERS, memories=memories)
    )
    kept = Message.objects.filter(session__title="Memories from Claude").order_by("seq")
    assert [it.text for it in kept] == ["About Ana Lund: Bakes.", "About User bo000000: Rye."]


def test_an_old_export_has_texts_only(export):
    for message in export["chat_messages"]:
        del message["content"]
    [session], _ = read(export)
    assert session.messages[1].text.endswith("Two hours.")


def test_versions_are_siblings_where_the_export_names_parents(export):
    root = "00000000-0000-4000-8000-000000000000"
    first, second = export["chat_messages"]
    third = second | {"uuid": "m3", "content": [{"type": "text", "text": "Overnight."}]}
    first["parent_message_uuid"] = root
    second["parent_message_uuid"] = third["parent_message_uuid"] = "m1"
    export["chat_messages"].append(third)
    [session], _ = read(export)
    assert {it.key: it.parent for it in session.messages} == {"m1": None, "m2": "m1", "m3": "m1"}
    assert session.head == "m3"
    export["current_leaf_message_uuid"] = "m2"
    assert read(export)[0][0].head == "m2"


@pytest.mark.parametrize("damaged", [None, 7, {}, {"uuid": "x", "sender": "robot"}])
def test_a_damaged_message_costs_only_itself(export, damaged):
    export["chat_messages"].insert(1, damaged)
    [session], result = read(export)
    assert [message.key for message in session.messages] == ["m1", "m2"]
    assert result.errors == [result.errors[0]]
    assert result.errors[0].startswith("Conversation 1: Message 2: ")


def test_a_damaged_message_keeps_the_path_above_it(export):
    first, second = export["chat_messages"]
    damaged = {"uuid": "x", "sender": "robot", "parent_message_uuid": "m1"}
    first["parent_message_uuid"] = ""
    second["parent_message_uuid"] = "x"
    export["chat_messages"].insert(1, damaged)
    [session], result = read(export)
    assert [(it.key, it.parent) for it in session.messages] == [("m1", None), ("m2", "m1")]
    assert (session.head, len(result.errors)) == ("m2", 1)


def test_a_file_without_conversations_is_refused():
    with pytest.raises(ImportRejectedError):
        read({"uuid": "x"}, 7)


def test_the_format_is_recognised_by_its_content():
    assert claude.recognises("anything", file_of(CLAUDE).read()[:300])
    assert not claude.recognises("conversations.json", b'[{"mapping": {"a": 1}}]')


@pytest.mark.django_db
def test_memories_become_a_conversation_and_send_a_signal(project, owner, whole):
    received = []

    def hear(**text):
        received.append(text)

    memories_imported.connect(hear)
    try:
        result = import_file(project, owner, "data.zip", whole)
        import_file(project, owner, "data.zip", whole)
    finally:
        memories_imported.disconnect(hear)
    assert (result.sessions, result.imported, result.errors) == (2, 6, [])
    session = Session.objects.get(title="Memories from Claude")
    messages = list(session.messages.order_by("seq"))
    assert (session.creator, session.visibility) == (owner, "project")
    assert [message.text for message in messages] == [
        "Bakes on Sundays.",
        "Of the project Bakery: Rye only.",
        "The project Bakery: Bread",
        "Instructions of the project Bakery: Be brief.",
    ]
    assert {(it.role, it.speaker) for it in messages} == {("assistant", "Claude")}
    [report] = received
    assert (report["session"], report["messages"], report["source"]) == (
        session,
        messages,
        "claude",
    )


@pytest.mark.django_db
def test_a_memory_that_changed_is_added_to_those_before(project, owner, whole):
    import_file(project, owner, "data.zip", whole)
    later = zip_of(
        {
            "memories/a.json": json.dumps(
                MEMORIES[0] | {"conversations_memory": "Bakes."}
            ).encode(),
            "projects/p1.json": json.dumps(PROJECTS[0]).encode(),
            "conversations.json": file_of(CLAUDE).read(),
        }
    )
    result = import_file(project, owner, "data.zip", later)
    assert (result.imported, result.skipped) == (1, 5)
    assert Message.objects.order_by("created_at", "seq").last().text == "Bakes."


@pytest.mark.django_db
def test_each_user_has_memories_of_their_own(project, owner, editor, whole):
    for user in (owner, editor):
        import_file(project, user, "data.zip", whole)
    sessions = Session.objects.filter(title="Memories from Claude")
    assert {session.creator for session in sessions} == {owner, editor}


@pytest.mark.parametrize(
    ("memories", "projects"),
    [
        ([], []),
        ([{"conversations_memory": None, "project_memories": []}, 7, "x"], {}),
        ([{"conversations_memory": " ", "project_memories": {"p1": 7}}], [{"name": 7}]),
        ([], [PROJECTS[0] | {"is_starter_project": True}]),
        ([], [{"name": "Bakery", "description": "", "prompt_template": ""}]),
    ],
)
@pytest.mark.django_db
def test_where_nothing_is_remembered_there_is_no_such_conversation(
    project, owner, memories, projects
):
    files = {
        "memories.json": json.dumps(memories).encode(),
        "projects.json": json.dumps(projects).encode(),
        "conversations.json": file_of(CLAUDE).read(),
    }
    result = import_file(project, owner, "data.zip", zip_of(files))
    assert (result.sessions, result.imported, result.errors) == (1, 2, [])


@pytest.mark.django_db
def test_a_damaged_file_of_memories_costs_only_itself(project, owner):
    files = {
        "memories.json": b"[" * 2_000,
        "projects.json": json.dumps(PROJECTS).encode(),
        "conversations.json": file_of(CLAUDE).read(),
    }
    result = import_file(project, owner, "data.zip", zip_of(files))
    assert result.imported == 4
    assert result.errors == ["memories.json: It is nested too deeply."]
