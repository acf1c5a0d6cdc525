"""A picture that is drawn again and again over itself at the bottom of a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType

TICK_S = 0.5  # between two drawings
STILL_S = 1.0  # when there is no news but the clock's


@contextmanager
def live(console: Console, picture: Callable[[int, int], RenderableType]) -> Iterator[Callable[[], None]]:
    """Draws picture(width, height) in a thread of its own; gives the function that says that there is news.

    The terminal is as it was afterwards, whatever ends the block, and what others print meanwhile stands above the picture.
    """
    news, over = threading.Event(), threading.Event()
    screen = Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty(), redirect_stderr=True
    )
    size = console.size
    screen.update(picture(*size))

    def draw() -> None:
        nonlocal size
        if console.size.width < size.width:  # lines drawn before are wrapped now, so nobody knows how many there are
            console.control(Control(ControlType.CLEAR, ControlType.HOME))
        size = console.size
        screen.update(picture(*size), refresh=True)

    def keep_drawing() -> None:
        idle = 0.0
        while not over.wait(TICK_S):
            idle += TICK_S
            if news.is_set() or idle >= STILL_S or console.size != size:
                news.clear()
                idle = 0.0
                draw()

    thread = threading.Thread(target=keep_drawing, name="live view", daemon=True)
    with screen:
        draw()
        thread.start()
        try:
            yield news.set
        finally:
            over.set()
            thread.join()
