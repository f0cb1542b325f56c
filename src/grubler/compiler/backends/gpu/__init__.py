"""A tape as PTX for NVIDIA GPUs."""
