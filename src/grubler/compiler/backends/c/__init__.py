"""A tape as C, or as an object file."""
