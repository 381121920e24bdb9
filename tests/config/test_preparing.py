"""What is looked at before any process starts."""

import pytest
from django.core.management import CommandError, call_command


@pytest.mark.django_db
def test_a_search_language_that_the_database_does_not_know_is_refused(settings):
    settings.SEARCH_LANGUAGE = "klingon"
    with pytest.raises(CommandError, match="STRATA_SEARCH_LANGUAGE takes .*english, .*simple"):
        call_command("prepare")
