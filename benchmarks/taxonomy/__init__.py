"""A taxonomy as the truth that a grown graph is measured against: see `benchmarks/grow_taxonomy.py`.

truth.py    the taxonomy itself          tsv.py      reading and writing it      sources.py  EDAM, WordNet, made-up ones
noise.py    what a model gets wrong      names.py    which true concept a name means
oracle.py   answers to the agents' questions         pages.py    the pages, and searching them
server.py   both over HTTP, in a process of its own
growth.py   the real loop against those servers      score.py    the graph against the truth      tables.py  for a person
"""
