"""The overview pages of the built-in corpus: the library and the language by subject, in our own words (Apache-2.0).

`chapters.txt` is also the list of modules the corpus documents: nothing that is not named there is ever imported.
Entries whose target the running Python does not have are left out of the pages. The notation, line by line:

    # slug | Title          a chapter; the lines up to the first group are its introduction
    ## Title                a group inside the chapter; the line after it says what the group is about
    target [= term] :: text an entry; target is a dotted name, topic/<name> or chapter/<slug>; term defaults to the target
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

LICENCE = "Apache-2.0"


@dataclass(kw_only=True)
class Entry:
    target: str
    term: str
    text: str


@dataclass(kw_only=True)
class Group:
    title: str
    text: str = ""
    entries: list[Entry] = field(default_factory=list)


@dataclass(kw_only=True)
class Chapter:
    slug: str
    title: str
    text: str = ""
    groups: list[Group] = field(default_factory=list)


def read_chapters() -> list[Chapter]:
    """The chapters of `chapters.txt`, freshly parsed."""
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    chapters: list[Chapter] = []
    for line in filter(None, map(str.strip, lines)):
        if line.startswith("## "):
            chapters[-1].groups.append(Group(title=line[3:]))
        elif line.startswith("# "):
            slug, title = line[2:].split(" | ")
            chapters.append(Chapter(slug=slug, title=title))
        elif " :: " in line:
            left, text = line.split(" :: ", 1)
            target, _, term = left.partition(" = ")
            chapters[-1].groups[-1].entries.append(Entry(target=target, term=term or target, text=text))
        else:
            place = chapters[-1].groups[-1] if chapters[-1].groups else chapters[-1]
            place.text = f"{place.text} {line}".strip()
    return chapters
