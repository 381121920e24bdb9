"""Brings a backup back, and forgets once more what was forgotten since it was taken."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models.signals import pre_migrate

from chat.models import Attachment, Import
from config.backup import archive, marker, places, programs, tables
from config.backup.programs import Unable
from config.backup.taking import key_mark
from memory.forgetting import graves
from memory.forgetting.graves import Stone
from memory.forgetting.replaying import replay
from memory.models import Tombstone

# Files that are asked about together.
AT_ONCE = 1_000


@dataclass(frozen=True)
class Wish:
    """Which file, and how; `tombstones` are files beside the one of this installation."""

    file: Path
    tombstones: Sequence[Path] = ()
    without_tombstones: bool = False
    replace: bool = False


def restore(wish: Wish, say: Callable[[str], None]) -> None:
    """Raises Unable, Unfit, Damaged and OSError; the database is then as it was, or marked as one
    whose restore is not over.
    """
    graves_in = _tombstones(wish)
    for path in graves_in:
        # Whatever is wrong with a line is told before anything is touched.
        last = max((stone.at for stone in graves.read(path)), default="nothing")
        say(f"{path}: tombstones up to {last}")
    say("Checking the backup")
    manifest = archive.checked(wish.file)
    server = _server(manifest)
    _refuse_newer(manifest)
    _refuse_what_is_there(wish)
    say(f"Restoring the moment of {manifest['taken_at']}")
    dump = (data for name, data in _files_first(wish.file) if name.startswith(archive.DATABASE))
    tables.put_in_place(dump, manifest, server)
    pre_migrate.disconnect(marker.refuse)
    call_command("migrate", verbosity=0, interactive=False)
    if not wish.without_tombstones:
        told = replay(chain.from_iterable(map(graves.read, graves_in)))
        say(f"Forgotten once more, since the backup: {_counted(told)}")
    _write_down_what_is_new(graves_in)
    _clear_away(wish.replace, say)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    marker.take_away()
    if manifest["files"].get("from") == places.LEFT_OUT:
        say("The backup has no files: those that the database names come from elsewhere.")
    if manifest["secret_key"] != key_mark():
        say(
            "The secret key is another than at the backup: everybody signs in again, and receivers"
            " of webhooks need new secrets."
        )


def _tombstones(wish: Wish) -> list[Path]:
    """The files to read. Raises Unable when there is none, unless there need not be."""
    own = settings.TOMBSTONES
    found = [path for path in (own, *wish.tombstones) if path != own or own.exists()]
    if wish.without_tombstones:
        return []
    if not found:
        raise Unable(
            f"There is no {own}, which names what was forgotten: without it everything comes back"
            " that was forgotten since the backup was taken. Name the file with --tombstones, or"
            " say --without-tombstones if that is as it should be."
        )
    return found


def _server(manifest: dict[str, Any]) -> int:
    """The major version of the database's server. Raises Unable for one that is too old."""
    with programs.connect() as here:
        server, theirs = here.info.server_version // 10_000, manifest["server"] // 10_000
    if server < theirs:
        raise Unable(f"The backup is of PostgreSQL {theirs}, and the server here is {server}.")
    return server


def _refuse_newer(manifest: dict[str, Any]) -> None:
    known = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
    applied = {(app, name) for app, names in manifest["migrations"].items() for name in names}
    if strange := sorted(applied - known):
        raise Unable(
            f"The backup was made by Strata {manifest['strata']}, which is newer than this one"
            f" ({'.'.join(strange[0])}): update Strata first."
        )


def _refuse_what_is_there(wish: Wish) -> None:
    """Raises Unable when people work here, or something would be lost that nobody said may be."""
    with programs.connect() as here:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        others += " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        if here.execute(others).fetchone() != (0,):
            raise Unable(
                "Somebody is connected to the database: stop Strata first, and a pooler such as"
                " PgBouncer, which keeps connections."
            )
        there = [
            here.execute("SELECT to_regclass(%s)", [f"public.{name}"]).fetchone() != (None,)
            for name in (marker.TABLE, "projects_project")
        ]
        if there == [False, True] and not wish.replace:
            [filled] = here.execute("SELECT EXISTS (SELECT FROM projects_project)").fetchone() or ()
            if filled:
                raise Unable(
                    "There are projects here already. With --replace they go, and everything else"
                    " that is here."
                )


def _files_first(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The members of the backup; those that are files are put where they belong on the way."""
    for name, data in archive.members(path):
        if name.startswith(archive.FILES):
            places.put(name.removeprefix(archive.FILES), data)
        yield name, data


def _counted(told: Counter[str]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(told.items())) or "nothing"


def _write_down_what_is_new(graves_in: Sequence[Path]) -> None:
    """The file of this installation names all that the others did, and what the database knows: a
    backup that is older still may come.
    """
    settings.TOMBSTONES.touch(mode=0o600)
    own = graves.read(settings.TOMBSTONES)
    known = {(stone.project, stone.kind, stone.subject) for stone in own}
    others = chain.from_iterable(graves.read(one) for one in graves_in)
    stones = chain(others, _stones_here())
    fresh = (one for one in stones if (one.project, one.kind, one.subject) not in known)
    while some := list(islice(fresh, AT_ONCE)):
        graves.write_down(some)
        known |= {(stone.project, stone.kind, stone.subject) for stone in some}


def _stones_here() -> Iterator[Stone]:
    for stone in Tombstone.objects.order_by("pk").iterator(AT_ONCE):
        yield from graves.stones_of([stone])


def _clear_away(replace: bool, say: Callable[[str], None]) -> None:
    """Removes files of what was here before, and of what was forgotten once more.

    A bucket may serve another Strata too: nothing of it goes unless what was here was to go.
    """
    stays = bool(settings.S3_BUCKET) and not replace
    count = 0
    for name in _named_by_nobody():
        count += 1
        if not stays:
            places.remove(name)
    if stays and count:
        say(
            f"{count} files in the bucket belong to nothing that was restored. They stay, since"
            " another Strata may use the bucket; with --replace they go."
        )


def _named_by_nobody() -> Iterator[str]:
    files = places.names()
    while some := set(islice(files, AT_ONCE)):
        for model in (Attachment, Import):
            named = model._default_manager.filter(file__in=some).values_list("file", flat=True)
            some -= set(named)
        yield from sorted(some)
