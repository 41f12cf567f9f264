"""The tables of an agent, the same in SQLite and PostgreSQL.

The journal is the truth: one row for everything that happened, numbered without gaps, only ever appended to.
A ticket's number is the place in the journal at which it was observed; its row also keeps how it stands now.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

FORMAT = 3
"""The version of the tables; `migrations` brings older ones here."""

metadata = MetaData()
_Place = BigInteger().with_variant(Integer, "sqlite")

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    Column("seq", _Place, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("ticket", _Place, nullable=False),
    Column("action", Integer),
    Column("symbol", Integer),
    Column("label", Integer),
    Column("voids", _Place),
    Column("expert", Text),
)

taken_back = Index(
    "taken_back",
    journal.c.voids,
    sqlite_where=journal.c.voids.is_not(None),
    postgresql_where=journal.c.voids.is_not(None),
)

tickets = Table(
    "tickets",
    metadata,
    Column("seq", _Place, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("at", Double, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("action", Integer, nullable=False),
    Column("prediction", Integer, nullable=False),
    Column("asks", Boolean, nullable=False),
    Column("wanted", Boolean, nullable=False),
    Column("chance", Double),
    Column("audit", Boolean, nullable=False),
    Column("why", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("learned", _Place),
    Column("symbol", Integer),
    Column("label", Integer),
    Column("expert", Text),
    Column("until", Double),
    Column("closed", Double),
    Column("shown", Double),
)
Index(
    "open_questions",
    tickets.c.seq,
    sqlite_where=tickets.c.status == "open",
    postgresql_where=tickets.c.status == "open",
)
answers = Index(
    "answers",
    tickets.c.expert,
    tickets.c.closed,
    sqlite_where=tickets.c.status == "answered",
    postgresql_where=tickets.c.status == "answered",
)
Index("asked_at", tickets.c.at, sqlite_where=tickets.c.asks, postgresql_where=tickets.c.asks)

observations = Table(
    "observations",
    metadata,
    Column("ticket", _Place, primary_key=True, autoincrement=False),
    Column("x", LargeBinary, nullable=False),
)

payloads = Table(
    "payloads",
    metadata,
    Column("ticket", _Place, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("media", Text),
    Column("content", LargeBinary, nullable=False),
)

passes = Table(
    "passes",
    metadata,
    Column("ticket", _Place, primary_key=True, autoincrement=False),
    Column("expert", Text, primary_key=True),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("seq", _Place, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("state", LargeBinary, nullable=False),
)
