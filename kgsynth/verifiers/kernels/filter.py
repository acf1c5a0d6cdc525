"""Runs inside the box: the system calls that a worker on the CPU may not make, as a classic BPF program.

It may have threads, but no other process and no other program. Nothing may go on while its keeper has it stopped, so
that whatever could send SIGCONT later is refused (timers, queues and descriptors that send a signal of choice, a signal
for a parent's death, a terminal's hang-up), and so is ptrace, under which one thread stops where all should. The keeper
has the same user: signals go to the worker itself only. Layout: Linux, Documentation/userspace-api/seccomp_filter.rst.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
CLONE_THREAD, CLONE3 = 0x10000, 435
NUMBER, ARCH, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data; an argument has 8 bytes, its lower half first

ARCHS = {"x86_64": (0xC000003E, 56), "aarch64": (0xC00000B7, 220)}  # (audit number, clone)
REFUSED = {
    # fork vfork execve execveat sched_setaffinity | timer_create mq_notify tkill ptrace perf_event_open io_setup setsid setpgid
    "x86_64": (57, 58, 59, 322, 203, 222, 244, 200, 101, 298, 206, 112, 109),
    # execve execveat sched_setaffinity | the same
    "aarch64": (221, 281, 122, 107, 184, 130, 117, 241, 0, 157, 154),
}
REFUSED_EVERYWHERE = (424, 425, 426, 427)  # pidfd_send_signal io_uring_setup io_uring_enter io_uring_register
OWN_ONLY = {  # kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo: the first argument is the worker itself
    "x86_64": (62, 234, 129, 297),
    "aarch64": (129, 131, 138, 240),
}
# (number, argument, values refused): fcntl F_SETOWN F_SETSIG F_SETOWN_EX, ioctl FIOSETOWN SIOCSPGRP, prctl PR_SET_PDEATHSIG
VALUES = {
    "x86_64": ((72, 1, (8, 10, 15)), (16, 1, (0x8901, 0x8902)), (157, 0, (1,))),
    "aarch64": ((25, 1, (8, 10, 15)), (29, 1, (0x8901, 0x8902)), (167, 0, (1,))),
}


def program(machine: str, pid: int) -> bytes:
    """The filter for a worker of this number. Raises RuntimeError for a processor whose numbers are not here."""
    if machine not in ARCHS:
        raise RuntimeError(f"no system call filter for {machine}")
    arch, clone = ARCHS[machine]
    code = [_op(LOAD, ARCH), _op(EQUAL, arch, yes=1), _op(RETURN, KILL), _op(LOAD, NUMBER)]
    code += [_op(AT_LEAST, 1 << 30, no=1), _op(RETURN, ENOSYS)]  # x32 has a second table from here on
    for number in (*REFUSED[machine], *REFUSED_EVERYWHERE):
        code += [_op(EQUAL, number, no=1), _op(RETURN, EPERM)]
    code += [_op(EQUAL, CLONE3, no=1), _op(RETURN, ENOSYS)]  # it hides its flags; libc falls back to clone
    code += _when(clone, 0, [_op(ANY_BIT, CLONE_THREAD, yes=1), _op(RETURN, EPERM)])
    for number in OWN_ONLY[machine]:
        code += _when(number, 0, [_op(EQUAL, pid, yes=1), _op(RETURN, EPERM)])
    for number, argument, values in VALUES[machine]:
        code += _when(number, argument, [op for v in values for op in (_op(EQUAL, v, no=1), _op(RETURN, EPERM))])
    return b"".join([*code, _op(RETURN, ALLOW)])


def install() -> None:
    """For this thread and those it will start, for good."""
    code = program(platform.machine(), os.getpid())
    raw = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(raw)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, 2, header, 0, 0):
        raise OSError(ctypes.get_errno(), "the system call filter is refused")


def _when(number: int, argument: int, test: list[bytes]) -> list[bytes]:
    """On this system call, run `test` on the lower half of an argument (all of those here are ints); then allow it."""
    body = [_op(LOAD, ARGUMENTS + 8 * argument), *test, _op(RETURN, ALLOW)]
    return [_op(EQUAL, number, no=len(body)), *body]


def _op(code: int, k: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One struct sock_filter; `yes` and `no` are the instructions to skip."""
    return struct.pack("=HBBI", code, yes, no, k)
