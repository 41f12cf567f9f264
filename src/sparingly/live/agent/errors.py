"""What can go wrong with an agent: each error is one line that names the problem, and nothing was changed."""

from __future__ import annotations

import re
import reprlib
from typing import Any


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


class BusyError(StoreError):
    """The agent did not get to this call in time."""


class DamagedError(StoreError):
    """The file is damaged; the message says what can be recovered."""


def shortened(value: Any) -> str:
    """A value as an error names it: one line of bounded length and depth.

    >>> shortened(10**400), shortened("short")
    ('10000000000000000...0000000000000000000', "'short'")
    """
    try:
        # From Python 3.13 on, a number too long to be shown is named by its address in memory.
        return re.sub(r" at 0x[0-9a-fA-F]+>", ">", reprlib.repr(value))
    except (ValueError, RecursionError):
        return f"{type(value).__name__} that cannot be shown"


def checked_text(what: str, text: str) -> str:
    """A text that can be stored and sent as UTF-8; one with half of a surrogate pair cannot.

    >>> checked_text("class", "\\ud800")
    Traceback (most recent call last):
    ...
    sparingly.live.agent.errors.AgentError: class '\\ud800' is not valid Unicode: it has half of a surrogate pair
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise AgentError(f"{what} {text[:60]!r} is not valid Unicode: it has half of a surrogate pair") from None
    return text


def is_storable(value: Any) -> bool:
    """Whether a value's text can be in a column of a database: neither NUL nor half of a surrogate pair is in it.

    >>> is_storable("t.1"), is_storable("\\0"), is_storable("\\ud800")
    (True, False, False)
    """
    try:
        return b"\0" not in str(value).encode()
    except ValueError:
        return False
