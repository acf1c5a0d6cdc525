"""Growing the graph: one research agent per concept, many at once, coordinated by the store's frontier."""
