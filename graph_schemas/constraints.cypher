// What the Neo4j store makes when it opens a database. Only needed by hand to prepare a database for other tools:
//   cypher-shell -f graph_schemas/constraints.cypher

CREATE CONSTRAINT concept_id IF NOT EXISTS FOR (c:Concept) REQUIRE c.id IS UNIQUE;
CREATE CONSTRAINT name_key IF NOT EXISTS FOR (n:Name) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT source_id IF NOT EXISTS FOR (s:Source) REQUIRE s.id IS UNIQUE;
CREATE CONSTRAINT decision_id IF NOT EXISTS FOR (d:Decision) REQUIRE d.id IS UNIQUE;
CREATE CONSTRAINT frontier_concept IF NOT EXISTS FOR (f:Frontier) REQUIRE f.concept IS UNIQUE;
CREATE CONSTRAINT merged_fold IF NOT EXISTS FOR (m:Merged) REQUIRE m.fold IS UNIQUE;
CREATE CONSTRAINT guard_id IF NOT EXISTS FOR (g:Guard) REQUIRE g.id IS UNIQUE;

CREATE INDEX concept_version IF NOT EXISTS FOR (c:Concept) ON (c.version);
CREATE INDEX concept_name IF NOT EXISTS FOR (c:Concept) ON (c.name);
CREATE INDEX concept_domain IF NOT EXISTS FOR (c:Concept) ON (c.domain);
CREATE INDEX narrower_version IF NOT EXISTS FOR ()-[r:NARROWER]-() ON (r.version);
CREATE INDEX frontier_state IF NOT EXISTS FOR (f:Frontier) ON (f.state);
CREATE INDEX merged_keep IF NOT EXISTS FOR (m:Merged) ON (m.keep);
