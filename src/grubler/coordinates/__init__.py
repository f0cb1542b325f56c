"""How a cluster moves: independent coordinates, closed loops, ranks, limits."""
