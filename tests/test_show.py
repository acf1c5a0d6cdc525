"""What a growing run shows: the picture at several sizes, and a real terminal that is left as it was."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from kgsynth.errors import RunError
from kgsynth.grow.progress import AtWork, Progress, Tally
from kgsynth.ledger import Caps, Spend
from kgsynth.show import growing
from kgsynth.show.growth import View, duration, in_a_line, printable, short

STEPS = ("read", "search", "propose")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def agents(n: int, name: str = "binary search trees") -> tuple[AtWork, ...]:
    return tuple(AtWork(concept=f"{name} {i}", step=STEPS[i % 3], seconds=float(i)) for i in range(n))


def typical(**fields: object) -> Progress:
    done = Tally(
        researched=400, added=1200, linked=1300, refused=12, atomic=34, pages=812,
        errors={"timeout": 12, "robots": 5, "size": 1}, failed=3, stale=2, overtaken=1,
    )  # fmt: skip
    values = {"concepts": 1000, "waiting": 87, "leased": 16, "done": 400, "tally": done, "agents": agents(4)}
    return Progress(**{**values, **fields})  # type: ignore[arg-type]


def drawn(view: View, width: int = 80, height: int = 30) -> list[str]:
    console = Console(record=True, width=width, height=height, file=io.StringIO(), force_terminal=True)
    console.print(view.picture(width, height))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_typical_picture_says_everything_in_80_columns() -> None:
    money = Spend(calls=1204, prompt_tokens=3_000_000, completion_tokens=100_000, usd=0.85)
    view = View(2000, money=lambda: money, caps=Caps(max_usd=5.0, max_calls=100_000))
    view.saw(typical())
    lines = drawn(view)
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("grow ")
    assert lines[0].endswith("1,000 of 2,000 concepts")
    facts = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[1:7]}
    assert facts == {
        "frontier": "87 waiting · 16 in work · 400 done",
        "yield": "3.0 per researched · 1,300 edges · 812 pages · 12 refused · 34 atomic",
        "pace": "0 s so far",
        "money": "1,204 calls · 3.1M tokens · $0.8500 · 17% of max_usd = 5.0",
        "errors": "timeout 12 · robots 5 · size 1 · 3 attempts failed",
        "shared": "2 stale · 1 overtaken",
    }
    assert [line.split()[3:5] for line in lines[8:12]] == [
        ["3", "read"],
        ["2", "propose"],
        ["1", "search"],
        ["0", "read"],
    ]


def test_an_empty_picture_leaves_out_what_there_is_not() -> None:
    view = View(500)
    assert "getting ready" in drawn(view)[0]
    view.saw(Progress(concepts=1, waiting=1, leased=0, done=0))
    text = "\n".join(drawn(view))
    assert "nothing researched yet" in text
    for word in ("money", "errors", "shared", "more:"):
        assert word not in text


def test_paid_searches_are_money_without_a_model() -> None:
    view = View(500, money=lambda: Spend(usd=0.02), caps=Caps(max_usd=0.1))
    view.saw(Progress(concepts=1, waiting=1, leased=0, done=0))
    assert "$0.0200 · 20% of max_usd = 0.1" in "\n".join(drawn(view))


def test_ten_thousand_agents_take_twelve_lines_and_the_rest_is_counted_by_step() -> None:
    view = View(2_000_000)
    view.saw(typical(agents=agents(10_000), concepts=1_234_567))
    lines = drawn(view)
    assert lines[-1] == "and 9,989 more: 3,330 read, 3,330 search, 3,329 propose"
    assert sum("binary search trees" in line for line in lines) == 11
    assert "trees 9999" in lines[-12]  # the oldest first
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(("width", "height"), [(40, 12), (80, 10), (200, 60)])
def test_the_picture_fits_other_terminals(width: int, height: int) -> None:
    view = View(2000)
    view.saw(
        typical(agents=agents(100, "a name that is much longer than what fits into the column of names"), tally=Tally())
    )
    lines = drawn(view, width, height)
    assert max(map(len, lines)) <= min(width, 80)
    assert len(lines) <= height


def test_names_from_pages_cannot_command_the_terminal() -> None:
    view = View(10)
    evil = AtWork(concept="[bold]x[/bold]\x1b[2J\x07\n\u202eabc", step="read", seconds=1)
    view.saw(typical(agents=(evil,), last="\x1b]0;owned\x07"))
    row = drawn(view)[-1]
    assert row.startswith("[bold]x[/bold]\N{REPLACEMENT CHARACTER}[2J")
    for text in (row, in_a_line(view)):
        assert printable(text) == text


def test_rates_and_the_time_left_follow_from_the_last_two_minutes() -> None:
    clock = Clock()
    view = View(1300, clock=clock)
    for step in range(4):  # 20 a minute, 3 added each, 2 queued each
        view.saw(typical(done=400 + 10 * step, concepts=1000 + 30 * step, waiting=100 + 10 * step, leased=0))
        clock.now += 30
    assert view.rates() == (20.0, 60.0)
    # 210 fit in: 70 more researched concepts bring them, and 140 to the frontier, where 130 wait: 270 at 20 a minute
    assert view.minutes_left() == pytest.approx(270 / 20)


def test_a_cap_that_is_near_ends_it_sooner() -> None:
    clock, spent = Clock(), [1.0]
    view = View(10_000, money=lambda: Spend(calls=1, usd=spent[0]), caps=Caps(max_usd=4.0), clock=clock)
    for step in range(3):
        view.saw(typical(done=400 + 20 * step, concepts=1000 + 60 * step))
        clock.now += 60
        spent[0] += 0.5
    assert view.minutes_left() == pytest.approx(4.0)  # at $2.00, with 50 cents a minute, at the last sample


def test_a_dying_frontier_is_seen() -> None:
    clock = Clock()
    view = View(10_000, clock=clock)
    for step in range(3):  # each brings half a concept
        view.saw(typical(done=20 * step, waiting=100 - 10 * step, leased=0, concepts=100 + 10 * step))
        clock.now += 60
    assert view.minutes_left() == pytest.approx(80 / 0.5 / 20)


def test_the_ledger_is_asked_once_a_second_and_may_fail() -> None:
    clock, asked = Clock(), []

    def money() -> Spend:
        asked.append(clock.now)
        if len(asked) > 1:
            raise RunError("the file is gone")
        return Spend(calls=3, usd=0.5)

    view = View(10, money=money, clock=clock)
    for _ in range(20):
        view.saw(typical())
        drawn(view)
        clock.now += 0.1
    assert len(asked) == 2
    assert view.spent().calls == 3


def test_without_a_terminal_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgsynth.show.EVERY_SECONDS", 0.0)
    with growing(2000, money=lambda: Spend(calls=7, prompt_tokens=10, usd=0.0)) as show:
        show(typical(last="tries"))
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("grow: 1,000/2,000 concepts, 87 waiting, 16 in work, 400 done, 3.0 per researched")
    assert line.endswith("7 calls, 10 tokens, no price known, timeout 12, robots 5, size 1, 3 attempts failed, "
                         "2 stale, 1 overtaken; last: tries")  # fmt: skip


def test_numbers_in_words() -> None:
    assert [duration(s) for s in (8, 75, 7300)] == ["8 s", "1:15 min", "2:01 h"]
    assert [short(n) for n in (999, 1_234, 1_234_567)] == ["999", "1.2k", "1.2M"]


PROGRAM = """
import sys, time
from kgsynth.grow.progress import AtWork, Progress
from kgsynth.show import growing
with growing(100) as show:
    for i in range(600):
        show(Progress(concepts=i, waiting=1, leased=1, done=i, agents=(AtWork(concept="tries", step="read", seconds=1),)))
        if i == 10:
            print("a warning of a library", file=sys.stderr)
        time.sleep(0.05)
"""


class Terminal:
    """A program on a real pseudo-terminal."""

    def __init__(self, *command: str) -> None:
        self.fd, inner = pty.openpty()
        self.resize(100, 30)
        sizes = ("COLUMNS", "LINES")  # they would hide a change of size
        environment = {**{k: v for k, v in os.environ.items() if k not in sizes}, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, env=environment)
        os.close(inner)
        self.seen = b""

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, found: Callable[[bytes], bool], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not found(self.seen):
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(self.seen[-2000:])
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:  # the program has ended
                return

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


def test_a_real_terminal_is_drawn_on_and_given_back_on_ctrl_c() -> None:
    terminal = Terminal(sys.executable, "-c", PROGRAM)
    try:
        terminal.wait_for(lambda seen: b"a warning of a library" in seen and seen.count(b"tries") > 2)
        assert b"\x1b[?25l" in terminal.seen  # no cursor
        assert b"\x1b[2J" not in terminal.seen
        terminal.resize(60, 20)
        terminal.wait_for(lambda seen: b"\x1b[2J\x1b[H" in seen)  # lines are wrapped now: drawn on a clean screen
        drawn = terminal.seen.count(b"tries")
        terminal.wait_for(lambda seen: seen.count(b"tries") > drawn + 1)
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for(lambda seen: b"KeyboardInterrupt" in seen)
        assert terminal.process.wait(20) != 0
        before, _, after = terminal.seen.rpartition(b"\x1b[?25h")  # the cursor is back, and what follows is not ours
        assert b"tries" in before
        assert b"tries" not in after
    finally:
        terminal.close()
