"""Zip files that attack their reader: (name, bytes) of each.

Most are written by hand, since no library writes what is wrong on purpose.
https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
"""

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from memory.portability.tables import FORMAT, MANIFEST, SETTINGS, TABLES, VERSION
from tests.chat.exports import BRANCHES, file_of

TALK = file_of(BRANCHES).read()
NAME = "conversations.json"
STORED, DEFLATED = 0, 8
UNIX = 3 << 8


@dataclass
class Member:
    """One file of a zip. `says` are fields of its headers that are not as they are."""

    name: bytes
    data: bytes
    method: int = STORED
    says: dict[str, int] = field(default_factory=dict)
    extra: bytes = b""
    local_name: bytes | None = None
    # Where its local header is said to be, None for where it is.
    at: int | None = None

    def headers(self, packed: bytes) -> dict[str, int]:
        real = {"crc": zlib.crc32(self.data), "packed": len(packed), "size": len(self.data)}
        return {"flags": 0, "method": self.method, "attributes": 0} | real | self.says

    def packed(self) -> bytes:
        if self.method != DEFLATED:
            return self.data
        press = zlib.compressobj(9, zlib.DEFLATED, -15)
        return press.compress(self.data) + press.flush()


def zipped(*members: Member, packed: dict[int, bytes] | None = None, **end: int | bytes) -> bytes:
    """A zip file; `packed` is by place what stands for a member, `end` what its end says."""
    body, index = bytearray(end.pop("before", b"")), bytearray()  # type: ignore[arg-type]
    for place, member in enumerate(members):
        inside = (packed or {}).get(place, member.packed())
        local_headers = member.headers(inside)
        at = len(body) if member.at is None else member.at
        numbers = (
            local_headers["crc"],
            local_headers["packed"] & 0xFFFFFFFF,
            local_headers["size"] & 0xFFFFFFFF,
        )
        local = member.name if member.local_name is None else member.local_name
        if member.at is None:
            head = (
                0x04034B50,
                45,
                local_headers["flags"],
                local_headers["method"],
                0,
                33,
                *numbers,
                len(local),
                0,
            )
            body += struct.pack("<IHHHHHIIIHH", *head) + local + inside
        entry = (
            0x02014B50,
            UNIX | 45,
            45,
            local_headers["flags"],
            local_headers["method"],
            0,
            33,
            *numbers,
        )
        rest = (
            len(member.name),
            len(member.extra),
            0,
            0,
            0,
            local_headers["attributes"],
            at & 0xFFFFFFFF,
        )
        index += struct.pack("<IHHHHHHIIIHHHHHII", *entry, *rest) + member.name + member.extra
    end_fields = {"disk": 0, "entries": len(members) & 0xFFFF, "size": len(index), "at": len(body)}
    end_fields |= {name: value for name, value in end.items() if isinstance(value, int)}
    between = end.get("between", b"")
    comment = end.get("comment", b"")
    assert isinstance(between, bytes)
    assert isinstance(comment, bytes)
    numbers_end = (
        end_fields["disk"],
        end_fields["disk"],
        end_fields["entries"],
        end_fields["entries"],
    )
    tail = struct.pack("<IHHHH", 0x06054B50, *numbers_end)
    tail += struct.pack("<IIH", end_fields["size"], end_fields["at"], len(comment)) + comment
    return bytes(body + index + between + tail)


def talk(**fields: object) -> Member:
    """The conversation of a good export."""
    member_values: dict[str, object] = {
        "name": NAME.encode(),
        "data": TALK,
        "method": DEFLATED,
    } | fields
    return Member(**member_values)  # type: ignore[arg-type]


def endless(pattern: bytes, times: int, before: bytes = b"") -> bytes:
    """Deflated: `pattern` so many times, in time and space for one."""
    head, first = (_flushed(part) for part in (before, pattern))
    return head + first * times + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


def _flushed(data: bytes) -> bytes:
    """Deflated so that it can stand anywhere in a stream, as often as one likes."""
    press = zlib.compressobj(9, zlib.DEFLATED, -15)
    return press.compress(data) + press.flush(zlib.Z_FULL_FLUSH)


def all_of_them() -> Iterator[tuple[str, bytes]]:
    for kind in (_bombs, _nested, _overlapping, _many, _names, _special, _locked, _zip64):
        yield from kind()
    for kind in (_cut, _damaged, _packed, _twice, _ends, _portable):
        yield from kind()


def _bombs() -> Iterator[tuple[str, bytes]]:
    patterns = {"zeros": bytes(2**20), "brackets": b"[" * 2**20, "spaces": b" " * 2**20}
    patterns |= {"objects": b'{"a":' * 200_000, "ones": b"1" * 2**20, "lines": b"\n" * 2**20}
    for label, pattern in patterns.items():
        # Such that it is taken for an export, and read on.
        data = endless(pattern, 1_000, before=b'[{"mapping": {"children": "')
        whole = len(pattern) * 1_000
        for declared, size in (("true", whole), ("lies", 100_000), ("4gb", 2**32 - 2)):
            first_item = Member(NAME.encode(), b"", DEFLATED, {"size": size, "packed": len(data)})
            yield f"bomb of {label}, size {declared}", zipped(first_item, packed={0: data})


def _nested() -> Iterator[tuple[str, bytes]]:
    inner = zipped(talk())
    for depth in (1, 5, 50):
        while depth:
            inner, depth = zipped(Member(b"inner.zip", inner)), depth - 1
        yield f"nested, {len(inner)} bytes", inner
    yield "nested as json", zipped(Member(NAME.encode(), inner))
    yield "sixteen of sixteen", zipped(*(Member(b"%d.zip" % n, inner) for n in range(16)))


def _overlapping() -> Iterator[tuple[str, bytes]]:
    kernel = endless(b" " * 2**20, 5)
    says = {"size": 5 * 2**20, "packed": len(kernel), "crc": 0}
    for number in (2, 100, 1_000):
        first = Member(b"conversations-0.json", b"", DEFLATED, dict(says))
        more = [
            Member(b"conversations-%d.json" % index, b"", DEFLATED, dict(says), at=0)
            for index in range(1, number)
        ]
        yield f"{number} that overlap", zipped(first, *more, packed={0: kernel})
    small = [
        talk(name=b"conversations-%d.json" % index, at=0 if index else None) for index in range(500)
    ]
    yield "500 times one good file", zipped(*small)


def _many() -> Iterator[tuple[str, bytes]]:
    for number in (10_000, 60_000):
        yield f"{number} files", zipped(*(Member(b"%d.json" % n, b"") for n in range(number)))
    yield "names of 60,000", zipped(*(Member(b"a" * 60_000 + b".json", b"") for n in range(80)))
    yield "a folder of 30,000 levels", zipped(Member(b"a/" * 30_000 + NAME.encode(), TALK))


def _names() -> Iterator[tuple[str, bytes]]:
    names = [b"../../" + NAME.encode(), b"/etc/conversations.json", b"C:\\conversations.json"]
    names += [b"..\\..\\conversations.json", b"conversations.json\0.txt", b"\xff\xfe\xfa.json"]
    names += [b"a/../../conversations.json", b"~/conversations.json", b"//h/s/conversations.json"]
    names += [
        "conversations\u202enosj.json".encode(),
        b"con.json",
        b"",
        b"/",
        b"conversations.json/",
    ]
    names += [b"<img src=x onerror=alert(1)>.json", b"'; DROP TABLE chat_message; --.json"]
    for name in names:
        yield f"called {name!r}", zipped(talk(name=name, says={"flags": 1 << 11}))


def _special() -> Iterator[tuple[str, bytes]]:
    kinds = {"link": 0o120777, "device": 0o060666, "fifo": 0o010666, "socket": 0o140666}
    for kind, mode in kinds.items():
        first_item = Member(NAME.encode(), b"/etc/passwd", says={"attributes": mode << 16})
        yield f"a {kind}", zipped(first_item)


def _locked() -> Iterator[tuple[str, bytes]]:
    for label, flag in (("", 1), (" strongly", 65), (" and its list", 1 << 13 | 1)):
        yield f"locked{label}", zipped(talk(says={"flags": flag}))
    yield "locked with AES", zipped(talk(says={"flags": 1, "method": 99}))


def _zip64() -> Iterator[tuple[str, bytes]]:
    big = 0xFFFFFFFF
    for label, sizes in {"of 8 exabytes": (2**63, 10), "of nothing": (0, 2**62)}.items():
        extra = struct.pack("<HHQQ", 1, 16, *sizes)
        says = {"size": big, "packed": big}
        yield f"zip64 {label}", zipped(talk(says=says, extra=extra))
    yield "zip64 that is cut", zipped(talk(says={"size": big}, extra=struct.pack("<HHI", 1, 8, 1)))
    yield "zip64 that is not there", zipped(talk(says={"size": big, "packed": big}))
    for label, entries, size, at in (
        ("of many", 2**64 - 1, 100, 0),
        ("of a large list", 1, 2**60, 0),
        ("elsewhere", 1, 60, 2**61),
    ):
        end = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, entries, entries, size, at)
        locator = struct.pack("<IIQI", 0x07064B50, 0, len(TALK), 1)
        between = end + locator
        yield f"zip64 {label}", zipped(talk(), between=between, entries=0xFFFF, size=big, at=big)


def _cut() -> Iterator[tuple[str, bytes]]:
    whole = zipped(talk())
    for share in range(1, 10):
        yield f"cut at {share}0 %", whole[: len(whole) * share // 10]
    yield "cut by a byte", whole[:-1]
    yield "without a beginning", whole[40:]


def _damaged() -> Iterator[tuple[str, bytes]]:
    yield "another checksum", zipped(talk(says={"crc": 1}))
    for label, says in {
        "too short": {"packed": 100},
        "too long": {"packed": 10**6},
        "of less": {"size": 10},
        "of more": {"size": len(TALK) + 500_000},
        "of negative size": {"size": -1, "packed": -1},
    }.items():
        yield f"said to be {label}", zipped(talk(says=says))
    for at in (len(TALK) * 10, 2**31, 3):
        yield f"said to be at {at}", zipped(talk(at=at))
    whole = zipped(talk())
    for at in (3, 8, 40, 90, 200, len(whole) - 20, len(whole) - 60):
        yield f"changed at {at}", whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]


def _packed() -> Iterator[tuple[str, bytes]]:
    ways = {"shrunk": 1, "imploded": 6, "deflate64": 9, "bzip2": 12, "lzma": 14, "zstd": 93}
    for way, method in (ways | {"xz": 95, "ppmd": 98, "by nobody": 77}).items():
        yield f"packed {way}", zipped(talk(says={"method": method}))
    # A dictionary of four gigabytes.
    lzma = b"\x09\x04\x05\x00\x5d\xff\xff\xff\xff" + bytes(40)
    yield "lzma of much memory", zipped(talk(says={"method": 14}), packed={0: lzma})


def _twice() -> Iterator[tuple[str, bytes]]:
    yield "one name twice", zipped(talk(), talk(data=b"[]"))
    yield "a thousand times one name", zipped(*(talk() for _ in range(1_000)))
    yield "two names of one", zipped(talk(local_name=b"other.json"))


def _ends() -> Iterator[tuple[str, bytes]]:
    good = zipped(talk())
    yield "a long comment", zipped(talk(), comment=bytes(65_535))
    yield "an end in a comment", zipped(talk(), comment=good[-22:])
    yield "on another disk", zipped(talk(), disk=7)
    yield "more files than there are", zipped(talk(), entries=60_000)
    yield "fewer files than there are", zipped(talk(), talk(), entries=1)
    yield "a list of another length", zipped(talk(), size=10)
    yield "a list elsewhere", zipped(talk(), at=2**31)
    yield "an end alone", good[-22:]
    yield "a page before it", zipped(talk(), before=b"<html><script>alert(1)</script>")
    yield "a picture before it", zipped(talk(), before=b"\x89PNG\r\n\x1a\n")
    yield "no zip at all", b"PK\x03\x04" + bytes(range(256)) * 40


def _portable() -> Iterator[tuple[str, bytes]]:
    """As a project is exported, which is read by other code."""
    manifest = json.dumps({"format": FORMAT, "version": VERSION, "project": {}}).encode()
    names = [SETTINGS, *(f"{table.name}.jsonl" for table in TABLES)]
    others = [Member(name.encode(), b"{}\n") for name in names[:-1]]
    data = endless(b"\n" * 2**20, 1_000)
    for label, size in (("true", 1_000 * 2**20), ("lies", 100_000)):
        hollow = Member(names[-1].encode(), b"", DEFLATED, {"size": size, "packed": len(data)})
        files = [Member(MANIFEST.encode(), manifest), *others, hollow]
        yield f"a project of a bomb, size {label}", zipped(*files, packed={len(files) - 1: data})
    yield "a project of two files", zipped(Member(MANIFEST.encode(), manifest), others[1])
    whole = zipped(Member(MANIFEST.encode(), manifest, DEFLATED), *others)
    yield "a project with a damaged beginning", whole[:60] + b"\xff" * 20 + whole[80:]
    for label, text in (("deep", b"[" * 10**6), ("long", b'"' + b"x" * 5 * 10**6)):
        yield f"a project that is {label}", zipped(Member(MANIFEST.encode(), text), *others)
