"""Experts who may be wrong: how reliable each is, and whom to ask next."""
