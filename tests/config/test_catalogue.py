"""Every text that people see can be translated, and is; without gettext's tools.

A failure says what to do: `make messages`, then translate what it left empty.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import polib
import pytest
from django.utils.translation.template import templatize

ROOT = Path(__file__).parents[2]
CATALOGUE = ROOT / "config/locale/de/LC_MESSAGES"
OF_OURS = ("chat", "config", "memory", "projects", "templates")
PLAIN_CALLS = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"}
WITH_CONTEXT = {"pgettext", "pgettext_lazy"}
STRING = r"""u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
IN_TEMPLATE = re.compile(rf"\b(_|n?p?gettext)\(\s*{STRING}" + rf"(?:\s*,\s*{STRING})?" * 2)
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|\{\w+\}|</?[a-z]+")
# (context, text, text in the plural)
Text = tuple[str | None, str, str]


def files(suffix: str) -> list[Path]:
    return [path for name in OF_OURS for path in (ROOT / name).rglob(f"*{suffix}")]


def in_python(source: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        values = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        if node.func.id not in PLAIN_CALLS | WITH_CONTEXT or not values:
            continue
        context = values.pop(0) if node.func.id in WITH_CONTEXT else None
        yield context, values[0], values[1] if node.func.id.startswith("ngettext") else ""


def in_template(source: str) -> Iterator[Text]:
    for name, *literals in IN_TEMPLATE.findall(templatize(source)):
        texts = [ast.literal_eval(literal) for literal in literals if literal]
        context = texts.pop(0) if "p" in name else None
        yield context, texts[0], texts[1] if name.startswith("n") else ""


def marked() -> set[Text]:
    texts_found: set[Text] = set()
    for path in files(".py"):
        texts_found |= set(in_python(path.read_text()))
    for path in files(".html") + files(".txt"):
        texts_found |= set(in_template(path.read_text()))
    # Once with a plural is enough: the singular is the same entry.
    plural = {(context, text) for context, text, several in texts_found if several}
    return {item for item in texts_found if item[2] or item[:2] not in plural}


@pytest.fixture(scope="module")
def german() -> polib.POFile:
    return polib.pofile(str(CATALOGUE / "django.po"))


def translations(entry) -> list[str]:
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


def test_the_catalogue_holds_every_marked_text_and_no_other(german):
    translated = {(it.msgctxt, it.msgid, it.msgid_plural) for it in german if not it.obsolete}
    assert marked() == translated


def test_every_text_is_translated_and_none_is_guessed(german):
    assert not [it.msgid for it in german if it.fuzzy or not all(translations(it))]
    assert not german.obsolete_entries()


def test_translations_keep_the_places_for_values(german):
    def places(text: str) -> list[str]:
        return sorted(PLACEHOLDER.findall(text))

    for entry in german:
        originals = [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
        for original, translation in zip(originals, translations(entry), strict=True):
            assert places(original) == places(translation)


def test_the_compiled_catalogue_matches_its_source(german):
    def texts(catalogue) -> dict:
        return {(it.msgctxt, it.msgid): translations(it) for it in catalogue}

    assert texts(polib.mofile(str(CATALOGUE / "django.mo"))) == texts(german)


def untranslated_texts(template: str) -> list[str]:
    """What `template` says beside its tags, in its text and in attributes that are read out."""
    # Names and keys, which are the same in every language.
    same = r"\b(?:Strata|API|Ctrl|Shift|Enter|Esc)\b|&\w+;"
    source = re.sub(r"(?s)\{% blocktranslate.*?endblocktranslate %\}", "", template)
    source = re.sub(r"(?s)\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<(style|script).*?</\1>", "", source)
    attributes = r'(?:aria-label|title|placeholder|alt|data-(?:label|text)[a-z-]*)="([^"]+)"'
    matches = re.findall(attributes, source)
    matches += re.sub(r"(?s)<[^>]*>|\w+\">", "\n", source).splitlines()
    left = [re.sub(same, "", match).strip() for match in matches]
    return [text for text in left if re.search(r"[A-Za-z]{2}", text)]


def test_templates_say_nothing_that_cannot_be_translated():
    texts_by_template = {
        str(path.relative_to(ROOT)): untranslated_texts(path.read_text()) for path in files(".html")
    }
    assert not {path: texts for path, texts in texts_by_template.items() if texts}


def test_a_bare_text_in_a_template_is_seen():
    assert untranslated_texts('<p title="Why not">{{ name }} says so</p>') == ["Why not", "says so"]
    assert not untranslated_texts('<p title="{% translate "Why" %}">{{ name }} · Strata</p>')


def test_templates_write_dates_by_the_names_of_formats():
    # Those of config/formats, which each language has; “c” and “Y-m-d” are for programs.
    plain = re.compile(r"""\|date:["'](?!c["']|Y-m-d["']|[A-Z]+(?:_[A-Z]+)+["'])[^"']*["']""")
    texts_by_template = {
        str(path.relative_to(ROOT)): plain.findall(path.read_text()) for path in files(".html")
    }
    assert not {path: dates for path, dates in texts_by_template.items() if dates}
