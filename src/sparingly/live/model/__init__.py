"""Models to take away: what an agent has learned, in one file that only predicts."""
