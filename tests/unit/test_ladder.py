from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.layers import ladder
from memory.layers.ladder import LadderNode, RollUp, roll_ups
from memory.layers.periods import Granularity, ancestor_key, day_key

CONVERSATION, DAY, WEEK, MONTH = Granularity
VIENNA = ZoneInfo("Europe/Vienna")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)  # a Saturday, in week 47
LONG_AGO = timedelta(days=400)


def talk(number: int, age: timedelta = LONG_AGO, tokens: int = 100, **fields) -> LadderNode:
    """A live conversation entry whose last source is `age` old."""
    at = NOW - age
    node = LadderNode(UUID(int=number), CONVERSATION, day_key(at, VIENNA), tokens, at, "live")
    return replace(node, **fields)


class Writer:
    """Carries plans out as the cycle does, with digests of a fixed length instead of a model's."""

    def __init__(self, nodes: list[LadderNode], length: int = 120):
        self.nodes = {node.id: node for node in nodes}
        self.length = length
        self.written: list[str] = []

    def cycle(self, now: datetime, budget: int) -> None:
        for _ in range(50):
            nodes = list(self.nodes.values())
            rolls = ladder.rewrites(nodes) or roll_ups(nodes, now, budget)
            if not rolls:
                break
            for roll in rolls:
                self.write(roll)
        else:
            raise AssertionError("the plan does not come to an end")

    def write(self, roll: RollUp) -> None:
        children = [self.nodes[item] for item in roll.children]
        newest = max(child.last_source_at for child in children)
        digest = roll.digest or UUID(int=10_000 + len(self.nodes))
        self.written.append(roll.key)
        if roll.digest is None:
            assert len(children) > 1
            node = LadderNode(digest, roll.granularity, roll.key, self.length, newest, "live")
            self.nodes[digest] = node
        elif self.nodes[digest].parent:
            self.change(self.nodes[digest].parent, state="stale")
            self.change(digest, state="absorbed", last_source_at=newest)
        else:
            self.change(digest, state="live", last_source_at=newest)
        for child in roll.children:
            self.change(child, state="absorbed", parent=digest)

    def change(self, item: UUID, **fields) -> None:
        self.nodes[item] = replace(self.nodes[item], **fields)


def test_nothing_moves_within_the_budget():
    nodes = [talk(n) for n in range(10)]
    assert roll_ups(nodes, NOW, 1_000) == []
    assert roll_ups(nodes, NOW, 999) != []


def test_once_begun_a_cycle_goes_on_until_the_budget_is_kept():
    days = [talk(n, LONG_AGO + n * timedelta(days=1), granularity=DAY) for n in range(11)]
    days = [replace(day, key=day_key(day.last_source_at, VIENNA)) for day in days]
    assert {roll.granularity for roll in roll_ups(days, NOW, 1_000)} == {WEEK}
    assert roll_ups(days, NOW, 1_100) == []


def test_conversations_older_than_a_day_roll_into_their_days_oldest_first():
    nodes = [
        talk(1, timedelta(days=3)),
        talk(2, timedelta(days=3, hours=1)),
        talk(3, timedelta(days=2)),
        talk(4, timedelta(days=2, hours=1)),
        talk(5, timedelta(hours=20)),
        talk(6, timedelta(hours=20)),
    ]
    assert roll_ups(nodes, NOW, 100) == [
        RollUp(DAY, "2026-11-18", None, (nodes[1].id, nodes[0].id)),
        RollUp(DAY, "2026-11-19", None, (nodes[3].id, nodes[2].id)),
    ]


@pytest.mark.parametrize(
    ("granularity", "age"), [(CONVERSATION, 1), (DAY, 7), (WEEK, 30)], ids=["day", "week", "month"]
)
def test_a_layer_rolls_only_when_older_than_its_age(granularity, age):
    keys = {
        CONVERSATION: ("2026-10-01", "2026-10-01"),
        DAY: ("2026-09-30", "2026-10-01"),
        WEEK: ("2026-W40", "2026-W41"),
    }[granularity]
    nodes = [
        talk(n, timedelta(days=age), granularity=granularity, key=key)
        for n, key in enumerate(keys, 1)
    ]
    assert roll_ups(nodes, NOW, 10) == []
    rolls = roll_ups(nodes, NOW + timedelta(seconds=1), 10)
    assert [roll.granularity for roll in rolls] == [granularity.older]


def test_a_day_waits_for_its_last_talk():
    morning = [talk(n, timedelta(hours=30)) for n in (1, 2)]
    evening = talk(3, timedelta(hours=23), key=morning[0].key)
    assert roll_ups([*morning, evening], NOW, 10) == []
    assert roll_ups([*morning, replace(evening, pinned=True)], NOW, 10) != []


def test_a_week_waits_for_a_talk_that_is_in_no_day_yet():
    days = [
        talk(n, timedelta(days=8), granularity=DAY, key=key)
        for n, key in enumerate(("2026-11-09", "2026-11-10"), 1)
    ]
    sunday = talk(3, timedelta(days=6), key="2026-11-15", pinned=False)
    assert roll_ups([*days, sunday], NOW, 10) == []
    assert [roll.key for roll in roll_ups(days, NOW, 10)] == ["2026-W46"]


def test_the_only_talk_of_a_day_rolls_into_its_week_and_of_a_week_into_its_month():
    monday, tuesday = talk(1, key="2026-03-02"), talk(2, key="2026-03-03")
    other_week = talk(3, key="2026-03-12")
    assert roll_ups([monday], NOW, 10) == []
    assert roll_ups([monday, other_week], NOW, 10) == [
        RollUp(MONTH, "2026-03", None, (monday.id, other_week.id))
    ]
    assert roll_ups([monday, tuesday, other_week], NOW, 10) == [
        RollUp(WEEK, "2026-W10", None, (monday.id, tuesday.id))
    ]


def test_a_failed_period_and_those_that_contain_it_wait():
    keys = ("2026-03-02", "2026-03-03", "2026-03-11", "2026-03-11")
    nodes = [talk(n, key=key) for n, key in enumerate(keys, 1)]
    failed = {(DAY, "2026-03-11")}
    assert [roll.period for roll in roll_ups(nodes, NOW, 10)] == [(DAY, "2026-03-11")]
    assert [roll.period for roll in roll_ups(nodes, NOW, 10, failed)] == [(WEEK, "2026-W10")]
    assert roll_ups(nodes, NOW, 10, failed | {(WEEK, "2026-W10")}) == []


def test_a_second_talk_of_a_day_whose_first_is_in_the_week_joins_the_week():
    week = talk(30, granularity=WEEK, key="2026-W10")
    first = talk(1, key="2026-03-02", state="absorbed", parent=week.id)
    late = talk(2, LONG_AGO - timedelta(minutes=1), key="2026-03-02")
    assert roll_ups([week, first, late], NOW, 10) == [
        RollUp(WEEK, "2026-W10", week.id, (first.id, late.id))
    ]


@pytest.mark.parametrize("state", ["proposed", "hidden"])
def test_a_talk_waits_for_the_digest_of_its_day_and_is_not_in_the_week_before(state):
    day = talk(20, granularity=DAY, key="2026-03-02", state=state)
    nodes = [talk(1, key="2026-03-02"), talk(2, key="2026-03-03"), talk(3, key="2026-03-04")]
    [roll] = roll_ups([day, *nodes], NOW, 10)
    assert roll == RollUp(WEEK, "2026-W10", None, (nodes[1].id, nodes[2].id))


def test_a_late_talk_rewrites_the_digest_of_its_day_from_all_its_children():
    digest = talk(9, granularity=DAY)
    old = talk(1, state="absorbed", parent=digest.id)
    late = talk(2, LONG_AGO - timedelta(minutes=1), key=old.key)
    rolls = roll_ups([digest, old, late], NOW, 10)
    assert rolls == [RollUp(DAY, digest.key, digest.id, (old.id, late.id))]


@pytest.mark.parametrize("state", ["proposed", "hidden", "stale"])
def test_a_digest_that_waits_takes_nobody_in(state):
    nodes = [talk(9, granularity=DAY, state=state), talk(1), talk(2)]
    assert roll_ups(nodes, NOW, 10) == []


@pytest.mark.parametrize(
    "fields", [{"pinned": True}, {"state": "proposed"}, {"state": "hidden"}, {"state": "absorbed"}]
)
def test_pinned_and_invisible_entries_have_no_parent(fields):
    nodes = [talk(1, **fields), talk(2), talk(3)]
    [roll] = roll_ups(nodes, NOW, 10)
    assert set(roll.children) == {nodes[1].id, nodes[2].id}


def test_faded_entries_are_children_too():
    nodes = [talk(1, state="faded"), talk(2)]
    assert len(roll_ups(nodes, NOW, 10)[0].children) == 2


def test_a_stale_child_holds_its_digests_back():
    week = talk(30, granularity=WEEK, state="stale", key="2026-W10")
    day = talk(20, granularity=DAY, state="stale", parent=week.id)
    other = talk(21, granularity=DAY, state="absorbed", parent=week.id)
    nodes = talk(10, state="absorbed", parent=day.id)
    edited = talk(11, state="stale", parent=day.id)
    assert ladder.rewrites([week, day, other, nodes, edited]) == []
    after = replace(edited, state="absorbed")
    rolls = ladder.rewrites([week, day, other, nodes, after])
    assert [(roll.digest, set(roll.children)) for roll in rolls] == [(day.id, {nodes.id, after.id})]
    rolls = ladder.rewrites([week, replace(day, state="absorbed"), other, nodes, after])
    assert [(roll.digest, set(roll.children)) for roll in rolls] == [(week.id, {day.id, other.id})]


def test_stale_digests_are_rewritten_days_first():
    week = talk(30, granularity=WEEK, state="stale", key="2026-W10")
    day = talk(20, granularity=DAY, state="stale")
    nodes = [
        week,
        day,
        talk(10, state="absorbed", parent=day.id),
        talk(21, granularity=DAY, state="absorbed", parent=week.id),
    ]
    assert [roll.digest for roll in ladder.rewrites(nodes)] == [day.id, week.id]


def test_a_stale_digest_without_children_is_left_alone():
    assert ladder.rewrites([talk(20, granularity=DAY, state="stale")]) == []


talks = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=150 * 24),  # hours ago
        st.integers(min_value=20, max_value=200),
        st.sampled_from(["live"] * 8 + ["faded", "proposed", "hidden"]),
        st.sampled_from([False] * 9 + [True]),
    ),
    max_size=60,
).map(
    lambda rows: [
        talk(n, timedelta(hours=hours), tokens, state=state, pinned=pinned)
        for n, (hours, tokens, state, pinned) in enumerate(rows, 1)
    ]
)


@given(talks, st.integers(min_value=100, max_value=3_000), talks)
def test_a_plan_carried_out_keeps_its_promises(nodes, budget, later):
    writer = Writer(nodes)
    writer.cycle(NOW, budget)
    check(writer, budget, NOW)
    # Weeks later, and with more said since, some of it for days that are digested already.
    for node in later:
        fresh = replace(node, id=UUID(int=node.id.int + 5_000))
        writer.nodes[fresh.id] = fresh
    after = NOW + timedelta(days=40)
    writer.cycle(after, budget)
    check(writer, budget, after)


def check(writer: Writer, budget: int, now: datetime) -> None:
    nodes = list(writer.nodes.values())
    by_id = writer.nodes
    for node in nodes:
        if node.pinned:
            assert node.parent is None and node.state != "absorbed"
        assert (node.state == "absorbed") == (node.parent is not None)
        if node.parent is not None:
            parent = by_id[node.parent]
            assert parent.granularity.depth > node.granularity.depth
            assert parent.key == ancestor_key(node.granularity, node.key, parent.granularity)
    digests = [(node.granularity, node.key) for node in nodes if node.granularity != CONVERSATION]
    assert len(digests) == len(set(digests))
    # Asked again, it has nothing to add.
    written = len(writer.written)
    states = {node.id: node.state for node in nodes}
    writer.cycle(now, budget)
    assert len(writer.written) == written
    assert {node.id: node.state for node in writer.nodes.values()} == states


def test_a_long_history_ends_in_months():
    writer = Writer([talk(n, timedelta(days=n / 4)) for n in range(1, 800)])
    writer.cycle(NOW, 2_000)
    live = [node for node in writer.nodes.values() if node.state in ladder.VISIBLE]
    assert {node.granularity for node in live} == {CONVERSATION, DAY, WEEK, MONTH}
    assert len(live) < 40
    check(writer, 2_000, NOW)
