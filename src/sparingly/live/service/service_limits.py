"""What the service takes from one caller. The token buckets of the rates are in `auth/authentication.py`."""

from __future__ import annotations

from dataclasses import dataclass

from sparingly.live.agent.errors import AgentError


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
        How long a question is leased to one person, if the call does not say.
    max_lease_seconds
        How long it may be leased at the most; a lease can be renewed.
    leases
        Questions of one agent that one person may hold at a time.
    header_seconds
        How long a client may take to send a request's headers.
    body_seconds
        How long it may take to send the body, and a second more for each KiB.
    """

    body: int = 16 * 2**20
    features: int = 200_000
    block: int = 10_000
    per_second: float = 2_000.0
    burst: float = 4_000.0
    wrong_per_minute: float = 20.0
    lease_seconds: float = 600.0
    max_lease_seconds: float = 3600.0
    leases: int = 100
    header_seconds: float = 10.0
    body_seconds: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.lease_seconds <= self.max_lease_seconds < float("inf"):
            raise AgentError(
                f"a lease of {self.lease_seconds:g} s must be positive and at most {self.max_lease_seconds:g} s"
            )
        if self.leases < 2:
            raise AgentError(f"leases is {self.leases}: it must be 2 or more, since an undo holds a second question")
