"""Experts that are called beside the agent: which calls are due, what they brought, and what the agent makes of it."""
