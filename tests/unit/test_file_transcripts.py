"""Which texts of files are transcripts, and how their turns are cut."""

import pytest

from memory.recall.transcripts import begins_turn, find_speakers, split_turns

SAID = [
    ("Ana Wirth", "The valve of the second pump leaks again since Monday."),
    ("Ben", "Then we order a new one, and keep the old one as a spare part."),
    ("Ana Wirth", "The supplier needs three weeks, so it arrives in the week of the audit."),
    ("Ben", "Ask them for a faster delivery, whatever it costs us."),
    ("Ana Wirth", "I will call them tomorrow morning."),
    ("Ben", "Good. The audit itself is moved to the fourteenth of May."),
]
STYLES = {
    "plain": "{who}: {text}\n",
    "paragraphs": "{who}: {text}\n\n",
    "bold": "**{who}:** {text}\n\n",
    "time before": "[00:0{n}:12] {who}: {text}\n",
    "time after": "{who} (10:0{n}): {text}\n",
    "time alone": "{who}   0:0{n}\n{text}\n\n",
    "subtitles": "{n}\n00:0{n}:03.000 --> 00:0{n}:05.000\n{who}: {text}\n\n",
    "voices": "00:0{n}:03.000 --> 00:0{n}:05.000\n<v {who}>{text}</v>\n\n",
}


def written(style: str) -> str:
    lines = [
        STYLES[style].format(who=who, text=text, n=n) for n, (who, text) in enumerate(SAID, start=1)
    ]
    return "".join(lines)


@pytest.mark.parametrize("style", STYLES)
def test_each_turn_is_cut_where_its_speaker_begins(style):
    text = "Minutes of the meeting\n\n" + written(style)
    speakers = find_speakers([text])
    assert speakers == {"Ana Wirth", "Ben"}
    turns = list(split_turns(text, speakers))
    assert "".join(part for _, part in turns) == text
    assert [who for who, _ in turns] == ["", *(who for who, _ in SAID)]
    for (who, part), (_, said) in zip(turns[1:], SAID, strict=True):
        assert said in part
        assert begins_turn(part, who)


def test_turns_that_a_page_breaks_into_lines_are_whole():
    more = "and it was said again in other words,\nso that the whole turn takes several lines.\n"
    text = "".join(f"{who}: {words}\n{more * 2}" for who, words in SAID)
    speakers = find_speakers([text])
    assert speakers == {"Ana Wirth", "Ben"}
    assert [who for who, _ in split_turns(text, speakers)] == [who for who, _ in SAID]


def test_a_short_turn_belongs_to_the_next_one():
    text = written("plain") + "Ana Wirth: Yes.\nBen: And the spare part goes to the cellar.\n"
    *_, last = split_turns(text, find_speakers([text]))
    assert last == ("Ben", "Ana Wirth: Yes.\nBen: And the spare part goes to the cellar.\n")
    assert begins_turn(last[1], "Ben")


def test_a_text_without_speakers_stays_whole():
    assert list(split_turns("Ana: Hello.", frozenset())) == [("", "Ana: Hello.")]
    assert list(split_turns("", frozenset({"Ana"}))) == []


MANUAL = "The pump moves forty litres of coolant each minute, in all seasons.\n" * 8
NO_TRANSCRIPTS = {
    "notes in a manual": (MANUAL + "Hint: Wear gloves.\nDanger: Hot surface.\n") * 5,
    "records": "Name: Ana\nCity: Rome\nAge: 41\n\n" * 20,
    "a log": "12:00:01 INFO: The service has started on port 8000.\n12:00:02 ERROR: No disk.\n" * 9,
    "one speaker": "Ana: The valve of the second pump leaks again.\n" * 9,
    "a reference": ("timeout\nType: int\nDefault: 5\n" + "How long to wait for it.\n" * 6) * 9,
    "code": "def f(x):\n    if x: return 1\n    else: return 2\n" * 9,
    "settings": "timeout: 5\nretries: 3\nname: pump\n" * 9,
    "addresses": "http://a.example/x\nhttps://b.example/y\n" * 9,
}


@pytest.mark.parametrize("kind", NO_TRANSCRIPTS)
def test_other_texts_are_no_transcripts(kind):
    assert find_speakers([NO_TRANSCRIPTS[kind]]) == frozenset()
