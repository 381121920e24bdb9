"""Restores a backup, and repeats the forget requests that were made after it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from django.db.models.signals import pre_migrate

from chat.attachments import file_removal
from config.backup import archive, database, file_stores, pg_tools, restore_marker
from config.backup.create import secret_key_fingerprint
from config.backup.pg_tools import BackupError
from memory.forgetting import tombstones
from memory.forgetting.replay import replay
from memory.models import Tombstone
from projects.core.database import collect_statistics
from projects.models import Token

# The number of rows, or of files, per query.
BATCH_SIZE = 1_000

Print = Callable[[str], None]


@dataclass(frozen=True)
class RestoreOptions:
    """The backup, and tombstone files to use in addition to this installation's own file."""

    file: Path
    tombstones: Sequence[Path] = ()
    without_tombstones: bool = False
    replace: bool = False
    revoke_tokens: bool = False


def restore(options: RestoreOptions, print_line: Print) -> None:
    """Restore a backup.

    Raises `BackupError`, `InvalidBackupError`, `TombstoneFileError` and `OSError`. After an error,
    the database is unchanged, or it is marked as having an unfinished restore.
    """
    tombstone_files = find_tombstone_files(options)
    for path in tombstone_files:
        # Read the whole file, so that a damaged line is reported before anything is changed.
        last = max((record.at for record in tombstones.read_file(path)), default="nothing")
        print_line(f"{path}: tombstones up to {last}")
    print_line("Checking the backup")
    manifest = archive.verify(options.file)
    server = check_target(options, manifest)
    print_line(f"Restoring the state of {manifest['taken_at']}")
    new_files: list[str] = []
    try:
        database.replace_database(_save_files(options.file, new_files), manifest, server)
    except BaseException:
        # They may have been forgotten since the backup.
        for name in new_files:
            with suppress(OSError):
                file_stores.remove(name)
        raise
    pre_migrate.disconnect(restore_marker.block_migration)
    call_command("migrate", verbosity=0, interactive=False)
    if not options.without_tombstones:
        counts = replay(chain.from_iterable(map(tombstones.read_file, tombstone_files)))
        forgotten = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
        print_line(f"Forgotten again, since the backup: {forgotten or 'nothing'}")
    complete_own_tombstone_file(tombstone_files)
    remove_unreferenced_files(options.replace, print_line)
    end_access(options.revoke_tokens, print_line)
    collect_statistics()
    restore_marker.remove()
    if manifest["files"].get("from") == file_stores.LEFT_OUT:
        print_line("The backup contains no files. Restore them from another copy.")
    if manifest["secret_key"] != secret_key_fingerprint():
        print_line(
            "The secret key differs from that of the backup: webhook receivers need new secrets."
        )


def find_tombstone_files(options: RestoreOptions) -> list[Path]:
    """Return the tombstone files to read. Raises `BackupError` if a required one is missing."""
    if options.without_tombstones:
        return []
    own = settings.TOMBSTONES
    paths = [path for path in (own, *options.tombstones) if path != own or own.exists()]
    if not paths:
        raise BackupError(
            f"{own} does not exist. It lists what was forgotten; without it, everything that was"
            " forgotten since the backup comes back. Pass the file with --tombstones, or accept"
            " this with --without-tombstones."
        )
    return paths


def check_target(options: RestoreOptions, manifest: dict[str, Any]) -> int:
    """Check the database to be replaced. Return the server's major version.

    Raises `BackupError` if the server or this version of Strata is too old for the backup, if the
    database is in use, or if it contains projects and `replace` is not set.
    """
    known = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
    applied = {(app, name) for app, names in manifest["migrations"].items() for name in names}
    if unknown := sorted(applied - known):
        raise BackupError(
            f"The backup was made by Strata {manifest['strata']}, which is newer than this one"
            f" ({'.'.join(unknown[0])}): update Strata first."
        )
    with pg_tools.connect() as target:
        server, required = target.info.server_version // 10_000, manifest["server"] // 10_000
        if server < required:
            raise BackupError(
                f"The backup is of PostgreSQL {required}, and this server is {server}."
            )
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        others += " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        if target.execute(others).fetchone() != (0,):
            raise BackupError(
                "The database has other connections: stop Strata first, and a pooler such as"
                " PgBouncer, which keeps connections open."
            )
        exists = [
            target.execute("SELECT to_regclass(%s)", [f"public.{name}"]).fetchone() != (None,)
            for name in (restore_marker.TABLE, "projects_project")
        ]
        if exists == [False, True] and not options.replace:
            has_projects = "SELECT EXISTS (SELECT FROM projects_project)"
            if target.execute(has_projects).fetchone() == (True,):
                raise BackupError(
                    "The database already contains projects. With --replace they are deleted, and"
                    " everything else in it."
                )
    return server


def _save_files(path: Path, new_files: list[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the members of the backup. Those that are files are saved first. The names of files
    that did not exist are added to `new_files`.
    """
    for name, data in archive.members(path):
        if name.startswith(archive.FILES):
            file = name.removeprefix(archive.FILES)
            if not file_stores.exists(file):
                new_files.append(file)
            file_stores.save(file, data)
        yield name, data


def end_access(revoke_tokens: bool, print_line: Print) -> None:
    """Sign out all browsers, because some were signed out since the backup. With `revoke_tokens`,
    revoke all API tokens, for the same reason.
    """
    Session.objects.all().delete()
    UserSession.objects.all().delete()
    print_line("All users must sign in again.")
    if revoke_tokens:
        Token.objects.all().delete()
    elif count := Token.objects.count():
        print_line(
            f"API tokens are as in the backup ({count}), also those that were revoked since. Revoke"
            " them with `manage.py revoke_token`, or all with --revoke-tokens."
        )


def complete_own_tombstone_file(tombstone_files: Sequence[Path]) -> None:
    """Add the records of the other files and of the database to this installation's tombstone file.

    This is for the case that an older backup is restored later.
    """
    settings.TOMBSTONES.touch(mode=0o600)
    own = tombstones.read_file(settings.TOMBSTONES)
    known = {(record.project, record.kind, record.subject) for record in own}
    in_files = chain.from_iterable(map(tombstones.read_file, tombstone_files))
    in_database = tombstones.records_of(Tombstone.objects.order_by("pk").iterator(BATCH_SIZE))
    new = (
        record
        for record in chain(in_files, in_database)
        if (record.project, record.kind, record.subject) not in known
    )
    while batch := list(islice(new, BATCH_SIZE)):
        tombstones.append_to_file(batch)
        known |= {(record.project, record.kind, record.subject) for record in batch}


def remove_unreferenced_files(replace: bool, print_line: Print) -> None:
    """Delete the files of the replaced database, and files whose messages were forgotten again.

    In a bucket, nothing is deleted without `replace`, because another installation may use the
    bucket.
    """
    keep = bool(settings.S3_BUCKET) and not replace
    count = 0
    for name in _unreferenced_files():
        count += 1
        if not keep:
            file_stores.remove(name)
    if keep and count:
        print_line(
            f"{count} files in the bucket belong to nothing that was restored. They are kept,"
            " because another Strata may use the bucket; --replace deletes them."
        )


def _unreferenced_files() -> Iterator[str]:
    names = file_stores.all_names()
    while batch := set(islice(names, BATCH_SIZE)):
        for model in file_removal.models_with_files():
            rows = model._default_manager.filter(file__in=batch)
            batch -= set(rows.values_list("file", flat=True))
        yield from sorted(batch)
