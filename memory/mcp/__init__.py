"""The Model Context Protocol: a project's memory as tools for other assistants.

`server` answers HTTP with the official SDK and authenticates; `tools` lists the tools; `handlers`
runs them with the functions behind pages and API. Importing the SDK takes a second, so the first
request imports this package.
"""
