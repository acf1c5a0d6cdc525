// Queries for Neo4j Browser: paste one, or save it as a favourite. Parameters: `:param name => 'merge sort'`.

// The top of the graph: roots and what is right below them
MATCH (root:Concept) WHERE NOT (:Concept)-[:NARROWER]->(root)
MATCH (root)-[r:NARROWER]->(child:Concept)
RETURN root, r, child LIMIT 300;

// One concept: what is above and below, and the pages it was found in
MATCH (c:Concept {name: $name})
OPTIONAL MATCH up = (:Concept)-[:NARROWER]->(c)
OPTIONAL MATCH down = (c)-[:NARROWER]->(:Concept)
OPTIONAL MATCH page = (c)-[:FOUND_IN]->(:Source)
RETURN c, up, down, page LIMIT 100;

// A shortest way from a coarse concept to a fine one
MATCH (a:Concept {name: $from}), (b:Concept {name: $to})
MATCH way = shortestPath((a)-[:NARROWER*]->(b))
RETURN way;

// Concepts that several branches share
MATCH (p:Concept)-[r:NARROWER]->(c:Concept)
WITH c, count(r) AS parents WHERE parents > 1
RETURN c.name AS concept, c.domain AS domain, parents ORDER BY parents DESC, concept LIMIT 50;

// Why it is there: the quoted spans of an edge, with page and licence
MATCH (p:Concept)-[r:NARROWER]->(c:Concept {name: $name})
OPTIONAL MATCH (c)-[:FOUND_IN]->(s:Source) WHERE r.spans CONTAINS s.id
RETURN p.name AS parent, r.spans AS spans, s.url AS page, s.licence AS licence;

// Edges without a source
MATCH (p:Concept)-[r:NARROWER]->(c:Concept) WHERE r.spans = '[]'
RETURN p.name AS parent, c.name AS child LIMIT 100;

// What waits to be researched
MATCH (f:Frontier) MATCH (c:Concept {id: f.concept})
RETURN f.state AS state, f.depth AS depth, c.name AS concept ORDER BY f.seq LIMIT 50;

// Concepts and edges by domain
MATCH (c:Concept) OPTIONAL MATCH (c)-[r:NARROWER]->(:Concept)
RETURN c.domain AS domain, count(DISTINCT c) AS concepts, count(r) AS edges ORDER BY concepts DESC;
