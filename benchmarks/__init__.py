"""Speed, side by side with the peers in one run, as ratios. `python -m benchmarks`, or `make bench`."""
