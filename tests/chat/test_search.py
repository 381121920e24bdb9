"""Search results on the page."""

import pytest
from django.db import connection

from chat.conversations.messages import draft, post_messages
from chat.conversations.search import EXCERPT_CHARS, excerpt_around, search_messages, word_pattern
from chat.models import Message, Status
from chat.templatetags.highlighting import highlight


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("cut", "The <mark>cutover</mark> is on 3 March"),
        ("CUTOVER march", "The <mark>cutover</mark> is on 3 <mark>March</mark>"),
        ("over", "The cutover is on 3 March"),
        ("", "The cutover is on 3 March"),
        (".*", "The cutover is on 3 March"),
    ],
)
def test_words_that_begin_with_one_of_the_query_are_marked(query, marked):
    assert highlight("The cutover is on 3 March", query) == marked


def test_what_is_marked_is_escaped():
    assert highlight("<b>cut</b> & paste", "cut") == (
        "&lt;b&gt;<mark>cut</mark>&lt;/b&gt; &amp; paste"
    )


def test_an_excerpt_stands_around_the_first_word_that_was_found():
    text = f"{'before ' * 100}the **cutover**\n\n| is |{' after' * 100}"
    excerpt = excerpt_around(text, "cutover")
    assert "the cutover is after" in excerpt
    assert excerpt.startswith("…")
    assert excerpt.endswith("…")
    assert len(excerpt) <= EXCERPT_CHARS + 2


def test_a_short_text_is_its_own_excerpt():
    assert excerpt_around("The cutover", "march") == "The cutover"


def test_a_long_query_costs_no_more_than_its_first_words():
    assert word_pattern("a " * 10_000).pattern.count("|") < 20


@pytest.mark.django_db
def test_a_reply_is_found_when_it_is_over(session, owner):
    post_messages(session, [draft("Who owns the cutover?", author=owner)])
    reply = post_messages(session, [draft("The platform team.", role="assistant")])[0]
    for status in Status:
        Message.objects.filter(pk=reply.pk).update(status=status)
        results = list(search_messages(Message.objects.all(), "platform"))
        assert results == ([] if status in (Status.PENDING, Status.STREAMING) else [reply])


@pytest.mark.django_db
def test_words_are_looked_up_in_their_index():
    """Of an empty table any index is as good: those that only give an order are taken away."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
    results = search_messages(Message.objects.order_by(), "platform team")
    assert "message_said" in results.explain()
