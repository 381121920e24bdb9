"""Zip files as exported, and such as are made to do harm."""

import io
import json
import os
import random
import struct
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from chat.importers import ImportRejectedError, check_file, import_file, zip_files
from chat.models import Message, Session
from tests.chat.exports import BRANCHES, CLAUDE, OPENWEBUI, file_of, zip_of

TALK = file_of(BRANCHES).read()
OTHER = BRANCHES | {"id": "2", "conversation_id": "2"}
# Megabytes that reading a file may take on top of what Strata itself does, whatever is in it.
ROOM = 160

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc"
)


def refusal(file: io.BytesIO, name: str = "export.zip") -> str:
    with pytest.raises(ImportRejectedError) as refused:
        check_file(name, file)
    return str(refused.value)


@pytest.mark.django_db
def test_numbered_parts_are_imported_and_the_rest_is_passed_over(project, owner):
    export = zip_of(
        {
            "mine/conversations-000.json": TALK,
            "mine/conversations-001.json": file_of(OTHER).read(),
            "mine/chat.html": b"<html>",
            "mine/user.json": b'{"id": "user"}',
            "__MACOSX/mine/._conversations-000.json": b"\0",
        }
    )
    result = import_file(project, owner, "export.zip", export)
    assert (result.sessions, result.imported, result.refused) == (2, 26, 0)


@pytest.mark.django_db
def test_a_part_that_is_damaged_costs_only_itself(project, owner):
    export = zip_of(
        {"conversations-000.json": b'[{"mapping": {"children"', "conversations-001.json": TALK}
    )
    result = import_file(project, owner, "export.zip", export)
    assert (result.imported, result.refused) == (13, 2)
    assert result.errors[-1].startswith("conversations-000.json: It contains no conversation.")


@pytest.mark.django_db
def test_each_file_is_read_in_its_own_format(project, owner):
    files = {"a.json": TALK, "b.json": file_of(CLAUDE).read(), "c.json": file_of(OPENWEBUI).read()}
    result = import_file(project, owner, "export.zip", zip_of(files | {"d.json": b"{}"}))
    assert (result.sessions, result.imported) == (3, 18)


@pytest.mark.django_db
def test_a_truncated_zip_file_is_refused_and_leaves_nothing(project, owner):
    whole = zip_of({"conversations.json": TALK}).getvalue()
    for length in (4, 30, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        with pytest.raises(ImportRejectedError, match="damaged or not complete"):
            import_file(project, owner, "export.zip", io.BytesIO(whole[:length]))
    assert not Session.objects.exists()


@pytest.mark.django_db
def test_a_damaged_zip_file_is_refused_and_leaves_nothing(project, owner):
    whole = bytearray(zip_of({"conversations.json": TALK}).getvalue())
    whole[200] ^= 255
    with pytest.raises(ImportRejectedError, match="damaged or not complete"):
        import_file(project, owner, "export.zip", io.BytesIO(bytes(whole)))
    assert not Message.objects.exists()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "contains no conversations"),
        ({"photo.png": b"x"}, "contains no conversations"),
        ({"inner.zip": b"PK"}, "another zip file"),
        ({"user.json": b"{}"}, "none of the formats"),
        ({"conversations.json": b" " * 2**21}, "unpack to more than 200 times its size"),
    ],
)
def test_an_unusable_zip_is_refused(files, reason):
    assert reason in refusal(zip_of(files))


def test_a_file_without_a_name_is_passed_over():
    named = zip_of({"n": TALK}).getvalue()
    # Where the file itself begins, and in the list at the end: a name of one byte, taken out.
    begins, listed = named.index(b"PK\x03\x04"), named.index(b"PK\x01\x02")
    nameless = bytearray(named)
    for place in (listed + 46, begins + 30):
        del nameless[place]
    nameless[begins + 26] = nameless[listed - 1 + 28] = 0
    end = nameless.index(b"PK\x05\x06")
    size, start = struct.unpack_from("<II", nameless, end + 12)
    struct.pack_into("<II", nameless, end + 12, size - 1, start - 1)
    assert "contains no conversations" in refusal(io.BytesIO(nameless))


def test_a_file_that_only_has_the_name_of_a_zip_is_refused():
    assert "not a zip file" in refusal(io.BytesIO(TALK))


def test_a_locked_zip_file_is_refused():
    locked = bytearray(zip_of({"conversations.json": TALK}).getvalue())
    entry = locked.rindex(b"PK\x01\x02")
    locked[entry + 8] |= 1
    assert "encrypted" in refusal(io.BytesIO(bytes(locked)))


@pytest.mark.parametrize("way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_other_ways_of_packing_are_refused(way):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", way) as archive:
        archive.writestr("conversations.json", TALK)
    assert "not supported" in refusal(buffer)


def test_more_than_may_be_unpacked_is_refused(monkeypatch):
    monkeypatch.setattr(zip_files, "MAX_UNPACKED_BYTES", 2 * len(TALK) - 1)
    files = {"conversations-000.json": TALK, "conversations-001.json": TALK}
    assert "larger than" in refusal(zip_of(files))


def test_a_large_file_is_read_in_one_go():
    data = random.Random(1).randbytes(5 * 2**20)
    for way in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", way) as archive:
            archive.writestr("photo.png", data)
        with zip_files.open_zip(buffer) as archive:
            assert zip_files.open_member(archive, "photo.png").read(50 * 2**20) == data


def test_too_many_files_are_refused(monkeypatch):
    monkeypatch.setattr(zip_files, "MAX_DIRECTORY_BYTES", 70_000)
    assert "too many files" in refusal(zip_of({f"{n}.json": b"" for n in range(2_000)}))


def stuffed(path, pattern: bytes, times: int, size: int | None = None) -> None:
    """A zip file that unpacks to `times` the pattern; it says `size` bytes, if that is given."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("conversations.json", "w", force_zip64=True) as member:
            member.write(b'[{"mapping": {"children": "')
            for _ in range(times):
                member.write(pattern)
        if size is not None:
            archive.filelist[0].file_size = size


def reading(path) -> tuple[str, float]:
    """What reading the file comes to in a process of its own, and the megabytes that it took."""
    program = r"""
        import re, sys
        from pathlib import Path
        import django
        django.setup()
        from chat import importers
        from chat.importers.base import FileResult
        for format in importers.settings.CHAT_IMPORTERS:
            importers.get_importer(format)
        # Of this process alone: getrusage counts in what its parent took before it began.
        status = Path("/proc/self/status")
        peak = lambda: int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024
        before, ending = peak(), "read"
        try:
            with open(sys.argv[1], "rb") as file:
                with importers.open_documents(sys.argv[1], file) as contents:
                    for _ in importers.message_counts(importers.find_sources(contents, "auto")):
                        pass
        except importers.ImportRejectedError as reason:
            ending = str(reason)
        print(peak() - before, ending)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )
    megabytes, _, ending = done.stdout.strip().partition(" ")
    return ending, float(megabytes)


@needs_proc
@pytest.mark.process
def test_a_bomb_of_a_gigabyte_is_refused_in_bounded_memory(tmp_path):
    bomb = tmp_path / "bomb.zip"
    stuffed(bomb, bytes(2**20), 1_000)
    ending, megabytes = reading(bomb)
    assert "unpack to more than 200 times its size" in ending
    assert megabytes < 20


@needs_proc
@pytest.mark.process
def test_a_bomb_that_lies_about_its_size_is_refused_in_bounded_memory(tmp_path):
    bomb = tmp_path / "bomb.zip"
    stuffed(bomb, b" " * 2**20, 1_000, size=100_000)
    ending, megabytes = reading(bomb)
    assert ending.startswith("The zip file is damaged")
    assert megabytes < 20


@needs_proc
@pytest.mark.process
def test_one_endless_text_is_refused_in_bounded_memory(tmp_path):
    # Not so well packed that it looks like a bomb.
    pattern = b"".join(b"%x " % (n * n) for n in range(100_000, 130_000)) * 4
    path = tmp_path / "long.zip"
    stuffed(path, pattern, 100_000_000 // len(pattern))
    ending, megabytes = reading(path)
    assert ending == "A text in it is longer than 64 MB."
    assert megabytes < ROOM


@needs_proc
@pytest.mark.process
def test_a_long_export_is_read_in_bounded_memory(tmp_path):
    path = tmp_path / "conversations.json"
    first_item = json.dumps(BRANCHES | {"safe_urls": ["https://example.org"] * 10_000})
    with path.open("w") as file:
        file.write("[" + first_item)
        for _ in range(100_000_000 // len(first_item)):
            file.write("," + first_item)
        file.write("]")
    ending, megabytes = reading(path)
    assert ending == "read"
    assert megabytes < ROOM / 4
