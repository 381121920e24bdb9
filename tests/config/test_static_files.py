"""Static files: bundles, their addresses, and compressed pages."""

import gzip
import re
import subprocess
from pathlib import Path

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.templatetags.static import static

from config.http.middleware import PageCompressionMiddleware
from config.http.static_files import ENTRIES, bundle
from tests.server import ROOT

GZIP = {"accept-encoding": "gzip"}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_bundle_has_no_imports_left(name):
    assert not re.search(r"^(@?import|export)\b", bundle(ROOT / "static" / name), re.MULTILINE)


def test_a_script_bundle_has_each_module_once_after_those_that_it_uses(tmp_path: Path):
    (tmp_path / "base.js").write_text(
        "const seen = [];\nexport const note = (name) => seen.push(name);\n"
        "export function all() {\n  return seen.join();\n}\nnote('base');\n"
    )
    (tmp_path / "one.js").write_text(
        'import { note as write } from "./base.js";\nconst seen = 1;\nwrite("one");\n'
    )
    (tmp_path / "main.js").write_text(
        'import "./one.js";\nimport {\n  all,\n  note,\n} from "./base.js";\n'
        'note("main");\nconsole.log(all());\n'
    )
    node = ROOT / ".venv/bin/node"
    script = bundle(tmp_path / "main.js")
    done = subprocess.run(
        [node, "--input-type=module"], input=script, capture_output=True, text=True, check=True
    )
    assert done.stdout == "base,one,main\n"


def test_the_style_bundle_has_the_files_in_their_order():
    text = bundle(ROOT / "static/css/strata.css")
    parts = [(ROOT / "static/css" / name).read_text() for name in ("base.css", "layers.css")]
    assert text.index(parts[0]) < text.index(parts[1])


def test_rules_with_has_name_the_elements_that_they_style():
    """A rule such as `:has(…) > :not(…)` may style any element, so that browsers restyle all of a
    page when anything in it is shown or hidden.
    """
    for path in (ROOT / "static/css").glob("*.css"):
        assert not re.search(r":has\([^{}]*[\s>+~]:not\(", path.read_text()), path.name


@pytest.mark.parametrize("name", [*ENTRIES, "js/copy.js", "css/memory.css"])
def test_browsers_keep_static_files_for_good(client, name):
    answer = client.get(static(name), headers=GZIP)
    assert answer.headers["Cache-Control"] == "max-age=315360000, public, immutable"
    body = b"".join(answer.streaming_content)
    if name in ENTRIES:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(body).decode() == bundle(ROOT / "static" / name)


def test_addresses_of_other_releases_lead_to_this_one(client):
    assert re.fullmatch(r"/static/[0-9a-f]{12}/", settings.STATIC_URL)
    for path in ("/static/0123456789ab/js/strata.js", "/static/js/strata.js"):
        assert client.get(path)["Location"] == static("js/strata.js")
    for missing in ("js/missing.js", "missing file.js"):
        assert client.get(static(missing)).status_code == 404


def compressed(response: HttpResponseBase, **headers: str) -> bool:
    request = HttpRequest()
    request.META = {"HTTP_ACCEPT_ENCODING": "gzip"} | headers
    answer = PageCompressionMiddleware(lambda request: response).process_response(request, response)
    return answer.headers.get("Content-Encoding") == "gzip"


def test_pages_are_compressed():
    pages = [HttpResponse("x" * 1_000) for _ in range(20)]
    assert all(compressed(page) for page in pages)
    # Bytes at random hide the exact length.
    assert len({len(page.content) for page in pages}) > 1


def test_streams_and_answers_to_programs_are_not_compressed():
    assert not compressed(StreamingHttpResponse(["x" * 1_000], content_type="text/html"))
    assert not compressed(HttpResponse("x" * 1_000, content_type="application/json"))


def test_what_another_site_asked_for_is_not_compressed():
    assert not compressed(HttpResponse("x" * 1_000), HTTP_SEC_FETCH_SITE="cross-site")
