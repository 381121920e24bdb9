"""Collect documents that other programs made, read them, and compare the text with other readers.

`python -m tests.memory.files.corpus FOLDER` downloads source packages from PyPI and packages from
Debian into FOLDER, and prints a line of JSON for each document and a table for each kind. It takes
pdftotext (poppler-utils) and soffice (libreoffice-writer, -calc and -impress). A document's result
is the share of the other reader's words that Strata has as well, the reverse, the share of its
different words (repetitions, such as the only series of a chart as its title, lose no text), and
the processor time.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import django
from lxml import etree

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from memory.files.reading import Document, UnreadableFileError, read_document  # noqa: E402

SDISTS = """
    python-docx==1.2.0 python-pptx==1.0.2 pdfminer.six==20260107 pypdf==7.1.1 mail-parser==4.8.0
    inscriptis==2.7.6 trafilatura==2.3.1 pyexcel-xlsx==0.6.1 tabula-py==2.10.0 markitdown==0.1.9
""".split()
DEBS = """
    debian-policy developers-reference debian-faq maint-guide r-cran-readxl r-cran-openxlsx
    r-cran-officer nettle-dev valgrind bzip2-doc git-doc debian-reference-en debian-reference-de
""".split()
# Patterns of paths below FOLDER/files.
DOCUMENTS = """
    usr/share/debian-reference/*.pdf usr/share/developers-reference/*.pdf
    usr/share/doc/bzip2/*.pdf.gz usr/share/doc/debian-policy/**/*.pdf.gz
    usr/share/doc/debian/FAQ/*.pdf.gz usr/share/doc/maint-guide/*.pdf
    usr/share/doc/nettle-dev/*.pdf.gz usr/share/doc/valgrind/*.pdf.gz
    pypdf-*/resources/crazyones.pdf pypdf-*/resources/Seige_of_Vicksburg_Sample_OCR.pdf
    pypdf-*/resources/GeoBase*.pdf pypdf-*/resources/pdflatex-outline.pdf
    pypdf-*/resources/side-by-side-subfig.pdf pypdf-*/resources/git.pdf
    pypdf-*/resources/multilang.pdf pypdf-*/resources/two-different-pages.pdf
    pypdf-*/resources/SF424_page2.pdf pypdf-*/resources/imagemagick-images.pdf
    pypdf-*/resources/encrypted-file.pdf pypdf-*/resources/encryption/r6-user-password.pdf
    pypdf-*/resources/encryption/r6-owner-password.pdf
    pdfminer_six-*/samples/simple*.pdf pdfminer_six-*/samples/nonfree/*.pdf
    usr/lib/R/site-library/officer/doc_examples/*.docx python_docx-*/tests/test_files/test.docx
    python_docx-*/tests/test_files/having-images.docx
    python_docx-*/features/steps/test_files/blk-*.docx
    python_docx-*/features/steps/test_files/tbl-having-tables.docx
    python_docx-*/features/steps/test_files/comments-rich-para.docx
    python_docx-*/features/steps/test_files/par-hyperlinks.docx
    python_docx-*/features/steps/test_files/num-having-numbering-part.docx
    python_docx-*/features/steps/test_files/hdr-header-footer.docx
    usr/lib/R/site-library/officer/doc_examples/*.pptx
    python_pptx-*/features/steps/test_files/ph-populated-placeholders.pptx
    python_pptx-*/features/steps/test_files/prs-notes.pptx
    python_pptx-*/features/steps/test_files/tbl-cell.pptx
    python_pptx-*/features/steps/test_files/shp-picture.pptx
    python_pptx-*/features/steps/test_files/cht-*.pptx
    python_pptx-*/features/steps/test_files/txt-*.pptx
    usr/lib/R/site-library/readxl/extdata/*.xlsx usr/lib/R/site-library/openxlsx/extdata/*.xlsx
    pyexcel_xlsx-*/tests/fixtures/*.xlsx
    usr/share/doc/debian-policy/*.epub usr/share/developers-reference/*.epub
    usr/share/doc/bzip2/manual.html inscriptis-*/tests/html/wikipedia*.html
    inscriptis-*/tests/html/nested-table*.html trafilatura-*/tests/resources/apache.html
    trafilatura-*/tests/resources/mozilla*.html usr/share/developers-reference/pkgs.html
    usr/share/doc/git/html/gittutorial.html
    mail*parser-*/tests/mails/mail_test_[2-9] mail*parser-*/tests/mails/mail_malformed_*
    mail*parser-*/tests/mails/mail_outlook_1
    usr/share/doc/debian/*.txt.gz markitdown-*/README.md trafilatura-*/HISTORY.md
    inscriptis-*/src/inscriptis/html_engine.py usr/lib/R/site-library/*/extdata/*.csv
    tabula_py-*/tests/resources/*.csv
""".split()
# Readers of other programs for books are rare: the same text by its authors.
COMPANIONS = {"policy.epub": "policy.txt", "developers-reference.epub": "developers-reference.txt"}
OPEN = "urn:oasis:names:tc:opendocument:xmlns:"
WORD = re.compile(r"\w+")
CSV_FILTER = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1"


def main() -> None:
    folder = Path(sys.argv[1])
    files = folder / "files"
    if not files.exists():
        collect(folder, files)
    results: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in documents(files):
        result = measure(path, folder / "converted")
        results[result["kind"]].append(result)
        print(json.dumps(result), flush=True)
    columns = "words of the other reader | words of Strata | different words | worst"
    print(f"| kind | files | read | refused | {columns} |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for kind, found in sorted(results.items()):
        shares = [item for item in found if "found" in item]
        figures = (
            mean(item["found"] for item in shares) if shares else 0,
            mean(item["reverse"] for item in shares) if shares else 0,
            mean(item["different"] for item in shares) if shares else 0,
            min((item["found"] for item in shares), default=0),
        )
        read = [item for item in found if "error" not in item]
        shown = " | ".join(f"{figure:.3f}" for figure in figures)
        print(f"| {kind} | {len(found)} | {len(read)} | {len(found) - len(read)} | {shown} |")


def collect(folder: Path, files: Path) -> None:
    """Download and unpack the packages."""
    files.mkdir(parents=True)
    downloads = folder / "downloads"
    downloads.mkdir(exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    for name in SDISTS:
        subprocess.run([*pip, "-d", str(downloads), name])
    for name in DEBS:
        subprocess.run(["apt-get", "download", "-qq", name], cwd=downloads)
    for path in downloads.iterdir():
        if path.suffix == ".deb":
            subprocess.run(["dpkg", "-x", str(path), str(files)], check=True)
        else:
            shutil.unpack_archive(path, files, filter="data")


def documents(files: Path) -> Iterator[Path]:
    """Yield the documents, unpacked."""
    for pattern in DOCUMENTS:
        for path in sorted(files.glob(pattern)):
            if path.is_symlink() or path.is_dir():
                continue
            if path.suffix == ".gz":
                unpacked = path.with_suffix("")
                unpacked.write_bytes(gzip.decompress(path.read_bytes()))
                path = unpacked
            yield path


def measure(path: Path, converted: Path) -> dict[str, Any]:
    """Read the document and compare it."""
    before = os.times()
    try:
        document = read_document(path, path.name)
    except UnreadableFileError as error:
        kind = path.suffix[1:] or "email"
        return {"file": path.name, "kind": kind, "error": f"{error.code}: {error}"}
    after = os.times()
    cpu_s = sum(after[2:4]) - sum(before[2:4])
    result = {"file": path.name, "kind": document.kind, "cpu_s": round(cpu_s, 2)}
    other = reference(path, document.kind, converted)
    if other is not None:
        ours, theirs = words(text_of(document)), words(other)
        both = (ours & theirs).total()
        result["found"] = round(both / max(theirs.total(), 1), 4)
        result["reverse"] = round(both / max(ours.total(), 1), 4)
        result["different"] = round(len(set(ours) & set(theirs)) / max(len(theirs), 1), 4)
        result["missing"] = " ".join(list((theirs - ours).elements())[:12])
    return result


def text_of(document: Document) -> str:
    """Return all text once. Headings of PDFs come from bookmarks and are in the text as well."""
    texts: list[str] = []
    above: tuple[str, ...] = ()
    for section in document.sections:
        new = [
            it
            for place, it in enumerate(section.headings)
            if above[: place + 1] != section.headings[: place + 1]
        ]
        if document.kind != "pdf" and section.text != "".join(new[-1:]):
            texts += new
        above = section.headings
        texts.append(section.text.replace("\nNotes:\n", "\n"))
    return "\n".join(texts)


def words(text: str) -> Counter[str]:
    """Count the words of a text. Hyphens at the end of a line are as uncertain as soft ones."""
    text = unicodedata.normalize("NFKC", text).replace("\u00ad", "").lower()
    return Counter(WORD.findall(re.sub(r"(\w)[-\u2010]\s*\n\s*(\w)", r"\1\2", text)))


def reference(path: Path, kind: str, converted: Path) -> str | None:
    """Return the text of the document by another program, if there is one for its kind."""
    if kind == "pdf":
        return run("pdftotext", str(path), "-")
    if kind in ("docx", "html"):
        # Without the suffix, LibreOffice opens HTML as text.
        return "\n".join(convert(path, "txt:Text (encoded):UTF8", converted, "*.txt"))
    if kind == "xlsx":
        return "\n".join(convert(path, CSV_FILTER, converted, "*.csv"))
    if kind == "pptx":
        return "\n".join(map(slide_text, convert(path, "fodp", converted, "*.fodp")))
    if path.name in COMPANIONS:
        text = path.with_name(COMPANIONS[path.name] + ".gz")
        return gzip.decompress(text.read_bytes()).decode()
    if kind in ("text", "code", "csv", "tsv", "markdown"):
        return path.read_bytes().decode(errors="replace")
    return None


def slide_text(flat: str) -> str:
    """Return the paragraphs of a presentation in LibreOffice's XML: of slides, charts and notes."""
    root = etree.fromstring(flat.encode(), etree.XMLParser(huge_tree=True))
    paragraphs: dict[etree._Element, list[str]] = {}
    names = {"office": f"{OPEN}office:1.0", "text": f"{OPEN}text:1.0"}
    breaks = "self::text:line-break or self::text:tab or self::text:s"
    path = f"//office:body//text:p//node()[self::text() or {breaks}]"
    for node in root.xpath(path, namespaces=names):
        is_break = isinstance(node, etree._Element)
        text = " " if is_break else node
        element = node.getparent()
        if not is_break and node.is_tail:
            element = element.getparent()
        # A paragraph may contain a chart, whose paragraphs are its own.
        above = (element, *element.iterancestors())
        owner = next(it for it in above if it.tag == f"{{{names['text']}}}p")
        if not element.tag.endswith("}page-number"):
            paragraphs.setdefault(owner, []).append(text)
    return "\n".join(map("".join, paragraphs.values()))


def convert(path: Path, to: str, folder: Path, results: str) -> list[str]:
    shutil.rmtree(folder, ignore_errors=True)
    command = ["soffice", "--headless", "--convert-to", to, "--outdir", str(folder), str(path)]
    run(*command)
    return [it.read_bytes().decode("utf-8-sig", "replace") for it in folder.glob(results)]


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, timeout=300)
    return done.stdout.decode(errors="replace")


if __name__ == "__main__":
    main()
