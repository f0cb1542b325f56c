"""A model in its fewest numbers."""
