"""Links between the pages lead somewhere, and the pages name the version that there is."""

import re
import tomllib
from pathlib import Path

import pytest

from config import __version__
from tests.docs.examples import FENCE, ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]*)\)")
WHEEL = re.compile(r"\b(strata(?:_demo_model)?)-([^-\s]+)-py3-none-any\.whl")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_a_heading(page):
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_commands_name_the_wheels_that_are_built():
    demo = tomllib.loads((ROOT / "deploy/demo-model/pyproject.toml").read_text())
    versions = {"strata": __version__, "strata_demo_model": demo["project"]["version"]}
    for page in (ROOT / "README.md", ROOT / "docs/install.md"):
        wheels = WHEEL.findall(page.read_text())
        assert {name for name, _ in wheels} == {*versions}
        assert all(version == versions[name] for name, version in wheels), page


def test_a_version_can_be_read_in_two_minutes():
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    assert sections[0].split()[0] == __version__
    assert (ROOT / f"docs/changes/{__version__}.md").exists()
    for section in sections:
        version = section.split()[0]
        assert len(section.split()) <= 500, f"move details of {version} to docs/changes/"
