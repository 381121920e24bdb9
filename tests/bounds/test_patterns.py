"""Every regular expression of the product takes linear time, whatever text it searches."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from re import _constants, _parser

ROOT = Path(__file__).resolve().parents[2]
SIZE = 2_000
MAX_GROWTH = 2.5
# A shorter search is within the noise of the clock; a quadratic one takes ten times as long.
MIN_SECONDS = 0.005
UNITS = [
    *(" ", "\n", "\t", "-", ".", "_", "/", ":", "(", "<", '"', "'", "`", "a", "A", "1", "é", "漢"),
    *(
        "a ",
        "A ",
        "1 ",
        "a.",
        "aA",
        "a1",
        "1.",
        "- ",
        " \n",
        "a-",
        "a'",
        "\n\n-",
        "1,",
        "://",
        "![a",
    ),
]


def literals(parsed) -> list[str]:
    """Return the literal strings of a parsed pattern, and a character of each set."""
    texts, run = [], ""
    for kind, value in parsed:
        if kind is _constants.LITERAL:
            run += chr(value)
            continue
        if run:
            texts.append(run)
        run = ""
        parts = value if isinstance(value, tuple | list) else ()
        if kind is _constants.IN:
            texts += [chr(part) for name, part in value if name is _constants.LITERAL][:3]
            continue
        if kind is _constants.BRANCH:
            parts = value[1]
        for part in parts:
            if isinstance(part, _parser.SubPattern):
                texts += literals(part)
    return [*texts, run] if run else texts


def texts(source: str, flags: int, is_bytes: bool):
    parsed = _parser.parse(source.encode() if is_bytes else source, flags)
    own = sorted(set(literals(parsed)), key=len, reverse=True)
    # Repeated words are the units of "(?:so |really )*"; most of them are short.
    words = [text for text in own if text.strip().isalpha()]
    own = own[:40]
    for unit in [*UNITS, *own, *(f"{text.strip()} " for text in words[-40:])]:
        yield "", unit
    for first in own[:10]:
        for unit in (" ", "\n", "a", "-", "1", first):
            yield first, f"{unit}{first}" if unit != first else first
            yield first, unit


def seconds(pattern: re.Pattern, text: str | bytes) -> float:
    began = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - began


def repeated(first: str, unit: str, size: int, is_bytes: bool) -> str | bytes:
    text = first + unit * (size // len(unit))
    return text.encode() if is_bytes else text


def test_twice_the_text_takes_at_most_two_and_a_half_times_as_long():
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.bounds.patterns"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    patterns = json.loads(done.stdout)
    print(f"{len(patterns)} patterns")
    assert len(patterns) > 100
    slow = []
    for site, source, flags, is_bytes in patterns:
        pattern = re.compile(source.encode() if is_bytes else source, flags)
        for first, unit in set(texts(source, flags, is_bytes)):
            twice = repeated(first, unit, 2 * SIZE, is_bytes)
            if (longer := seconds(pattern, twice)) < MIN_SECONDS:
                continue
            once = repeated(first, unit, SIZE, is_bytes)
            growth = longer / max(seconds(pattern, once), 1e-6)
            for _ in range(10):
                if growth > MAX_GROWTH:
                    growth = min(growth, seconds(pattern, twice) / seconds(pattern, once))
            if growth > MAX_GROWTH:
                slow.append(f"{site} {source[:60]!r} with {first!r} + {unit!r}: × {growth:.1f}")
                break
    assert not slow, "\n".join(slow)
