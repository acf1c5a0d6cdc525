"""Process 1 of a bubblewrap box: the one program in there that is ours. It starts what it is told to, and reaps.

It runs under a kernel that already shows it nothing of the host (bubblewrap saw to that), gives up what is left of root
by moving into a user namespace of its own, loads the packages it is asked to, and waits. For each job a child of it,
the *warden*, makes new name spaces with empty writable folders (unless the job is for a box whose state stays), forks
the *inmate*, which drops every privilege before it runs anything, and reports how that ended. An inmate that is Python
does not start an interpreter: it is one already.

    outside ── control ── process 1 ── fork ── warden (one a job) ── fork ── inmate: setuid, limits, seccomp, then the code
         └───────────── a socket for each job ────┘

The inmate can touch neither: process 1 and the warden have another user id. In the boxes of a normal user, who has one id
only, it can trace neither, and can end the warden of a box that stays, which ends the inmate (see `Jail.do`). It holds no
descriptor but its stdin, stdout and stderr. Whatever it leaves running after a job for a fresh box dies with the process
namespace of that job.

Imports nothing of ours and runs on the bare interpreter. System call flags: man 2 unshare, mount, capset, prctl.
"""

import array
import atexit
import contextlib
import ctypes
import fcntl
import gc
import marshal
import os
import platform
import resource
import select
import signal
import socket
import struct
import sys

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x08000000, 0x10000000, 0x20000000
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 22, 36, 38
CAPABILITY_VERSION_3 = 0x20080522
AREAS = ("work", "tmp", "dev/shm")  # what can be written, all of it on one tmpfs
# What boxes hold of these counts against the user who made them: with the kernel's own limits, one box could take them all.
SHARED_LIMITS = {"inotify_instances": 4, "inotify_watches": 4096, "fanotify_groups": 0, "fanotify_marks": 0}
USER = 1000  # the inmate's user and group; none of the host's files is theirs

SYS_CLONE = {"x86_64": 56, "aarch64": 220}

libc = ctypes.CDLL(None, use_errno=True)
interpreter = ctypes.PyDLL(None, use_errno=True)  # a fork must keep the interpreter's lock


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    privileged, packages = marshal.loads(control.recv(1 << 16))
    if privileged:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    move_into_user_namespace(privileged)
    prctl(PR_SET_DUMPABLE, 0)
    load(packages)
    gc.collect()
    gc.freeze()  # the garbage collector of a fork need not touch, and so copy, what is here now
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps wardens and what they leave behind
    control.send(b"ready")
    while True:
        message, fds = receive(control)
        if not message:
            os._exit(0)  # whoever made this box is gone, and all in it goes too
        if message == b"job":
            start_warden(control, fds[0], packages)
        elif message == b"clear":
            end_all(True)
            control.send(b"ok")
        else:
            control.send(answer(open_areas, *marshal.loads(message)))


def load(packages):
    """Import them, with a folder for temporary files that jobs do not see."""
    if packages:
        mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=0755")
    for name in packages:
        __import__(name)


def answer(function, *args):
    """ "ok", or the error that an outside caller shall see."""
    try:
        function(*args)
        return b"ok"
    except OSError as error:
        return f"!{error}".encode()


# ------------------------------------------------------------------------------------------------------- namespaces


def move_into_user_namespace(privileged):
    """Hold no privilege outside a user namespace of our own from here on. `privileged`: the two outer ids of root's
    boxes, (ours, the inmate's), or None when a normal user makes the box: then both are one."""
    ready = os.pipe()
    scribe = os.fork()  # a map is written from the outside
    if scribe == 0:
        os.read(ready[0], 1)
        write_maps(os.getppid(), privileged)
        os._exit(0)
    check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET), "unshare")
    os.write(ready[1], b"x")
    if os.waitpid(scribe, 0)[1]:
        raise OSError("cannot map user ids into a user namespace")
    for fd in ready:
        os.close(fd)
    if privileged:
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
    mount("", "/", "", MS_REC | MS_PRIVATE)
    for name, most in SHARED_LIMITS.items():
        put(f"/proc/sys/user/max_{name}", str(most))
    open_network()


def write_maps(pid, privileged):
    if privileged:
        lines = f"0 {privileged[0]} 1\n{USER} {privileged[1]} 1\n"
    else:
        lines = f"{USER} {os.getuid()} 1\n"
        put(f"/proc/{pid}/setgroups", "deny")
    put(f"/proc/{pid}/uid_map", lines)
    put(f"/proc/{pid}/gid_map", lines)


def put(path, text):
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, text.encode())
    os.close(fd)


def open_network():
    """A loopback and nothing else, as in every new network namespace, with small buffers for TCP (6 MB each otherwise)."""
    for direction in ("rmem", "wmem"):
        put(f"/proc/sys/net/ipv4/tcp_{direction}", "4096 65536 131072")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def open_areas(megabytes, layer):
    """Make the writable folders, on one tmpfs of limited size. `layer`: the folder of a snapshot that they start from."""
    mount(
        "tmpfs",
        "/box",
        "tmpfs",
        MS_NOSUID | MS_NODEV,
        f"size={megabytes}m,nr_inodes={1024 + 256 * megabytes},mode=0755",
    )
    for area in AREAS:
        upper = f"/box/{area.replace('/', '-')}"
        os.mkdir(upper)
        os.chown(upper, USER, USER)
        os.chmod(upper, 0o755 if area == "work" else 0o1777)
        if layer and os.path.isdir(f"/layers/{layer}/{area}"):
            os.mkdir(work := f"{upper}-work")
            layers = f"lowerdir=/layers/{layer}/{area},upperdir={upper},workdir={work},userxattr"
            mount("overlay", f"/{area}", "overlay", MS_NOSUID | MS_NODEV, layers)
        else:
            mount(upper, f"/{area}", "", MS_BIND)
    for hidden in ("/box", "/layers"):
        mount("tmpfs", hidden, "tmpfs", MS_NOSUID | MS_NODEV, "size=4k,mode=0")


def mount(source, target, kind, flags, data=""):
    check(libc.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()), f"mount {target}")


def check(status, what):
    if status:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def prctl(option, value):
    check(libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


# --------------------------------------------------------------------------------------------------------- wardens


def receive(connection, size=1 << 16):
    """(message, descriptors) of one packet; an empty message at the end."""
    message, ancillary, _, _ = connection.recvmsg(size, socket.CMSG_SPACE(5 * 4), socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for _, _, data in ancillary:
        fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return message, list(fds)


def start_warden(control, fd, packages):
    connection = socket.socket(fileno=fd)
    message, stdio = receive(connection, 1)
    fresh = message == b"f"  # or for the box that stays
    namespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET if fresh else 0
    if (fork_with_threads if packages else fork)(namespaces) == 0:
        control.close()
        warden(connection, stdio, fresh)
    connection.close()
    for number in stdio:
        os.close(number)


def fork(namespaces):
    """os.fork, with new namespaces for the child: one call, which C libraries with threads of their own do not hear of."""
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = interpreter.syscall(SYS_CLONE[platform.machine()], ctypes.c_ulong(namespaces | signal.SIGCHLD), 0, 0, 0, 0)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid


def fork_with_threads(namespaces):
    """The same by two forks, of which such libraries hear: they stop their threads before."""
    pid = os.fork()
    if pid == 0 and namespaces:
        check(libc.unshare(namespaces), "unshare")
        if os.fork():  # this next child is the first process of the new process namespace
            os._exit(0)
    return pid


def warden(connection, stdio, fresh):
    """Do one job and report its exit code; "!..." when the box could not be set up. Never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    job = marshal.loads(whole(connection))
    failed = answer(prepare, fresh, job)
    if failed != b"ok":
        connection.send(failed)
        os._exit(1)
    inmate = os.fork()
    if inmate == 0:
        become(connection, stdio, job)
    for number in stdio[:3]:
        os.close(number)
    code = watch(connection, inmate)
    if fresh or code is None:
        end_all(fresh)
    connection.send(str(-9 if code is None else code).encode())
    if not fresh:
        swallow(connection, stdio[3:])
    os._exit(0)


def whole(connection):
    """A message of any length: eight bytes that tell it, and the bytes."""
    length = int.from_bytes(read_exactly(connection, 8), "big")
    return read_exactly(connection, length)


def read_exactly(connection, length):
    data = bytearray()
    while len(data) < length:
        chunk = connection.recv(min(1 << 20, length - len(data)))
        if not chunk:
            os._exit(0)
        data += chunk
    return bytes(data)


def prepare(fresh, job):
    if fresh:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        open_network()
        open_areas(job["disk_mb"], "")
    else:
        prctl(PR_SET_CHILD_SUBREAPER, 1)


def watch(connection, inmate):
    """The inmate's exit code; None when we are told to end it, or nobody is there to be told."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    poll.register(os.pidfd_open(inmate), select.POLLIN)
    while True:
        events = {fd for fd, _ in poll.poll(1000)}
        while (ended := reap()) is not None:
            if ended[0] == inmate:
                return os.waitstatus_to_exitcode(ended[1])
        if connection.fileno() in events:
            return None


def reap():
    """(pid, status) of a child that ended, or None."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def end_all(first):
    """Kill everything under us and see it gone. `first`: we are the first process of our namespace, and all else is."""
    while True:
        if first:
            kill(-1, signal.SIGKILL)
        else:
            end_descendants()
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def end_descendants():
    """Stop them until nothing new appears, so that none can fork away from us; then kill them."""
    stopped = set()
    while new := set(descendants(os.getpid())) - stopped:
        for pid in new:
            kill(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        kill(pid, signal.SIGKILL)


def descendants(pid):
    """Every process below this one."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as children:
                below = children.read().split()
            for child in below:
                yield int(child)
                yield from descendants(int(child))


def swallow(connection, outputs):
    """Read what processes in the background still write, once nobody outside does, so that they do not die of it."""
    connection.recv(16)
    poll = select.poll()
    for fd in outputs:
        poll.register(fd, select.POLLIN)
    while outputs:
        for fd, _ in poll.poll(1000):
            if not os.read(fd, 1 << 16):
                poll.unregister(fd)
                outputs.remove(fd)
        while reap():
            pass


def kill(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


# --------------------------------------------------------------------------------------------------------- inmates


def become(connection, stdio, job):
    """From the trusted program to the untrusted one. Never returns."""
    os.setsid()
    drop_privileges(job["rlimits"])
    has_files = bool(job["files"])
    failed = answer(os.chdir, "/work")
    if failed == b"ok":
        failed = answer(put_files, job.pop("files"))
    if failed == b"ok" and job["read"]:
        failed = answer(send_file, job["read"], stdio[1])
    if not job["argv"] or (failed != b"ok" and has_files):
        connection.send(failed + b"\n")
        os._exit(0)
    if failed != b"ok":
        os.chdir("/")  # the working directory was closed to its own user
    for target, number in enumerate(stdio[:3]):
        os.dup2(number, target)
    os.closerange(3, 1 << 16)
    os.environ.clear()
    os.environ.update(job["env"])
    filter_system_calls(job["seccomp"])
    if job["warm"]:
        run_python(job["argv"])
    else:
        run_program(job["argv"])


def drop_privileges(rlimits):
    os.umask(0o022)
    if os.getuid() != USER:
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_DUMPABLE, 1)  # or its own /proc/self would be closed to it
    for kind, limits in rlimits.items():
        resource.setrlimit(kind, limits)


def filter_system_calls(program):
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):  # struct sock_fprog
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    code = Program(len(program) // 8, ctypes.addressof(buffer))
    check(libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(code), 0, 0), "seccomp")


def put_files(files):
    for path, data in files.items():
        path = real(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o644)
        with open(fd, "wb") as file:
            file.write(data)


def real(path):
    """The path without links, where it stays in the working directory."""
    found = os.path.realpath(path)
    if not found.startswith("/work/"):
        raise OSError(f"{path!r} leads out of the working directory, to {found}")
    return found


def send_file(path, pipe):
    fd = os.open(real(path), os.O_RDONLY | os.O_NONBLOCK)
    if not os.path.isfile(f"/proc/self/fd/{fd}"):
        raise OSError(f"{path!r} is not a regular file")
    os.set_blocking(pipe, True)
    while chunk := os.read(fd, 1 << 20):
        view = memoryview(chunk)
        while view:
            view = view[os.write(pipe, view) :]


def run_program(argv):
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, others must not
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except (OSError, ValueError) as error:
        os.write(2, f"{argv[0]}: {error}\n".encode("utf-8", "replace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def run_python(argv):
    """What `python argv...` does, in this interpreter: a script, or "-c" and code. Never returns."""
    open_stdio()
    if "numpy.random" in sys.modules:  # `random` reseeds itself after a fork
        sys.modules["numpy.random"].seed()
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    code = argv[0] == "-c"
    sys.argv[:] = ["-c", *argv[2:]] if code else argv
    if not code:
        main.__file__ = os.path.abspath(argv[0])
    status = 0
    try:
        source = argv[1] if code else open(argv[0], "rb").read()
    except OSError as error:
        os.write(2, f"cannot open {argv[0]!r}: {error.strerror}\n".encode("utf-8", "replace"))
        os._exit(2)
    try:
        exec(compile(source, "<string>" if code else argv[0], "exec", dont_inherit=True), main.__dict__)
    except SystemExit as error:
        status = exit_status(error.code)
    except BaseException as error:
        trace = error.__traceback__ and error.__traceback__.tb_next  # without our own frame
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        status = 1
    finish(main, status)


def exit_status(code):
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)
    return 1


def finish(main, status):
    """The end of an interpreter as a program can tell it: threads, exit functions, files closed, output flushed.

    Tearing the rest down would copy every page that is shared with process 1.
    """
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        main.__dict__.clear()
        gc.collect()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except BaseException:
        status = status or 120  # what Python itself returns when it cannot flush
    os._exit(status)


def open_stdio():
    """As an interpreter does that starts with the locale C.UTF-8."""
    text = {"encoding": "utf-8", "errors": "surrogateescape", "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, **text)
    sys.stdout = sys.__stdout__ = open(1, "w", **text)
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


if __name__ == "__main__":
    main()
