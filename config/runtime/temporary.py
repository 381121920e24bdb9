"""A data folder that is deleted when the command ends, for `up --temporary`.

Settings read `STRATA_DATA_DIR` once, so the folder is made before Django loads them.
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
    """Set `STRATA_DATA_DIR` to a new folder inside the block, and delete it with its database.

    SIGINT, SIGTERM and SIGHUP end the block, also while Django still loads. Only SIGKILL leaves
    the folder.
    """
    for number in STOP_SIGNALS:
        # Under nohup, SIGHUP stays ignored.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    # Not TMPDIR: the path of the database's socket has to be short.
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
    """Stop the database in `folder`, which another command may still use, and delete the folder."""
    server.stop(folder)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        print(f"{folder} could not be deleted completely.", file=sys.stderr)
