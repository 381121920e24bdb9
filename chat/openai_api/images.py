"""Loads the images of a request from their data: URLs or from the internet."""

import base64
import binascii
import re
import time
from collections.abc import Iterable
from functools import partial
from urllib.parse import unquote_to_bytes

from chat.attachments import images
from chat.attachments.images import EncodedImage, ImageRejectedError
from chat.conversations import admission
from projects.core import outbound_http
from projects.core.database import release_connections
from projects.core.errors import InvalidInputError

# The maximum time for fetching all images of a request.
FETCH_TIMEOUT_S = 20.0
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[^;,]*)*),", re.IGNORECASE)

invalid_image = partial(InvalidInputError, code="invalid_image", field="messages")


class ImageLoader:
    """Loads images and encodes each of them once. `loaded` has the images by their URL."""

    def __init__(self) -> None:
        self.loaded: dict[str, EncodedImage] = {}
        self._seconds_left = FETCH_TIMEOUT_S

    def load(self, urls: Iterable[str]) -> None:
        """Load the images. Raises `InvalidInputError` if one cannot be fetched or is no image.

        Call this outside of a transaction, because it may wait for other hosts.
        """
        for url in urls:
            if url not in self.loaded:
                try:
                    self.loaded[url] = images.reencode(self._read(url))
                except ImageRejectedError as error:
                    raise invalid_image(str(error)) from error

    def _read(self, url: str) -> bytes:
        if match := _DATA_URL.match(url):
            return _decode_data_url(url[match.end() :], (match[2] or "").lower())
        # The host can take seconds. Other requests must not wait for this one.
        admission.release()
        release_connections()
        start = time.monotonic()
        data = _fetch(url, max(self._seconds_left, 0.0))
        self._seconds_left -= time.monotonic() - start
        return data


def _decode_data_url(data: str, parameters: str) -> bytes:
    if len(data) > images.MAX_IMAGE_BYTES * 4 // 3 + 4:
        raise invalid_image(str(images.TOO_MANY_BYTES))
    if "base64" not in parameters:
        return unquote_to_bytes(data)
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid_image("The image is not in base64.") from error


def _fetch(url: str, seconds: float) -> bytes:
    try:
        response = outbound_http.request(
            "GET",
            url,
            headers={"Accept": "image/*"},
            max_bytes=images.MAX_IMAGE_BYTES,
            seconds=min(seconds, outbound_http.TOTAL_TIMEOUT_S),
        )
    except outbound_http.OutboundError as error:
        reason = str(error)
    else:
        if response.status == 200:
            return response.body
        reason = f"Its server answers with the status {response.status}."
    message = f"The image at this address cannot be fetched. {reason}"
    raise InvalidInputError(message, code="invalid_image_url", field="messages")
