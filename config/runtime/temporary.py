"""A data folder for `up --temporary`, which is deleted when the command ends.

Settings read `STRATA_DATA_DIR` only once, so the folder is created before Django loads them.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.postgres import server
from config.runtime.supervisor import STOP_SIGNALS

OPTION = "--temporary"
PREFIX = "strata-temporary-"


@contextmanager
def temporary_data_dir() -> Iterator[Path]:
    """Within the block, set `STRATA_DATA_DIR` to a new folder. At the end, delete it and its
    database.

    SIGINT, SIGTERM and SIGHUP end the block, even while Django is loading. Only SIGKILL leaves the
    folder behind.
    """
    for number in STOP_SIGNALS:
        # Under nohup, SIGHUP is ignored, and this must not change.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    # Not in TMPDIR, because the path of the database's socket must be short.
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))
    os.environ["STRATA_DATA_DIR"] = str(folder)
    try:
        yield folder
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None
    finally:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        delete(folder)


def delete(folder: Path) -> None:
    """Stop the database in `folder`, even if another command uses it, and delete the folder."""
    server.stop(folder)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        print(f"{folder} could not be deleted completely.", file=sys.stderr)
