"""The life cycle of a ticket: what is kept of it, its states, the leases of its question, tickets that are held."""
