"""Files of a project in tests: added by the write path, read by the real parsers."""

from io import BytesIO

from memory.files import processing
from memory.files.adding import add_file
from memory.models import File, FileRevision

MANUAL = """# Pump P-40

The pump moves forty litres of coolant each minute.

## Maintenance

Replace the impeller seal every nine months. The torque of the flange bolts is 24 newton metres.

## Storage

Drain the housing before frost, and store the pump upright.
"""


def add_text(project, user, name="manual.md", text=MANUAL, session=None) -> File:
    """Add a file of this text, not read yet."""
    return add_file(project, user, name, BytesIO(text.encode()), session)


def add_read(project, user, name="manual.md", text=MANUAL, session=None) -> File:
    """Add a file and have it read and indexed."""
    document = add_text(project, user, name, text, session)
    read(document)
    return document


def read(document: File) -> FileRevision:
    latest = document.revisions.order_by("-number").first()
    assert latest is not None
    processing.process(latest.pk)
    latest.refresh_from_db()
    return latest
