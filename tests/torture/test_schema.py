"""Whatever the API is sent, it answers as its schema says: many more examples of each operation."""

import re

from tests.schema.conftest import explore  # noqa: F401


def test_nothing_of_many_things_breaks_the_schema(explore, scale, tally):  # noqa: F811
    told = explore(scale(200, 2))
    cases = re.search(r"(\d+) generated", told)
    assert cases is not None, told
    tally("requests to the API", int(cases[1]))
