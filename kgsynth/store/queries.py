"""Every Cypher statement this package runs, by name. Parameters only: no value is ever put into a statement's text.

The model, as the Browser shows it:

    (:Concept)-[:NARROWER {spans}]->(:Concept)     coarse -> fine, the spans that justify it as a JSON list
    (:Concept)-[:FOUND_IN]->(:Source)              the pages these spans come from
    (:Concept)-[:CALLED]->(:Name)                  every normalised spelling
    (:Decision), (:Frontier), (:Merged), (:Guard)  records, the work queue, redirects of folded ids, the lock and counters

`n` (and a Frontier's `seq`) number things in the order of insertion; `version` is the change that last altered them.
Needs Neo4j 5.23 or later (scoped CALL).
"""

from __future__ import annotations

CONSTRAINTS = (
    "CREATE CONSTRAINT concept_id IF NOT EXISTS FOR (c:Concept) REQUIRE c.id IS UNIQUE",
    "CREATE CONSTRAINT name_key IF NOT EXISTS FOR (n:Name) REQUIRE n.key IS UNIQUE",
    "CREATE CONSTRAINT source_id IF NOT EXISTS FOR (s:Source) REQUIRE s.id IS UNIQUE",
    "CREATE CONSTRAINT decision_id IF NOT EXISTS FOR (d:Decision) REQUIRE d.id IS UNIQUE",
    "CREATE CONSTRAINT frontier_concept IF NOT EXISTS FOR (f:Frontier) REQUIRE f.concept IS UNIQUE",
    "CREATE CONSTRAINT merged_fold IF NOT EXISTS FOR (m:Merged) REQUIRE m.fold IS UNIQUE",
    "CREATE CONSTRAINT guard_id IF NOT EXISTS FOR (g:Guard) REQUIRE g.id IS UNIQUE",
)

INDEXES = (
    "CREATE INDEX concept_version IF NOT EXISTS FOR (c:Concept) ON (c.version)",
    "CREATE INDEX concept_name IF NOT EXISTS FOR (c:Concept) ON (c.name)",
    "CREATE INDEX concept_domain IF NOT EXISTS FOR (c:Concept) ON (c.domain)",
    "CREATE INDEX narrower_version IF NOT EXISTS FOR ()-[r:NARROWER]-() ON (r.version)",
    "CREATE INDEX frontier_state IF NOT EXISTS FOR (f:Frontier) ON (f.state)",
    "CREATE INDEX merged_keep IF NOT EXISTS FOR (m:Merged) ON (m.keep)",
)

# the guard: its write lock, taken first in every transaction that writes, makes writers take turns

CREATE_GUARD = "MERGE (g:Guard {id: 'graph'}) ON CREATE SET g.n = 0, g.merges = 0, g.changes = 0"

LOCK = """
MATCH (g:Guard {id: 'graph'})
SET g.locked_at = timestamp()
RETURN g.n AS n, g.merges AS merges, g.changes AS changes"""

COUNT = "MATCH (g:Guard {id: 'graph'}) SET g.n = $n, g.merges = $merges, g.changes = $changes"

VERSION = "MATCH (g:Guard {id: 'graph'}) RETURN g.merges AS merges, g.changes AS changes"

# reading

CONCEPTS = "MATCH (c:Concept) WHERE c.version > $since RETURN c ORDER BY c.n"

CONCEPTS_BY_ID = "UNWIND $ids AS id MATCH (c:Concept {id: id}) RETURN c"

KEPT = "UNWIND $ids AS id MATCH (m:Merged {fold: id}) RETURN id, m.keep AS keep"

CONCEPT_COUNT = "MATCH (c:Concept) RETURN count(c) AS n"

FIND = "MATCH (:Name {key: $key})<-[:CALLED]-(c:Concept) RETURN c ORDER BY c.n"

EDGES = """
MATCH (p:Concept)-[r:NARROWER]->(c:Concept) WHERE r.version > $since
RETURN p.id AS parent, c.id AS child, r.spans AS spans ORDER BY r.n"""

EDGES_BETWEEN = """
UNWIND $pairs AS pair
MATCH (p:Concept {id: pair.parent})-[r:NARROWER]->(c:Concept {id: pair.child})
RETURN p.id AS parent, c.id AS child, r.spans AS spans"""

EDGES_OF = """
MATCH (p:Concept)-[r:NARROWER]->(c:Concept) WHERE p.id = $id OR c.id = $id
RETURN p.id AS parent, c.id AS child, r.spans AS spans ORDER BY r.n"""

SOURCES = "MATCH (s:Source) RETURN s ORDER BY s.n"

SOURCES_BY_ID = "UNWIND $ids AS id MATCH (s:Source {id: id}) WITH DISTINCT s RETURN s ORDER BY s.n"

DECISIONS = "MATCH (d:Decision) RETURN d ORDER BY d.n"

# writing

ADD_SOURCES = "UNWIND $rows AS row MERGE (s:Source {id: row.id}) ON CREATE SET s += row"

WRITE_CONCEPTS = """
UNWIND $rows AS row
MERGE (c:Concept {id: row.id}) ON CREATE SET c.n = row.n
SET c += row.fields
WITH c, row
UNWIND row.keys AS key
MERGE (name:Name {key: key})
MERGE (c)-[:CALLED]->(name)"""

# Rows one after the other: each sees the edges that the rows before it made. Returns the ids that were linked.
LINK = """
UNWIND $rows AS row
MATCH (p:Concept {id: row.parent}), (c:Concept {id: row.child})
WITH row, p, c ORDER BY row.n
CALL (row, p, c) {
    OPTIONAL MATCH way = shortestPath((c)-[:NARROWER*]->(p))
    WITH row, p, c, way WHERE way IS NULL
    CREATE (p)-[:NARROWER {id: row.id, n: row.n, version: row.version, spans: row.spans}]->(c)
    RETURN row.id AS id
}
RETURN id"""

ADD_SPANS = """
UNWIND $rows AS row
MATCH (:Concept {id: row.parent})-[r:NARROWER]->(:Concept {id: row.child})
SET r.spans = row.spans, r.version = row.version"""

FOUND_IN = """
UNWIND $rows AS row
MATCH (c:Concept {id: row.concept}), (s:Source {id: row.source})
MERGE (c)-[:FOUND_IN]->(s)"""

ADD_DECISIONS = "UNWIND $rows AS row MERGE (d:Decision {id: row.id}) ON CREATE SET d += row"

# merging two concepts

WAY_BETWEEN = """
MATCH (goal:Concept {id: $goal}), (:Concept {id: $start})-[:NARROWER]->(next:Concept)
WHERE next.id <> $goal
MATCH shortestPath((next)-[:NARROWER*]->(goal))
RETURN true AS found LIMIT 1"""

UNLINK = "MATCH (:Concept {id: $id})-[r:NARROWER]-() DELETE r"

MOVE_SOURCES = """
MATCH (:Concept {id: $fold})-[:FOUND_IN]->(s:Source), (keep:Concept {id: $keep})
MERGE (keep)-[:FOUND_IN]->(s)"""

REMOVE = "MATCH (c:Concept {id: $id}) DETACH DELETE c"

REDIRECT = """
MERGE (m:Merged {fold: $fold}) SET m.keep = $keep
WITH m
MATCH (older:Merged {keep: $fold}) SET older.keep = $keep"""

MOVE_FRONTIER = """
MATCH (f:Frontier {concept: $fold})
OPTIONAL MATCH (kept:Frontier {concept: $keep})
FOREACH (_ IN CASE WHEN kept IS NULL THEN [1] ELSE [] END | SET f.concept = $keep)
FOREACH (_ IN CASE WHEN kept IS NULL THEN [] ELSE [1] END | DELETE f)"""

# the frontier

ENQUEUE = """
UNWIND $rows AS row
MATCH (:Concept {id: row.concept})
MERGE (f:Frontier {concept: row.concept})
ON CREATE SET f += row, f.state = 'waiting', f.owner = '', f.lease_until = 0.0"""

FINISH = "UNWIND $ids AS id MATCH (f:Frontier {concept: id}) SET f.state = 'done', f.owner = ''"

LEASE = """
MATCH (f:Frontier) WHERE f.state = 'waiting' OR (f.state = 'leased' AND f.lease_until <= $now)
WITH f ORDER BY f.seq LIMIT $n
SET f.attempts = f.attempts + CASE f.state WHEN 'leased' THEN 1 ELSE 0 END
SET f.state = 'leased', f.owner = $owner, f.lease_until = $until
RETURN f.concept AS concept, f.depth AS depth, f.seq AS seq, f.attempts AS attempts ORDER BY seq"""

RELEASE = """
MATCH (f:Frontier {state: 'leased', owner: $owner})
SET f.state = 'waiting', f.owner = '', f.lease_until = 0.0, f.attempts = f.attempts + 1
RETURN count(f) AS n"""

FRONTIER = """
MATCH (f:Frontier)
RETURN CASE WHEN f.state = 'leased' AND f.lease_until <= $now THEN 'waiting' ELSE f.state END AS state, count(f) AS n"""
