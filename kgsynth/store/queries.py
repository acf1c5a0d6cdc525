"""Every Cypher statement this package runs, by name. Parameters only: no value is ever put into a statement's text.

The model, as the Browser shows it:

    (:Concept)-[:NARROWER {spans, sources}]->(:Concept)   coarse -> fine; its quotes as a JSON list, and the ids of their pages
    (:Concept)-[:FOUND_IN]->(:Source)                     the pages that its incoming edges quote
    (:Concept)-[:CALLED]->(:Name {key})                   every normalised spelling
    (:Task)-[:TESTS]->(:Concept)
    (:Decision) (:Frontier) (:Merged) (:Operation)        records, the work queue, redirects of folded ids, the log
    (:Guard)                                              the lock and the counters

`n` (a Frontier's `seq`, an Operation's `op`) numbers things in the order of insertion. Needs Neo4j 5.26 or later (scoped
CALL, dynamic labels). Every lookup says USING INDEX SEEK: a plan made while the graph was empty is kept for a while, and a
planner that expects nothing may read a whole index for each row.
"""

from __future__ import annotations

from collections.abc import Mapping

CONSTRAINTS = {
    name: f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (x:{label}) REQUIRE x.{key} IS UNIQUE"
    for name, label, key in (
        ("concept_id", "Concept", "id"),
        ("name_key", "Name", "key"),
        ("source_id", "Source", "id"),
        ("decision_id", "Decision", "id"),
        ("frontier_concept", "Frontier", "concept"),
        ("merged_fold", "Merged", "fold"),
        ("task_id", "Task", "id"),
        ("operation_op", "Operation", "op"),
        ("guard_id", "Guard", "id"),
    )
}

INDEXES = {
    name: f"CREATE INDEX {name} IF NOT EXISTS FOR (x:{label}) ON ({', '.join(f'x.{key}' for key in keys)})"
    for name, label, *keys in (
        ("concept_n", "Concept", "n"),
        ("source_n", "Source", "n"),
        ("merged_n", "Merged", "n"),
        ("merged_keep", "Merged", "keep"),
        ("decision_n", "Decision", "n"),
        ("frontier_seq", "Frontier", "seq"),
        ("frontier_state", "Frontier", "state", "seq"),
        ("task_n", "Task", "n"),
        ("operation_token", "Operation", "token"),
    )
} | {
    "narrower_n": "CREATE INDEX narrower_n IF NOT EXISTS FOR ()-[x:NARROWER]-() ON (x.n)",
    "concept_name": "CREATE TEXT INDEX concept_name IF NOT EXISTS FOR (x:Concept) ON (x.name)",  # takes longer texts
    "concept_domain": "CREATE TEXT INDEX concept_domain IF NOT EXISTS FOR (x:Concept) ON (x.domain)",
}

SHOW_INDEXES = (
    "SHOW INDEXES YIELD name, state, options RETURN name, state, options.indexConfig['vector.dimensions'] AS dim"
)

AWAIT_INDEXES = "CALL db.awaitIndexes(300)"

VECTOR_INDEX = """
CREATE VECTOR INDEX concept_embedding IF NOT EXISTS FOR (c:Concept) ON (c.embedding) OPTIONS $options"""

DROP_VECTOR_INDEX = "DROP INDEX concept_embedding IF EXISTS"

# the guard: its write lock, taken first by every transaction that writes, makes writers take turns. Setting a property to the
# value it has takes the lock and writes nothing. `loose`: whether tasks may name concepts that are not in the graph, or not yet

GUARD = """
OPTIONAL MATCH (g:Guard {id: 'graph'})
RETURN g IS NOT NULL AS ours, g.format AS format, EXISTS { MATCH (:Concept) } AS concepts"""

CREATE_GUARD = """
MERGE (g:Guard {id: 'graph'}) ON CREATE SET g += {
    graph: $graph, format: $format, lock: true, n: 0, op: 0, concepts: 0, tokens: 0, model: '', dim: 0, copying: '', loose: false}"""

LOCK = "MATCH (g:Guard {id: 'graph'}) SET g.lock = true WITH g RETURN properties(g) AS guard"

STATE = "MATCH (g:Guard {id: 'graph'}) RETURN properties(g) AS guard"

SET_STATE = "MATCH (g:Guard {id: 'graph'}) SET g += $state"

RECOUNT = """
MATCH (c:Concept) WITH count(c) AS concepts
MATCH (g:Guard {id: 'graph'}) SET g += $state, g.concepts = concepts"""

# reading

_CONCEPT = (
    "c {.id, .n, .version, .level, .name, .domain, .definition, .aliases, .keywords, .sense, .atomic, .atomic_reason}"
)

CONCEPT = f"""
OPTIONAL MATCH (m:Merged {{fold: $id}}) USING INDEX SEEK m:Merged(fold)
WITH coalesce(m.keep, $id) AS id MATCH (c:Concept {{id: id}}) USING INDEX SEEK c:Concept(id) RETURN {_CONCEPT} AS row"""

CONCEPTS = f"MATCH (c:Concept) RETURN {_CONCEPT} AS row ORDER BY c.n"

CONCEPTS_BY_ID = f"""
UNWIND $ids AS id MATCH (c:Concept {{id: id}}) USING INDEX SEEK c:Concept(id)
RETURN {_CONCEPT} AS row ORDER BY c.n"""

FIND = f"""
MATCH (name:Name {{key: $key}})<-[:CALLED]-(c:Concept) USING INDEX SEEK name:Name(key)
RETURN {_CONCEPT} AS row ORDER BY c.n"""

SPELLINGS = "MATCH (c:Concept)-[:CALLED]->(name:Name) RETURN coalesce(name.whole, name.key) AS key, c.id AS concept"

LEVELS = "MATCH (c:Concept) RETURN c.id AS id, c.level AS level ORDER BY c.n"

LEVELS_BY_ID = """
UNWIND $ids AS id MATCH (c:Concept {id: id}) USING INDEX SEEK c:Concept(id)
RETURN id, c.level AS level ORDER BY c.n"""

_EDGE = "RETURN p.id AS parent, c.id AS child, r.spans AS spans ORDER BY r.n"

_BETWEEN = """
MATCH (p:Concept {id: pair[0]}) USING INDEX SEEK p:Concept(id)
MATCH (c:Concept {id: pair[1]}) USING INDEX SEEK c:Concept(id)
MATCH (p)-[r:NARROWER]->(c)"""

EDGES = f"MATCH (p:Concept)-[r:NARROWER]->(c:Concept) {_EDGE}"

EDGES_BETWEEN = f"UNWIND $pairs AS pair {_BETWEEN} {_EDGE}"

EDGES_OF = f"""
OPTIONAL MATCH (m:Merged {{fold: $id}}) USING INDEX SEEK m:Merged(fold)
WITH coalesce(m.keep, $id) AS id MATCH (:Concept {{id: id}})-[r:NARROWER]-(:Concept)
WITH DISTINCT r, startNode(r) AS p, endNode(r) AS c {_EDGE}"""

SKELETON_NODES = """
MATCH (c:Concept) RETURN c.n AS n, c.id AS id, c.name AS name, c.domain AS domain, c.level AS level,
    CASE c.atomic WHEN true THEN 1 WHEN false THEN 0 ELSE -1 END AS atomic
ORDER BY c.n"""

SKELETON_EDGES = "MATCH (p:Concept)-[r:NARROWER]->(c:Concept) RETURN p.n AS parent, c.n AS child ORDER BY r.n"

SOURCES = "MATCH (s:Source) RETURN s ORDER BY s.n"

SOURCES_BY_ID = """
UNWIND $ids AS id MATCH (s:Source {id: id}) USING INDEX SEEK s:Source(id) WITH DISTINCT s
RETURN s ORDER BY s.n"""

DECISIONS = "MATCH (d:Decision) RETURN d ORDER BY d.n"

OPERATIONS = """
MATCH (o:Operation) WHERE o.op > $since
RETURN o {n: o.op, .at, .kind, .note, .undoes, .concepts, .edges} AS row ORDER BY o.op LIMIT $limit"""

OPERATION = """
MATCH (o:Operation {op: $op}) USING INDEX SEEK o:Operation(op)
RETURN o {n: o.op, .at, .kind, .note, .undoes, .concepts, .edges} AS row, o.before AS before"""

RESULT = "MATCH (o:Operation {token: $token}) USING INDEX SEEK o:Operation(token) RETURN o.result AS result"

# what a draft reads, each thing by its id: one map, `row`, under a `kind`, so that all can be asked for in one statement.
# The keys come in one map as well: of lists that are parameters themselves the server notes the size, and makes a new plan for
# every combination of sizes, which takes ten times as long as a small commit

READ = {
    "kept": """
        UNWIND $asked.kept AS id MATCH (m:Merged {fold: id}) USING INDEX SEEK m:Merged(fold)
        RETURN 'kept' AS kind, {id: id, keep: m.keep} AS row""",
    "node": f"""
        UNWIND $asked.node AS id MATCH (c:Concept {{id: id}}) USING INDEX SEEK c:Concept(id)
        RETURN 'node' AS kind, {_CONCEPT} AS row""",
    "level": """
        UNWIND $asked.level AS id MATCH (c:Concept {id: id}) USING INDEX SEEK c:Concept(id)
        RETURN 'level' AS kind, {id: id, level: c.level} AS row""",
    "link": f"""
        UNWIND $asked.link AS pair {_BETWEEN}
        RETURN 'link' AS kind, r {{parent: p.id, child: c.id, .n, .version, .spans}} AS row""",
    "children": """
        UNWIND $asked.children AS id MATCH (c:Concept {id: id}) USING INDEX SEEK c:Concept(id)
        MATCH (c)-[r:NARROWER]->(there:Concept)
        WITH id, there, r ORDER BY r.n
        WITH id, collect([there.id, there.level]) AS found
        RETURN 'children' AS kind, {id: id, there: found} AS row""",
    "parents": """
        UNWIND $asked.parents AS id MATCH (c:Concept {id: id}) USING INDEX SEEK c:Concept(id)
        MATCH (c)<-[r:NARROWER]-(there:Concept)
        WITH id, there, r ORDER BY r.n
        WITH id, collect([there.id, there.level]) AS found
        RETURN 'parents' AS kind, {id: id, there: found} AS row""",
    "queued": """
        UNWIND $asked.queued AS id MATCH (f:Frontier {concept: id}) USING INDEX SEEK f:Frontier(concept)
        RETURN 'queued' AS kind, properties(f) AS row""",
    "vector": """
        UNWIND $asked.vector AS id MATCH (c:Concept {id: id}) USING INDEX SEEK c:Concept(id) WHERE c.embedding IS NOT NULL
        RETURN 'vector' AS kind, {id: id, vector: c.embedding} AS row""",
    "source": "UNWIND $asked.source AS id MATCH (:Source {id: id}) RETURN 'source' AS kind, {id: id} AS row",
    "decision": "UNWIND $asked.decision AS id MATCH (:Decision {id: id}) RETURN 'decision' AS kind, {id: id} AS row",
}  # fmt: skip

EXPECTED = "\nUNION ALL\n".join(READ.values())

REDIRECTS = """
UNWIND $fold AS id MATCH (m:Merged {fold: id}) USING INDEX SEEK m:Merged(fold) RETURN m
UNION
UNWIND $keep AS id MATCH (m:Merged {keep: id}) USING INDEX SEEK m:Merged(keep) RETURN m"""

# what a draft writes, in this order: together in one statement, or one part at a time where there is much of it

_LABELLED = """
REMOVE c:$([l IN labels(c) WHERE l = 'Atomic' OR l STARTS WITH 'Level' OR l STARTS WITH 'Domain_'])
SET c:$(row.labels)"""

_FORGET_NAMES = """
UNWIND names AS name
WITH DISTINCT name WHERE NOT EXISTS { (name)<-[:CALLED]-() }
DELETE name"""

_REMOVE_CONCEPT = f"""
OPTIONAL MATCH (c)-[:CALLED]->(name:Name)
WITH c, collect(name) AS names
DETACH DELETE c
WITH names {_FORGET_NAMES}"""

_ADD_NAMES = """
UNWIND row.keys AS spelling
MERGE (name:Name {key: spelling.key}) ON CREATE SET name.whole = spelling.whole
%s (c)-[:CALLED]->(name)"""

WRITE = {
    "sources": "UNWIND $w.sources AS row CREATE (s:Source) SET s = row",
    "cut": f"UNWIND $w.cut AS pair {_BETWEEN} DELETE r",
    "retold": """
        UNWIND $w.retold AS row
        MATCH (t:Task)-[:TESTS]->(:Concept {id: row.fold})
        MATCH (keep:Concept {id: row.keep}) USING INDEX SEEK keep:Concept(id)
        MERGE (t)-[:TESTS]->(keep)""",
    "gone": f"UNWIND $w.gone AS id MATCH (c:Concept {{id: id}}) USING INDEX SEEK c:Concept(id) {_REMOVE_CONCEPT}",
    "created": f"""
        UNWIND $w.created AS row
        CREATE (c:Concept) SET c = row.fields, c:$(row.labels)
        WITH c, row {_ADD_NAMES % "CREATE"}""",
    "altered": f"""
        UNWIND $w.altered AS row
        MATCH (c:Concept {{id: row.fields.id}}) USING INDEX SEEK c:Concept(id)
        SET c += row.fields {_LABELLED}
        WITH c, row
        CALL (c, row) {{
            MATCH (c)-[old:CALLED]->(name:Name) WHERE NOT name.key IN [k IN row.keys | k.key]
            DELETE old
            WITH collect(name) AS names {_FORGET_NAMES}
        }}
        WITH c, row {_ADD_NAMES % "MERGE"}""",
    "levels": """
        UNWIND $w.levels AS row
        MATCH (c:Concept {id: row.id}) USING INDEX SEEK c:Concept(id)
        SET c.level = row.level
        REMOVE c:Level0:Level1:Level2:Level3:Level4:Level5
        SET c:$(row.label)""",
    "edges": """
        UNWIND $w.edges AS row
        MATCH (p:Concept {id: row.parent}) USING INDEX SEEK p:Concept(id)
        MATCH (c:Concept {id: row.child}) USING INDEX SEEK c:Concept(id)
        MERGE (p)-[r:NARROWER]->(c)
        SET r = row.fields""",
    "stale": """
        UNWIND $w.stale AS id
        MATCH (c:Concept {id: id})-[f:FOUND_IN]->(s:Source)
        WHERE NOT EXISTS { MATCH (c)<-[r:NARROWER]-(:Concept) WHERE s.id IN r.sources }
        DELETE f""",
    "pages": """
        UNWIND $w.pages AS row
        MATCH (c:Concept {id: row.child}) USING INDEX SEEK c:Concept(id)
        UNWIND row.sources AS id
        MATCH (s:Source {id: id}) USING INDEX SEEK s:Source(id)
        MERGE (c)-[:FOUND_IN]->(s)""",
    "unmerged": "UNWIND $w.unmerged AS fold MATCH (m:Merged {fold: fold}) USING INDEX SEEK m:Merged(fold) DELETE m",
    "merged": "UNWIND $w.merged AS row CREATE (m:Merged) SET m = row",
    "dequeued": "UNWIND $w.dequeued AS id MATCH (f:Frontier {concept: id}) USING INDEX SEEK f:Frontier(concept) DELETE f",
    "queued": "UNWIND $w.queued AS row CREATE (f:Frontier) SET f = row",
    "vectors": """
        UNWIND $w.vectors AS row MATCH (c:Concept {id: row.id}) USING INDEX SEEK c:Concept(id)
        SET c.embedding = row.vector""",
    "decisions": "UNWIND $w.decisions AS row CREATE (d:Decision) SET d = row",
    "retested": """
        UNWIND $w.retested AS id
        MATCH (c:Concept {id: id}) USING INDEX SEEK c:Concept(id)
        CALL (c) { MATCH (:Task)-[r:TESTS]->(c) DELETE r }
        WITH c
        CALL (c) {
            MATCH (t:Task) WHERE c.id IN t.concepts OR any(i IN t.concepts
            WHERE EXISTS { (:Merged {fold: i, keep: c.id}) })
            CREATE (t)-[:TESTS]->(c)
        }""",
    "operation": "UNWIND $w.operation AS row CREATE (o:Operation) SET o = row",
    "state": "UNWIND $w.state AS row MATCH (g:Guard {id: 'graph'}) SET g += row",
}  # fmt: skip

WRITE_ALL = "\n".join(f"CALL () {{ {part} }}" for part in WRITE.values())

# the frontier

_ITEM = "f.concept AS concept, f.depth AS depth, f.seq AS seq, f.attempts AS attempts, f.token AS token"

_GIVE = f"""
WITH f ORDER BY f.seq LIMIT $n
WITH collect(f) AS found
MATCH (g:Guard {{id: 'graph'}})
WITH g, found, range(0, size(found) - 1) AS places
CALL (g, found, places) {{
    UNWIND places AS place
    WITH g, found[place] AS f, place
    SET f.attempts = f.attempts + CASE f.state WHEN 'leased' THEN 1 ELSE 0 END
    SET f.state = 'leased', f.owner = $owner, f.lease_until = $until, f.lease = $lease, f.token = g.tokens + place + 1
}}
SET g.tokens = g.tokens + size(found)
WITH found UNWIND found AS f
RETURN {_ITEM} ORDER BY seq"""

LEASE = f"""
CALL () {{
    MATCH (f:Frontier) WHERE f.state = 'waiting' AND f.seq >= 0
    RETURN f ORDER BY f.state, f.seq LIMIT $n
    UNION
    MATCH (f:Frontier) WHERE f.state = 'leased' AND f.seq >= 0 AND f.lease_until <= $now
    RETURN f ORDER BY f.state, f.seq LIMIT $n
}} {_GIVE}"""

_OPEN = "f.seq >= 0 AND (f.state = 'waiting' OR f.state = 'leased' AND f.lease_until <= $now)"

LEASE_AMONG = f"""
UNWIND $among AS concept MATCH (f:Frontier {{concept: concept}}) USING INDEX SEEK f:Frontier(concept) WHERE {_OPEN}
WITH DISTINCT f {_GIVE}"""

WAITING = f"MATCH (f:Frontier) WHERE {_OPEN} RETURN {_ITEM} ORDER BY seq"

LEASED = f"MATCH (f:Frontier) WHERE f.state = 'leased' AND f.seq >= 0 AND f.lease = $lease RETURN {_ITEM} ORDER BY seq"

RELEASE = """
MATCH (f:Frontier) WHERE f.state = 'leased' AND f.seq >= 0
  AND (f.owner = $owner OR $workers AND f.owner STARTS WITH $owner + '/')
SET f.state = 'waiting', f.owner = '', f.lease_until = 0.0, f.attempts = f.attempts + 1
RETURN count(f) AS n"""

# An item that is being written may be seen without its properties, as Neo4j reads what is committed, node by node: it will wait.
FRONTIER = """
MATCH (f:Frontier)
WITH CASE WHEN f.state = 'leased' AND f.lease_until <= $now THEN 'waiting' ELSE coalesce(f.state, 'waiting') END AS state
RETURN state, count(*) AS n"""

# vectors and tasks

EMBEDDING_WIDTH = "MATCH (c:Concept) WHERE c.embedding IS NOT NULL RETURN size(c.embedding) AS dim LIMIT 1"

PUT_EMBEDDINGS = """
UNWIND $rows AS row MATCH (c:Concept {id: row.id}) USING INDEX SEEK c:Concept(id)
SET c.embedding = row.vector"""

EMBEDDINGS = """
MATCH (c:Concept) WHERE c.n > $after AND c.embedding IS NOT NULL
RETURN c.n AS n, c.id AS id, c.embedding AS vector ORDER BY c.n LIMIT $limit"""

_BEST = """
WITH c, vector.similarity.cosine(c.embedding, $vector) AS cosine ORDER BY cosine DESC LIMIT $best
RETURN c.id AS id, c.embedding AS vector ORDER BY c.n"""

NEAREST = {  # 5.x has the procedure only; Cypher 25 replaces it by the clause
    "procedure": f"CALL db.index.vector.queryNodes('concept_embedding', $k, $vector) YIELD node AS c {_BEST}",
    "clause": f"CYPHER 25 MATCH (c:Concept) SEARCH c IN (VECTOR INDEX concept_embedding FOR $vector LIMIT $k) {_BEST}",
}

TASK_NUMBERS = "UNWIND $ids AS id MATCH (t:Task {id: id}) USING INDEX SEEK t:Task(id) RETURN id, t.n AS n"

UNLINK_TASKS = "UNWIND $ids AS id MATCH (:Task {id: id})-[r:TESTS]->() DELETE r"

LINK_TASKS = """
UNWIND $ids AS id MATCH (t:Task {id: id}) USING INDEX SEEK t:Task(id)
UNWIND t.concepts AS concept
OPTIONAL MATCH (m:Merged {fold: concept}) USING INDEX SEEK m:Merged(fold)
WITH DISTINCT t, coalesce(m.keep, concept) AS concept
OPTIONAL MATCH (c:Concept {id: concept}) USING INDEX SEEK c:Concept(id)
FOREACH (there IN CASE WHEN c IS NULL THEN [] ELSE [c] END | CREATE (t)-[:TESTS]->(there))
RETURN count(*) > count(c) AS loose"""

TASKS = "MATCH (t:Task) RETURN t ORDER BY t.n"

TASKS_OF = """
OPTIONAL MATCH (m:Merged {fold: $id}) USING INDEX SEEK m:Merged(fold)
WITH coalesce(m.keep, $id) AS id MATCH (t:Task)-[:TESTS]->(:Concept {id: id}) RETURN t ORDER BY t.n"""

# raw rows (`rows.py`), by kind: those after a number, those of some numbers; which numbers are taken; insert, replace, remove.
# Numbers are looked up as a list, not one per row

LABELS = {
    "source": ("Source", "n", "x {.n, .id, .url, .title, .text, .licence, .retrieved_at}"),
    "concept": ("Concept", "n", _CONCEPT.replace("c {", "x {", 1)),
    "merged": ("Merged", "n", "x {.n, .fold, .keep}"),
    "decision": ("Decision", "n", "x {.n, .id, .kind, .subject, .outcome, .reason, .evidence}"),
    "frontier": (
        "Frontier", "seq",
        "x {n: x.seq, .concept, .depth, state: CASE x.state WHEN 'done' THEN 'done' ELSE 'waiting' END, .attempts, .token}",
    ),
    "task": (
        "Task", "n",
        "x {.n, .id, .type, .domain, .granularity, .prompt, .concepts, .pass_rate, .attempts, .policy}",
    ),
    "operation": ("Operation", "op", "x {n: x.op, .at, .kind, .note, .undoes, .concepts, .edges, .before}"),
}  # fmt: skip

_EDGE_ROW = "r {.n, parent: p.id, child: c.id, .version, .spans}"
_VECTOR_ROW = "{n: c.n, concept: c.id, vector: c.embedding}"


def _by_kind(node: str, edge: str, embedding: str) -> Mapping[str, str]:
    """One statement for each kind of row; {label}, {number} and {row} are filled in."""
    nodes = {
        kind: node.replace("{label}", label).replace("{number}", number).replace("{row}", row)
        for kind, (label, number, row) in LABELS.items()
    }
    return nodes | {"edge": edge, "embedding": embedding}


EXPORT = _by_kind(
    "MATCH (x:{label}) WHERE x.{number} > $after RETURN {row} AS row ORDER BY x.{number} LIMIT $limit",
    f"""
    MATCH (p:Concept)-[r:NARROWER]->(c:Concept) USING INDEX SEEK r:NARROWER(n) WHERE r.n > $after
    RETURN {_EDGE_ROW} AS row ORDER BY r.n LIMIT $limit""",
    f"""
    MATCH (c:Concept) WHERE c.n > $after AND c.embedding IS NOT NULL
    RETURN {_VECTOR_ROW} AS row ORDER BY c.n LIMIT $limit""",
)

PICK = _by_kind(
    """
        MATCH (x:{label}) USING INDEX SEEK x:{label}({number}) WHERE x.{number} IN $numbers
        RETURN {row} AS row ORDER BY x.{number}""",
    f"""
        MATCH (p:Concept)-[r:NARROWER]->(c:Concept) USING INDEX SEEK r:NARROWER(n) WHERE r.n IN $numbers
        RETURN {_EDGE_ROW} AS row ORDER BY r.n""",
    f"""
    MATCH (c:Concept) USING INDEX SEEK c:Concept(n) WHERE c.n IN $numbers AND c.embedding IS NOT NULL
    RETURN {_VECTOR_ROW} AS row ORDER BY c.n""",
)

TAKEN = _by_kind(
    "MATCH (x:{label}) USING INDEX SEEK x:{label}({number}) WHERE x.{number} IN $numbers RETURN x.{number} AS n",
    "MATCH ()-[r:NARROWER]->() USING INDEX SEEK r:NARROWER(n) WHERE r.n IN $numbers RETURN r.n AS n",
    "MATCH (c:Concept) USING INDEX SEEK c:Concept(n) WHERE c.n IN $numbers RETURN c.n AS n",
)

INSERT = _by_kind(
    "UNWIND $rows AS row CREATE (x:{label}) SET x = row",
    """
    UNWIND $rows AS row
    MATCH (p:Concept {id: row.parent}) USING INDEX SEEK p:Concept(id)
    MATCH (c:Concept {id: row.child}) USING INDEX SEEK c:Concept(id)
    CREATE (p)-[r:NARROWER]->(c) SET r = row.fields
    RETURN count(*) AS written""",
    "",
)

REPLACE = _by_kind(
    "MATCH (x:{label}) USING INDEX SEEK x:{label}({number}) WHERE x.{number} IN $numbers SET x = $rows[toString(x.{number})]",
    "",
    "MATCH (c:Concept) USING INDEX SEEK c:Concept(n) WHERE c.n IN $numbers SET c.embedding = $rows[toString(c.n)].vector",
)

DROP = _by_kind(
    "MATCH (x:{label}) USING INDEX SEEK x:{label}({number}) WHERE x.{number} IN $numbers DETACH DELETE x",
    """
        MATCH ()-[r:NARROWER]->(c:Concept) USING INDEX SEEK r:NARROWER(n) WHERE r.n IN $numbers
        WITH r, c.id AS child DELETE r RETURN DISTINCT child""",
    "MATCH (c:Concept) USING INDEX SEEK c:Concept(n) WHERE c.n IN $numbers REMOVE c.embedding",
)

DROP_CONCEPTS = f"MATCH (c:Concept) USING INDEX SEEK c:Concept(n) WHERE c.n IN $numbers {_REMOVE_CONCEPT}"

RENAME_CONCEPTS = """
MATCH (c:Concept) USING INDEX SEEK c:Concept(n) WHERE c.n IN $numbers AND c.id <> $ids[toString(c.n)]
SET c.id = $ids[toString(c.n)]"""

# from format 1, which had no levels, no log, no sources on edges

OLD_CONCEPTS = "MATCH (c:Concept) RETURN c.id AS id, c.domain AS domain, c.atomic AS atomic ORDER BY c.n"

OLD_EDGES = """
MATCH (p:Concept)-[r:NARROWER]->(c:Concept)
RETURN r.n AS n, p.id AS parent, c.id AS child, r.spans AS spans ORDER BY r.n"""

UPGRADE_CONCEPTS = f"""
UNWIND $rows AS row MATCH (c:Concept {{id: row.id}}) USING INDEX SEEK c:Concept(id) SET c.level = row.level {_LABELLED}"""

UPGRADE_EDGES = f"""
UNWIND $rows AS row WITH row, [row.parent, row.child] AS pair {_BETWEEN}
SET r.sources = row.sources"""

UPGRADE_FRONTIER = """
MATCH (f:Frontier) SET f.token = 0, f.owner = '', f.lease_until = 0.0,
    f.state = CASE f.state WHEN 'done' THEN 'done' ELSE 'waiting' END"""

UPGRADE_MERGED = """
MATCH (g:Guard {id: 'graph'})
MATCH (m:Merged) WHERE m.n IS NULL WITH g, m ORDER BY m.fold WITH g, collect(m) AS found
SET g.n = g.n + size(found)
WITH g, found UNWIND range(0, size(found) - 1) AS place
WITH g, found[place] AS m, place, size(found) AS more SET m.n = g.n - more + place + 1"""

UPGRADE_GUARD = """
MATCH (c:Concept) WITH count(c) AS concepts
MATCH (g:Guard {id: 'graph'})
SET g += {graph: $graph, format: $format, lock: true, op: g.changes + g.merges, concepts: concepts, tokens: 0, model: '', dim: 0,
    copying: '', loose: false}
REMOVE g.changes, g.merges, g.locked_at"""

OLD_INDEXES = tuple(
    f"DROP INDEX {name} IF EXISTS" for name in ("concept_version", "narrower_version", "concept_name", "concept_domain")
)
