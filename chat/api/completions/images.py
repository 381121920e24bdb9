"""The images of a request: in it as data: URLs, or elsewhere."""

import base64
import binascii
import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from chat import images
from chat.api.completions.errors import Refused
from chat.images import Encoded

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[^;,]*)*),", re.IGNORECASE)


class Images:
    """Images by the address under which a request names them, each made anew once."""

    def __init__(self) -> None:
        self.loaded: dict[str, Encoded] = {}

    def load(self, addresses: Iterable[str]) -> None:
        """Raises Refused for what is no image, or cannot be had."""
        for address in addresses:
            if address not in self.loaded:
                self.loaded[address] = _made_anew(_bytes(address))


def _made_anew(data: bytes) -> Encoded:
    try:
        return images.reencode(data)
    except images.Refused as refused:
        raise Refused(str(refused), "messages", "invalid_image") from refused


def _bytes(address: str) -> bytes:
    head = _DATA.match(address)
    if head is None:
        return fetched(address)
    data = address[head.end() :]
    if len(data) > images.MOST_BYTES * 4 // 3 + 4:
        raise Refused(str(images.TOO_BIG), "messages", "invalid_image")
    if "base64" not in (head[2] or "").lower():
        return unquote_to_bytes(data)
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused("The image is not in base64.", "messages", "invalid_image") from error


def fetched(address: str) -> bytes:
    """The image at an address elsewhere."""
    reason = "Images elsewhere are not fetched. Send it in the request, as a data: URL."
    raise Refused(reason, "messages", "invalid_image_url")
