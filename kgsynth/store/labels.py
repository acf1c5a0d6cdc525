"""Labels that say of a concept in Neo4j what the Browser can show: its level, whether it is atomic, its domain.

The Browser's style sheets (GraSS) choose a colour or a size by label and cannot look at a property, so what is to be
seen must be a label. `graph_schemas/README.md` says how the store keeps them.
"""

from __future__ import annotations

import re

DEEPEST = 5  # the label Level5 means level 5 or deeper
ATOMIC = "Atomic"
DOMAIN = "Domain_"


def concept_labels(*, level: int, atomic: bool | None, domain: str) -> list[str]:
    """The labels of a concept beside :Concept.

    >>> concept_labels(level=7, atomic=True, domain="text processing")
    ['Level5', 'Atomic', 'Domain_text_processing']
    """
    return [f"Level{min(level, DEEPEST)}", *([ATOMIC] if atomic else []), domain_label(domain)]


def domain_label(domain: str) -> str:
    """A label without blanks or punctuation, which a style sheet could not name."""
    return DOMAIN + (re.sub(r"\W+", "_", domain.casefold()).strip("_") or "none")
