from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from memory.layers.filling import Source, fill
from memory.layers.lines import Line, LineIndex

NEWEST = date(2026, 11, 21)
HEADING_COST = 3
# Words that no two of these lines share.
WORDS = st.lists(
    st.sampled_from("alpha beta gamma delta epsilon zeta eta theta".split()), max_size=6
)


def cost(line: Line) -> int:
    return 4 + len(line.text.split())


def total(lines: Sequence[Line]) -> int:
    return sum(map(cost, lines)) + HEADING_COST * len({(it.day.year, it.day.month) for it in lines})


def line(text: str, days_ago: int = 0, score: float = 1.0) -> Line:
    return Line(text, NEWEST - timedelta(days=days_ago), "Ana", score=score)


def source(number: int, *lines: Line, messages: int = 10, **fields) -> Source:
    return Source(UUID(int=number), lines, messages, **fields)


def shown(sources: Sequence[Source], room: int) -> list[Line]:
    return [
        it.line for it in fill(sources, room, lambda it: cost(it.line), lambda month: HEADING_COST)
    ]


@st.composite
def histories(draw) -> list[Source]:
    """Entries of up to four years, some of them digests of a month, some pinned."""
    sources = []
    for number in range(draw(st.integers(0, 12))):
        days_ago = draw(st.integers(0, 1_500))
        is_digest = draw(st.booleans())
        lines = [
            line(
                f"word{number} unique{number}x{place} own{number}y{place} {' '.join(draw(WORDS))}",
                days_ago + (draw(st.integers(0, 30)) if is_digest else 0),
                draw(st.floats(0, 10)),
            )
            for place in range(draw(st.integers(0, 6)))
        ]
        pinned, messages = draw(st.booleans()) and draw(st.booleans()), draw(st.integers(0, 200))
        sources.append(
            source(
                number,
                *lines,
                messages=messages,
                pinned=pinned,
            )
        )
    return sources


@given(histories(), st.integers(0, 400))
def test_the_budget_is_a_limit(sources, room):
    assert total(shown(sources, room)) <= max(room, 0)


@given(histories(), st.integers(0, 400), st.randoms())
def test_equal_entries_have_the_same_lines_in_any_order(sources, room, random):
    shuffled = random.sample(sources, len(sources))
    assert shown(shuffled, room) == shown(sources, room)


@given(histories(), st.integers(0, 400))
def test_an_entry_shows_the_first_lines_of_each_month(sources, room):
    """A line is skipped only if another repeats it."""
    chosen = defaultdict(list)
    for it in fill(sources, room, lambda it: cost(it.line), lambda month: HEADING_COST):
        chosen[it.source].append(it.line)
    for entry in sources:
        months = defaultdict(list)
        for it in entry.lines:
            months[it.day.year, it.day.month].append(it)
        for lines in months.values():
            places = [place for place, it in enumerate(lines) if it in chosen[entry.id]]
            skipped = [
                it
                for place, it in enumerate(lines[: max(places, default=0)])
                if place not in places
            ]
            for it in skipped:
                assert is_repeated(it, sources)


def is_repeated(line: Line, sources: Sequence[Source]) -> bool:
    index = LineIndex()
    for entry in sources:
        for other in entry.lines:
            if other is not line:
                index.add(other)
    return index.repeats(line)


@given(histories())
def test_every_month_has_a_line_if_there_is_room(sources):
    everything = [it for entry in sources for it in entry.lines]
    lines = shown(sources, 2 * total(everything) + 1)
    months = {(it.day.year, it.day.month) for it in everything if not is_repeated(it, sources)}
    assert months <= {(it.day.year, it.day.month) for it in lines}


def monthly(months: int) -> list[Source]:
    """A digest of four lines for each month, the newest first."""
    return [
        source(
            number,
            *(
                line(
                    f"number{number} place{place} topic{number * 7 + place} word{number}x{place}",
                    15 + 30 * number,
                )
                for place in range(4)
            ),
        )
        for number in range(months)
    ]


def test_old_months_share_a_line_when_there_are_too_many():
    everything = monthly(36)
    months = {(it.day.year, it.day.month) for it in shown(everything, 36 * 11 * 2)}
    assert len(months) == 36
    few = shown(everything, 300)
    days = sorted({it.day for it in few}, reverse=True)
    newest_months = {(it.lines[0].day.year, it.lines[0].day.month) for it in everything[:12]}
    assert newest_months <= {(day.year, day.month) for day in days}
    assert {day.year for day in days} == {2023, 2024, 2025, 2026}


def test_pinned_entries_get_half_of_the_room_before_all_others():
    pinned = source(
        99, *(line(f"pinned{n} fact{n} about{n}", 700, score=0.1) for n in range(9)), pinned=True
    )
    others = [source(n, line(f"other{n} thing{n} name{n}", n, score=9)) for n in range(30)]
    lines = shown([*others, pinned], 100)
    first = [it for it in lines if it.text.startswith("pinned")]
    assert lines[: len(first)] == first == list(pinned.lines[: len(first)])
    assert 30 <= total(first) <= 50


def test_recent_entries_have_a_share_of_their_own():
    old = [
        source(
            n,
            *(line(f"old{n} topic{n}x{k} name{n}x{k}", 40 + 3 * n, score=9) for k in range(5)),
            messages=900,
        )
        for n in range(20)
    ]
    recent = source(50, *(line(f"recent{k} topic{k} name{k}", score=0.1) for k in range(9)))
    lines = shown([*old, recent], 300)
    share = sum(cost(it) for it in lines if it.text.startswith("recent"))
    assert share > 0.2 * 300
    assert len(lines) > 30


def test_a_line_of_two_entries_is_shown_once():
    same = [source(n, line("The cutover is on 3 March at noon.", 40 * n)) for n in range(3)]
    assert len(shown(same, 500)) == 1


def test_a_busy_month_gets_more_lines_than_a_quiet_one():
    quiet, busy = (
        source(
            n,
            *(line(f"m{n} line{n}x{k} word{n}y{k}", 40 + 40 * n) for k in range(9)),
            messages=messages,
        )
        for n, messages in enumerate((4, 400))
    )
    lines = shown([quiet, busy], 100)
    counts = [sum(it in entry.lines for it in lines) for entry in (quiet, busy)]
    assert counts[1] > 2 * counts[0] > 0
