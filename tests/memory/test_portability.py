"""A project as a file, and the same project again from it."""

import errno
import io
import json
import os
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.files.storage import Storage, default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.fields.files import FieldFile
from django.test import AsyncClient
from django.utils import timezone

from chat.attachments import claim_uploads, upload_image
from chat.conversations import edits
from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import delete_session, restore_session
from chat.importers import FileResult, ImportRejectedError, import_file
from chat.models import Attachment, Message, MessageRevision, Session, Visibility
from memory import blocks, facts
from memory.facts import Statement
from memory.forgetting.service import ForgetScope, forget
from memory.layers import conversations, cycle
from memory.layers.bank_cache import rendered_bank
from memory.layers.history import bank_as_of
from memory.models import (
    Entry,
    EntryStatus,
    Fact,
    FactSource,
    File,
    FileRevision,
    IndexCursor,
)
from memory.moderation import entry_operations
from memory.portability import ExportScope, export, file_name
from memory.portability.rows import derived_id
from memory.portability.tables import TABLES
from memory.recall import RecallScope, indexing, recall
from projects.core.errors import InvalidInputError
from projects.core.models import new_id
from projects.models import Membership, Project
from projects.services import create_project
from tests.chat.pictures import picture
from tests.memory.file_helpers import MANUAL, add_read, add_text
from tests.memory.recall_helpers import AT

# What is edited is edited now, whatever the day that is talked of.
# Far enough ahead for all that is said until the last of these tests.
NOW = timezone.now() + timedelta(hours=12)

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGES = [
    "The cutover to the new database is on the third of March.",
    "The replica stays up for seven days after it.",
    "Invoice 4711 over 320 euros is due in April.",
    "Ann owns the billing service from now on.",
]
YEAR_1 = "0001-01-01T00:00:00+00:00"
QUESTIONS = ["When is the cutover?", "Who owns billing?", "What about invoice 4711?"]


def add_session(project, user, *texts: str, day: int = 0, **fields) -> Session:
    at = AT + timedelta(days=day)
    session = Session.objects.create(
        project=project, creator=user, created_at=at, last_activity_at=at, **fields
    )
    drafts = [
        draft(text, author=user, created_at=at + timedelta(minutes=place))
        for place, text in enumerate(texts)
    ]
    post_messages(session, drafts)
    return session


@pytest.fixture
def lived(project, owner, editor):
    """Some days of talk that was remembered, settled, edited, branched and deleted."""
    Project.objects.filter(pk=project.pk).update(
        bank_max_tokens=300,
        memory_daily_tokens=2_000_000_000,
        custom_context={"team": "Platform"},
        close_after_hours=12,
        min_index_chars=15,
    )
    project.refresh_from_db()
    sessions = [
        add_session(project, owner, *MESSAGES, f"Day {day}: build {day * 7} passed.", day=day)
        for day in range(4)
    ]
    add_session(project, editor, "My salary is 93,500 euros.", visibility=Visibility.PRIVATE)
    first = sessions[0].messages.get(seq=1)
    edits.edit(first, f"{MESSAGES[0]} At noon.", owner)
    edits.react(first, owner, "👍", wanted=True)
    edits.delete(sessions[1].messages.get(seq=5))
    edits.fork(sessions[2].messages.get(seq=2), editor)
    for _ in range(3):
        cycle.run(NOW, project)
    indexing.catch_up(project)
    for member in project.memberships.select_related("project", "user"):
        username = member.user.username
        facts.create_fact(member, Statement("Ann", "owns", f"billing, says {username}", AT))
        facts.create_fact(
            member, Statement("I", "prefer", f"tea ({username})", AT, user_id=member.user_id)
        )
    changed = Fact.objects.filter(project=project, user=None).first()
    copied_blocks = Statement(changed.subject, changed.predicate, "billing and tax", AT)
    facts.edit(changed, copied_blocks, owner)
    blocks.put(project, None, "rules", "Freeze on Fridays.", owner)
    blocks.put(project, editor, "me", "I am Edgar.", editor)
    return project


@pytest.fixture
def small(project, owner):
    """One talk, remembered."""
    session = add_session(project, owner, *MESSAGES)
    conversations.summarise(session.pk, NOW, force=True)
    Project.objects.filter(pk=project.pk).update(bank_max_tokens=300)
    project.refresh_from_db()
    return project


def written(extent: ExportScope) -> io.BytesIO:
    file = io.BytesIO()
    export(extent, file)
    return file


def lines(file: io.BytesIO, name: str) -> list[dict]:
    with zipfile.ZipFile(file) as archive:
        return [json.loads(line) for line in archive.read(f"{name}.jsonl").splitlines()]


def with_itself_as_parent(data: bytes) -> bytes:
    first, _, rest = data.partition(b"\n")
    row = json.loads(first)
    return json.dumps(row | {"parent": row["id"]}).encode() + b"\n" + rest


def with_first(**values):
    """Return a function that replaces values in the first row of a file."""

    def change(data: bytes) -> bytes:
        first, _, rest = data.partition(b"\n")
        return json.dumps(json.loads(first) | values).encode() + b"\n" + rest

    return change


def changed(file: io.BytesIO, name: str, change) -> io.BytesIO:
    """Return the export with one file replaced; with the change None, without it."""
    result = io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(result, "w") as out:
        for item in archive.namelist():
            data = archive.read(item)
            if item != name:
                out.writestr(item, data)
            elif change is not None:
                out.writestr(item, change(data))
    result.seek(0)
    return result


def import_into_new_project(owner, file: io.BytesIO, *members) -> Project:
    new_project = create_project(owner, name="Anew")
    for member in members:
        Membership.objects.create(project=new_project, user=member)
    result = import_file(new_project, owner, "project.zip", file, match_members=bool(members))
    assert result.errors == []
    new_project.refresh_from_db()
    indexing.catch_up(new_project)
    return new_project


def recall_results(project, user, question: str) -> list[tuple]:
    results = recall(RecallScope(project, user), question, limit=10)
    return [(result.text, result.speaker, result.occurred_at, result.score) for result in results]


def test_an_imported_project_equals_its_original(lived, owner, editor):
    copy = import_into_new_project(owner, written(ExportScope(lived)), editor)
    assert rendered_bank(copy).text == rendered_bank(lived).text != ""
    for question in QUESTIONS:
        assert recall_results(copy, owner, question) == recall_results(lived, owner, question) != []
    shape = ("granularity", "period_key", "state", "summary", "pinned", "revision", "tokens")
    rows = list(lived.entries.order_by("pk").values_list(*shape))
    assert list(copy.entries.order_by("pk").values_list(*shape)) == rows
    moment = NOW + timedelta(hours=1)
    assert bank_as_of(copy, moment).text == bank_as_of(lived, moment).text != ""
    assert (copy.bank_max_tokens, copy.memory_daily_tokens) == (300, 2_000_000_000)
    assert (copy.custom_context, copy.close_after_hours) == ({"team": "Platform"}, 12)
    assert (copy.indexed_roles, copy.min_index_chars) == (["user", "assistant"], 15)
    assert (copy.name, copy.slug) == ("Anew", "anew")
    copied_blocks = {(block.name, block.user_id, block.content) for block in copy.blocks.all()}
    assert copied_blocks == {
        (block.name, block.user_id, block.content) for block in lived.blocks.all()
    }


def test_a_conversation_comes_back_whole(lived, owner, editor):
    copy = import_into_new_project(owner, written(ExportScope(lived)), editor)
    shape = ("seq", "role", "author", "text", "version", "status", "created_at", "remembered")
    messages = Message.objects.filter(deleted_at=None).order_by("created_at", "session", "seq")
    rows = list(messages.filter(project=lived).values_list(*shape))
    assert list(messages.filter(project=copy).values_list(*shape)) == rows
    forks = Session.objects.filter(project=copy, messages__copied_from__isnull=False).distinct()
    assert forks.count() == 1
    [edited] = Message.objects.filter(project=copy, version__gt=1, deleted_at=None)
    assert edited.revisions.get().text == MESSAGES[0]
    assert edited.reactions.get().emoji == "👍"
    assert Message.objects.filter(project=copy).exclude(deleted_at=None).get().text == ""
    assert conversations.summarise(forks.get().pk, AT, force=True) is None


def fact_rows(project) -> list[tuple]:
    known = Fact.objects.filter(project=project).with_validity().order_by("pk")
    return list(known.values_list("user", "subject", "object", "valid_from", "until", "version"))


def test_facts_come_back_with_their_earlier_versions(lived, owner, editor):
    copy = import_into_new_project(owner, written(ExportScope(lived)), editor)
    assert fact_rows(copy) == fact_rows(lived) != []
    assert Fact.objects.filter(project=copy).exclude(earlier_of=None).count() == 1
    # What follows on a topic ends what was there.
    member = copy.memberships.select_related("project", "user").get(user=editor)
    facts.create_fact(member, Statement("I", "prefer", "coffee", NOW, user_id=editor.pk))
    tea = (
        Fact.objects.filter(project=copy, user=editor).with_validity().get(object__startswith="tea")
    )
    assert tea.until == NOW


def test_extracted_facts_come_back_with_their_message(lived, owner, editor):
    entry = Entry.objects.filter(project=lived, session__creator=owner).first()
    message = entry.session.messages.get(seq=2)
    fact = Fact(
        project=lived,
        subject="The replica",
        predicate="stays",
        object="seven days",
        valid_from=AT,
        written_by="test",
    )
    fact.set_keys()
    fact.save()
    place = {"session": entry.session, "message": message, "entry": entry}
    FactSource.objects.create(project=lived, fact=fact, valid_from=AT, confidence=1, **place)
    copy = import_into_new_project(owner, written(ExportScope(lived)), editor)
    [source] = FactSource.objects.filter(project=copy)
    assert (source.message.text, source.fact.object) == (message.text, "seven days")
    assert fact_rows(copy) == fact_rows(lived)


def test_nothing_is_done_twice_after_it(lived, owner, editor):
    copy = import_into_new_project(owner, written(ExportScope(lived)), editor)
    entries = copy.entries.count()
    for _ in range(2):
        cycle.run(NOW, copy)
    assert copy.entries.count() == entries
    assert rendered_bank(copy).text == rendered_bank(lived).text


def test_it_goes_on_after_it(lived, owner, editor):
    copy = import_into_new_project(owner, written(ExportScope(lived)), editor)
    session = Session.objects.filter(project=copy, creator=owner).first()
    post_messages(session, [draft("And now something new.", author=owner)])
    entry = conversations.summarise(session.pk, NOW, force=True)
    assert "something new" in entry.summary


@pytest.fixture
def image(lived, owner) -> Attachment:
    session = Session.objects.filter(project=lived, creator=owner).first()
    image = upload_image(session, owner, "map.png", io.BytesIO(picture()))
    claim_uploads(session.messages.get(seq=1), [image.pk], owner)
    return image


def test_texts_that_were_forgotten_here_are_not_imported_again(small, owner, editor):
    member = Membership.objects.select_related("project", "user").get(user=owner)
    fact, _ = facts.create_fact(member, Statement("Ann", "owns", "the vault", AT))
    blocks.put(small, None, "rules", "Freeze on Fridays.", editor)
    blocks.put(small, None, "style", "Short sentences.", owner)
    entry, file = Entry.objects.get(), written(ExportScope(small))
    forget(small, ForgetScope(fact=fact.pk))
    forget(small, ForgetScope(entry=entry.pk))
    forget(small, ForgetScope(user=editor.pk))
    Session.objects.all().delete()
    blocks.remove(small.blocks.get(name="style"), owner)
    import_file(small, owner, "export.zip", file)
    assert not Fact.objects.exists()
    assert not Entry.objects.exists()
    assert [row.name for row in small.blocks.all()] == ["style"]
    assert not Message.objects.filter(remembered=True).exists()


def test_a_memory_whose_messages_are_not_exported_is_not_rewritten(project, owner, editor):
    session = add_session(project, editor, *MESSAGES, visibility=Visibility.PRIVATE)
    conversations.summarise(session.pk, NOW, force=True)
    entry_operations.set_hidden(Entry.objects.get(), False, editor)
    edits.edit(session.messages.get(seq=1), "The cutover is in May.", editor)
    stale = Entry.objects.get()
    assert stale.state == EntryStatus.STALE
    copy = create_project(owner, name="Copy")
    import_file(copy, owner, "export.zip", written(ExportScope(project, owner)))
    cycle.run(NOW, copy)
    entry = Entry.objects.get(project=copy)
    assert (entry.summary, entry.state) == (stale.summary, EntryStatus.LIVE)
    with pytest.raises(InvalidInputError, match="without its sources"):
        entry_operations.request_rewrite(entry, owner)


def test_imported_chats_that_are_restored_keep_corrected_memories(small, owner):
    session = Session.objects.get(project=small)
    add_read(small, owner, session=session)
    cycle.run(NOW, small)
    for entry in Entry.objects.filter(project=small, granularity="conversation"):
        entry_operations.edit(entry, "- Corrected by hand.", owner)
    copy = create_project(owner, name="Copy")
    import_file(copy, owner, "export.zip", written(ExportScope(small)))
    restored = Session.objects.get(project=copy)
    delete_session(restored)
    restore_session(restored.pk)
    cycle.run(NOW, copy)
    entries = Entry.objects.filter(project=copy, granularity="conversation")
    assert list(entries.values_list("summary", "withheld")) == [("- Corrected by hand.", False)] * 2


def test_a_hidden_message_can_be_shown_again_after_an_administrators_export(small, owner):
    message = Message.objects.get(project=small, seq=1)
    edits.edit(message, "The cutover is in May.", owner)
    edits.hide(message)
    [row] = (
        row for row in lines(written(ExportScope(small, owner)), "messages") if row["seq"] == 1
    )
    assert row["text"] == ""
    assert lines(written(ExportScope(small, owner)), "revisions") == []
    copy = create_project(owner, name="Copy")
    import_file(copy, owner, "export.zip", written(ExportScope(small)))
    hidden = Message.objects.get(project=copy, seq=1)
    assert hidden.deleted_at is not None
    shown = edits.show(hidden)
    assert shown.text == "The cutover is in May."
    assert [revision.text for revision in shown.revisions.all()] == [MESSAGES[0]]


def test_an_image_comes_back(lived, owner, editor, image):
    copy = import_into_new_project(owner, written(ExportScope(lived)), editor)
    [found_message] = Message.objects.filter(project=copy, attachments__isnull=False)
    attachment = found_message.attachments.get()
    assert (attachment.name, attachment.width) == ("map.png", image.width)
    assert attachment.file.read()


def test_no_part_of_an_image_is_left_on_a_full_disk(lived, owner, image, monkeypatch):
    def write(row, name, content, **options) -> None:
        saved.append(default_storage.save(row.field.generate_filename(row.instance, name), content))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    saved: list[str] = []
    archive, copy = written(ExportScope(lived)), create_project(owner, name="Anew")
    monkeypatch.setattr(FieldFile, "save", write)
    with pytest.raises(OSError, match="No space left"):
        import_file(copy, owner, "project.zip", archive)
    assert not default_storage.exists(saved[0])


def test_stored_files_are_copied_without_a_connection(lived, image, monkeypatch):
    held, open_file = [], Storage.open

    def record_and_open(storage, name, mode="rb"):
        held.append(connection.connection is not None)
        return open_file(storage, name, mode)

    monkeypatch.setattr(Storage, "open", record_and_open)
    export(ExportScope(lived), io.BytesIO())
    assert held == [False]


def test_each_line_is_as_its_schema_says(lived):
    # Imported here, because it takes seconds in each process of a parallel run.
    from jsonschema import Draft202012Validator

    file = written(ExportScope(lived))
    with zipfile.ZipFile(file) as archive:
        schema = json.loads(archive.read("schema.json"))
        project = json.loads(archive.read("project.json"))
    checked = 0
    for name in schema["$defs"]:
        rows = [project] if name == "project" else lines(file, name)
        checker = Draft202012Validator({"$ref": f"#/$defs/{name}", **schema})
        for row in rows:
            checker.validate(row)
            checked += 1
    assert checked > 50


class TestExportedData:
    def test_an_owner_gets_no_private_data_of_others(self, lived, owner):
        file = written(ExportScope(lived, owner))
        with zipfile.ZipFile(file) as archive:
            whole = b"".join(archive.read(name) for name in archive.namelist()).decode()
        assert "93,500" not in whole
        assert "I am Edgar" not in whole
        assert "tea (edgar)" not in whole
        assert MESSAGES[1] in whole
        hidden = [line for line in lines(file, "sessions") if line["visibility"] == "private"]
        assert [entry["title"] for entry in hidden] == [""]

    def test_an_owner_gets_no_name_that_a_client_gave_to_a_private_chat(self, lived, owner):
        private = Session.objects.filter(project=lived, visibility=Visibility.PRIVATE)
        private.update(source_key="v1:2:salary talks")
        file = written(ExportScope(lived, owner))
        with zipfile.ZipFile(file) as archive:
            assert all(b"salary talks" not in archive.read(name) for name in archive.namelist())
        project = import_into_new_project(owner, file)
        assert not Session.objects.filter(project=project).exclude(source_key=None).exists()
        cycle.run(NOW + timedelta(days=40), project)

    def test_the_export_of_a_member_can_be_imported_without_the_text_of_others(
        self, lived, owner, editor
    ):
        asked = add_session(lived, editor, "Where is the key?")
        post_messages(asked, [draft("In the hall.", author=owner)])
        Session.objects.filter(pk=asked.pk).update(creator=owner)
        file = written(ExportScope(lived, editor, only_own=True))
        project = import_into_new_project(owner, file)
        assert not IndexCursor.objects.due().filter(project=project).exists()

    def test_the_export_of_a_member_has_only_own_data(self, lived, editor):
        file = written(ExportScope(lived, editor, only_own=True))
        texts = [line["content"] for line in lines(file, "blocks")]
        assert texts == ["I am Edgar."]
        exported_texts = {line["text"] for line in lines(file, "messages")}
        assert "My salary is 93,500 euros." in exported_texts
        assert {line["creator"] for line in lines(file, "sessions")} == {"edgar"}

    def test_an_owner_gets_no_text_that_is_withheld(self, small, owner, editor, remember):
        private = add_session(small, editor, "About money.", visibility=Visibility.PRIVATE)
        entry = remember("- The salary is secret", private, state="proposed", note="secret")
        entry_operations.set_hidden(entry, True, editor)
        file = written(ExportScope(small, owner))
        [row] = [row for row in lines(file, "entries") if row["id"] == str(entry.pk)]
        assert (row["withheld"], row["summary"], row["lines"], row["note"]) == (True, "", [], "")
        import_into_new_project(owner, file)

    def test_an_owner_gets_no_fact_as_it_was_proposed_in_a_private_chat(self, small, owner, editor):
        def add_source(session: Session) -> None:
            place = {"session": session, "message": session.messages.first()}
            place |= {"entry": small.entries.get(), "valid_from": AT, "confidence": 1}
            FactSource.objects.create(project=small, fact=fact, **place)

        shared = Session.objects.get(project=small)
        private = add_session(small, editor, "It is 93,500.", visibility=Visibility.PRIVATE)
        member = Membership.objects.select_related("project", "user").get(user=editor)
        fact = facts.create_fact(member, Statement("Pay", "is", "93,500", AT))[0]
        Fact.objects.update(by_hand=False, state="proposed", waits_because="instructions")
        add_source(private)
        facts.edit(fact, Statement("Pay", "is", "high", AT), editor)
        facts.approve(fact, editor)
        add_source(shared)
        for viewer, number in ((owner, 1), (editor, 2), (None, 2)):
            rows = lines(written(ExportScope(small, viewer)), "facts")
            assert ["high", "93,500"][:number] == [row["object"] for row in rows]

    @pytest.mark.parametrize("is_of_owner", [False, True])
    def test_nothing_of_a_deleted_chat_is_exported(self, small, owner, is_of_owner):
        delete_session(Session.objects.get(project=small))
        file = written(ExportScope(small, owner if is_of_owner else None))
        assert lines(file, "entries") == lines(file, "entry_states") == []
        assert not import_into_new_project(owner, file).entries.exists()

    def test_a_deleted_message_has_no_tool_calls(self, lived):
        message = Message.objects.filter(project=lived).exclude(deleted_at=None).first()
        message.tool_calls = [{"id": "1", "name": "find", "arguments": "secret"}]
        message.save()
        [row] = [
            row
            for row in lines(written(ExportScope(lived)), "messages")
            if row["id"] == str(message.pk)
        ]
        assert row["tool_calls"] == []

    def test_a_deleted_message_is_a_place(self, lived):
        rows = lines(written(ExportScope(lived)), "messages")
        assert [row["text"] for row in rows if row["deleted_at"]] == [""]
        assert not any("Day 1" in json.dumps(row) for row in rows)


class TestWhoIsWho:
    def test_a_former_member_keeps_their_name(self, lived, owner):
        copy = import_into_new_project(owner, written(ExportScope(lived)))
        salary = Message.objects.get(project=copy, text__contains="93,500")
        assert (salary.author, salary.author_name, salary.session.creator) == (None, "edgar", None)
        assert not copy.blocks.exclude(user=None).exists()
        assert set(Fact.objects.filter(project=copy).values_list("user", flat=True)) == {
            None,
            owner.pk,
        }

    def test_nobody_reads_what_a_stranger_keeps_private(self, lived, owner):
        copy = import_into_new_project(owner, written(ExportScope(lived)))
        assert recall_results(copy, owner, "What is the salary?") == [] or not any(
            "93,500" in recall_result[0]
            for recall_result in recall_results(copy, owner, "What is the salary?")
        )


ITEM = {"kind": "day", "id": str(uuid4()), "revision": 1, "tokens": 1}


class TestForging:
    """A file may claim any author; an owner who uploads it speaks only for themselves."""

    def upload(self, lived, owner, editor) -> Project:
        new_project = create_project(owner, name="Anew")
        Membership.objects.create(project=new_project, user=editor)
        import_file(new_project, owner, "p.zip", written(ExportScope(lived)))
        return new_project

    def test_a_member_has_written_nothing_in_an_uploaded_export(self, lived, owner, editor):
        salary = Message.objects.get(project=lived, text__contains="93,500")
        edits.edit(salary, "My salary is 93,600 euros.", editor)
        entry = lived.entries.first()
        Entry.objects.filter(pk=entry.pk).update(written_by="edgar")
        new_project = self.upload(lived, owner, editor)
        assert not Message.objects.filter(project=new_project, author=editor).exists()
        assert Message.objects.filter(project=new_project, author=owner).exists()
        spoken = Message.objects.get(project=new_project, text__contains="93,600")
        assert spoken.speaker == "edgar"
        revisions = MessageRevision.objects.filter(project=new_project, message=spoken)
        assert list(revisions.values_list("edited_by", flat=True)) == [None]
        writers = set(new_project.entries.values_list("written_by", flat=True))
        writers |= set(new_project.facts.values_list("written_by", flat=True))
        assert "edgar" not in writers and "edgar (imported)" in writers

    def test_an_import_does_not_show_which_accounts_exist(self, lived, owner, editor, stranger):
        first, second = lived.entries.all()[:2]
        Entry.objects.filter(pk=first.pk).update(written_by="stan")
        Entry.objects.filter(pk=second.pk).update(written_by="nobody")
        writers = set(
            self.upload(lived, owner, editor).entries.values_list("written_by", flat=True)
        )
        assert {"stan (imported)", "nobody (imported)"} <= writers

    def test_a_member_gets_no_private_chat_or_block_from_an_uploaded_export(
        self, lived, owner, editor
    ):
        new_project = self.upload(lived, owner, editor)
        private = Session.objects.get(project=new_project, visibility=Visibility.PRIVATE)
        assert private.creator is None
        for member in (owner, editor):
            assert not Session.objects.visible_to(member).filter(pk=private.pk).exists()
        assert not new_project.blocks.filter(user=editor).exists()
        assert not new_project.facts.filter(user=editor).exists()

    def test_the_import_is_in_the_activity_log(self, lived, owner, editor, tmp_path, api, client):
        path = tmp_path / "billing.zip"
        call_command("export_project", path, project="billing")
        call_command("import_project", path, owner="olive", name="Anew", members=True)
        new_project = Project.objects.get(name="Anew")
        assert Message.objects.filter(project=new_project, author=editor).exists()
        [act] = (
            api(owner)
            .get(f"/api/v1/projects/{new_project.slug}/activity/?verb=imported")
            .json()["results"]
        )
        messages = Message.objects.filter(project=new_project).count()
        chats = Session.objects.filter(project=new_project).count()
        assert (act["by"], act["count"]) == ("olive", messages)
        assert act["receipt"] == {"sessions": chats, "refused": 0}
        client.force_login(owner)
        page = client.get(f"/projects/{new_project.slug}/memory/activity/").content.decode()
        assert f"imported {chats} chats with {messages} messages" in page


class TestRefusing:
    def test_it_takes_an_empty_project(self, small, owner):
        with pytest.raises(ImportRejectedError, match="empty project"):
            import_file(small, owner, "p.zip", written(ExportScope(small)))

    def test_its_files_must_fit_into_the_quota(self, small, owner, settings):
        add_text(small, owner)
        add_text(small, owner, name="copy.md")
        file = written(ExportScope(small))
        settings.PROJECT_FILES_MB = 1.9 * len(MANUAL) / 2**20
        project = create_project(owner, name="Anew")
        with pytest.raises(ImportRejectedError, match="The files are larger"):
            import_file(project, owner, "p.zip", file)
        assert not FileRevision.objects.filter(project=project).exists()
        assert not list(Path(settings.MEDIA_ROOT).glob(f"files/{project.pk}/*"))

    def test_it_takes_an_owner(self, small, owner, editor):
        new_project = create_project(owner, name="Anew")
        Membership.objects.create(project=new_project, user=editor)
        with pytest.raises(ImportRejectedError, match="Only an owner"):
            import_file(new_project, editor, "p.zip", written(ExportScope(small)))

    @pytest.mark.parametrize(
        ("name", "change", "reason"),
        [
            ("manifest.json", lambda data: b'{"format": "other"}', "not a project export"),
            (
                "manifest.json",
                lambda data: data.replace(b'"version": 1', b'"version": 9'),
                "version 9",
            ),
            ("messages.jsonl", lambda data: data + b"{oops\n", "not JSON"),
            ("messages.jsonl", lambda data: data + b"[]\n", "JSON object"),
            (
                "messages.jsonl",
                lambda data: data.replace(b'"seq": 2', b'"seq": "x"', 1),
                "value of seq",
            ),
            (
                "messages.jsonl",
                lambda data: data.replace(b'"seq": 2', b'"seq": 1', 1),
                "inconsistent",
            ),
            ("entries.jsonl", lambda data: data.replace(b'"live"', b'"alive"', 1), "inconsistent"),
            ("project.json", lambda data: data.replace(b"300", b"3", 1), "greater than"),
            ("messages.jsonl", with_first(text=None), "row is not valid"),
            ("messages.jsonl", with_first(created_at=YEAR_1), "value of created_at"),
            ("sessions.jsonl", with_first(last_seq=2**31 - 1), "value of last_seq"),
            ("sessions.jsonl", with_first(tags=5), "row is not valid"),
            ("sessions.jsonl", with_first(tags=["a", None]), "row is not valid"),
            ("files.jsonl", with_first(name="\n"), "row is not valid"),
            ("file_revisions.jsonl", with_first(warnings=5), "row is not valid"),
            ("entries.jsonl", with_first(summary=None), "row is not valid"),
            ("entries.jsonl", with_first(zone="Mars/Base"), "row is not valid"),
            ("entries.jsonl", with_first(zone="Europe"), "row is not valid"),
            ("entries.jsonl", with_first(period_key="yesterday"), "row is not valid"),
            ("entries.jsonl", with_first(losses=[{"kind": "more"}]), "row is not valid"),
            ("facts.jsonl", with_first(subject=None), "row is not valid"),
            ("facts.jsonl", with_first(valid_from=YEAR_1), "value of valid_from"),
            ("facts.jsonl", with_first(confidence=float("nan")), "value of confidence"),
            ("messages.jsonl", with_itself_as_parent, "not above its child"),
            ("entries.jsonl", with_itself_as_parent, "not above its child"),
        ],
    )
    def test_a_damaged_archive_is_refused_whole(self, small, owner, name, change, reason):
        member = small.memberships.select_related("project", "user").get()
        facts.create_fact(member, Statement("Ann", "owns", "billing", AT))
        add_text(small, owner)
        damaged = changed(written(ExportScope(small)), name, change)
        new_project = create_project(owner, name="Anew")
        with pytest.raises(ImportRejectedError, match=reason):
            import_file(new_project, owner, "p.zip", damaged)
        assert not new_project.sessions.exists()
        assert not new_project.entries.exists()

    @pytest.mark.parametrize(
        "receipt",
        [
            {"sections": 1},
            {"sections": [1]},
            {"sections": [{"items": []}]},
            {"sections": [{"name": "bank", "tokens": 1, "items": [{"id": "x"}]}]},
            {"sections": [{"name": "bank", "tokens": 10**400, "items": []}]},
            {"sections": [{"name": "bank", "tokens": 1, "items": [ITEM | {"revision": 2**31}]}]},
            {"sections": [{"name": "bank", "tokens": 1, "items": [ITEM | {"tokens": -1}]}]},
        ],
    )
    def test_a_malformed_receipt_is_left_out(self, small, owner, receipt):
        file = changed(written(ExportScope(small)), "messages.jsonl", with_first(receipt=receipt))
        project = import_into_new_project(owner, file)
        messages = Message.objects.filter(project=project)
        assert [message.receipt for message in messages] == [{}] * len(MESSAGES)

    def test_a_file_without_bytes_is_left_out_and_reported(self, small, owner, client):
        add_text(small, owner)
        revision = FileRevision.objects.get(project=small)
        file = changed(written(ExportScope(small)), f"files/{revision.pk}", None)
        project = create_project(owner, name="Anew")
        result = import_file(project, owner, "p.zip", file)
        assert result.errors == ["Version 1 of a file: it is not in the export."]
        assert not File.objects.filter(project=project).exists()
        client.force_login(owner)
        assert client.get(f"/projects/{project.slug}/files/").status_code == 200

    def test_no_line_reaches_a_row_of_another_project(self, small, owner):
        other = add_session(create_project(owner, name="Other"), owner, "Elsewhere.")
        message = other.messages.get()
        damaged = io.BytesIO()
        with (
            zipfile.ZipFile(written(ExportScope(small))) as archive,
            zipfile.ZipFile(damaged, "w") as out,
        ):
            for name in archive.namelist():
                data = archive.read(name)
                if name == "messages.jsonl":
                    first = json.loads(data.splitlines()[0])
                    stray = first | {"id": str(new_id()), "session": str(other.pk), "seq": 99}
                    data += json.dumps(stray | {"parent": str(message.pk)}).encode() + b"\n"
                out.writestr(name, data)
        with pytest.raises(ImportRejectedError, match="not in the export"):
            import_file(create_project(owner, name="Anew"), owner, "p.zip", damaged)
        assert other.messages.count() == 1


def test_forgotten_text_does_not_come_back(lived, owner, editor):
    file = written(ExportScope(lived))
    target = create_project(owner, name="Anew")
    [salary] = [line for line in lines(file, "messages") if "93,500" in line["text"]]
    import_file(target, owner, "p.zip", file)
    pk = derived_id(target.pk, Message.objects.get(project=lived, text__contains="93,500").pk)
    forget(target, ForgetScope(message=pk))
    for session in Session.objects.filter(project=target):
        forget(target, ForgetScope(session=session.pk))
    Entry.objects.filter(project=target).delete()
    target.blocks.all().delete()
    target.facts.all().delete()
    import_file(target, owner, "p.zip", file)
    assert not Message.objects.filter(project=target, text__contains="93,500").exists()
    assert not target.entries.filter(summary__contains="93,500").exists()
    assert salary


class TestDoors:
    URL = "/api/v1/projects/billing/export/"

    def ask(self, user, url: str):
        from asgiref.sync import async_to_sync

        from projects.models import Token

        async def respond():
            answer = await AsyncClient().get(url, headers={"authorization": f"Bearer {token}"})
            if answer.status_code == 200:
                answer.body = b"".join([part async for part in answer.streaming_content])
            return answer

        _, token = Token.objects.create(user=user)
        return async_to_sync(respond)()

    def test_an_owner_exports_the_project(self, small, owner):
        answer = self.ask(owner, self.URL)
        assert answer["Content-Disposition"].startswith('attachment; filename="billing-2')
        assert len(lines(io.BytesIO(answer.body), "sessions")) == 1

    def test_a_member_exports_what_is_theirs(self, small, viewer, stranger):
        assert self.ask(viewer, self.URL).status_code == 404
        assert self.ask(viewer, f"{self.URL}?user=olive").status_code == 400
        answer = self.ask(viewer, f"{self.URL}?user=me")
        assert lines(io.BytesIO(answer.body), "messages") == []
        assert self.ask(stranger, f"{self.URL}?user=me").status_code == 404

    def test_the_command_writes_all_of_it_and_makes_a_project_of_it(
        self, lived, owner, editor, tmp_path, capsys
    ):
        path = tmp_path / "billing.zip"
        call_command("export_project", path, project="billing")
        with pytest.raises(CommandError, match="exists"):
            call_command("export_project", path, project="billing")
        call_command("import_project", path, owner="olive", members=True)
        output = capsys.readouterr().out
        new_project = Project.objects.get(slug__startswith="billing-")
        assert output.endswith(f"{new_project.slug}: 6 sessions, 23 messages\n")
        assert new_project.memberships.get(user=editor).role == "editor"
        assert rendered_bank(new_project).text == rendered_bank(lived).text

    def test_an_export_that_fails_leaves_no_file(self, project, tmp_path, monkeypatch):
        def fail(*arguments):
            raise OSError("The bucket does not answer.")

        path = tmp_path / "billing.zip"
        monkeypatch.setattr("memory.management.commands.export_project.export", fail)
        with pytest.raises(CommandError, match="bucket"):
            call_command("export_project", path, project="billing")
        assert not path.exists()

    def test_a_name_that_is_too_long_is_refused(self, lived, owner, tmp_path):
        path = tmp_path / "billing.zip"
        call_command("export_project", path, project="billing")
        with pytest.raises(CommandError, match="at most 120 characters"):
            call_command("import_project", path, owner="olive", name="a" * 121)

    def test_a_malformed_username_of_a_member_is_no_member(self, small, owner, tmp_path):
        file = changed(
            written(ExportScope(small)),
            "manifest.json",
            lambda data: data.replace(b'"olive"', b'"oli\\u0000ve"'),
        )
        path = tmp_path / "billing.zip"
        path.write_bytes(file.getvalue())
        call_command("import_project", path, owner="olive", name="Anew", members=True)
        assert Project.objects.get(name="Anew").memberships.count() == 1

    def test_the_command_says_what_is_wrong(self, tmp_path, owner):
        path = tmp_path / "x.zip"
        path.write_bytes(b"nothing")
        with pytest.raises(CommandError, match="not a zip"):
            call_command("import_project", path, owner="olive")
        with pytest.raises(CommandError, match="no user"):
            call_command("import_project", path, owner="nobody")
        assert not get_user_model().objects.filter(username="nobody").exists()


def test_an_upload_is_taken_in_by_the_imports_page(small, client, owner):
    from chat.importers import jobs

    new_project = create_project(owner, name="Anew", slug="anew")
    client.force_login(owner)
    file = written(ExportScope(small, owner))
    file.seek(0)
    file.name = "billing.zip"
    assert (
        client.post("/projects/anew/imports/", {"file": file, "format": "auto"}).status_code == 302
    )
    upload = new_project.imports.get()
    jobs.run_import(upload.pk)
    upload.refresh_from_db()
    assert (upload.state, upload.errors, upload.sessions) == ("done", [], 1)


def test_a_result_tells_how_much_came(small, owner):
    result = FileResult()
    new_project = create_project(owner, name="Anew")
    import_file(new_project, owner, "p.zip", written(ExportScope(small)), result=result)
    assert (result.sessions, result.imported) == (
        1,
        Message.objects.filter(project=new_project).count(),
    )


# Models of a project that are not exported, and why.
LEFT_OUT = {
    "projects.Membership": "The importing server decides who may do what; --members adds them.",
    "projects.Token": "It gives access to this server.",
    "projects.SpendingLimit": "What may be used on this server.",
    "projects.Invitation": "It gives access to this server.",
    "projects.SpentInvitation": "It belongs to a link to this server.",
    "projects.Bucket": "A rate limit of this server.",
    "projects.IdempotencyKey": "Requests to this server of the last day.",
    "chat.Seen": "What users have read on this server.",
    "chat.Import": "How a file was imported here.",
    "chat.ImportedStretch": "Which messages came with which file.",
    "chat.ModelProvider": "Its key belongs to this server.",
    "chat.ModelPrice": "A setting of this server.",
    "chat.Call": "What model calls of this server cost.",
    "projects.ServerModels": "The models of this server.",
    "chat.FileRemoval": "Work that is pending on this server.",
    "memory.Activity": "What was done here; it refers to ids that an import replaces.",
    "memory.Chunk": "The importing server creates the chunks from the messages.",
    "memory.Vector": "The importing server creates the vectors with its embedder.",
    "memory.Corpus": "The importing server counts again.",
    "memory.IndexCursor": "The progress of the index on this server.",
    "memory.RenderedBank": "The importing server renders the bank.",
    "memory.Ladder": "Work that is pending on this server.",
    "memory.Nudge": "Work that is pending on this server.",
    "memory.EntriesChanged": "Work that is pending on this server.",
    "memory.Webhook": "Its receiver trusts the secret of this server.",
    "memory.Delivery": "What was sent from this server.",
}


def test_every_table_is_exported_or_stays_behind_for_a_reason():
    """Whoever adds a table says which."""
    ours = {
        model._meta.label
        for name in ("projects", "chat", "memory")
        for model in apps.get_app_config(name).get_models()
    }
    exported = {table.model._meta.label for table in TABLES}
    assert exported | set(LEFT_OUT) | {Project._meta.label} == ours
    assert not exported & set(LEFT_OUT)


def test_the_name_of_the_file_has_the_day_in_the_projects_zone(project, owner, monkeypatch):
    project.timezone = "Pacific/Auckland"
    evening = datetime(2026, 3, 11, 20, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: evening)
    assert file_name(ExportScope(project)) == "billing-2026-03-12.zip"
