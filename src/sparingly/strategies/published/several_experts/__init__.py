"""Published algorithms that learn from, or choose among, experts who may be wrong."""
