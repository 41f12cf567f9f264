"""The agent: observations in, tickets out, answers whenever people find the time."""
