"""A project, or what one user has in it, as a file that another Strata takes in.

A zip of JSON Lines: one file for each table, one line for each row, with `manifest.json` and
`schema.json` (JSON Schema) beside them, and the images under `images/`.
"""

from memory.portability.exporting import export, file_name
from memory.portability.importing import import_project
from memory.portability.reading import members_of
from memory.portability.tables import Extent

__all__ = ["Extent", "export", "file_name", "import_project", "members_of"]
