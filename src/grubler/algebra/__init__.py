"""Vectors, matrices and spatial transforms, on numbers and on symbols."""
