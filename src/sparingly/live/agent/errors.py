"""What can go wrong with an agent: each error is one line that names the problem, and nothing was changed."""

from __future__ import annotations


class AgentError(ValueError):
    """Something an agent refuses; nothing was changed."""


class UnknownTicketError(AgentError, KeyError):
    """No ticket has that id."""

    __str__ = Exception.__str__


class ConflictError(AgentError):
    """The ticket's state does not allow this: withdrawn, leased to someone else, an expired lease, a reused id."""


class StoreError(AgentError, OSError):
    """The database cannot be used: locked, full, gone, damaged, not an agent's, or of a newer format."""

    __str__ = Exception.__str__


class InUseError(StoreError):
    """Another process has the SQLite file open."""


class DamagedError(StoreError):
    """The file is damaged; the message says what can be recovered."""
