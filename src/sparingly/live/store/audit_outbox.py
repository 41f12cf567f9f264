"""The audit outbox: who did what, written in the transaction that does it, until the service has copied it.

No transaction spans an agent's database and the service's. A line in the outbox is on disk if and only
if the change is; copying it to the audit trail may fail and be repeated, for each line has an id (the outbox pattern).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from sparingly.live.store.tables import audit_outbox

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class AuditLine:
    """What someone does: the name, role and id of their token, the deed in words, and what else is to be known."""

    who: str
    role: str
    token: str
    did: str
    detail: str | None = None


def add(connection: Connection, line: AuditLine | None, ticket: str | None, now: float) -> None:
    """Write a line, if there is one, in the transaction of what it tells of."""
    if line is not None:
        connection.execute(insert(audit_outbox), {"id": uuid.uuid4().hex, "at": now, "ticket": ticket, **asdict(line)})


def waiting(connection: Connection) -> list[dict[str, Any]]:
    """The oldest lines that are to be copied, at most a chunk of them."""
    found = select(audit_outbox).order_by(audit_outbox.c.seq).limit(_CHUNK)
    return [dict(row._mapping) for row in connection.execute(found)]


def remove(connection: Connection, lines: Sequence[dict[str, Any]]) -> None:
    """Forget lines that have been copied."""
    connection.execute(delete(audit_outbox).where(audit_outbox.c.seq.in_([line["seq"] for line in lines])))
