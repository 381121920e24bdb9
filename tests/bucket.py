"""The other side of a bucket: speaks S3 at the wire, as far as Strata does."""

from urllib.parse import parse_qs, urlsplit

from tests.receiver import Received, Reply


class Bucket:
    """Keeps objects for whoever signs, and what was asked of it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.headers: list[dict[str, str]] = []
        # The status with which it refuses to delete anything.
        self.refuses = 0
        # Whether nothing can be read.
        self.breaks = False
        # The status and error code of every response, if the bucket is not available.
        self.outage: tuple[int, str] | None = None

    def __call__(self, request: Received) -> Reply:
        self.headers.append(request.headers)
        if not request.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 "):
            return Reply(403)
        if self.outage is not None:
            status, code = self.outage
            body = f"<Error><Code>{code}</Code><Message>No.</Message></Error>"
            return Reply(status, body=body.encode())
        key = urlsplit(request.path).path
        if request.method == "PUT":
            self.objects[key] = request.body
            return Reply(headers={"ETag": '"1"'})
        if request.method == "DELETE" and self.refuses:
            return Reply(self.refuses)
        if request.method == "DELETE":
            self.objects.pop(key, None)
            return Reply(204)
        if request.method == "GET" and "prefix" in parse_qs(urlsplit(request.path).query):
            return self._list(key.rstrip("/"), parse_qs(urlsplit(request.path).query))
        if key not in self.objects:
            return Reply(404)
        if self.breaks and request.method == "GET":
            return Reply(500)
        return Reply(headers={"ETag": '"1"'}, body=self.objects[key])

    def _list(self, bucket: str, request: dict[str, list[str]]) -> Reply:
        """Two at a time, so that there is a second page."""
        [prefix] = request["prefix"]
        [after] = request.get("marker", [""])
        names = sorted(name.removeprefix(f"{bucket}/") for name in self.objects)
        names = [name for name in names if name.startswith(prefix) and name > after]
        more = f"<NextMarker>{names[1]}</NextMarker>" if names[2:] else ""
        text = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in names[:2])
        whole = f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>"
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        body = f'<ListBucketResult xmlns="{space}">{whole}{more}{text}</ListBucketResult>'
        return Reply(headers={"Content-Type": "application/xml"}, body=body.encode())
