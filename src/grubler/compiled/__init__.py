"""Algorithms bound to a model and handed to the compiler."""
