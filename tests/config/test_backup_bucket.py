"""Backups of files that lie in a bucket, and the way back into a folder or a bucket."""

import io
import tarfile
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command

from chat import tasks
from chat.models import Attachment, FileRemoval
from config.backup import archive, restore
from config.backup.archive import BackupWriter
from config.settings.files import in_bucket
from memory.forgetting.service import ForgetScope, forget
from tests.bucket import Bucket
from tests.config.test_backup import elsewhere, manage, say  # noqa: F401
from tests.receiver import Receiver

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def places(settings, tmp_path):
    settings.TOMBSTONES = tmp_path / "tombstones.jsonl"
    settings.MEDIA_ROOT = tmp_path / "files"


def back_up(file: Path, *options: str) -> str:
    """What it says of what is wrong."""
    output = io.StringIO()
    call_command("backup", str(file), *options, stdout=io.StringIO(), stderr=output)
    return output.getvalue()


def backup_contents(file: Path) -> dict[str, bytes]:
    return {
        name.removeprefix(archive.FILES): data.read()
        for name, data in archive.members(file)
        if name.startswith(archive.FILES)
    }


@pytest.fixture
def birds(project, owner, bucket) -> dict[str, str]:
    """Chats that name a bird in an image: the image's place in the bucket, by the bird."""
    sessions_by_bird = {
        bird: say(project, owner, bird) for bird in ("wren", "finch", "nightingale")
    }
    return {bird: sessions_by_bird[bird].attachments.get().file.name for bird in sessions_by_bird}


def test_it_has_what_lies_in_the_bucket(birds, tmp_path):
    assert back_up(tmp_path / "b.tar") == ""
    file_count = archive.verify(tmp_path / "b.tar")["files"]
    assert file_count == {
        "from": "bucket",
        "count": 3,
        "bytes": len("wrenfinchnightingale"),
        "missing": [],
    }
    assert backup_contents(tmp_path / "b.tar") == {
        name: bird.encode() for bird, name in birds.items()
    }


def test_a_backup_without_files_leaves_them_out(birds, tmp_path):
    back_up(tmp_path / "b.tar", "--without-files")
    file_count = archive.verify(tmp_path / "b.tar")["files"]
    assert file_count == {"from": "left out", "count": 0, "bytes": 0, "missing": []}
    assert backup_contents(tmp_path / "b.tar") == {}


def test_a_file_missing_from_the_bucket_is_named(birds, bucket, tmp_path):
    del bucket.objects[f"/strata/{birds['wren']}"]
    assert f"The database refers to a file that is missing: {birds['wren']}" in back_up(
        tmp_path / "b.tar"
    )
    file_count = archive.verify(tmp_path / "b.tar")["files"]
    assert (file_count["count"], file_count["missing"]) == (2, [birds["wren"]])


def test_a_bucket_that_breaks_off_leaves_no_backup(birds, bucket, tmp_path):
    bucket.breaks = True
    with pytest.raises(CommandError, match=r"The bucket: .*no file was left"):
        back_up(tmp_path / "b.tar")
    assert not list(tmp_path.glob("*b.tar*"))


def test_a_file_forgotten_during_a_backup_is_in_it_and_is_deleted_afterwards(
    birds, bucket, project, owner, tmp_path, monkeypatch
):
    copied = BackupWriter.add
    receipts = []

    def forget_meanwhile(self, *arguments) -> None:
        if not receipts:
            [image] = Attachment.objects.filter(name="nightingale")
            receipts.append(forget(project, ForgetScope(session=image.session_id), owner))
        copied(self, *arguments)

    monkeypatch.setattr(BackupWriter, "add", forget_meanwhile)
    assert back_up(tmp_path / "b.tar") == ""
    assert receipts[0].awaiting_files == 1
    assert backup_contents(tmp_path / "b.tar")[birds["nightingale"]] == b"nightingale"
    assert f"/strata/{birds['nightingale']}" in bucket.objects
    [left] = FileRemoval.objects.all()
    assert (left.attempts, left.last_error) == (0, "")
    FileRemoval.objects.update(next_try_at=left.created_at)
    tasks.sweep_removals()
    assert f"/strata/{birds['nightingale']}" not in bucket.objects


def test_a_large_file_lies_on_the_disk_while_it_is_read():
    options = in_bucket("strata", "http://127.0.0.1:1", "")["OPTIONS"]
    # Where it is nothing, the library keeps all of it in memory.
    assert 0 < options["max_memory_size"] <= 2**20


def test_it_comes_back_into_a_folder(birds, project, owner, elsewhere, tmp_path, settings):  # noqa: F811
    back_up(tmp_path / "b.tar")
    [image] = Attachment.objects.filter(name="nightingale")
    forget(project, ForgetScope(session=image.session_id), owner)
    target_folder = tmp_path / "elsewhere"
    done = manage(
        elsewhere,
        target_folder,
        "restore",
        str(tmp_path / "b.tar"),
        f"--tombstones={settings.TOMBSTONES}",
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    files = {path for path in (target_folder / "files").rglob("*") if path.is_file()}
    assert {file.read_bytes() for file in files} == {b"wren", b"finch"}


def test_it_comes_back_into_a_bucket(
    birds,
    project,
    owner,
    elsewhere,  # noqa: F811
    tmp_path,
    settings,
    monkeypatch,  # noqa: F811
):
    back_up(tmp_path / "b.tar")
    [image] = Attachment.objects.filter(name="nightingale")
    forget(project, ForgetScope(session=image.session_id), owner)
    other = Bucket()
    with Receiver() as receiver:
        receiver.reply = other
        other.objects["/strata/attachments/of/others"] = b"theirs"
        monkeypatch.setenv("STRATA_S3_BUCKET", "strata")
        monkeypatch.setenv("STRATA_S3_ENDPOINT", receiver.url)
        monkeypatch.setenv("STRATA_S3_REGION", "eu-central-1")
        done = manage(
            elsewhere,
            tmp_path / "elsewhere",
            *("restore", str(tmp_path / "b.tar"), f"--tombstones={settings.TOMBSTONES}"),
        )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "1 files in the bucket belong to nothing that was restored" in done.stdout
    assert sorted(other.objects.values()) == [b"finch", b"theirs", b"wren"]
    assert not (tmp_path / "elsewhere" / "files" / "attachments").exists()
    with psycopg.connect(elsewhere) as database:
        named = {
            f"/strata/{name}" for (name,) in database.execute("SELECT file FROM chat_attachment")
        }
    assert named <= other.objects.keys()


@pytest.mark.parametrize(("replace", "stays"), [(True, False), (False, True)])
def test_only_with_replace_something_of_a_bucket_goes(birds, bucket, replace, stays):
    for number in range(3):
        bucket.objects[f"/strata/imports/x/{number}"] = b"of nobody"
    bucket.objects["/strata/elsewhere"] = b"of another program"
    messages: list[str] = []
    restore.remove_unreferenced_files(replace, messages.append)
    assert {f"/strata/{name}" for name in birds.values()} <= bucket.objects.keys()
    assert bucket.objects["/strata/elsewhere"]
    assert (sorted(bucket.objects.values()).count(b"of nobody") == 3) is stays
    assert ("3 files in the bucket" in "".join(messages)) is stays


def test_it_is_checked_without_strata(birds, tmp_path):
    back_up(tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as tar:
        sums = tar.extractfile("SHA256SUMS").read().decode()  # type: ignore[union-attr]
    assert sum(line.split()[1].startswith("files/attachments/") for line in sums.splitlines()) == 3
