"""Secrets that Strata makes for itself on the first start."""

import os
import secrets
import tempfile
from pathlib import Path


def made(path: Path) -> str:
    """The secret in the file `path`, made on the first call and readable by us alone.

    Processes that start at once agree: a complete file is linked into place, and whoever comes
    second reads it.
    """
    if not path.exists():
        handle, draft = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(64))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            Path(draft).unlink()
    return path.read_text()
