"""Speed, side by side with the peers in one run, as ratios: `make bench`."""
