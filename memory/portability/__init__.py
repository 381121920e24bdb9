"""Export and import of a project, or of one user's data in it, as a zip file.

The zip file contains one JSON Lines file for each table, `manifest.json`, `schema.json` (a JSON
Schema), and the images in the folder `images/`.
"""

from memory.portability.archive import members_of
from memory.portability.exporting import export, file_name
from memory.portability.importing import import_project
from memory.portability.tables import ExportScope

__all__ = ["ExportScope", "export", "file_name", "import_project", "members_of"]
