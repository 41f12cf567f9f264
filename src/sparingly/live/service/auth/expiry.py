"""When a token ends, as people say it: in so many days, or at a date."""

from __future__ import annotations

import datetime
import re

from sparingly.live.agent.errors import AgentError, shortened

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LATEST = 253_402_300_800
"""The year 10000, which `datetime` cannot represent."""
_DURATION = re.compile(r"(\d{1,9})([smhdw])")


def expiry(given: str | float, now: float) -> float:
    """Seconds since 1970: from a duration, a date, or that number itself.

    >>> expiry("30d", now=1000.0), expiry(5000.0, now=1000.0), expiry("2030-01-01T00:00+00:00", now=1000.0)
    (2593000.0, 5000.0, 1893456000.0)
    """
    duration = _DURATION.fullmatch(given.strip()) if isinstance(given, str) else None
    if duration is not None:
        end = now + int(duration[1]) * _SECONDS[duration[2]]
    elif isinstance(given, str):
        try:
            end = datetime.datetime.fromisoformat(given.strip()).timestamp()
        except (ValueError, OverflowError):
            raise AgentError(
                f"expires is {given[:40]!r}: it must be a duration, such as 30d or 12h, or a date, such as 2030-01-31"
            ) from None
    else:
        end = given
    if not 0 <= end < _LATEST:
        raise AgentError(f"expires is {shortened(given)}: it must be between the years 1970 and 9999")
    return float(end)
