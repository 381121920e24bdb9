"""The audit finds the particulars that a digest lost, and little else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.layers import losses
from memory.layers.entities import Entity, EntityKind, find_entities
from memory.layers.losses import audit


def missing(children: list[str], digest: str) -> list[Entity]:
    """The particulars of texts without labels that `digest` lacks."""
    return list(audit([("", text) for text in children], digest).missing)


# Summaries as they are written, with all that a reader would miss in a digest of them.
SUMMARIES = [
    (
        "- Ana decided to move the cutover to 3 March 2026; Ben Adler owns it, see INFRA-2231 and"
        " https://wiki.example.org/cutover?x=1.",
        "2026-03-03 | ana | ben adler | infra-2231 | wiki.example.org/cutover?x=1",
    ),
    (
        "- The platform team budgets €1,200 (about $1.3k) and 12.5% for PostgreSQL 18.1.2;"
        " downtime is 90 minutes from 14:05.",
        "1200 eur | 1300 usd | 12.5 | postgresql | 18.1.2 | 90 min | 14:05",
    ),
    (
        "- Open question: who pages on the night of the 3rd? Contact ana@example.org or @carla,"
        " ticket #4512.",
        "ana@example.org | @carla | #4512",
    ),
    (
        "- Yesterday we agreed on v1.2.3, commit a1b2c3d4e5, /etc/strata/conf.d, max_wal_size and"
        " 10.0.0.12:5432.",
        "1.2.3 | a1b2c3d4e5 | /etc/strata/conf.d | max_wal_size | 10.0.0.12:5432",
    ),
    (
        "- Deployment was moved to Vienna by Acme Corp. In March 2026, 3 servers, 250 users and a"
        " 2 GB cache.",
        "vienna | acme corp | 2026-03 | 250 | 2 gb",
    ),
    (
        "- Caroline's friend Melanie lives in Sweden; they met at the LGBTQ group on May 7th, 2023"
        " at 2:30 pm.",
        "caroline | melanie | sweden | lgbtq | 2023-05-07 | 14:30",
    ),
    ("- Ana: “We keep PgBouncer in transaction mode.”", "ana | pgbouncer"),
    ("- Assistant: “That depends on the plan.”", ""),
    ("- They will meet next week to talk about the open questions; nothing is settled.", ""),
    ("- Next Steps And Open Questions For Review", ""),
    ("- Rollback was rehearsed. Monitoring is next. Traffic moves on Monday.", ""),
    ("- 1. The 2nd attempt took three tries, 2 of them failed.", ""),
    (
        "- Am 12.03.2026 um 14.05 Uhr übernimmt Ana Kovač den Umzug der Datenbank; das Budget"
        " beträgt 1.200,50 €.",
        "2026-03-12 | 14:05 | ana kovač | 1200.5 eur",
    ),
    (
        "- Die Entscheidung über den Anbieter fällt am 4. April; Frau Müller prüft den Vertrag in"
        " 3 Wochen, 40 Prozent Anzahlung.",
        "--04-04 | müller | 3 week | 40",
    ),
    ("- Der Vertrag und die Kündigung sind mit dem Betriebsrat abgestimmt.", ""),
]


@pytest.mark.parametrize(("summary", "expected"), SUMMARIES)
def test_the_particulars_of_a_summary_are_found_and_nothing_else(summary, expected):
    assert {entity.form for entity in find_entities(summary)} == set(
        filter(None, expected.split(" | "))
    )


@pytest.mark.parametrize(
    "several",
    [
        ["3 March 2026", "March 3, 2026", "3rd of March 2026", "2026-03-03", "03.03.2026"]
        + ["3. März 2026"],
        ["14:05", "2:05 pm", "14.05 Uhr", "14:05:00"],
        ["1,000", "1.000", "1 000", "1’000", "1000", "1k"],
        ["1,250.5", "1.250,5", "1250.50", "1250,5"],
        ["€1,200", "1.200 €", "EUR 1200", "1,200 euros", "€1.2k", "1,2 tausend Euro"],
        ["12.5%", "12,5 %", "12.5 percent", "12,5 Prozent"],
        ["90 minutes", "90 min", "90-minute", "90 Minuten"],
        ["https://Example.org/a", "http://www.example.org/a/", "example.org/a"],
        ["see v1.2.3", "see 1.2.3", "see V1.2.3".lower()],
        ["for Ana", "for Ana's", "for Ana’s", "Ana said"],
        ["`max_wal_size`", "max_wal_size"],
    ],
    ids=lambda several: several[0],
)
def test_different_spellings_are_equal(several):
    for item in several:
        for other in several:
            assert not missing([item], other), (item, other)


@pytest.mark.parametrize(
    ("child", "digest"),
    [
        ("on 3 March 2026", "on 4 March 2026"),
        ("on 3 March", "in March"),
        ("on 3 March 2026", "on 3 March 2027"),
        ("for Ana Kovač", "for Ana"),
        ("€1,200", "€1,300"),
        ("€1,200", "$1,200"),
        ("90 minutes", "90 hours"),
        ("12%", "13%"),
        ("INFRA-2231", "INFRA-2232"),
        ("https://example.org/a", "https://example.org/b"),
        ("from Vienna", "from there"),
    ],
)
def test_a_different_value_is_a_loss(child, digest):
    assert missing([child], digest)


@pytest.mark.parametrize(
    ("child", "digest"),
    [
        ("it stays with Kubernetes", "- Kubernetes stays."),
        ("the read replica of Vienna", "vienna keeps its read replica"),
        ("on 3 March", "on 2026-03-03"),
        ("on 2026-03-03", "on 3 March"),
        ("in March 2026", "on 3 March 2026"),
        ("3 weeks", "three weeks"),
        ("250 users", "€250"),
        ("in `conf.d`", "in conf.d"),
        ("on 3/4/2026", "on 3 April 2026"),
        ("on 3/4/2026", "on March 4, 2026"),
    ],
)
def test_other_words_for_a_value_are_no_loss(child, digest):
    assert not missing([child], digest)


def test_a_date_that_the_childs_label_tells_is_not_looked_for():
    label = "Thu 12 Mar 2026 · Cutover on 3 April"
    loss_report = audit(
        [(label, "- On 12 March 2026 Ana agreed to move it to 3 April.")], "- Moved."
    )
    assert [missing_item.form for missing_item in loss_report.missing] == ["--04-03", "ana"]
    assert loss_report.held == 2


def test_a_detail_of_several_children_counts_once():
    loss_report = audit(
        [("", "for Ana, INFRA-1, 12%"), ("", "for Ana and Ben")], "- Ana and INFRA-1"
    )
    assert (len(loss_report.missing), loss_report.held) == (2, 4)


def test_a_long_list_says_how_many_it_leaves_out():
    children = [("", " ".join(f"INFRA-{number}" for number in range(80)))]
    listed = audit(children, "- Nothing.").listed()
    assert len(listed) == losses.MAX_LISTED
    assert listed[0] == {"kind": "identifier", "text": "INFRA-0"}
    assert listed[-1] == {"kind": "more", "text": "31"}


WORDS = st.sampled_from(
    """Ana Ben Vienna the moved to on and of 3 March 2026 12% €5 INFRA-7 #12 v1.2.3 90 min . ; : “ ”
    14:05 owns said Москве Аня и 3月3日 田中さん der Umzug Team a_b ana@example.org https://x.org/a
    - ( ) 1,000 1 000 GitHub SLA's @carla /etc/x 10k""".split()
)
TEXTS = st.lists(WORDS | st.text(max_size=8), max_size=25).map(" ".join) | st.text(max_size=80)


@given(st.lists(TEXTS, max_size=5))
def test_the_children_together_lose_nothing(children):
    assert missing(children, "\n".join(children)) == []


@given(st.lists(TEXTS, max_size=4), TEXTS, TEXTS)
def test_a_longer_summary_loses_no_more(children, digest, further):
    assert set(missing(children, f"{digest}\n{further}")) <= set(missing(children, digest))


@given(
    st.lists(TEXTS, max_size=4).flatmap(lambda all: st.tuples(st.just(all), st.permutations(all))),
    TEXTS,
)
def test_the_order_of_the_children_changes_nothing(orders, digest):
    first_item, other = orders
    assert set(missing(first_item, digest)) == set(missing(other, digest))


def test_a_particular_is_the_same_however_it_is_written():
    assert Entity(EntityKind.NAME, "ana", "Ana's") == Entity(EntityKind.NAME, "ana", "Ana")
