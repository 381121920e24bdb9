"""Files: stored once, read into passages, indexed, and found by those who may see them."""

from io import BytesIO
from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from chat.conversations.sessions import create_session
from chat.models import Visibility
from memory.files import adding, passages, processing, reading
from memory.models import Chunk, File, FilePassage, FileRevision, FileState, SourceType, Vector
from memory.recall import RecallScope, chunk_writer, embedders, recall
from projects.core.errors import InvalidInputError, LimitError
from tests.memory.file_helpers import MANUAL, add_read, add_text, read
from tests.memory.hash_embedder import HashEmbedder

pytestmark = pytest.mark.django_db


def found(project, viewer, query="impeller seal", **scope) -> list[str]:
    scope.setdefault("source_types", [SourceType.FILE])
    return [it.text for it in recall(RecallScope(project, viewer, **scope), query, limit=20)]


def test_a_file_is_read_into_passages_and_found(project, owner):
    document = add_text(project, owner)
    [revision] = document.revisions.all()
    assert (revision.state, revision.size) == (FileState.WAITING, len(MANUAL.encode()))
    revision = read(document)
    assert (revision.state, revision.reason, revision.progress) == (FileState.READY, "", 100)
    chunks = Chunk.objects.filter(source=revision.pk).order_by("first_seq")
    rows = FilePassage.objects.filter(revision=revision).order_by("number")
    assert [chunk.pk for chunk in chunks] == [row.pk for row in rows]
    assert Vector.objects.filter(chunk__in=chunks).count() == len(rows) > 1
    [best, *_] = recall(
        RecallScope(project, owner, source_types=[SourceType.FILE]), "torque of the flange bolts"
    )
    assert "24 newton metres" in best.text
    assert best.text.startswith("Pump P-40 › Maintenance")
    assert best.speaker.startswith("manual.md")


def test_the_same_bytes_again_change_nothing(project, owner):
    document = add_read(project, owner)
    assert add_text(project, owner) == document
    assert FileRevision.objects.count() == 1
    stored = default_storage.listdir(f"files/{project.pk}")[1]
    assert len(stored) == 1


def test_copies_of_the_same_bytes_share_a_stored_file_until_the_last_is_gone(
    project, owner, django_capture_on_commit_callbacks
):
    first, second = add_text(project, owner), add_text(project, owner, "copy.md")
    [path] = set(FileRevision.objects.values_list("file", flat=True))
    with django_capture_on_commit_callbacks(execute=True):
        first.delete()
    assert default_storage.exists(path)
    with django_capture_on_commit_callbacks(execute=True):
        second.delete()
    assert not default_storage.exists(path)


def test_a_new_version_replaces_the_chunks_and_keeps_the_passages(project, owner):
    document = add_read(project, owner)
    [first] = document.revisions.all()
    newer = MANUAL.replace("nine months", "six months")
    assert add_read(project, owner, text=newer) == document
    texts = "\n".join(found(project, owner))
    assert "six months" in texts and "nine months" not in texts
    assert FilePassage.objects.filter(revision=first, text__contains="nine months").exists()
    assert document.revisions.count() == 2


def test_a_version_that_cannot_be_read_leaves_the_last_one_searchable(project, owner):
    add_read(project, owner, "manual.pdf", MANUAL)
    broken = adding.add_file(project, owner, "manual.pdf", BytesIO(b"%PDF-1.7\nbroken"))
    revision = read(broken)
    assert (revision.state, revision.reason) == (FileState.FAILED, "damaged")
    assert found(project, owner)


def test_a_file_that_failed_is_read_again_on_request(project, owner, monkeypatch):
    document = add_text(project, owner)

    def refuse(*args):
        raise reading.UnreadableFileError

    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_document", refuse)
        assert read(document).reason == "damaged"
    assert not processing.due().exists()
    adding.retry(document)
    assert read(document).state == FileState.READY


def test_a_failed_attempt_counts_once(project, owner):
    document = add_text(project, owner)
    default_storage.delete(document.revisions.get().file.name)
    revision = read(document)
    assert (revision.state, revision.failures) == (FileState.WAITING, 1)


def test_a_file_waits_for_the_embedder_and_says_why(project, owner, monkeypatch):
    def fail(*args):
        raise embedders.EmbedderError("The embedder is away.")

    document = add_text(project, owner)
    with monkeypatch.context() as patch:
        patch.setattr(HashEmbedder, "embed_documents", fail)
        patch.setattr(embedders, "get", HashEmbedder)
        revision = read(document)
    assert (revision.state, revision.last_error) == (FileState.INDEXING, "The embedder is away.")
    FileRevision.objects.update(next_try_at=None)
    assert read(document).state == FileState.READY


def test_a_worker_that_dies_while_it_indexes_is_continued(project, owner, monkeypatch):
    monkeypatch.setattr(processing, "INDEXED_BATCH_SIZE", 1)
    document, written = add_text(project, owner), []
    write = chunk_writer.write

    def die_at_the_second(plan, sources):
        if written:
            raise KeyboardInterrupt
        written.append(plan)
        return write(plan, sources)

    with monkeypatch.context() as patch:
        patch.setattr(chunk_writer, "write", die_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            read(document)
    revision = document.revisions.get()
    assert (revision.state, revision.indexed_passages) == (FileState.INDEXING, 1)
    monkeypatch.setattr(reading, "read_document", None)
    FileRevision.objects.update(lease_until=None)
    assert read(document).progress == 100
    assert Chunk.objects.count() == FilePassage.objects.count()


def test_a_file_forgotten_while_it_is_read_stays_forgotten(project, owner, monkeypatch):
    document = add_text(project, owner)
    read_document = reading.read_document

    def forget_meanwhile(*args):
        result = read_document(*args)
        File.objects.all().delete()
        return result

    monkeypatch.setattr(reading, "read_document", forget_meanwhile)
    processing.process(document.revisions.get().pk)
    assert not FilePassage.objects.exists()
    assert not Chunk.objects.exists()


def test_a_file_of_a_chat_is_found_by_its_readers_only(project, owner, editor):
    private = create_session(project, owner, visibility=Visibility.PRIVATE)
    shared = create_session(project, owner, visibility=Visibility.PROJECT)
    document = add_read(project, owner, session=private)
    assert found(project, owner)
    assert found(project, owner, files_of=private.pk)
    assert not found(project, owner, files_of=shared.pk)
    assert not found(project, owner, shared_only=True)
    assert not found(project, editor)
    assert File.objects.visible_to(owner).get() == document
    assert not File.objects.visible_to(editor).exists()
    private.visibility = Visibility.PROJECT
    private.save()
    assert found(project, editor)


def test_talk_is_recalled_as_if_there_were_no_files(project, owner):
    add_read(project, owner)
    assert not found(project, owner, source_types=[SourceType.TURN, SourceType.NOTE])


def test_a_project_in_another_language_has_its_files_indexed_again(project, owner):
    document = add_read(project, owner)
    project.search_language = "german"
    project.save()
    read(document)
    assert set(Chunk.objects.values_list("language", flat=True)) == {"german"}


def test_a_language_that_is_chosen_while_a_file_is_indexed_is_its_language(
    project, owner, monkeypatch
):
    document = add_text(project, owner)
    prepare = chunk_writer.prepare

    def choose_meanwhile(*args):
        project.search_language = "german"
        project.save()
        return prepare(*args)

    with monkeypatch.context() as patch:
        patch.setattr(chunk_writer, "prepare", choose_meanwhile)
        read(document)
    assert processing.catch_up(seconds=60)
    assert set(Chunk.objects.values_list("language", flat=True)) == {"german"}
    assert document.revisions.get().state == FileState.READY


def test_a_file_is_neither_empty_nor_too_large_nor_without_a_name(project, owner, settings):
    with pytest.raises(InvalidInputError):
        add_text(project, owner, text="")
    with pytest.raises(InvalidInputError):
        add_text(project, owner, name=" /")
    settings.PROJECT_FILES_MB = 0
    with pytest.raises(LimitError):
        add_text(project, owner)
    settings.MAX_FILE_MB = 0
    with pytest.raises(LimitError):
        add_text(project, owner)
    assert not File.objects.exists()
    assert not any(path.is_file() for path in Path(settings.MEDIA_ROOT).rglob(f"{project.pk}/*"))


def test_parts_of_a_name_without_visible_characters_are_left_out(project, owner):
    invisible = "\u200b" * 300
    assert add_text(project, owner, name=f"a{invisible}/{invisible}").name == "a"


def test_a_name_is_the_same_in_each_encoding_of_its_accents(project, owner):
    document = add_text(project, owner, "U\u0308bersicht.md")
    assert document.name == "\u00dcbersicht.md"
    assert add_text(project, owner, document.name, "Other text.") == document


@pytest.mark.parametrize("of_chat", [False, True])
def test_a_file_whose_stored_name_is_decomposed_is_recognised_and_renamed(project, owner, of_chat):
    session = create_session(project, owner) if of_chat else None
    document = add_text(project, owner, "\u00dcbersicht.md", session=session)
    for text, versions in ((MANUAL, 1), ("Other text.", 2)):
        File.objects.update(name="U\u0308bersicht.md")
        assert add_text(project, owner, document.name, text, session) == document
        assert File.objects.get().name == "\u00dcbersicht.md"
        assert document.revisions.count() == versions


def test_a_file_with_a_decomposed_name_keeps_it_beside_one_with_the_composed_name(project, owner):
    earlier, document = add_text(project, owner), add_text(project, owner, "\u00dcbersicht.md")
    File.objects.filter(pk=earlier.pk).update(name="U\u0308bersicht.md")
    assert add_text(project, owner, document.name, "Other text.") == document
    assert earlier.revisions.count() == 1


def test_each_copy_of_the_same_content_counts_towards_the_quota(project, owner, settings):
    settings.PROJECT_FILES_MB = 2 * len(MANUAL) / 2**20
    add_text(project, owner)
    add_text(project, owner, name="copy.md")
    assert FileRevision.objects.values("file").distinct().count() == 1
    with pytest.raises(LimitError):
        add_text(project, owner, name="another-copy.md")
    # The same content again changes nothing.
    add_text(project, owner)
    assert File.objects.filter(project=project).count() == 2


def test_passages_are_the_text_cut_at_lines_and_sentences():
    text = "A first sentence. A second one.\n" * 40 + "x" * 3_000 + "\n\n"
    parts = list(passages.split_text(text, 32))
    assert "".join(parts) == text
    assert all(part.strip() for part in parts)
    assert max(map(passages.token_counting.count, parts)) <= 34
