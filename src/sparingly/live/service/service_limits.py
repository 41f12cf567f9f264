"""What the service takes from one caller."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceLimits:
    """Sizes and rates; the defaults suit a machine of two cores.

    Attributes
    ----------
    body
        Bytes of one request.
    features
        Features of one observation.
    block
        Observations of one call.
    per_second
        Calls a second with one token, over a longer time.
    burst
        Calls at once.
    wrong_per_minute
        Wrong tokens a minute from one address, before it has to wait.
    lease_seconds
        How long a question is lent to one person.
    """

    body: int = 16 * 2**20
    features: int = 200_000
    block: int = 10_000
    per_second: float = 2_000.0
    burst: float = 4_000.0
    wrong_per_minute: float = 20.0
    lease_seconds: float = 600.0
