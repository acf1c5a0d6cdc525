"""A strict subset of Python, translated to JavaScript and to C so that people can read it.

    ports = port(source, "bisect_left", (LIST(INT), INT), "javascript")

Integers, floats, truth values, text, lists and tuples, loops and arithmetic; everything else is refused (`CannotPort`), and
nothing is believed: what comes out is only used where it agrees with the Python original on many calls (`types/translate.py`).
`plain.py` takes out what the other languages do not have, `typing.py` finds the types of all expressions, `writer.py` writes
what the two languages share, `javascript.py` and `c.py` the rest.
"""

from kgsynth.synthesize.porting.kinds import BOOL, FLOAT, INT, STR, CannotPort, Kind, in_words, kind_of
from kgsynth.synthesize.porting.plain import is_portable, plain, renamed
from kgsynth.synthesize.porting.port import Port, port

__all__ = [
    "BOOL",
    "FLOAT",
    "INT",
    "STR",
    "CannotPort",
    "Kind",
    "Port",
    "in_words",
    "is_portable",
    "kind_of",
    "plain",
    "port",
    "renamed",
]
