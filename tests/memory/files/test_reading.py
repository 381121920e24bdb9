"""Reading files of all kinds: the text, its places, and the reasons why there is none."""

from pathlib import Path

import pytest

from memory.files.reading import UnreadableFileError, read_document, recognise


@pytest.fixture
def file(tmp_path: Path):
    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_markdown_has_a_section_for_each_heading(file):
    text = "---\ntitle: Handbook\n---\nIntro\n\n# Leave\n\nTwo weeks.\n\n```\n# no heading\n```\n"
    path = file("a.md", text + "\nSick days\n---\n\nAsk Ana.\n")
    document = read_document(path, "a.md")
    assert (document.kind, document.title, document.page_count) == ("markdown", "Handbook", None)
    assert [(item.headings, item.text) for item in document.sections] == [
        ((), "Intro"),
        (("Leave",), "Two weeks.\n\n```\n# no heading\n```"),
        (("Leave", "Sick days"), "Ask Ana."),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_text_is_decoded(file, encoding):
    text = "Die Straße ist für alle da.\nDas gilt überall und für jeden, der hier lebt."
    document = read_document(file("a.txt", text.encode(encoding)), "a.txt")
    assert [item.text for item in document.sections] == [text]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.txt", b"%PDF-1.7 ...", "pdf"),
        ("a.pdf", b"just text", "text"),
        ("a.md", b"<!DOCTYPE html><html><body>x</body></html>", "html"),
        ("a.py", b"print(1)", "code"),
        ("run", b"#!/bin/sh\necho 1\n", "code"),
        ("a.csv", b"a;b;c\n1;2;3\n", "csv"),
        ("a.csv", b"a\tb\n1\t2\n", "tsv"),
        ("table", b"a,b,c\n1,2,3\n4,5,6\n", "csv"),
        ("mail", b"From: a@b.de\nTo: c@d.de\nSubject: x\n\nHello\n", "email"),
        ("a.eml", b"Dear all: this is no mail.\n", "text"),
    ],
)
def test_content_decides_about_the_kind(file, name, content, kind):
    assert recognise(file(name, content), name) == kind


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"\x89PNG\r\n", "unsupported"), (bytes(range(256)), "unsupported"), (b"", "no_text")],
)
def test_other_files_are_refused_with_a_reason(file, content, code):
    with pytest.raises(UnreadableFileError) as error:
        read_document(file("a.txt", content), "a.txt")
    assert error.value.code == code
