"""Compiled functions inside other programs' graphs."""
