"""Archives, documents and images built to hurt: refused with a reason, or read without harm."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server import ROOT

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the memory of a process is read from /proc"
)

# Megabytes that any one of them may take, beyond what Strata itself does. An image of 52 megapixels
# is 200, and twice that while one with transparency is scaled (chat/attachments/images.py).
# The processes that parse files have 400, and with it their limit.
ROOM = {"zips": 120, "documents": 200, "pictures": 480, "files": 400}
# How many of each there are at least, and how many the short version reads. Of the files, it reads
# some of those that are made and read fast, each time others.
FEWEST = {"zips": (90, 18), "documents": (20, 4), "pictures": (80, 16), "files": (800, 15)}
# The reason for files whose names begin with a word.
REASONS = {"locked": "password", "encrypted": "password", "old": "type", "bomb": "unpacked"}
# Seconds of one, on a machine with much else to do. A page of a file is read and drawn.
PATIENCE = 60


@pytest.mark.parametrize("kind", ROOM)
def test_hostile_files_are_refused_in_bounded_memory(kind, scale, tally, chance):
    step = scale(1, 30 if kind == "files" else 5)
    start = chance.randrange(step) if kind == "files" else 0
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.file_reader", kind, str(step), str(start)],
        cwd=ROOT,
        env=os.environ | {"PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    # Whatever is no refusal ended the program.
    assert done.returncode == 0, done.stderr[-2_000:]
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reports) >= scale(*FEWEST[kind])
    for report in reports:
        reason = report["ending"].partition(": ")[2]
        assert reason
        assert "Traceback" not in reason
        kind_of_file = re.split(r"[ .]", report["name"])[0]
        assert kind != "files" or REASONS.get(kind_of_file, "") in reason, report
        assert report["megabytes"] < ROOM[kind], report
        assert report["seconds"] < PATIENCE, report
        assert kind == "files" or report["wrote"] == [], report
        assert not report["connected"], report
        tally(f"{kind} {report['ending'].partition(':')[0]}")
    tally(f"{kind}: most megabytes of one", round(max(item["megabytes"] for item in reports)))
    tally(
        f"{kind}: most milliseconds of one", round(1000 * max(item["seconds"] for item in reports))
    )
