"""From a NumPy function to a tape."""
