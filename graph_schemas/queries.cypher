// Saved queries for Neo4j Browser. Each begins with its question and answers it as it stands. Where a name is '', put a
// concept's name to ask about that one. `kgsynth neo4j up` makes of them a guide and a zip for the Browser's favourites.

// What does the top of the graph look like?
MATCH (root:Concept:Level0)
CALL (root) { MATCH way = (root)-[:NARROWER*1..2]->(:Concept) RETURN way LIMIT 30 }
RETURN way LIMIT 300;

// Where did this concept come from?
WITH '' AS name
MATCH (c:Concept) WHERE name = '' OR c.name = name
WITH c ORDER BY COUNT { (c)-[:FOUND_IN]->() } DESC, c.n LIMIT 1
OPTIONAL MATCH above = (:Concept)-[:NARROWER]->(c)
OPTIONAL MATCH page = (c)-[:FOUND_IN]->(:Source)
RETURN c, above, page LIMIT 100;

// Which sentences justify this concept, and under which licence?
WITH '' AS name
MATCH (c:Concept) WHERE name = '' OR c.name = name
WITH c ORDER BY COUNT { (c)-[:FOUND_IN]->() } DESC, c.n LIMIT 1
MATCH (p:Concept)-[r:NARROWER]->(c)
OPTIONAL MATCH (c)-[:FOUND_IN]->(s:Source) WHERE s.id IN r.sources
RETURN p.name AS parent, c.name AS concept, s.title AS page, s.url AS url, s.licence AS licence, r.spans AS quotes
LIMIT 100;

// Which branches are thin?
MATCH (b:Concept) WHERE b:Level0 OR b:Level1
WITH b ORDER BY COUNT { (b)-[:NARROWER]->() }, b.n LIMIT 100
CALL (b) {
  MATCH (b)-[:NARROWER*0..8]->(d:Concept)
  WITH DISTINCT d
  OPTIONAL MATCH (d)<-[:TESTS]-(t:Task)
  RETURN count(DISTINCT d) - 1 AS concepts, count(DISTINCT CASE WHEN d.atomic THEN d END) AS atomic,
         count(DISTINCT t) AS tasks
}
RETURN b.name AS branch, b.domain AS domain, b.level AS level, concepts, atomic, tasks
ORDER BY concepts, tasks, branch LIMIT 50;

// Which tasks test this concept, or one below it?
WITH '' AS name
MATCH (c:Concept) WHERE name = '' OR c.name = name
WITH c ORDER BY COUNT { (c)<-[:TESTS]-() } DESC, c.n LIMIT 1
MATCH down = (c)-[:NARROWER*0..4]->(:Concept)<-[:TESTS]-(:Task)
RETURN down LIMIT 100;

// What do solved tasks share, and what failed ones?
MATCH (t:Task)-[:TESTS]->(c:Concept) WHERE t.pass_rate IS NOT NULL
RETURN c.name AS concept, c.domain AS domain, count(t) AS tasks,
       count(CASE WHEN t.pass_rate >= 0.5 THEN 1 END) AS solved,
       count(CASE WHEN t.pass_rate < 0.5 THEN 1 END) AS failed,
       round(avg(t.pass_rate), 3) AS pass_rate, collect(DISTINCT t.type)[..5] AS types
ORDER BY abs(solved - failed) DESC, tasks DESC, concept LIMIT 50;

// How high is the pass rate of each branch?
MATCH (b:Concept) WHERE b:Level0 OR b:Level1
WITH b ORDER BY COUNT { (b)-[:NARROWER]->() } DESC, b.n LIMIT 50
MATCH (b)-[:NARROWER*0..8]->(d:Concept)
WITH DISTINCT b, d
MATCH (d)<-[:TESTS]-(t:Task)
WITH DISTINCT b, t
RETURN b.name AS branch, b.level AS level, count(t) AS tasks, count(t.pass_rate) AS tried,
       round(avg(t.pass_rate), 3) AS pass_rate
ORDER BY pass_rate, tasks DESC, branch LIMIT 50;

// Which concepts do several branches share?
MATCH (p:Concept)-[r:NARROWER]->(c:Concept)
WITH c, count(r) AS parents WHERE parents > 1
ORDER BY parents DESC, c.n LIMIT 25
MATCH way = (:Concept)-[:NARROWER]->(c)
RETURN way;

// Which edges have no source?
MATCH (p:Concept)-[r:NARROWER]->(c:Concept) WHERE r.spans = '[]'
RETURN p.name AS parent, c.name AS child, c.domain AS domain ORDER BY r.n LIMIT 100;

// What waits to be researched?
MATCH (f:Frontier) WHERE f.state <> 'done'
MATCH (c:Concept {id: f.concept})
RETURN f.state AS state, f.depth AS depth, f.attempts AS attempts, c.name AS concept, c.domain AS domain
ORDER BY f.seq LIMIT 50;

// What was merged, and why?
MATCH (m:Merged) MATCH (keep:Concept {id: m.keep})
OPTIONAL MATCH (d:Decision {kind: 'merge'}) WHERE d.subject = m.fold OR d.evidence CONTAINS m.fold
RETURN m.fold AS folded, keep.name AS into, d.outcome AS outcome, d.reason AS why, d.evidence AS evidence
ORDER BY m.n DESC LIMIT 50;

// What changed in the last operations?
MATCH (o:Operation)
WITH o ORDER BY o.op DESC LIMIT 20
OPTIONAL MATCH (c:Concept) WHERE c.id IN o.concepts
RETURN o.op AS operation, datetime({epochMillis: toInteger(o.at * 1000)}) AS at, o.kind AS kind, o.note AS note,
       o.undoes AS undoes, collect(c.name)[..10] AS concepts
ORDER BY operation DESC;

// Which concepts are nearest in meaning?
WITH '' AS name
MATCH (c:Concept) WHERE c.embedding IS NOT NULL AND (name = '' OR c.name = name)
WITH c ORDER BY c.level, c.n LIMIT 1
CALL db.index.vector.queryNodes('concept_embedding', 11, c.embedding) YIELD node, score
WHERE node <> c
RETURN c.name AS concept, node.name AS neighbour, node.domain AS domain, round(score, 4) AS score ORDER BY score DESC;

// Which concepts may be the same?
MATCH (c:Concept) WHERE c.embedding IS NOT NULL
WITH c ORDER BY c.n DESC LIMIT 500
CALL db.index.vector.queryNodes('concept_embedding', 4, c.embedding) YIELD node, score
WHERE node.id < c.id AND score > 0.9
RETURN c.name AS concept, node.name AS other, round(score, 4) AS score, c.definition AS meaning, node.definition AS others
ORDER BY score DESC LIMIT 50;

// Which names mean more than one concept?
MATCH (a:Concept)-[:CALLED]->(n:Name)<-[:CALLED]-(b:Concept) WHERE a.n < b.n
RETURN n.key AS name, a.name AS one, a.sense AS sense, b.name AS other, b.sense AS its_sense ORDER BY name LIMIT 100;

// Under which licences are the sources of a branch?
WITH '' AS name
MATCH (c:Concept) WHERE (name = '' AND c:Level0) OR c.name = name
WITH c ORDER BY c.n LIMIT 20
MATCH (c)-[:NARROWER*0..8]->(d:Concept)
WITH DISTINCT c, d
MATCH (d)-[:FOUND_IN]->(s:Source)
RETURN c.name AS branch, s.licence AS licence, count(DISTINCT s) AS pages, count(DISTINCT d) AS concepts
ORDER BY branch, concepts DESC LIMIT 100;

// How are two concepts related?
WITH '' AS one, '' AS other
MATCH (a:Concept) WHERE one = '' OR a.name = one
WITH other, a ORDER BY a.level, a.n LIMIT 1
MATCH (b:Concept) WHERE b <> a AND (other = '' OR b.name = other)
WITH a, b ORDER BY b.level DESC, b.n LIMIT 1
MATCH way = shortestPath((a)-[:NARROWER*..20]-(b))
RETURN way;

// How large is each domain?
MATCH (c:Concept) OPTIONAL MATCH (c)-[r:NARROWER]->(:Concept)
RETURN c.domain AS domain, count(DISTINCT c) AS concepts, count(r) AS edges,
       count(DISTINCT CASE WHEN c.atomic THEN c END) AS atomic, max(c.level) AS deepest ORDER BY concepts DESC;
