"""Runs of strategies on streams: what is run, where, and the records that are kept."""
