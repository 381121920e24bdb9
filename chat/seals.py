"""What tells an image that was made anew here from any other, when it comes back in a file.

Such a one needs no second check, and is taken as it is: made anew again, a photo loses a little.
"""

from django.core.signing import Signer
from django.utils.crypto import constant_time_compare

from chat.images import Encoded


def seal(image: Encoded) -> str:
    """What only this installation can write of `image`."""
    told = f"{image.sha256} {image.media_type} {image.width} {image.height}"
    return Signer(salt="chat.seals").signature(told)


def is_sealed(image: Encoded, written: str) -> bool:
    return constant_time_compare(seal(image), written)
