"""Passes over a tape: fewer operations, and an order that suits the processor."""
