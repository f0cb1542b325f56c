"""A tape as LLVM IR, for the CPU and for GPUs."""
