"""What Neo4j Browser needs, and seeds to grow a graph from. Files only, see README.md."""
