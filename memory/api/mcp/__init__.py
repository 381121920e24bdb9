"""The Model Context Protocol: a project's memory as tools for other assistants.

`server` answers HTTP with the official SDK and authenticates; `tools` are the functions that models
call, on top of the functions behind pages and API. Importing the SDK takes a second, so the first
request imports this package.
"""
