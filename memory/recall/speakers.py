"""The speakers of a search: members by their usernames, and all speakers by their names."""

from typing import Any

from django.contrib.auth import get_user_model

from projects.core.text import storable

MAX_NAME_CHARS = 150


def speaker_filters(name: str) -> dict[str, Any]:
    """Return the filters of a RecallScope for the user or the speaker `name`; none for no name.

    A name without a user is the name of an imported speaker, or of nobody.
    """
    name = storable(name).strip()[:MAX_NAME_CHARS]
    if not name:
        return {}
    user = get_user_model().objects.filter(username=name).first()
    return {"author": user, "speaker": name}
