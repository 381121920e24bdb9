"""`manage.py evaluate_recall`: the measures of recall on labelled conversations."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from memory.models import Chunk
from memory.recall import ranking
from memory.recall.evaluation import labelled, measures
from memory.recall.search import RecallScope
from memory.recall.service import recall
from projects.models import Project
from tests.bench import fit_recall
from tests.server import ROOT

pytestmark = pytest.mark.django_db

TURNS = [
    ("Ana", "Hi Ben! I adopted a small grey cat yesterday."),
    ("Ben", "How nice! What did you call her?"),
    ("Ana", "Her name is Minka, after my grandmother's cat."),
    ("Ben", "I spent the whole weekend repairing my old bicycle."),
]
QUESTIONS = [
    {"question": "What is the name of Ana's cat?", "evidence": ["D1:3"], "category": 1},
    {"question": "What did Ben repair?", "evidence": ["D1:4; D9:9"], "category": 4},
    {"question": "What is no part of it?", "evidence": ["D1:1"], "category": 5},
    {"question": "What is nowhere?", "evidence": ["D7:1"], "category": 2},
    {"question": "What is not labelled?", "evidence": [], "category": 2},
]
ADVICE = (
    "You could keep the invoices in Postgres, with one row for each line, and add an index on the "
    "customer. Then the monthly report needs one query, and a backup takes the invoices along."
)


def message(key, role, text, day):
    author = "Sam" if role == "user" else ""
    at = f"2026-03-{day:02}T09:00:00Z"
    return {"id": key, "role": role, "author": author, "text": text, "at": at}


def recall_set(name="advice/1"):
    sessions = [
        ("S1", 2, "Where should I keep the invoices of my shop?", ADVICE),
        ("S2", 9, "My supplier is Hansen, and I order paper on Tuesdays.", "Good to know."),
        ("S3", 20, "From now on I order paper at Lindqvist.", "I will remember Lindqvist."),
    ]
    return {
        "name": name,
        "kind": "assistant",
        "sessions": [
            {
                "id": key,
                "title": "",
                "started_at": f"2026-03-{day:02}T09:00:00Z",
                "messages": [
                    message(f"{key}:1", "user", question, day),
                    message(f"{key}:2", "assistant", answer, day),
                ],
            }
            for key, day, question, answer in sessions
        ],
        "questions": [
            {"id": "q1", "kind": "fact", "text": "Who supplies my paper?", "evidence": ["S2:1"]},
            {
                "id": "q2",
                "kind": "next_message",
                "text": "Where do I order paper now?",
                "evidence": ["S2:1"],
                "evidence_sessions": ["S2"],
                "asked_in": "S3",
            },
        ],
    }


@pytest.fixture
def path(tmp_path):
    turns = [
        {"speaker": speaker, "dia_id": f"D1:{number}", "text": text}
        for number, (speaker, text) in enumerate(TURNS, start=1)
    ]
    file = tmp_path / "talk.json"
    file.write_text(
        json.dumps(
            {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023", "qa": QUESTIONS}
        )
    )
    return file


@pytest.fixture
def set_path(tmp_path):
    file = tmp_path / "advice-1.json.gz"
    file.write_bytes(gzip.compress(json.dumps(recall_set()).encode()))
    return file


def evaluate(capsys, *arguments):
    call_command("evaluate_recall", *arguments, "--json")
    return json.loads(capsys.readouterr().out)


def test_it_reports_how_much_of_the_evidence_was_found(path, capsys):
    report = evaluate(capsys, path, "--budgets", "40,1000")
    figures = report["sets"]["locomo"]
    assert figures["questions"] == 2
    assert figures["R@5"] == figures["A@1000"] == 1
    assert 0 < figures["A@40"] <= 1
    assert figures["spread"]["R@5"] == [1, 1]
    assert "floor" not in figures
    assert 0 < report["p50_ms"] <= report["p95_ms"]


def test_a_recall_set_keeps_roles_and_asks_as_of_the_moment_of_the_question(set_path, capsys):
    figures = evaluate(capsys, set_path, "--budgets", "2000", "--floor")["sets"]["advice"]
    assert figures["questions"] == 2
    assert figures["A@2000"] == figures["S@2000"] == 1
    assert figures["A@2000 by kind"] == {"fact": 1, "next_message": 1}
    assert 0 < figures["assistant_share"] < 1
    assert set(figures["floor"]) == {"all turns", "people's turns"}
    assert figures["floor"]["people's turns"]["assistant_share"] == 0


def test_a_question_searches_only_what_was_written_before_it(set_path):
    conversation = labelled.read(set_path)
    [_, asked_later] = conversation.questions
    with measures.temporary_project(conversation) as (project, owner):
        scope = RecallScope(project, owner, until=asked_later.until)
        texts = " ".join(result.text for result in recall(scope, asked_later.text))
    assert "Hansen" in texts
    assert "Lindqvist" not in texts


def test_the_measured_order_is_that_of_recall(set_path):
    conversation = labelled.read(set_path)
    with measures.temporary_project(conversation) as (project, owner):
        scope, keys = RecallScope(project, owner), measures.MessageKeys.of(project)
        for question in conversation.questions:
            ranked = measures.rank_question(scope, conversation.name, question, keys)
            results = recall(scope, question.text, limit=100)
            order = (-ranked.scores(ranking.WEIGHTS)).argsort(kind="stable")
            assert [ranked.tokens[row] for row in order] == [row.tokens for row in results]


def test_weights_that_are_fitted_put_evidence_first(path, set_path):
    report = fit_recall.report([path, set_path])
    weights = report["weights"]
    assert set(weights) == set(ranking.WEIGHTS)
    for name, weight in weights.items():
        by_hand = ranking.WEIGHTS[name] if name in fit_recall.SET_BY_HAND else None
        assert weight == pytest.approx(by_hand) if by_hand else weight >= 0
    assert all(figures["R@5"] == 1 for figures in report["sets"].values())


@pytest.fixture
def fits(monkeypatch):
    """The sets on which weights were fitted."""
    recorded, fit_weights = [], fit_recall.fit_weights

    def record(sets, names):
        recorded.append(sets)
        return fit_weights(sets, names)

    monkeypatch.setattr(fit_recall, "fit_weights", record)
    return recorded


def test_a_fit_learns_nothing_from_the_set_that_is_left_out(path, set_path, fits):
    report = fit_recall.report([path, set_path], "advice")
    assert set(report["sets"]) == {"advice"}
    assert [set(sets) for sets in fits] == [{"locomo"}]


def test_each_conversation_can_be_left_out_in_turn(path, set_path, tmp_path, fits):
    other = tmp_path / "advice-2.json"
    other.write_text(json.dumps(recall_set("advice/2")))
    report = fit_recall.report([path, set_path, other], "conversations")
    assert report["sets"]["advice"]["questions"] == 4
    everything = {"locomo/talk", "advice/1", "advice/2"}
    fitted = [{row.conversation for rows in sets.values() for row in rows} for sets in fits]
    assert [everything - others for others in fitted] == [
        {"locomo/talk"},
        {"advice/1"},
        {"advice/2"},
    ]


def test_without_json_it_prints_a_table(path, set_path, capsys):
    call_command("evaluate_recall", path, set_path, "--floor")
    output = capsys.readouterr().out
    assert "A@4000  1" in output
    assert "people's turns" in output


def test_it_leaves_nothing_behind(path, set_path, capsys):
    call_command("evaluate_recall", path, set_path)
    assert not Project.objects.exists()
    assert not get_user_model().objects.exists()
    assert not Chunk.objects.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b"not JSON",
        b'{"session_1": []}',
        b"[]",
        b'{"sessions": [{}], "questions": []}',
        b'{"sessions": [], "questions": [{"text": 3}]}',
        gzip.compress(b'{"sessions"', mtime=0)[:-9],
        b"\xff\xfe",
    ],
)
def test_a_file_that_is_no_labelled_conversation_is_rejected(tmp_path, content):
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    with pytest.raises(CommandError):
        call_command("evaluate_recall", file)
    assert not Project.objects.exists()


def test_a_file_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(CommandError, match="none.json"):
        call_command("evaluate_recall", tmp_path / "none.json")


@pytest.mark.parametrize("budgets", ["", "x", "500,-1"])
def test_budgets_are_numbers_of_tokens(path, budgets):
    with pytest.raises(CommandError, match="tokens"):
        call_command("evaluate_recall", path, f"--budgets={budgets}")


@pytest.mark.process
@pytest.mark.timeout(300)
def test_a_new_data_folder_gets_its_tables_and_an_outdated_one_is_reported(path, tmp_path):
    def manage(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *map(str, arguments)]
        environment = os.environ | {"STRATA_DATA_DIR": str(tmp_path)}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    first = manage("evaluate_recall", path, "--json")
    assert json.loads(first.stdout)["sets"]["locomo"]["questions"] == 2, first.stderr
    manage("migrate", "memory", "zero", "--fake")
    outdated = manage("evaluate_recall", path)
    assert outdated.returncode == 1
    assert outdated.stderr.splitlines()[-1].endswith("run: manage.py migrate")
    assert "Traceback" not in outdated.stderr
