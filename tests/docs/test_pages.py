"""The examples in docs/ work."""

import pytest

from tests.docs.examples import FENCE, ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
WITH_EXAMPLES = [page for page in PAGES if "```" in page.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.name)
def test_every_example_of_a_page_runs(reader, path):
    assert reader(f"docs/{path.name}").follow(path.read_text())


def test_the_pages_say_what_they_do_in_fences():
    """An indented block would be an example that nobody runs."""
    for path in PAGES:
        assert "\n\n    " not in FENCE.sub("", path.read_text()), path.name
