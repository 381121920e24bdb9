"""When Python looks for objects that only hold each other."""

import gc
import json
import subprocess
import sys

import pytest

from config import garbage
from tests.commands import ROOT

WEB = """
import gc, json
import config.asgi
print(json.dumps([gc.isenabled(), gc.get_freeze_count(), gc.get_threshold()[0]]))
"""


def test_a_web_process_does_not_look_through_what_it_has_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
    told = subprocess.check_output([sys.executable, "-c", WEB], cwd=ROOT, timeout=90)
    looks, kept, young = json.loads(told)
    assert (looks, young) == (True, garbage.YOUNG)
    assert kept > 100_000


def test_nor_does_any_process_in_which_django_is_set_up():
    assert gc.isenabled()
    assert gc.get_threshold()[0] == garbage.YOUNG


def test_it_looks_again_where_loading_fails():
    with pytest.raises(ImportError), garbage.none_while_loading():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()
