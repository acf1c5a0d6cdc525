"""`span`: a piece of a source by its words or its offsets."""

from __future__ import annotations

from tests.fair import Case

SOURCE = (
    "A heap is a tree-based structure. The “heap property” says that a parent’s key is at least\n"
    "as large as its children's keys. Insertion takes O(log n) time; building takes O(n) time."
)


def at(*pieces: str) -> list[list[int]]:
    """The offsets of the first place of each piece."""
    return [[SOURCE.index(piece), SOURCE.index(piece) + len(piece)] for piece in pieces]


START, END = at("heap property")[0]

CASES = [
    Case(
        verifier="span",
        params={"source": SOURCE, "spans": at("a parent’s key is at least\nas large as its children's keys")},
        reference="a parent’s key is at least as large as its children's keys",
        right=(
            "a parent's key is at least as large as its children's keys",
            "a parent’s key is at least\nas large as its children’s keys.",
            "“A parent’s key is at least as large as its children's keys”",
            "**a parent's key  is at least as large as its children's keys**",
        ),
        wrong=(
            "a parent's key is at least as large",
            "as large as its children's keys",
            "a parent's key is larger than its children's keys",
            "says that a parent's key is at least as large as its children's keys",
            "a parents key is at least as large as its childrens keys",
            SOURCE,
        ),
    ),
    Case(
        verifier="span",
        params={"source": SOURCE, "spans": at("O(log n)", "O(log n) time")},
        reference="O(log n)",
        right=("O(log n) time", "`O(log n)`", "$O(log n)$", "o(log n)"),
        wrong=("O(n)", "O(n) time", "log n", "O(log n) or O(n)", "O(log n) time; building takes O(n) time"),
    ),
    Case(
        verifier="span",
        params={"source": SOURCE, "spans": [[START, END]], "by": "offsets"},
        reference=f"[{START}, {END}]",
        right=(
            f"{START}-{END}",
            f"{START}–{END}",
            f"({START}, {END})",
            f"[{START},{END})",
            f"{START}:{END}",
            f"{START}..{END}",
            f"{START} to {END}",
            f'{{"start": {START}, "end": {END}}}',
            f"```json\n[{START}, {END}]\n```",
        ),
        wrong=(
            f"[{START}, {END - 1}]",
            f"[{START - 1}, {END}]",
            f"[{END}, {START}]",
            f"[0, {len(SOURCE)}]",
            f"[{START}, {END}, {END}]",
            f"[{START}]",
            f"[{START}, 99999]",
            f"[{START}, {END}] or [0, 3]",
            "heap property",
            f'{{"start": {START}, "end": {END}, "also": 3}}',
        ),
    ),
    Case(
        verifier="span",
        params={"source": SOURCE, "spans": at("heap property"), "partial": "f1", "least": 0.6},
        reference="heap property",
        right=("Heap property", '"heap property"'),
        wrong=("property heap", "says that", SOURCE, "A heap is a tree-based structure.", "binary heap property"),
    ),
]
