"""In which scripts a text is written. Pure."""

import re

_SCRIPTS = {
    name: re.compile(f"[{letters}]")
    for name, letters in {
        "Latin": "A-Za-zªºÀ-ÖØ-öø-ʯḀ-ỿＡ-Ｚａ-ｚ",
        "Greek": "Ͱ-ͽͿ-Ͽἀ-῿",
        "Cyrillic": "Ѐ-ԯ",
        "Armenian": "Ա-֏",
        "Hebrew": "א-ת",
        "Arabic": "ء-يٮ-ۓݐ-ݿﭐ-﷿ﹰ-ﻼ",
        "Indic": "ऀ-෿",
        "Thai": "ก-๛",
        "Georgian": "Ⴀ-ჿ",
        "Korean": "ᄀ-ᇿ가-힣ㄱ-ㆎ",
        "Japanese": "ぁ-ゟァ-ヺｦ-ﾝ",
        "Chinese": "㐀-䶿一-鿿豈-﫿𠀀-𯿿",
    }.items()
}


def used(text: str) -> frozenset[str]:
    """The names of the scripts of which any letter stands in `text`."""
    return frozenset(name for name, letters in _SCRIPTS.items() if letters.search(text))


def strange(text: str, known: frozenset[str]) -> str:
    """The script in which two thirds of the letters of `text` are, if it is none of `known`; empty
    for no such script. Where nothing is known, nothing is strange.
    """
    counts = {name: len(letters.findall(text)) for name, letters in _SCRIPTS.items()}
    total = sum(counts.values())
    # Japanese is written in Chinese signs too, more or fewer of them.
    if "Japanese" in known:
        known |= {"Chinese"}
    for name, count in counts.items():
        if known and name not in known and 3 * count >= 2 * total > 0:
            return name
    return ""
