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

    def __call__(self, asked: Received) -> Reply:
        self.headers.append(asked.headers)
        if not asked.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 "):
            return Reply(403)
        key = urlsplit(asked.path).path
        if asked.method == "PUT":
            self.objects[key] = asked.body
            return Reply(headers={"ETag": '"1"'})
        if asked.method == "DELETE" and self.refuses:
            return Reply(self.refuses)
        if asked.method == "DELETE":
            self.objects.pop(key, None)
            return Reply(204)
        if asked.method == "GET" and "prefix" in parse_qs(urlsplit(asked.path).query):
            return self._list(key.rstrip("/"), parse_qs(urlsplit(asked.path).query))
        if key not in self.objects:
            return Reply(404)
        if self.breaks and asked.method == "GET":
            return Reply(500)
        return Reply(headers={"ETag": '"1"'}, body=self.objects[key])

    def _list(self, bucket: str, asked: dict[str, list[str]]) -> Reply:
        """Two at a time, so that there is a second page."""
        [prefix] = asked["prefix"]
        [after] = asked.get("marker", [""])
        names = sorted(name.removeprefix(f"{bucket}/") for name in self.objects)
        names = [name for name in names if name.startswith(prefix) and name > after]
        more = f"<NextMarker>{names[1]}</NextMarker>" if names[2:] else ""
        told = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in names[:2])
        whole = f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>"
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        body = f'<ListBucketResult xmlns="{space}">{whole}{more}{told}</ListBucketResult>'
        return Reply(headers={"Content-Type": "application/xml"}, body=body.encode())
