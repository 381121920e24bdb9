"""Compare HTML regardless of how the template is indented."""

import re


def compact(html: str) -> str:
    """Return the HTML with one space for each run of whitespace, and none next to a tag."""
    return re.sub(r" ?(<[^>]*?) ?(/?>) ?", r"\1\2", " ".join(html.split()))
