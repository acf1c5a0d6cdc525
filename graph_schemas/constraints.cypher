// Constraints and indexes, as the Neo4j store makes them when it opens a database. By hand, for other tools:
//   cypher-shell -f graph_schemas/constraints.cypher
// The vector index is made with the first vectors: `OPTIONS {indexConfig: {`vector.dimensions`: 384,
// `vector.similarity_function`: 'cosine'}}` for CREATE VECTOR INDEX concept_embedding FOR (c:Concept) ON (c.embedding).

CREATE CONSTRAINT concept_id IF NOT EXISTS FOR (x:Concept) REQUIRE x.id IS UNIQUE;
CREATE CONSTRAINT name_key IF NOT EXISTS FOR (x:Name) REQUIRE x.key IS UNIQUE;
CREATE CONSTRAINT source_id IF NOT EXISTS FOR (x:Source) REQUIRE x.id IS UNIQUE;
CREATE CONSTRAINT decision_id IF NOT EXISTS FOR (x:Decision) REQUIRE x.id IS UNIQUE;
CREATE CONSTRAINT frontier_concept IF NOT EXISTS FOR (x:Frontier) REQUIRE x.concept IS UNIQUE;
CREATE CONSTRAINT merged_fold IF NOT EXISTS FOR (x:Merged) REQUIRE x.fold IS UNIQUE;
CREATE CONSTRAINT task_id IF NOT EXISTS FOR (x:Task) REQUIRE x.id IS UNIQUE;
CREATE CONSTRAINT operation_op IF NOT EXISTS FOR (x:Operation) REQUIRE x.op IS UNIQUE;
CREATE CONSTRAINT guard_id IF NOT EXISTS FOR (x:Guard) REQUIRE x.id IS UNIQUE;

CREATE INDEX concept_n IF NOT EXISTS FOR (x:Concept) ON (x.n);
CREATE INDEX source_n IF NOT EXISTS FOR (x:Source) ON (x.n);
CREATE INDEX merged_n IF NOT EXISTS FOR (x:Merged) ON (x.n);
CREATE INDEX merged_keep IF NOT EXISTS FOR (x:Merged) ON (x.keep);
CREATE INDEX decision_n IF NOT EXISTS FOR (x:Decision) ON (x.n);
CREATE INDEX frontier_seq IF NOT EXISTS FOR (x:Frontier) ON (x.seq);
CREATE INDEX frontier_state IF NOT EXISTS FOR (x:Frontier) ON (x.state, x.seq);
CREATE INDEX task_n IF NOT EXISTS FOR (x:Task) ON (x.n);
CREATE INDEX operation_token IF NOT EXISTS FOR (x:Operation) ON (x.token);
CREATE INDEX narrower_n IF NOT EXISTS FOR ()-[x:NARROWER]-() ON (x.n);
CREATE TEXT INDEX concept_name IF NOT EXISTS FOR (x:Concept) ON (x.name);
CREATE TEXT INDEX concept_domain IF NOT EXISTS FOR (x:Concept) ON (x.domain);
