import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.layers.summarising.quotations import Passage, passages, stands_alone


def quotable(text: str) -> list[str]:
    return [it.text for it in passages(text) if it.stands_alone]


ALONE = [
    "The cutover to the new cluster is on 3 March.",
    "I passed the interviews at the adoption agency last Friday.",
    "Wir haben den Umzug nach Graz auf April verschoben.",
    "Das Budget für den Server beträgt 12.000 Euro.",
    "Il faut migrer la base de données avant mardi.",
    "L'équipe de Lyon gère la facturation depuis avril.",
    "El equipo de pagos lleva la facturación desde abril.",
    "移行は三月三日に決まりました。",
]

NOT_ALONE = [
    "They were scared but we reassured them about their brother.",
    "It took the whole platform team three weeks to migrate.",
    "That bowl with the black flower design looks gorgeous.",
    "Who pages on the night of the cutover to Vienna?",
    "Guess what, something incredible happened yesterday!",
    "Thanks for everything!",
    "Sie ist gestern mit dem Zug nach Graz gefahren.",
    "Das war für das ganze Team eine große Umstellung.",
    "Rate mal, ich habe tolle Neuigkeiten!",
    "Elle a déménagé à Lyon avec ses deux enfants.",
    "C'est une décision importante pour toute notre équipe.",
    "Devine quoi, j'ai une grande nouvelle !",
    "Ellos compraron una casa grande cerca de Valencia.",
    "Adivina qué, tengo buenas noticias para ti.",
]


@pytest.mark.parametrize("text", ALONE)
def test_a_statement_stands_alone(text):
    assert stands_alone(text)


@pytest.mark.parametrize("text", NOT_ALONE)
def test_references_questions_and_teasers_do_not_stand_alone(text):
    assert not stands_alone(text)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (
            "Well, I started the course on databases in Graz last March.",
            "I started the course on databases in Graz last March.",
        ),
        (
            "Hey Mel, my brother adopted a puppy in October.",
            "My brother adopted a puppy in October.",
        ),
        (
            "So far, the migration to Vienna took nine engineers.",
            "So far, the migration to Vienna took nine engineers.",
        ),
        ("And the payments team owns billing now.", "The payments team owns billing now."),
        (
            "Übrigens, der Umzug der Firma nach Graz ist im April.",
            "Der Umzug der Firma nach Graz ist im April.",
        ),
        (
            "Mais la migration du serveur commence lundi en avril.",
            "La migration du serveur commence lundi en avril.",
        ),
        (
            "Por cierto, la migración del servidor empieza el lunes en abril.",
            "La migración del servidor empieza el lunes en abril.",
        ),
    ],
)
def test_words_of_address_are_not_quoted(text, quoted):
    assert quotable(text) == [quoted]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (
            "I've added 52 sources to my Zotero library for the essay, how can I organise them?",
            "I've added 52 sources to my Zotero library for the essay…",
        ),
        (
            "Ich habe den Server auf PostgreSQL 18 umgestellt, kannst du das prüfen?",
            "Ich habe den Server auf PostgreSQL 18 umgestellt…",
        ),
        (
            "J'ai migré le serveur vers PostgreSQL 18 hier soir, peux-tu vérifier ?",
            "J'ai migré le serveur vers PostgreSQL 18 hier soir…",
        ),
        (
            "He migrado el servidor de la empresa a PostgreSQL 18, ¿puedes revisarlo?",
            "He migrado el servidor de la empresa a PostgreSQL 18…",
        ),
    ],
)
def test_a_statement_before_a_question_is_quoted_without_it(text, quoted):
    assert quotable(text) == [quoted]


@pytest.mark.parametrize(
    "text",
    [
        "[shares a photo of a dog beside a painted wall of a house]",
        "[image: a bowl with black and white flowers on a table]",
        "![a bowl with black and white flowers](https://example.com/bowl.png)",
        "```\nthe cutover is on the third of march\n```",
    ],
)
def test_images_and_code_are_not_quoted(text):
    assert quotable(text) == []
    assert quotable(f"The cutover is on 3 March at noon. {text}") == [
        "The cutover is on 3 March at noon."
    ]


def test_two_sentences_that_need_each_other_are_quoted_together():
    assert quotable("My son fell off his bike. He broke his left arm.") == [
        "My son fell off his bike. He broke his left arm."
    ]
    both = "The cutover is on 3 March at noon. The platform team owns the new cluster."
    assert quotable(both) == both.replace("noon. ", "noon.|").split("|")


def test_a_message_without_sentences_is_one_passage():
    assert list(passages("…")) == [Passage("…", "…", True, False, stands_alone=False)]
    assert list(passages(" \n")) == []


@given(st.text(max_size=400))
def test_every_passage_has_a_text(text):
    found = list(passages(text))
    assert bool(found) == bool(text.strip())
    assert all(it.text.strip() and it.original for it in found)
