"""Project export and import: a project, or one user's data in it, as a zip file.

The file holds one JSON Lines file for each table, with `manifest.json` and `schema.json` (JSON
Schema) beside them, and the images under `images/`.
"""

from memory.portability.archive import members_of
from memory.portability.exporting import export, file_name
from memory.portability.importing import import_project
from memory.portability.tables import ExportScope

__all__ = ["ExportScope", "export", "file_name", "import_project", "members_of"]
