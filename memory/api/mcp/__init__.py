"""The Model Context Protocol: a project's memory as tools for other assistants.

`server` answers HTTP requests with the official SDK and authenticates them. `tools` has the
functions that models call; they use the same services as the pages and the REST API. Importing the
SDK takes a second, so this package is imported by the first request.
"""
