"""Is this concept in the graph already? A cascade of rules, each cheaper and surer than the next.

    key         the same normalised name, or an alias of either
    definition  the same definition, whole or in part, under names that do not exclude each other
    acronym     "BST" <-> "binary search tree", "LRU cache" <-> "least recently used cache"
    lexical     spelling variants: "hash map" / "hashmap", "-ise" / "-ize", "X of Y" / "Y X", a typing error
    vector      name and definition mean the same: nearest neighbours by embeddings, of names and of definitions

No one threshold on embeddings separates synonyms from siblings ("left join" / "right join": 0.95, "hash table" / "hash
map": 0.88), so names and the words of definitions are compared as well: code matches by key only, names with other digits or
opposite words never, and what only one definition says tells siblings apart. What stays uncertain is returned in
`needs_judge`; unless someone judges it, it is new, because a duplicate can still be merged later and a wrong match not undone.

The same name with a clearly other meaning becomes a new concept with a `sense`.

    names.py        what names alone say
    definitions.py  definitions compared by their words
    known.py        the concepts of a graph, indexed: names, definitions, vectors
    cascade.py      the rules, in their order
    audit.py        the closest pairs that are left in a graph
"""

from kgsynth.dedup.cascade import Alignment, Dedup, DedupConfig

__all__ = ["Alignment", "Dedup", "DedupConfig"]
