"""The claims of the OpenID Connect provider: verify ID tokens, and keep only the claims in use.

Users can often edit their claims at the provider, so values of any type and length occur.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from allauth.core.internal.deferred import jwt
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings

from projects.core.text import storable

# The time by which the clocks of the provider and of this server may differ.
CLOCK_LEEWAY_S = 60
TEXT_CLAIMS = ("email", "preferred_username", "name", "given_name", "family_name")
MAX_CLAIM_CHARS = 500
MAX_SUBJECT_CHARS: int = SocialAccount._meta.get_field("uid").max_length
# Names of groups in a claim; further names are not read.
MAX_GROUPS, MAX_GROUP_CHARS = 500, 150
# The names of claims that the provider did not send, because they are stored elsewhere or too long.
# https://openid.net/specs/openid-connect-core-1_0.html#AggregatedDistributedClaims
ELSEWHERE = "_claim_names"


def verify_id_token(id_token: str, metadata: Mapping[str, Any], client_id: str) -> Any:
    """Return the claims of an ID token. Raises `OAuth2Error`."""
    try:
        keys_url, find_key = metadata["jwks_uri"], jwtkit.lookup_kid_jwk
        algorithm, key = jwtkit.fetch_key(id_token, keys_url, find_key)
        claims = jwt.decode(
            id_token,
            key,
            algorithms=[algorithm],
            audience=client_id,
            issuer=metadata["issuer"],
            leeway=CLOCK_LEEWAY_S,
            options={"require": ["exp"]},
        )
        # A token is valid for as long as the clocks may differ, so its use is recorded for as long.
        jwtkit.verify_jti(claims | {"exp": claims["exp"] + CLOCK_LEEWAY_S})
    except (jwt.PyJWTError, AttributeError, KeyError, TypeError, ValueError) as error:
        # Keys and headers with values of wrong types raise various errors.
        raise OAuth2Error("Invalid id_token") from error
    return claims


def read_claims(claims: Any) -> dict[str, Any]:
    """Return the claims that Strata uses, without text that cannot be stored.

    Values of wrong types are left out. Raises `OAuth2Error` if there is no valid subject.
    """
    subject = claims.get("sub") if isinstance(claims, dict) else None
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARS:
        raise OAuth2Error("The claims have no valid subject")
    if subject != storable(subject):
        raise OAuth2Error("The subject cannot be stored")
    known: dict[str, Any] = {"sub": subject}
    for name in TEXT_CLAIMS:
        if isinstance(value := claims.get(name), str):
            known[name] = storable(value)[:MAX_CLAIM_CHARS]
    # Some providers send `email_verified` as a string.
    known["email_verified"] = str(claims.get("email_verified")).lower() == "true"
    name = settings.OIDC_GROUPS_CLAIM
    elsewhere = claims.get(ELSEWHERE)
    if name and name in claims:
        known[name] = _groups(claims[name])
    elif isinstance(elsewhere, dict) and name in elsewhere:
        known[ELSEWHERE] = [name]
    return known


def _groups(value: Any) -> list[str]:
    # Some providers send a single group as a string.
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        return []
    texts = (storable(name) for name in names[:MAX_GROUPS] if isinstance(name, str))
    return [name for name in texts if len(name) <= MAX_GROUP_CHARS]


def group_names(sources: Iterable[Mapping[str, Any]]) -> set[str] | None:
    """Return the names of groups in the claims of all `sources`.

    None if the provider did not send the claim because it is too long.
    """
    claim, names, is_elsewhere = settings.OIDC_GROUPS_CLAIM, set(), False
    for claims in sources:
        names |= set(claims.get(claim, ()))
        is_elsewhere |= ELSEWHERE in claims
    return None if is_elsewhere and not names else names
