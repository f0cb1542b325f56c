"""Machine code from a tape: LLVM IR, the CPU, C, NVIDIA GPUs."""
