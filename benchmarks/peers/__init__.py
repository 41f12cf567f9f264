"""Other tools on the same streams, in one run: `python -m benchmarks.peers`, or `make bench-peers`."""
