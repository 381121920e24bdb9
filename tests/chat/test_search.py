"""Search results on the page."""

import json

import psutil
import pytest
from django.db import connection

from chat.conversations.messages import draft, post_messages
from chat.conversations.search import (
    EXCERPT_CHARS,
    MAX_QUERY_CHARS,
    excerpt_around,
    search_messages,
    word_pattern,
)
from chat.models import Message, Status
from chat.models.messages import MAX_SEARCHED_RUN_CHARS
from chat.templatetags.highlighting import highlight, highlight_html
from chat.templatetags.markup import markdown, without_markdown


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


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("A **cut**over &amp; x", "<p>A <strong><mark>cut</mark></strong>over &amp; x</p>"),
        ("`cut < 3`", "<p><code><mark>cut</mark> &lt; 3</code></p>"),
        # A tag's attributes and the names of entities are no text.
        ("cut & amp", "<p><mark>cut</mark> &amp; <mark>amp</mark></p>"),
        (
            '[x](http://cut.example "cut > <b>amp</b>")',
            '<p><a href="http://cut.example" title="cut &gt; &lt;b&gt;amp&lt;/b&gt;" '
            'rel="noopener noreferrer nofollow">x</a></p>',
        ),
    ],
)
def test_words_are_marked_in_rendered_markdown(text, html):
    assert highlight_html(markdown(text), "cut amp").strip() == html


def test_markdown_loses_its_marks_on_one_line():
    text = "## Plan\n\n- **cut** `a < b`\n- [x](https://a.example)"
    assert without_markdown(text) == "Plan cut a < b x"


def test_marked_text_is_escaped():
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
    assert "message_searched" in results.explain()


HOSTILE = "A@1 1@A a_ a_b- a-1. -a.1a a1@a <!-- <a_b= a@1\xa0 漢 A@1, a_, a-1.( {a@1".split(" ")


# PostgreSQL's parser took 14 s for 24,000 characters of some of these, and a quarter for half.
@pytest.mark.django_db
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_message_is_indexed_and_searched_at_once(session, owner, unit):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        server = psutil.Process(cursor.fetchone()[0])
    text = unit * (200_000 // len(unit))
    before = server.cpu_times().user
    post_messages(session, [draft(text, author=owner)])
    assert not search_messages(Message.objects.all(), text[:MAX_QUERY_CHARS]).filter(seq=99)
    assert server.cpu_times().user - before < 3


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    ["olive@example.org", "max_title_chars", "vector<int>", "<b>bold", "/srv/data_1", "int"],
)
def test_words_with_signs_are_found(session, owner, query):
    text = "Ask olive@example.org for max_title_chars of vector<int> in <b>bold</b> /srv/data_1"
    post_messages(session, [draft(text, author=owner)])
    assert search_messages(Message.objects.all(), query).exists()


@pytest.mark.django_db
def test_words_of_a_long_line_without_spaces_are_found(session, owner):
    words = [f"word{number}" for number in range(500)]
    post_messages(session, [draft(json.dumps(words, separators=(",", ":")), author=owner)])
    assert all(search_messages(Message.objects.all(), word).exists() for word in words)


@pytest.mark.django_db
def test_a_long_address_is_found(session, owner):
    address = "https://example.org/" + "/".join(f"part{number}" for number in range(17))
    assert len(address) > MAX_SEARCHED_RUN_CHARS
    post_messages(session, [draft(f"See {address} today", author=owner)])
    assert search_messages(Message.objects.all(), address).exists()
    assert not search_messages(Message.objects.all(), address.replace("part3", "part4")).exists()
