"""Read every hostile file like an upload, in a process whose peak memory is measured alone.

`python -m tests.hostile.file_reader KIND STEP [START]` prints one line of JSON for each STEPth file
of the KIND (zips, documents, pictures, files), from number START on: name, result, seconds, and
megabytes on top of what Strata uses without the file. Files are read by a process of their own,
whose megabytes are all counted; more than one STEP takes those that are made and read fast.
"""

import io
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from threading import Thread
from typing import Any

import django

django.setup()

from chat import importers  # noqa: E402  # they need Django
from chat.attachments import images  # noqa: E402
from chat.importers.zip_files import check_files, open_documents, open_zip  # noqa: E402
from memory.files.adding import clean_name  # noqa: E402
from memory.files.reading import (  # noqa: E402
    UnreadableFileError,
    expand_archive,
    page_image,
    read_document,
    recognise,
)
from memory.portability.archive import (  # noqa: E402
    check_archive,
    read_rows,
    read_settings,
    recognises,
)
from memory.portability.tables import TABLES  # noqa: E402
from projects.core.errors import InvalidInputError  # noqa: E402
from tests.hostile.pdfs import TRAP  # noqa: E402

STATUS = Path("/proc/self/status")
# Modules with the files of a kind, other than the one of its name.
MODULES = {"files": ("files", "office_files", "text_files", "wrapped_files", "pdf_objects")}
# Files that are read of each archive.
FILES_OF_ARCHIVE = 3
# What opens files to write them, and what else changes a disk.
WRITING = ("os.mkdir", "os.rename", "os.symlink", "os.link", "os.remove", "os.truncate")


def main() -> None:
    kind, step, start = sys.argv[1], int(sys.argv[2]), int((*sys.argv, "0")[3])
    for format in importers.settings.CHAT_IMPORTERS:
        importers.get_importer(format)
    wrote: list[str] = []
    sys.addaudithook(lambda event, options: _note(wrote, event, options))
    measured: list[float] = []
    _measure_parsers(measured)
    maker = "light" if kind == "files" and step > 1 else "all_of_them"
    files: Iterable[tuple[str, bytes]] = chain.from_iterable(
        getattr(import_module(f"tests.hostile.{name}"), maker)()
        for name in MODULES.get(kind, (kind,))
    )
    read = READERS[kind]
    trap = socket.create_server(("127.0.0.1", int(TRAP.partition(":")[2])))
    trap.setblocking(False)
    for name, data in islice(files, start, None, step):
        # The kernel's mark of the most so far begins anew. man 5 proc
        Path("/proc/self/clear_refs").write_text("5")
        wrote.clear()
        measured.clear()
        before, began = _megabytes("VmRSS"), time.perf_counter()
        try:
            ending = read(name, data)
        except REFUSALS as refused:
            ending = f"refused: {refused}"
        report = {"name": name, "ending": ending, "seconds": time.perf_counter() - began}
        most = max(_megabytes("VmHWM") - before, *measured, 0)
        report |= {"megabytes": most, "wrote": list(wrote), "connected": _connected(trap)}
        print(json.dumps(report), flush=True)


def _measure_parsers(measured: list[float]) -> None:
    """Add the peak memory in megabytes of each process that parses a file to `measured`.

    The kernel's figure for a process that ended includes the memory of the one that started it.
    """
    popen = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = popen(*arguments, **options)
        Thread(target=watch, args=(Path(f"/proc/{process.pid}/status"),), daemon=True).start()
        return process

    def watch(status: Path) -> None:
        with suppress(OSError, TypeError):
            # A process that ended has no such line.
            while True:
                measured.append(_megabytes("VmHWM", status))
                time.sleep(0.01)

    subprocess.Popen = start  # type: ignore[assignment, misc]


def _note(wrote: list[str], event: str, options: tuple) -> None:
    writes = event == "open" and isinstance(options[1], str) and set(options[1]) & set("wax+")
    if writes or event in WRITING:
        wrote.append(f"{event} {options[0]}")


def _megabytes(what: str, status: Path = STATUS) -> float:
    return int(re.search(rf"{what}:\s+(\d+)", status.read_text())[1]) / 1024  # type: ignore[index]


def _connected(trap: socket.socket) -> bool:
    try:
        trap.accept()
    except BlockingIOError:
        return False
    return True


def _image(name: str, data: bytes) -> str:
    encoded = images.reencode(data)
    return f"read: {encoded.media_type} of {encoded.width} by {encoded.height}"


def _document(name: str, data: bytes) -> str:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        path = Path(file.name)
        if recognise(path, name) == "zip":
            return _archive(path)
        document = read_document(path, name)
        if document.kind == "pdf":
            page_image(path, 1, 800)
    return f"read: {len(document.sections)} sections of {document.kind}"


def _archive(path: Path) -> str:
    """Unpack an archive, and read the first files in it."""
    endings = []
    for number, (name, unpacked) in enumerate(expand_archive(path)):
        try:
            name = clean_name(name)
            assert not {"", "..", "."} & set(name.split("/")), name
            if number < FILES_OF_ARCHIVE:
                endings.append(f"{name[-40:]}: {read_document(unpacked, name).kind}")
        except InvalidInputError as error:
            endings.append(f"{name[-40:]}: {error}")
    return f"read: {endings[:FILES_OF_ARCHIVE]}"


def _file(name: str, data: bytes) -> str:
    """As `import_file` reads it, into no database."""
    file = io.BytesIO(data)
    name = name if "." in name else f"{name}.zip"
    with open_zip(file) as archive:
        if archive is not None and recognises(set(archive.namelist())):
            check_files(archive.infolist())
            check_archive(archive)
            return f"read: {sum(1 for _ in _rows(archive))} rows"
    with open_documents(name, file) as contents:
        sources = importers.find_sources(contents, "auto")
        return f"read: {sum(importers.message_counts(sources))} messages"


def _rows(archive) -> Iterator[object]:
    for table in TABLES:
        yield from read_rows(archive, table)
    yield read_settings(archive)


READERS: dict[str, Callable[[str, bytes], str]] = {
    "zips": _file,
    "documents": _file,
    "pictures": _image,
    "files": _document,
}
REFUSALS = (
    importers.ImportRejectedError,
    images.ImageRejectedError,
    UnreadableFileError,
)


if __name__ == "__main__":
    main()
