"""Backups: taken while people go on, whole or not at all; what was forgotten stays forgotten."""

import errno
import fcntl
import gc
import io
import os
import subprocess
import sys
import tarfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from unittest.mock import Mock
from urllib.parse import quote

import psycopg
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection, connections

from chat.attachments import file_removal
from chat.conversations.messages import ask, draft, post_messages
from chat.models import Attachment, Message, Session
from config.backup import archive, create, database, file_stores, pg_tools, restore_marker
from config.backup.archive import BackupWriter, InvalidBackupError
from config.backup.restore import RestoreOptions, end_access
from config.backup.restore import restore as restore_backup
from config.backup.snapshot import take_snapshot
from config.health import views
from memory.forgetting.service import ForgetScope, forget
from memory.layers.conversations import summarise
from memory.models import Cursor
from memory.recall.indexing import catch_up
from projects.models import Token
from tests.server import ROOT

pytestmark = pytest.mark.process

TEXTS = """
    SELECT table_name, column_name FROM information_schema.columns
    JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND data_type IN
    ('text', 'character varying', 'jsonb', 'tsvector', 'ARRAY', 'USER-DEFINED')
"""


@pytest.fixture(autouse=True)
def places(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    settings.TOMBSTONES = tmp_path / "tombstones.jsonl"
    settings.MEDIA_ROOT = tmp_path / "files"


def say(project, user, bird: str) -> Session:
    """A chat that names a bird in its words, in its title and in an image."""
    session = Session.objects.create(project=project, creator=user, title=f"Of {bird}")
    text = f"The {bird} sings in the garden behind the house."
    [message] = post_messages(session, [draft(text, author=user)])
    image = Attachment(project=project, session=session, message=message, uploaded_by=user)
    image.width = image.height = image.size = 1
    image.name = image.description = bird
    image.file.save(bird, ContentFile(bird.encode()))
    return session


@contextmanager
def writers(project, user, number: int):
    """Inside, so many threads go on saying things, with images that they delete again."""
    over = Event()

    def go_on(name: int) -> None:
        turn = 0
        while not over.is_set():
            turn += 1
            session = say(project, user, f"sparrow{name}-{turn}")
            session.attachments.all().delete()
            say(project, user, f"finch{name}-{turn}")
        connections.close_all()

    threads = [Thread(target=go_on, args=(name,)) for name in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def everywhere(database: psycopg.Connection, bird: str) -> set[str]:
    """The columns of the database in which `bird` stands."""
    columns_found = set()
    for table, column in database.execute(TEXTS).fetchall():
        query = f'SELECT count(*) FROM "{table}" WHERE "{column}"::text LIKE %s'
        if database.execute(query, [f"%{bird}%"]).fetchone() != (0,):
            columns_found.add(f"{table}.{column}")
    return columns_found


@pytest.fixture
def elsewhere():
    """An empty database beside the test's own, and its address."""
    server = connection.settings_dict
    host, name = server["HOST"], f"{server['NAME']}_restored"
    with psycopg.connect(host=host, user="postgres", dbname="postgres", autocommit=True) as guard:
        guard.execute(f"DROP DATABASE IF EXISTS {name}")
        guard.execute(f"CREATE DATABASE {name}")
        yield f"postgresql://postgres@{quote(host, safe='')}/{name}"
        guard.execute(f"DROP DATABASE {name} WITH (FORCE)")


def manage(address: str, data_dir: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"DATABASE_URL": address, "STRATA_DATA_DIR": str(data_dir)}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.django_db(transaction=True)
def test_data_forgotten_after_a_backup_under_load_stays_forgotten(
    project, owner, elsewhere, tmp_path, settings
):
    birds = ("nightingale", "kingfisher", "goldcrest", "wren")
    sessions = {bird: say(project, owner, bird) for bird in birds}
    for session in sessions.values():
        summarise(session.pk, datetime.now(UTC) + timedelta(hours=1))
    catch_up()
    _, unfinished = ask(sessions["wren"], "What else sings there?", owner)
    Cursor.objects.filter(pk=sessions["wren"].pk).update(lease_until=datetime.now(UTC))
    file, data_dir = tmp_path / "backup.tar", tmp_path / "elsewhere"

    with writers(project, owner, 2):
        call_command("backup", str(file), stdout=io.StringIO())
    forget(project, ForgetScope(message=sessions["nightingale"].messages.get().pk))
    forget(project, ForgetScope(session=sessions["kingfisher"].pk))
    forget(project, ForgetScope(entry=sessions["goldcrest"].entries.get().pk, sources=True))

    manifest = archive.verify(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert not list((settings.MEDIA_ROOT / "held").iterdir())
    done = manage(elsewhere, data_dir, "restore", str(file), f"--tombstones={settings.TOMBSTONES}")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "1 session" in done.stdout
    with psycopg.connect(elsewhere) as other_database:
        for bird in birds[:3]:
            assert everywhere(other_database, bird) == set()
        assert "chat_message.text" in everywhere(other_database, "wren")
        assert "memory_entry.summary" in everywhere(other_database, "wren")
        [messages] = other_database.execute("SELECT count(*) FROM chat_message").fetchone()
        # The place of a message stays, and a session goes.
        assert messages == manifest["tables"]["chat_message"]["rows"] - 1
        stones = other_database.execute("SELECT count(*) FROM memory_tombstone").fetchone()
        assert stones == (len(settings.TOMBSTONES.read_text().splitlines()),)
        named = {name for (name,) in other_database.execute("SELECT file FROM chat_attachment")}
        status_row = other_database.execute(
            "SELECT status FROM chat_message WHERE id = %s", [unfinished.pk]
        )
        assert status_row.fetchone() == ("pending",)
        mark = other_database.execute("SELECT to_regclass('restore_under_way')").fetchone()
        assert mark == (None,)
    media = data_dir / "files"
    assert named == {str(path.relative_to(media)) for path in media.rglob("*") if path.is_file()}
    assert len(named) >= 1
    status_row = data_dir / "tombstones.jsonl"
    assert set(status_row.read_text().splitlines()) == set(
        settings.TOMBSTONES.read_text().splitlines()
    )

    completed = manage(elsewhere, data_dir, "restore", str(file))
    assert "already contains projects" in completed.stderr


@pytest.mark.django_db(transaction=True)
def test_an_image_that_is_removed_while_a_backup_reads_is_in_it(project, owner, tmp_path):
    session = say(project, owner, "nightingale")
    [name] = session.attachments.values_list("file", flat=True)
    copied = archive.BackupWriter.add

    def remove_meanwhile(self, *arguments) -> None:
        if session.attachments.exists():
            session.attachments.all().delete()
            assert not (Path(file_removal.settings.MEDIA_ROOT) / name).exists()
        copied(self, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BackupWriter, "add", remove_meanwhile)
        call_command("backup", str(tmp_path / "b.tar"), stdout=io.StringIO())
    assert not session.attachments.exists()
    contents = {name: data.read() for name, data in archive.members(tmp_path / "b.tar")}
    assert contents[archive.FILES + name] == b"nightingale"


@pytest.fixture
def backup_file(tmp_path) -> Path:
    """A small file of the kind."""
    file = tmp_path / "backup.tar"
    with file.open("wb") as out:
        writer = BackupWriter(out)
        writer.add_bytes("files/a", b"of a")
        writer.add_bytes("database/00000", b"rows " * 1000)
        manifest = b'{"format": "strata-backup", "version": 1, "strata": "0.1.0"}'
        writer.add_bytes("manifest.json", manifest)
        writer.close()
    return file


def test_a_whole_one_is_taken(backup_file):
    assert archive.verify(backup_file)["strata"] == "0.1.0"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.75])
def test_half_of_one_is_refused(backup_file, share):
    whole = backup_file.read_bytes()
    backup_file.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InvalidBackupError):
        archive.verify(backup_file)


def test_one_in_which_a_byte_changed_is_refused(backup_file):
    data = backup_file.read_bytes()
    at = data.index(b"rows") + 700
    backup_file.write_bytes(data[:at] + b"#" + data[at + 1 :])
    with pytest.raises(InvalidBackupError, match="database/00000 has changed"):
        archive.verify(backup_file)


@pytest.mark.parametrize("name", ["files/../../etc", "/etc/x", "files//etc/x", "files/./x"])
def test_a_member_outside_of_the_target_is_refused(tmp_path, name):
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(InvalidBackupError, match="which is not allowed"):
        archive.verify(tmp_path / "x.tar")


def test_any_other_file_is_refused(tmp_path):
    (tmp_path / "x.tar").write_bytes(b"a letter to a friend")
    with pytest.raises(InvalidBackupError):
        archive.verify(tmp_path / "x.tar")


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_one_that_is_broken_off_leaves_no_file(tmp_path, monkeypatch, failure):
    def fail(out, warn, with_files):
        out.write(b"something")
        raise failure

    monkeypatch.setattr("config.management.commands.backup.create_backup", fail)
    with pytest.raises(CommandError, match="[Nn]o file was left"):
        call_command("backup", str(tmp_path / "new" / ".." / "b.tar"))
    assert not list(tmp_path.glob("*b.tar*"))


def test_one_that_is_broken_off_prints_no_traceback(monkeypatch):
    """The archive would write its buffer to the closed file when it is collected."""
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    file = io.BytesIO()
    writer = BackupWriter(file)
    writer.add_bytes("manifest.json", b"{}")
    file.close()
    writer.discard()
    del writer
    gc.collect()
    assert ignored == []


def test_a_file_that_is_there_is_not_written_over(backup_file):
    before = backup_file.read_bytes()
    with pytest.raises(CommandError, match="exists already"):
        call_command("backup", str(backup_file))
    assert backup_file.read_bytes() == before


def test_a_restore_without_tombstones_is_refused_by_default(backup_file):
    with pytest.raises(CommandError, match="was forgotten since the backup comes back"):
        call_command("restore", str(backup_file))


@pytest.mark.parametrize("failure", [pg_tools.BackupError("No room"), KeyboardInterrupt()])
def test_a_restore_that_fails_leaves_no_file_that_was_not_there(
    backup_file, settings, monkeypatch, failure
):
    def fail(members, *arguments) -> None:
        assert [name for name, _ in members if name.startswith(archive.FILES)] == ["files/a"]
        assert default_storage.exists("a")
        raise failure

    monkeypatch.setattr("config.backup.restore.check_target", Mock(return_value=18))
    monkeypatch.setattr(archive, "verify", Mock(return_value={"taken_at": "today"}))
    monkeypatch.setattr(database, "replace_database", fail)
    options = RestoreOptions(backup_file, without_tombstones=True)
    for _ in range(2):
        with pytest.raises(type(failure)):
            restore_backup(options, Mock())
        assert not list(settings.MEDIA_ROOT.rglob("*a*"))
    default_storage.save("a", ContentFile(b"of a"))
    with pytest.raises(type(failure)):
        restore_backup(options, Mock())
    assert default_storage.exists("a")


def test_a_file_that_does_not_fit_leaves_nothing(settings, monkeypatch):
    monkeypatch.setattr("shutil.copyfileobj", Mock(side_effect=OSError(errno.ENOSPC, "Full")))
    with pytest.raises(OSError, match="Full"):
        file_stores.save("attachments/birds.png", io.BytesIO(b"pixels"))
    assert not [path for path in settings.MEDIA_ROOT.rglob("*") if path.is_file()]


@pytest.mark.django_db
def test_a_restore_signs_all_browsers_out_and_revokes_tokens_if_asked(owner, client):
    Token.issue(owner, name="script")
    client.force_login(owner)
    assert client.get("/", follow=True).context["user"] == owner
    printed: list[str] = []
    end_access(False, printed.append)
    assert client.get("/")["Location"].startswith("/accounts/login/")
    assert "API tokens are as in the backup (1)" in printed[1]
    end_access(True, printed.append)
    assert printed[2:] == printed[:1] and not Token.objects.exists()


def test_a_damaged_line_of_them_is_named(backup_file, settings):
    settings.TOMBSTONES.write_text("nonsense\n")
    with pytest.raises(CommandError, match="line 1: this is not a tombstone"):
        call_command("restore", str(backup_file))


def test_the_folder_of_a_killed_backup_is_deleted(tmp_path):
    left = tmp_path / "files" / "held" / "left"
    left.mkdir(parents=True)
    (left / "picture").write_bytes(b"of a forgotten bird")
    with file_removal.backup_folder() as folder_lock:
        assert file_removal.delete_abandoned_backup_folders() == 1
        assert folder_lock.exists() and not left.exists()


def test_the_folder_of_a_backup_that_ends_meanwhile_is_no_error(monkeypatch):
    with file_removal.backup_folder() as folder:
        pass
    monkeypatch.setattr("pathlib.Path.glob", lambda *arguments: iter([folder]))
    assert file_removal.delete_abandoned_backup_folders() == 0


def test_the_fingerprint_does_not_reveal_the_key(settings):
    before = create.secret_key_fingerprint()
    assert settings.SECRET_KEY not in before
    settings.SECRET_KEY = "another"
    assert create.secret_key_fingerprint() != before


@pytest.mark.django_db
def test_a_database_whose_restore_was_broken_off_is_not_served():
    missing, _ = views.check_database()
    assert "database" not in missing
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE public.restore_under_way ()")
    missing, _ = views.check_database()
    assert "database" in missing
    with pytest.raises(CommandError, match="A restore of this database was not finished"):
        call_command("migrate", verbosity=0)
    assert Message.objects.count() == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("part", ["web", "worker", "beat"])
def test_no_process_starts_on_a_database_whose_restore_was_broken_off(monkeypatch, part):
    monkeypatch.setattr("os.execv", Mock(side_effect=AssertionError))
    monkeypatch.setattr("config.runtime.web.serve", Mock(side_effect=AssertionError))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE public.restore_under_way ()")
        try:
            with pytest.raises(CommandError, match="A restore of this database was not finished"):
                call_command("run", part)
        finally:
            cursor.execute("DROP TABLE public.restore_under_way")


@pytest.mark.django_db
def test_a_restore_does_not_begin_beside_a_process_and_none_starts_meanwhile(
    backup_file, monkeypatch
):
    """A web process without requests has no connection to the database."""
    serve = Mock(side_effect=lambda *_, **__: call_command("restore", str(backup_file)))
    monkeypatch.setattr("config.runtime.web.serve", serve)
    monkeypatch.setattr("config.runtime.web.bound_socket", Mock())
    with pytest.raises(CommandError, match="A process that `run` started uses"):
        call_command("run", "web")
    restore = "config.management.commands.restore.restore"
    monkeypatch.setattr(restore, lambda *arguments: call_command("run", "web"))
    with pytest.raises(CommandError, match="A restore on .* is under way"):
        call_command("restore", str(backup_file))
    assert serve.call_count == 1


def test_processes_start_on_a_file_system_without_locks(monkeypatch):
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks")))
    with restore_marker.process_lock(fcntl.LOCK_SH):
        pass


def test_files_in_a_folder_need_no_packages_of_a_bucket(settings, monkeypatch):
    name = default_storage.save("attachments/birds.png", ContentFile(b"pixels"))
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setitem(sys.modules, "botocore", None)
    monkeypatch.setitem(sys.modules, "boto3.exceptions", None)
    file_stores.remove(name)
    assert not default_storage.exists(name)
    assert file_stores.save("attachments/wren.png", io.BytesIO(b"pixels")) is None
    assert list(file_stores.all_names()) == ["attachments/wren.png"]


def test_the_servers_timeouts_do_not_end_it(monkeypatch):
    """The transaction of a restore waits while files are stored."""
    names = ("idle_in_transaction_session_timeout", "statement_timeout", "transaction_timeout")
    options = " ".join(f"-c {name}=1h" for name in names)
    parameters = pg_tools.connection_parameters() | {"options": options}
    monkeypatch.setattr(pg_tools, "connection_parameters", lambda: parameters)
    empty = {"extensions": [], "tables": {}}
    before = database._statements_before(empty).partition(b"BEGIN;")[0]
    after = database._statements_after(empty).partition(b"DO $check$")[0]
    with take_snapshot(with_files=False) as snapshot, pg_tools.connect(autocommit=True) as own:
        for statements in (before, after):
            own.execute(statements)
            for session in (snapshot.reader, own):
                values = [session.execute(f"SHOW {name}").fetchone() for name in names]
                assert values == [("0",)] * 3
            own.execute("RESET ALL")


@pytest.fixture
def programs(monkeypatch):
    """Shell commands instead of the client programs of PostgreSQL."""

    def use(psql: str, pg_restore: str = "exec cat") -> None:
        def start(program, arguments, server, stderr, **pipes):
            command = psql if program == "psql" else pg_restore
            process = subprocess.Popen(["sh", "-c", command], stderr=stderr, **pipes)
            if "exit" in command:
                process.wait()
            return process

        monkeypatch.setattr(pg_tools, "start", start)

    return use


def restore(members) -> None:
    database.replace_database(members, {"extensions": [], "tables": {}}, 18)


def test_the_reason_of_the_database_is_reported(programs):
    programs(psql="echo too old >&2; exit 3")
    with pytest.raises(pg_tools.BackupError, match="too old"):
        restore([(archive.DATABASE, io.BytesIO(bytes(10_000_000)))])


def test_a_restore_that_is_broken_off_stores_no_more_files(programs, monkeypatch):
    def stop(psql, statements):
        raise KeyboardInterrupt

    def members():
        for _ in range(100):
            yield f"{archive.FILES}x", io.BytesIO()
            read.append(time.sleep(0.05))

    read: list[None] = []
    programs(psql="exec cat >/dev/null")
    monkeypatch.setattr(database, "_run", stop)
    with pytest.raises(KeyboardInterrupt):
        restore(members())
    assert len(read) < 100
