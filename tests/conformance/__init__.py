"""One suite for every store: the same cases against the embedded store and a real Neo4j (marker `neo4j`).

samples.py          concepts, pages and changes to write; what a graph must be; reading it whole
conftest.py         the store under test
test_*.py           by theme; test_random.py compares with `tests/dag_model.py`, test_writers.py with several writers
"""
