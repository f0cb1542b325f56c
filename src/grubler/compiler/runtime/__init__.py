"""Compiled functions: kernels built, cached on disk, and called."""
