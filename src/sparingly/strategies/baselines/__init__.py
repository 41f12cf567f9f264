"""Strategies to compare with: always, never, at random, by uncertainty, under a budget, explore then commit."""
