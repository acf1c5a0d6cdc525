"""Runs inside the box: a keeper that holds data, clock and key, and a worker that holds the candidate.

The worker is forked before the keeper knows anything, and is told the candidate's source and nothing else. From then on

    keeper: worker stopped | inputs into shared memory, outputs poisoned | clock starts | worker goes on | done | stopped | clock stops

so that a call's inputs do not exist before its clock runs and whatever counts as output is there when it stops. A
stopped worker has no thread that runs, and it cannot have other processes (a system call filter refuses them), so
nothing is done between calls, ahead of them or after them. The keeper cannot be read (it is not dumpable: /proc/PID
belongs to root), it reads its job from stdin when the worker has none any more, and what it reports is signed with a
key that came with the job. Everything the worker says is a claim; only bytes and times count.

On CUDA the worker may have other processes (Triton compiles), and stopping it does not stop its device. There the
inputs are written after the clock has started.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import hmac
import json
import math
import mmap
import os
import select
import signal
import stat
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

FRAME = 1 << 20  # bytes of one message of the worker
BANNED = 77  # exit code of a worker that called what it must not
PR_SET_DUMPABLE, M_PERTURB = 4, -6


class Gone(Exception):
    """The worker ended, or does not answer; the first argument is the reason."""


class NoSuchFunction(Exception):
    """The source does not define what the task names."""


# ------------------------------------------------------------------------------------------------------- messages


def send(fd: int, message: Any) -> None:
    data = json.dumps(message).encode()
    data = struct.pack("<I", len(data)) + data
    while data:
        data = data[os.write(fd, data) :]


def receive(fd: int, stop: float | None = None, limit: int = 1 << 30) -> Any:
    """One message. Raises Gone at the end of the stream, after `stop`, and for what is no message."""
    (length,) = struct.unpack("<I", take(fd, 4, stop))
    if length > limit:
        raise Gone("crashed")
    try:
        return json.loads(take(fd, length, stop))
    except (ValueError, RecursionError):
        raise Gone("crashed") from None


def take(fd: int, count: int, stop: float | None) -> bytes:
    data = b""
    while len(data) < count:
        if stop is not None and not select.select([fd], [], [], max(0.0, stop - time.perf_counter()))[0]:
            raise Gone("timeout")
        chunk = os.read(fd, count - len(data))
        if not chunk:
            raise Gone("crashed")
        data += chunk
    return data


# --------------------------------------------------------------------------------------------------------- keeper


class Keeper:
    """The trusted side of one box."""

    def __init__(self, shared: mmap.mmap, worker: int, requests: int, replies: int) -> None:
        self.shared, self.worker, self.requests, self.replies = shared, worker, requests, replies
        self.bytes = torch_bytes(shared)
        self.halted = False
        self.seen_by = others_readable(worker)  # processes that the candidate can look into, of those it must not
        self.said: dict[str, Any] = {}  # the worker's last words
        self.stop = math.inf  # when all calls must be over

    def work(self, job: dict[str, Any]) -> dict[str, Any]:
        """Let the candidate do all calls of the job. The report is complete up to the first failure."""
        report: dict[str, Any] = {"status": "done", "detail": "", "calls": [], "exposed": self.seen_by}
        if job["pin"]:
            os.sched_setaffinity(self.worker, sorted(os.sched_getaffinity(0))[-job["threads"] :])
        try:
            self.load(job)
            self.stop = time.perf_counter() + job["all_seconds"]
            for call in job["calls"]:
                report["calls"].append(self.call(job, call))
                if self.said["kind"] != "returned":
                    raise Gone(str(self.said["kind"]))
            report["trace"] = self.trace() if job["trace"] else []
        except (Gone, KeyError, TypeError, ValueError, AttributeError) as error:
            report["status"] = self.reason(str(error) if isinstance(error, Gone) else "crashed")
            report["detail"] = str(self.said.get("detail", ""))[:80]
        return report

    def load(self, job: dict[str, Any]) -> None:
        """Send the source, and the weights of a module."""
        told = ("source", "name", "init", "device", "threads", "banned", "trace", "poison", "double", "start", "known")
        send(self.requests, {key: job[key] for key in told})
        if receive(self.replies, time.perf_counter() + job["load_seconds"], FRAME) is True:
            self.seen_by.append(os.getpid())
        self.said = dict(receive(self.replies, time.perf_counter() + job["load_seconds"], FRAME))
        if self.said.get("kind") == "ready" and job["weights"]:
            self.said = self.exchange(job, {"tensors": job["weights"], "seed": job["weights_seed"], "near": None})[0]
        if self.said.get("kind") not in ("ready", "returned"):
            raise Gone(str(self.said.get("kind")))

    def call(self, job: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
        self.said, seconds, mutated = self.exchange(job, call)
        outputs = list(self.outputs(job)) if self.said.get("kind") == "returned" else []
        self.still()
        return {"seconds": seconds, "mutated": mutated, "outputs": outputs}

    def exchange(self, job: dict[str, Any], call: dict[str, Any]) -> tuple[dict[str, Any], float, bool]:
        """One call: (what the worker said, seconds, whether it changed its inputs)."""
        offsets, _ = kernel_data.layout(call["tensors"], doubled=job["double"])
        data = list(self.data(job, call))
        request = {
            "offsets": offsets,
            "tensors": [{k: v for k, v in t.items() if k != "values"} for t in call["tensors"]],
        }
        self.halt()
        self.still()
        self.bytes[job["start"] :][: job["wipe"]].fill_(0xFF)  # NaN in every format
        if not job["late"]:
            self.fill(offsets, data)
        self.still()
        began = time.perf_counter()
        if job["late"]:
            self.fill(offsets, data)
        send(self.requests, request)
        self.go_on()
        said = receive(self.replies, min(began + job["call_seconds"], self.stop), FRAME)
        self.halt()
        seconds = time.perf_counter() - began
        same = all(bool((self.part(o, d) == d).all()) for o, d in zip(offsets, data, strict=True))
        return said if isinstance(said, dict) else {}, seconds, not same

    def data(self, job: dict[str, Any], call: dict[str, Any]) -> Iterator[Any]:
        """The tensors of a call, as bytes; each draws from a seed of its own."""
        import torch

        for index, tensor in enumerate(call["tensors"]):
            if "value" in tensor:
                yield self.bytes[:0]
                continue
            values = kernel_data.make(tensor, call["seed"] + index, call["near"])
            if job["double"] and values.is_floating_point():
                values = values.double()
            yield values.reshape(-1).view(torch.uint8)

    def fill(self, offsets: list[int], data: list[Any]) -> None:
        for offset, raw in zip(offsets, data, strict=True):
            self.part(offset, raw).copy_(raw)

    def part(self, offset: int, raw: Any) -> Any:
        return self.bytes[offset : offset + raw.numel()]

    def outputs(self, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What the worker put into shared memory, as far as it says where; nothing outside the room for outputs."""
        for output in self.said["outputs"]:
            size, offset = kernel_data.SIZES.get(output["dtype"], 0), int(output["offset"])
            for length in output["shape"]:
                size *= int(length)
            if not 0 <= offset <= offset + size <= self.bytes.numel() - job["start"]:
                raise Gone("result too large")
            begin = job["start"] + offset
            kept = {key: output[key] for key in ("dtype", "shape", "stride", "device")}
            yield {**kept, "data": base64.b64encode(memoryview(self.shared)[begin : begin + size]).decode()}

    def trace(self) -> Any:
        send(self.requests, "trace")
        self.go_on()
        return receive(self.replies, time.perf_counter() + 5, FRAME)

    def halt(self) -> None:
        """Return when no thread of the worker runs."""
        if self.halted:
            return
        os.kill(self.worker, signal.SIGSTOP)
        _, status = os.waitpid(self.worker, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            raise Gone("banned operator" if os.waitstatus_to_exitcode(status) == BANNED else "crashed")
        self.halted = True

    def still(self) -> None:
        """Raises Gone unless the worker stands, and has stood since `halt`: the kernel tells its parent otherwise."""
        pid, status = os.waitpid(self.worker, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if pid and not (os.WIFSTOPPED(status) or os.WIFCONTINUED(status)):
            raise Gone("banned operator" if os.waitstatus_to_exitcode(status) == BANNED else "crashed")
        stop = time.perf_counter() + 1  # a thread that was ending when it was stopped may still be on its way
        while pid or not all(state in "TZX" for state in states(self.worker)):
            if pid or time.perf_counter() > stop:
                raise Gone("ran while stopped")
            time.sleep(1e-4)

    def go_on(self) -> None:
        self.halted = False
        os.kill(self.worker, signal.SIGCONT)

    def reason(self, told: str) -> str:
        """Why it is over: a worker that is gone may have ended itself at a banned operator."""
        if told != "crashed":
            return told
        try:
            os.kill(
                self.worker, signal.SIGKILL
            )  # it may only have closed its pipe; one that ends already keeps its code
            _, status = os.waitpid(self.worker, 0)
        except (ProcessLookupError, ChildProcessError):
            return told
        return "banned operator" if os.waitstatus_to_exitcode(status) == BANNED else told


def torch_bytes(shared: mmap.mmap) -> Any:
    import torch

    return torch.frombuffer(shared, dtype=torch.uint8)


def states(pid: int) -> Iterator[str]:
    """The letter of every thread's state in /proc: T for one that stands, Z and X for one that has ended."""
    for number in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{number}/stat") as f:
            yield f.read().rpartition(")")[2].split()[0]


def others_readable(worker: int) -> list[int]:
    """Processes here, other than the two of us, whose memory or files our user may open: a candidate could do so too."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid not in (worker, os.getpid()) and is_readable(pid)]


def is_readable(pid: int) -> bool:
    """Whether we may open its memory, or read a file that it holds, as its stdin may be. What came by a pipe is gone."""
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    return opens(f"/proc/{pid}/mem") or any(opens(f"/proc/{pid}/fd/{number}", read=True) for number in numbers)


def opens(path: str, *, read: bool = False) -> bool:
    """Whether it can be opened; with `read`, and is a regular file that can be read."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file:
            return not read or (stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.read(1) is not None)
    except OSError:
        return False


# --------------------------------------------------------------------------------------------------------- worker


def serve(shared: mmap.mmap, requests: int, replies: int) -> NoReturn:
    """The candidate's side: load it, then answer calls until there are no more."""
    try:
        job = receive(requests)
        send(replies, is_readable(os.getppid()))  # before the candidate has a line to say
        function, seen = prepare(job)
        send(replies, {"kind": "ready"})
        while True:
            request = receive(requests)
            if request == "trace":
                send(replies, sorted(seen))
            else:
                function = answer(function, request, shared, job, replies)
    except Gone:
        os._exit(0)
    except BaseException as error:
        kind = "syntax error" if isinstance(error, SyntaxError) else "load error"
        kind = "no such function" if isinstance(error, NoSuchFunction) else kind
        send(replies, {"kind": kind, "detail": described(error)})
    os._exit(0)


def described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:200].encode("ascii", "replace").decode()
    except BaseException:
        return "an exception that cannot be shown"


def prepare(job: dict[str, Any]) -> tuple[Any, set[str]]:
    """(the candidate's function or module, the set that its operators are noted in)."""
    import linecache

    import torch

    if job["device"] == "cpu":
        kernel_filter.install()  # before there is another thread, which would go without
    torch.set_num_threads(job["threads"])
    torch.set_grad_enabled(False)
    if job["poison"]:  # fresh memory is 0xFE..., so that nothing left in it looks like a result
        ctypes.CDLL(None).mallopt(M_PERTURB, 1)
    remove(job["banned"], "CPU" if job["device"] == "cpu" else "CUDA")
    for name in job["known"]:
        getattr(torch.ops.aten, name)
    torch.manual_seed(0)
    module = type(sys)("solution")
    sys.modules["solution"] = module
    linecache.cache["<solution>"] = (len(job["source"]), None, job["source"].splitlines(True), "<solution>")
    exec(compile(job["source"], "<solution>", "exec", dont_inherit=True), module.__dict__)
    if not callable(found := module.__dict__.get(job["name"])):
        raise NoSuchFunction(job["name"])
    if isinstance(found, type):
        found = found(*job["init"]).to(job["device"], torch.float64 if job["double"] else None).eval()
    seen: set[str] = set()
    return (traced(found, seen) if job["trace"] else found), seen


def answer(function: Any, request: Any, shared: mmap.mmap, job: dict[str, Any], replies: int) -> Any:
    """One call. The function to call next time: the same, or the module with its weights."""
    import torch

    try:
        args = [view(t, o, shared, job) for t, o in zip(request["tensors"], request["offsets"], strict=True)]
        if request["tensors"] and "name" in request["tensors"][0]:
            target = getattr(function, "inner", function)
            names = [tensor["name"] for tensor in request["tensors"]]
            target.load_state_dict(dict(zip(names, [a.clone() for a in args], strict=True)), strict=True)
            send(replies, {"kind": "returned", "outputs": []})
            return function
    except Exception as error:
        send(replies, {"kind": "load error", "detail": described(error)})
        return function
    try:
        result = function(*args)
        if job["device"] != "cpu":
            torch.cuda.synchronize()
        send(replies, place(result, shared, job))
    except BaseException as error:
        late = (
            isinstance(error, MemoryError)
            or "out of memory" in described(error)
            or "allocate memory" in described(error)
        )
        send(replies, {"kind": "out of memory" if late else "error", "detail": described(error)})
    return function


def view(tensor: dict[str, Any], offset: int, shared: mmap.mmap, job: dict[str, Any]) -> Any:
    """The argument: a view of shared memory, without a copy on the CPU."""
    import torch

    if "value" in tensor:
        return tensor["value"]
    dtype = getattr(torch, tensor["dtype"])
    if job["double"] and dtype.is_floating_point:
        dtype = torch.float64
    shape = list(tensor["shape"])
    count = math.prod(shape)
    if tensor.get("transposed"):
        shape[-2:] = shape[:-3:-1]
    flat = torch.frombuffer(shared, dtype=dtype, count=count, offset=offset) if count else torch.empty(0, dtype=dtype)
    whole = flat.view(shape).to(job["device"])
    return whole.transpose(-1, -2) if tensor.get("transposed") else whole


def place(result: Any, shared: mmap.mmap, job: dict[str, Any]) -> dict[str, Any]:
    """Copy what was returned into shared memory. Only plain tensors: a subclass could still have its work before it."""
    import torch

    outputs, end = [], 0
    for tensor in result if type(result) in (tuple, list) else (result,):
        if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided:
            return {"kind": "wrong type", "detail": type(tensor).__name__}
        size = tensor.numel() * tensor.element_size()
        if job["start"] + end + size > len(shared):
            return {"kind": "result too large", "detail": str(list(tensor.shape))[:80]}
        if size:
            flat = torch.frombuffer(shared, dtype=tensor.dtype, count=tensor.numel(), offset=job["start"] + end)
            flat.view(tensor.shape).copy_(tensor.resolve_conj().resolve_neg())
        outputs.append(
            {
                "offset": end,
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "shape": list(tensor.shape),
                "stride": list(tensor.stride()),
                "device": tensor.device.type,
            }
        )
        end += -(-size // 64) * 64
    return {"kind": "returned", "outputs": outputs}


def remove(banned: list[str], key: str) -> None:
    """Take operators out of the dispatcher: no thread, no alias and no C++ composite can reach them afterwards."""
    import warnings

    import torch

    def stop(*args: Any, **kwargs: Any) -> NoReturn:
        os._exit(BANNED)

    warnings.simplefilter("ignore")
    library = torch.library.Library("aten", "IMPL")
    KEPT.append(library)
    for name in [name for name in banned if hasattr(torch.ops.aten, name)]:  # some releases lack some
        for overload in getattr(torch.ops.aten, name).overloads():
            library.impl(name if overload == "default" else f"{name}.{overload}", stop, key)


KEPT: list[Any] = []  # a library that is collected takes its registrations with it


def traced(function: Callable[..., Any], seen: set[str]) -> Callable[..., Any]:
    """The function under a dispatch mode that notes "operator dtype" of every floating-point result."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Notes(TorchDispatchMode):
        pass

    def note(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for item in result if isinstance(result, (tuple, list)) else (result,):
            seen.add(f"{func.overloadpacket.__name__} {str(getattr(item, 'dtype', '-')).removeprefix('torch.')}")
        return result

    Notes.__torch_dispatch__ = note  # in the class body it would be wrapped, and the wrapper loads all of torch._dynamo

    def run(*args: Any) -> Any:
        with Notes():
            return function(*args)

    run.inner = function  # pyright: ignore[reportFunctionMemberAccess]
    return run


def main() -> None:
    """Fork the worker, then read the job, then hide: in this order."""
    import torch

    global kernel_data, kernel_filter
    sys.path.insert(0, os.getcwd())
    import kernel_data  # pyright: ignore[reportMissingImports]
    import kernel_filter  # pyright: ignore[reportMissingImports]

    sys.path = [path for path in sys.path if path not in ("", os.getcwd())]  # the worker can write there
    shared = mmap.mmap(-1, int(sys.argv[1]))
    requests, replies = os.pipe(), os.pipe()
    worker = os.fork()
    if worker == 0:
        silence(0, 1, 2)
        close_all_but(requests[0], replies[1])
        serve(shared, requests[0], replies[1])
    close_all_but(requests[1], replies[0])
    job = json.load(sys.stdin)
    silence(0)  # where /proc/PID/fd is not guarded, what came in could be read again
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    torch.set_num_threads(1)
    report = json.dumps(Keeper(shared, worker, requests[1], replies[0]).work(job))
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
    print(hmac.new(bytes.fromhex(job["key"]), report.encode(), "sha256").hexdigest(), report, flush=True)


def silence(*numbers: int) -> None:
    nowhere = os.open("/dev/null", os.O_RDWR)
    for number in numbers:
        os.dup2(nowhere, number)
    os.close(nowhere)


def close_all_but(*numbers: int) -> None:
    """Of the descriptors from 3 on."""
    low, high = sorted(numbers)
    for first, last in ((3, low), (low + 1, high), (high + 1, 1 << 16)):
        os.closerange(first, last)


if __name__ == "__main__":
    main()
