"""Restricts this process by the Linux kernel: files by Landlock, system calls by seccomp.

Both are permanent and apply to Python and to code in C. They need no privileges and work in
containers.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

# What `restrict` can enforce.
RESTRICTIONS = ("landlock", "seccomp")

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2

# Numbers of system calls from include/uapi/linux/landlock.h, the same on all architectures.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_READ_FILE, _READ_DIR, _EXECUTE = 1 << 2, 1 << 3, 1 << 0
# The number of file access rights in each version of Landlock, from version 1.
_FILE_RIGHTS = (13, 14, 15, 15, 16)
# The versions that added rights for TCP ports, and scopes for Unix sockets and signals.
_WITH_NET, _WITH_SCOPES = 4, 6

# The numbers of refused system calls on x86-64 and aarch64: sockets, new processes, programs,
# signals, memory of other processes, and parts of the kernel that have had many vulnerabilities.
_CALLS = {
    "socket": (41, 198),
    "connect": (42, 203),
    "accept": (43, 202),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "bind": (49, 200),
    "listen": (50, 201),
    "socketpair": (53, 199),
    "clone": (56, 220),
    "fork": (57, None),
    "vfork": (58, None),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "ptrace": (101, 117),
    "mount": (165, 40),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "open_by_handle_at": (304, 265),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "pidfd_open": (434, 434),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
}
# The architectures in include/uapi/linux/audit.h.
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
# The bit that marks calls of the x32 ABI, which has other numbers.
_X32_BIT = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1  # EPERM


def restrict(readable: Iterable[str], programs: bool = False) -> tuple[str, ...]:
    """Permit this process only to read files below `readable`. Return what the kernel enforces.

    With `programs`, it may also replace itself by a program in these folders.
    """
    if sys.platform != "linux":
        return ()
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return ()
    done = (
        "landlock" if _restrict_files(readable, programs) else "",
        "seccomp" if _restrict_calls(programs) else "",
    )
    return tuple(filter(None, done))


def _restrict_files(readable: Iterable[str], programs: bool) -> bool:
    version = _LIBC.syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    if version < 1:
        return False
    rights = (1 << _FILE_RIGHTS[min(version, len(_FILE_RIGHTS)) - 1]) - 1
    attributes = struct.pack("Q", rights)
    if version >= _WITH_NET:
        attributes += struct.pack("Q", 0b11)
    if version >= _WITH_SCOPES:
        attributes += struct.pack("Q", 0b11)
    ruleset = _LIBC.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    allowed = _READ_FILE | _READ_DIR | (_EXECUTE if programs else 0)
    for path in readable:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rights_here = allowed if Path(path).is_dir() else allowed & ~_READ_DIR
        rule = struct.pack("=Qi", rights_here, opened)
        _LIBC.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        os.close(opened)
    restricted = _LIBC.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return restricted


def _restrict_calls(programs: bool) -> bool:
    if platform.machine() not in _MACHINES:
        return False
    column, machine = _MACHINES[platform.machine()]
    numbers = [
        numbers[column]
        for name, numbers in _CALLS.items()
        if not (programs and name.startswith("execve"))
    ]
    # From struct seccomp_data: first the architecture (offset 4), then the number of the call.
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _REFUSE), (_LOAD, 0, 0, 0)]
    if column == 0:
        steps += [(_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _REFUSE)]
    for number in numbers:
        if number is not None:
            steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(code)))
    return _LIBC.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0) == 0
