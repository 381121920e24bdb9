"""Files: documents that members add to a project."""
