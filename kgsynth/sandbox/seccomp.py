"""The system calls a box may not make, as a classic BPF program for `bwrap --seccomp`.

Namespaces and resource limits leave a few doors open to a process without privileges; this filter shuts them:
* a new user namespace would hand out capabilities, and with them mounts without a size limit;
* System V and POSIX queues, shared memory and memfd hold memory that no resource limit counts;
* VSOCK and other exotic socket families are not tied to the network namespace;
* ptrace, bpf, perf, io_uring, userfaultfd and the key rings are attack surface that no task needs.

Layout of the program and of `struct seccomp_data`: Linux, Documentation/userspace-api/seccomp_filter.rst.
Left out: system calls that need a capability (mount, kexec, ...); a box has none.
"""

from __future__ import annotations

import errno
import functools
import platform
import struct
from dataclasses import dataclass

from kgsynth.errors import SandboxError

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = (
    0x20,
    0x15,
    0x35,
    0x45,
    0x06,
)  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, JGE, JSET, BPF_RET|K
NUMBER, ARCH, FIRST_ARGUMENT, SECOND_ARGUMENT, THIRD_ARGUMENT = 0, 4, 16, 24, 32  # offsets in struct seccomp_data
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NEW_NAMESPACES = 0x7E020000  # CLONE_NEW{USER,PID,NET,IPC,UTS,CGROUP,NS}; clone cannot make time namespaces
SOL_SOCKET, SO_SNDBUF, SO_RCVBUF = 1, 7, 8
FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6: these are tied to the box's own network namespace


@dataclass(frozen=True, kw_only=True)
class Machine:
    audit_arch: int
    clone: int
    socket: int
    setsockopt: int
    refused: tuple[int, ...]
    x32: bool = False  # has a second table of numbers from 2**30 on


# unshare setns ptrace process_vm_readv/writev memfd_create shmget msgget mq_open add_key request_key keyctl bpf
# perf_event_open userfaultfd | io_uring_setup memfd_secret pidfd_getfd (same numbers everywhere)
MACHINES = {
    "x86_64": Machine(
        audit_arch=0xC000003E,
        clone=56,
        socket=41,
        setsockopt=54,
        refused=(272, 308, 101, 310, 311, 319, 29, 68, 240, 248, 249, 250, 321, 298, 323, 425, 447, 438),
        x32=True,
    ),
    "aarch64": Machine(
        audit_arch=0xC00000B7,
        clone=220,
        socket=198,
        setsockopt=208,
        refused=(97, 268, 117, 270, 271, 279, 194, 186, 180, 217, 218, 219, 280, 241, 282, 425, 447, 438),
    ),
}
CLONE3 = 435  # its flags are behind a pointer: "not implemented" makes libc fall back to clone


@functools.cache
def program(machine: str | None = None) -> bytes:
    """The filter for this processor. Raises SandboxError for one whose system call numbers we do not have."""
    machine = machine or platform.machine()
    if machine not in MACHINES:
        raise SandboxError(f"no system call filter for processor {machine!r}; there is one for {', '.join(MACHINES)}")
    table = MACHINES[machine]
    refuse = ERRNO | errno.EPERM
    code = [_op(LOAD, ARCH), _op(EQUAL, table.audit_arch, yes=1), _op(RETURN, KILL), _op(LOAD, NUMBER)]
    if table.x32:
        code += [_op(AT_LEAST, 1 << 30, no=1), _op(RETURN, ERRNO | errno.ENOSYS)]
    for number in table.refused:
        code += [_op(EQUAL, number, no=1), _op(RETURN, refuse)]
    code += [_op(EQUAL, CLONE3, no=1), _op(RETURN, ERRNO | errno.ENOSYS)]
    code += _when(table.clone, [_op(ANY_BIT, NEW_NAMESPACES, no=1), _op(RETURN, refuse)])
    known = [_op(EQUAL, family, yes=len(FAMILIES) - i) for i, family in enumerate(FAMILIES)]
    code += _when(table.socket, [*known, _op(RETURN, ERRNO | errno.EAFNOSUPPORT)])
    code += _when(table.setsockopt, _KEEP_BUFFERS)
    return b"".join([*code, _op(RETURN, ALLOW)])


def _when(number: int, test: list[bytes]) -> list[bytes]:
    """On this system call, run `test` on its first argument and allow what falls through."""
    body = [_op(LOAD, FIRST_ARGUMENT), *test, _op(RETURN, ALLOW)]
    return [_op(EQUAL, number, no=len(body)), *body]


def _op(code: int, k: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One struct sock_filter; `yes` and `no` are the instructions to skip."""
    return struct.pack("=HBBI", code, yes, no, k)


# Larger socket buffers are granted in words only: their memory is counted nowhere.
_KEEP_BUFFERS = [
    _op(LOAD, SECOND_ARGUMENT),
    _op(EQUAL, SOL_SOCKET, yes=1),
    _op(RETURN, ALLOW),
    _op(LOAD, THIRD_ARGUMENT),
    _op(EQUAL, SO_SNDBUF, yes=1),
    _op(EQUAL, SO_RCVBUF, no=1),
    _op(RETURN, ERRNO),
]
