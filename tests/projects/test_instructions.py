import time

import pytest
from django.utils import translation

from projects.persona_template import EXAMPLE, PersonaTemplateError, check, render


def test_it_knows_who_is_there():
    text = (
        "You help {{ user.name }} in {{ project.name }}: {% for m in members %}{{ m }} {% endfor %}"
    )
    assert render(text, EXAMPLE) == "You help Ana in Billing: Ana Ben "


def test_plain_text_is_itself():
    assert render("Be brief. 50% < 60 & so on.", EXAMPLE) == "Be brief. 50% < 60 & so on."


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("One\n{{ user.name", 2),
        ("One\nTwo {% if %}", 2),
        ("One\n\n{{ nobody }}", 3),
        ("{{ user.age }}", 1),
        ("One\n{{ members + 3 }}", 2),
        ("{{ 1 / 0 }}", 1),
    ],
)
def test_a_mistake_names_its_line(template, line):
    with pytest.raises(PersonaTemplateError) as caught:
        check(template)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"Line {line}: ")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ nobody }}", "“nobody” ist nicht definiert."),
        ("{{ user.age }}", "“age” ist nicht definiert."),
        ("{{ date", "Die Vorlage endet zu früh, erwartet wird “end of print statement”."),
        ("{{ a b }}", "Erwartet wird “end of print statement”, hier steht “b”."),
        ("{{ } }}", "“}” ist hier nicht möglich."),
        ("{{ a ? }}", "Das Zeichen “?” ist an Stelle 5 nicht möglich."),
        ("{% end %}", "“end” ist hier kein bekannter Befehl."),
        (
            "{% if date %}",
            "Die Vorlage endet zu früh. Es fehlt “elif”, “else” oder “endif”. "
            "Der innerste offene Block ist “if”.",
        ),
        (
            "{% for name in members %}",
            "Die Vorlage endet zu früh. Es fehlt “endfor” oder “else”. "
            "Der innerste offene Block ist “for”.",
        ),
    ],
)
def test_a_mistake_is_explained_in_german(template, reason):
    with translation.override("de"), pytest.raises(PersonaTemplateError) as caught:
        check(template)
    assert str(caught.value) == f"Zeile 1: {reason}"


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ members.append('Eve') }}",
        "{{ user.__init__.__globals__ }}",
        "{{ 'a' * 1000000000 }}",
        "{{ 9 ** 999999999 }}",
        "{{ cycler.__init__ }}",
        "{% include 'secret' %}",
        "{{ range(10) }}",
        "{{ 'x'|center(999999999) }}",
        "{{ '%999999999d' % 1 }}",
        "{% for a in members %}" * 9 + "{% endfor %}" * 9,
    ],
)
def test_it_can_do_nothing_else(template):
    began = time.process_time()
    with pytest.raises(PersonaTemplateError):
        check(template)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("number", ["1.٣", "1e٣"])
def test_a_number_in_other_digits_is_a_mistake(number):
    with pytest.raises(PersonaTemplateError):
        check(f"{{{{ {number} }}}}")
