"""Kernels for the CPU: batches, single states, calls from Python."""
