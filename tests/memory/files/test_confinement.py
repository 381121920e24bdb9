"""The process that parses a file has no network, no files, no programs, and bounded resources."""

import json
import subprocess
import sys

import pytest

from memory.files.parsers.child import LENGTH_DIGITS, PARSERS
from memory.files.reading import UnreadableFileError, processes, read_document, service
from memory.files.reading.limits import ReadingLimits
from memory.files.reading.recognition import MEDIA_TYPES

# By the C library, past the audit hook. Prints the error number of each call, 0 if it worked.
ATTEMPTS = """
import ctypes, json, os, sys
sys.path.insert(0, {root!r})
from memory.files.parsers.confinement import confine
c = ctypes.CDLL(None, use_errno=True)
enforced = confine(400_000_000, 10)
calls = {{
    "socket": lambda: c.socket(2, 1, 0),
    "unix socket": lambda: c.socket(1, 1, 0),
    "read a file": lambda: c.open({file!r}.encode(), 0),
    "read a folder": lambda: c.open(b"/etc", 0),
    "write a file": lambda: c.open({file!r}.encode(), 1),
    "fork": lambda: c.fork(),
    "run": lambda: c.execv(b"/bin/true", (ctypes.c_char_p * 2)(b"true")),
    "signal": lambda: c.kill(os.getppid(), 0),
}}
results = {{name: ctypes.get_errno() if call() < 0 else 0 for name, call in calls.items()}}
print(json.dumps([enforced, results]))
"""


# A parser that has been taken over, in the process that reads files: it reports which families of
# sockets it can open. The numbers are Unix, IPv4, IPv6, Netlink, packets, the hypervisor and XDP.
TAKEN_OVER = """
import ctypes, json, sys, types
sys.path.insert(0, {root!r})
from memory.files.parsers import child
from memory.files.parsers.documents import Parsed, Section
c = ctypes.CDLL(None, use_errno=True)

def parse(file, name, bounds):
    kinds = [(family, kind) for family in (1, 2, 10, 16, 17, 40, 44) for kind in (1, 2, 3, 5)]
    opened = [it for it in kinds if c.socket(*it, 0) >= 0 or c.socketpair(*it, 0, bytes(8)) >= 0]
    connected = c.syscall(42, 0, bytes(16), 16) >= 0 or c.syscall(425, 1, bytes(120)) >= 0
    return Parsed([Section("", None, (), json.dumps([opened, connected, len(kinds)]))])

module = types.ModuleType("memory.files.parsers.plain_text")
module.parse = parse
sys.modules[module.__name__] = module
sys.argv.append(json.dumps(dict(
    kind="text", name="", page=0, width=0, max_pages=1, max_text_chars=9_000,
    memory_bytes=400_000_000, cpu_s=9,
)))
child.main()
"""


def run(code: str) -> str:
    command = [sys.executable, "-I", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={}).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="by the Linux kernel")
def test_the_kernel_refuses_network_files_programs_and_signals(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    output = run(ATTEMPTS.format(root=str(processes.ROOT), file=str(secret)))
    enforced, errors = json.loads(output)
    if "landlock" not in enforced:
        errors = {name: error for name, error in errors.items() if not name.startswith("read")}
    assert "seccomp" in enforced
    assert 0 not in errors.values(), errors


@pytest.mark.skipif(sys.platform != "linux", reason="by the Linux kernel")
def test_a_parser_that_was_taken_over_opens_no_socket():
    output = run(TAKEN_OVER.format(root=str(processes.ROOT)))
    [section] = json.loads(output[LENGTH_DIGITS:])["sections"]
    assert json.loads(section["text"]) == [[], False, 28]


@pytest.mark.parametrize("name", ['"a private\\n text"', '"%s"' % ("a" * 999), "[1]", None])
def test_a_parser_that_was_taken_over_writes_no_text_to_the_log(
    monkeypatch, caplog, tmp_path, name
):
    caplog.set_level("INFO", "memory.files")
    field = f', "exception": {name}' if name else ""
    failure = b'{"error": "a private text"%s}' % field.encode()
    output = b"%012d" % len(failure) + failure
    monkeypatch.setattr(processes, "_run", lambda *arguments: (output, "", 0, 0))
    path = tmp_path / "a.md"
    path.write_text("a")
    with pytest.raises(UnreadableFileError) as error:
        read_document(path)
    assert error.value.reason == "damaged"
    [record] = caplog.records
    assert "private" not in record.getMessage() and len(record.getMessage()) < 200


def test_a_kernel_that_does_not_confine_parsers_is_logged_once(tmp_path, monkeypatch, caplog):
    service.log_missing.cache_clear()
    restrict = (
        "from memory.files.parsers import kernel; kernel._restrict_files = lambda *_: False; "
    )
    monkeypatch.setattr(
        processes, "START", processes.START.replace("from memory.", restrict + "from memory.", 1)
    )
    path = tmp_path / "a.md"
    path.write_text("text")
    for _ in range(2):
        read_document(path)
    missing = "landlock" if sys.platform == "linux" else "landlock,seccomp"
    assert [it.getMessage() for it in caplog.records] == [f"parser_not_confined missing={missing}"]


def test_the_hook_refuses_what_python_code_does(tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(processes.ROOT)!r})\n"
        "from memory.files.parsers import confinement\n"
        "confinement.restrict = lambda folders: ()\n"
        "confinement.confine(400_000_000, 10)\n"
        "import socket, subprocess\n"
        "calls = (lambda: socket.socket().connect(('127.0.0.1', 1)), lambda: open('/etc/fstab'),\n"
        "         lambda: subprocess.run(['/bin/true']))\n"
        "for call in calls:\n"
        "    try:\n        call()\n        print('worked')\n"
        "    except PermissionError:\n        print('refused')\n"
    )
    assert run(code).split() == ["refused"] * 3


def test_parsers_import_no_django():
    names = [f"memory.files.parsers.{name}" for name in {*PARSERS.values(), "child"}]
    code = (
        f"import sys; sys.path.insert(0, {str(processes.ROOT)!r})\n"
        f"for name in {names!r}: __import__(name)\n"
        "print([name for name in sys.modules if name.startswith(('django', 'projects', 'chat.'))])"
    )
    assert run(code).strip() == "[]"


def test_each_kind_has_a_parser():
    assert set(PARSERS) == set(MEDIA_TYPES) - {"zip"}


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (ReadingLimits(max_bytes=10), "too_large"),
        (ReadingLimits(max_text_chars=1_000), "too_large"),
        (ReadingLimits(memory_bytes=120_000_000), "out_of_memory"),
        (ReadingLimits(wall_s=0), "timed_out"),
    ],
)
def test_each_limit_has_an_error_of_its_own(tmp_path, limits, code):
    path = tmp_path / "a.md"
    path.write_text("# a\ntext\n" * 1_000_000)
    with pytest.raises(UnreadableFileError) as error:
        read_document(path, "a.md", limits)
    assert error.value.code == code
