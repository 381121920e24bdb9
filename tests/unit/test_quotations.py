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
            "Ah right, of course. Office days of the team are Tuesday and Thursday.",
            "Office days of the team are Tuesday and Thursday.",
        ),
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


PASTED = [
    "ERROR 2026-08-27 23:10:42 payments.gateway TimeoutError: read timed out in 10 seconds",
    "    at settle (node_modules/axios/lib/core/settle.js:19:16) of the client",
    '  File "/app/payments/gateway.py", line 88, in charge of the payments service',
    "pg_upgrade --link --check finished = old-datadir=/var/lib/postgresql new-datadir=/srv/pg",
    "    return count <= self.limit and redis.incr(key)",
    "> We have corrected the limit and will credit a part of the October fee.",
    "> > Wir haben das Limit korrigiert und schreiben einen Teil der Gebühr gut.",
    "From: Mia Berg\nSubject: Cutover\n\nThe cutover to the cluster in Vienna is on 9 May.",
    "Von: Mia Berg\nBetreff: Umzug\n\nDer Umzug des Clusters nach Wien ist am 9. Mai.",
    "On 3 March 2026 at 14:05, Mia Berg wrote:\nThe cutover to Vienna is on 9 May.",
]


@pytest.mark.parametrize("text", PASTED)
def test_logs_code_and_mail_of_others_are_not_quoted_without_a_fence_either(text):
    assert quotable(f"The cutover is on 3 March at noon.\n{text}") == [
        "The cutover is on 3 March at noon."
    ]


def test_mail_in_a_file_is_quoted():
    text = "From: Mia Berg\nSubject: Move\n\n> The cutover to the cluster in Vienna is on 9 May."
    assert [it.text for it in passages(text, is_file=True) if it.stands_alone] == [
        "The cutover to the cluster in Vienna is on 9 May."
    ]


def test_a_sentence_goes_on_after_a_quoted_question():
    text = "“Will there be a loyalty card in the app?” asked the manager of the shop in Graz."
    assert quotable(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Dinner for 4 on 12.11. costs 96 € (vegetarian), booked via https://example.com/a?b=1.",
        "We use `a_b` and `c_d`, and the config is in app/settings.py now.",
        "An: den neuen Drucker im dritten Stock müssen wir noch denken.",
        "Le contrat avec le traiteur de Vienne commence lundi 4 mai ;",
        "Around ~30 guests, ~5 kids, ~$400, <50% vegetarian food.",
        'File "offer.pdf" was signed by Mia Berg on 9 May.',
        "2026-05-09 10:00 meeting with Mia about the contract of Nexa.",
        "Original message queues were lost in the migration to Vienna.",
    ],
)
def test_prose_with_symbols_is_quoted(text):
    assert quotable(text) == [text]


def test_a_place_at_the_beginning_of_a_line_is_no_trace_of_a_program():
    assert quotable("at noon (in Graz) the team took the offer of Nexa.") == [
        "At noon (in Graz) the team took the offer of Nexa."
    ]


def test_lines_that_look_like_headers_are_no_mail_without_subject_time_or_address():
    trip = "From: Vienna\nTo: Linz\nThe train of the team leaves on 9 May at noon."
    assert quotable(trip) == ["The train of the team leaves on 9 May at noon."]
    assert quotable(trip.replace("Vienna", "Mia <mia@example.com>")) == []


def test_events_are_no_jokes_or_imaginations():
    for text in (
        "I passed the exam in statistics on Friday lol",
        "I can't imagine working without the team in Vienna.",
        "Wir waren am Samstag im Zoo von Wien und hatten viel Spaß.",
        "Wir fahren am 3. Mai nach Graz, und wenn es regnet, nehmen wir den Zug.",
        "On signe le contrat lundi, et si le client accepte, on commence mardi.",
        "Nos vemos el lunes en la oficina de Viena, y si llueve, el martes.",
    ):
        assert stands_alone(text)


IMAGINED = [
    "If we had run a canary, the outage in August would not have happened.",
    "If the Berlin office moved to Graz, the payments team would lose two engineers.",
    "We could drop the payments service from the beta I guess.",
    "If the second examiner says no, I'd ask Tanaka from the institute.",
    "What if we migrate the payments database on Black Friday, lol.",
    "We should migrate the payments database on Black Friday lol",
    "Let's say the payments team moves to Graz in October.",
    "Wenn wir 100 Anmeldungen bekämen, müssten wir einen größeren Saal mieten.",
    "Angenommen, das Team zieht im Oktober nach Graz um.",
]


@pytest.mark.parametrize("text", IMAGINED)
def test_what_is_only_imagined_does_not_stand_alone(text):
    assert not stands_alone(text)


def test_plans_and_conditions_stand_alone():
    for text in (
        "If the dry run fails on Friday, we move the cutover to 20 September.",
        "Wenn der Probelauf am Freitag scheitert, verschieben wir den Umzug auf den 20. September.",
    ):
        assert stands_alone(text)


def test_an_announcement_of_a_list_is_cut():
    assert quotable(
        "The dry run on the clone took eleven minutes, but the check complained:\n"
        "```\nfatal\n```\nCurrent code of the whole rate limiter:"
    ) == ["The dry run on the clone took eleven minutes…"]


def test_lines_of_a_list_are_no_pair():
    assert quotable("Bakery North: 32 € per person, vegetarian only\nCanteen: 19 €") == [
        "Bakery North: 32 € per person, vegetarian only"
    ]


def test_emphasis_links_and_boxes_are_not_quoted():
    assert quotable("- [ ] **Ana** announces the [cutover](https://example.com) on 3 March.") == [
        "Ana announces the cutover on 3 March."
    ]


def test_identifiers_keep_their_spelling():
    for text in ("pg_upgrade took nine minutes on the clone.", "iOS builds take nine minutes now."):
        assert quotable(text) == [text]


def test_two_sentences_that_need_each_other_are_quoted_together():
    assert quotable("My son fell off his bike. He broke his left arm.") == [
        "My son fell off his bike. He broke his left arm."
    ]
    assert quotable("बेटा साइकिल गिरा। बायाँ हाथ टूटा।") == ["बेटा साइकिल गिरा। बायाँ हाथ टूटा।"]
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


@pytest.mark.parametrize(
    "text",
    [
        "14. April ist der Start der Messe in Graz.",
        "3.  März: Abgabe der Unterlagen bei der Stadt Graz",
        "2. Quartal: Umzug des Lagers nach Graz",
    ],
)
def test_the_number_of_a_date_is_no_marker_of_a_list(text):
    whole = " ".join(text.split())
    assert [it.text for it in passages(text)] == [whole]
    assert [it.text for it in passages(f"1. {text}")] == [whole]
    assert [it.text for it in passages("1. May we move to Graz in the summer.")] == [
        "May we move to Graz in the summer."
    ]
