"""The Model Context Protocol: what a project remembers, as tools for other assistants.

`door` answers HTTP with the official SDK and knows who asks; `tools` says what there is to call;
`memories` does it, by the functions behind pages and API. The SDK takes a second to import, so the
package is imported with the first request.
"""
