"""`manage.py evaluate_recall`: the measure of recall."""

import json
import os
import subprocess
import sys

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from memory.models import Chunk
from projects.models import Project
from tests.server import ROOT

pytestmark = pytest.mark.django_db

TALK = [
    ("Ana", "Hi Ben! I adopted a small grey cat yesterday."),
    ("Ben", "How nice! What did you call her?"),
    ("Ana", "Her name is Minka, after my grandmother's cat."),
    ("Ben", "I spent the whole weekend repairing my old bicycle."),
]
QUESTIONS = [
    {"question": "What is the name of Ana's cat?", "evidence": ["D1:3"], "category": 1},
    {"question": "What did Ben repair?", "evidence": ["D1:4; D9:9"], "category": 4},
    {"question": "What was never said?", "evidence": ["D1:1"], "category": 5},
    {"question": "What is nowhere?", "evidence": ["D7:1"], "category": 2},
    {"question": "What is not labelled?", "evidence": [], "category": 2},
]


@pytest.fixture
def path(tmp_path):
    turns = [
        {"speaker": speaker, "dia_id": f"D1:{number}", "text": text}
        for number, (speaker, text) in enumerate(TALK, start=1)
    ]
    file = tmp_path / "talk.json"
    file.write_text(
        json.dumps(
            {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023", "qa": QUESTIONS}
        )
    )
    return file


def test_it_tells_how_much_of_the_evidence_is_found(path, capsys):
    call_command("evaluate_recall", path, "--json", "--budgets", "40,1000")
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["questions", "R@5", "R@10", "A@40", "A@1000", "p50_ms", "p95_ms"]
    assert told["questions"] == 2
    assert told["R@5"] == told["A@40"] == told["A@1000"] == 1
    assert 0 < told["p50_ms"] <= told["p95_ms"]


def test_without_json_it_is_a_table(path, capsys):
    call_command("evaluate_recall", path)
    assert "A@4000  1" in capsys.readouterr().out


def test_it_leaves_nothing_behind(path, capsys):
    call_command("evaluate_recall", path)
    assert not Project.objects.exists()
    assert not get_user_model().objects.exists()
    assert not Chunk.objects.exists()


@pytest.mark.parametrize("text", ["{}", "not JSON", '{"session_1": []}'])
def test_what_is_no_conversation_is_refused_and_leaves_nothing_behind(tmp_path, text):
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(CommandError):
        call_command("evaluate_recall", file)
    assert not Project.objects.exists()


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CommandError, match="none.json"):
        call_command("evaluate_recall", tmp_path / "none.json")


@pytest.mark.parametrize("budgets", ["", "x", "500,-1"])
def test_budgets_are_numbers_of_tokens(path, budgets):
    with pytest.raises(CommandError, match="tokens"):
        call_command("evaluate_recall", path, f"--budgets={budgets}")


@pytest.mark.process
@pytest.mark.timeout(300)
def test_a_new_data_folder_gets_its_tables_and_an_outdated_one_is_told_of(path, tmp_path):
    def manage(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *map(str, arguments)]
        environment = os.environ | {"STRATA_DATA_DIR": str(tmp_path)}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    first = manage("evaluate_recall", path, "--json")
    assert json.loads(first.stdout)["questions"] == 2, first.stderr
    manage("migrate", "memory", "zero", "--fake")
    outdated = manage("evaluate_recall", path)
    assert outdated.returncode == 1
    assert outdated.stderr.splitlines()[-1].endswith("run: manage.py migrate")
    assert "Traceback" not in outdated.stderr
