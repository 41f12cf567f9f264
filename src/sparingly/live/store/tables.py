"""The tables of an agent, the same in SQLite and PostgreSQL, and how older ones are migrated.

The journal is the truth: one row for everything that happened, numbered without gaps, only ever appended to.
A ticket's number is the place in the journal at which it was observed; its row also keeps how it stands now.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

from sparingly.live.store.migrations import Migrations, meta, read_meta

metadata = MetaData()
_Place = BigInteger().with_variant(Integer, "sqlite")

meta.to_metadata(metadata)

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

voided_events = Index(
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
    Column("erased", Text),
    Column("probabilities", LargeBinary),
    Column("numbers", Text),
    Column("priority", Double),
    Column("asked", Text),
    Column("paid", Double),
)
Index(
    "open_questions",
    tickets.c.seq,
    sqlite_where=tickets.c.status == "open",
    postgresql_where=tickets.c.status == "open",
)
answers_by_expert = Index(
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

taught = Table(
    "taught",
    metadata,
    Column("event", _Place, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, unique=True),
    Column("label", Integer, nullable=False),
    Column("x", LargeBinary, nullable=False),
)
"""Labels that nobody was asked for: what each event of the kind "taught" brought."""

calls = Table(
    "calls",
    metadata,
    Column("ticket", _Place, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),
    Column("expert", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("until", Double),
    Column("event", _Place),
    Column("symbol", Integer),
    Column("price", Double),
    Column("detail", Text),
    Column("closed", Double),
)
"""What experts who may be wrong, or who are machines, were asked about a ticket, one after the other, and said.

`number` is that of the expert; the action that asks it has another one once a class was added."""

calls_to_come = Index(
    "calls_to_come", calls.c.ticket, sqlite_where=calls.c.closed.is_(None), postgresql_where=calls.c.closed.is_(None)
)
calls_by_expert = Index("calls_by_expert", calls.c.expert, calls.c.closed)

opinions = Table(
    "opinions",
    metadata,
    Column("ticket", _Place, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("reason", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("expert", Text),
    Column("until", Double),
    Column("shown", Double),
    Column("label", Integer),
    Column("price", Double),
    Column("closed", Double),
)
"""What people say of a ticket beside the answer that stands: the first answer, second opinions, the third one that
settles a disagreement, and answers to planted items. `closed` is None while a person is still asked."""

opinions_to_come = Index(
    "opinions_to_come",
    opinions.c.ticket,
    sqlite_where=opinions.c.closed.is_(None),
    postgresql_where=opinions.c.closed.is_(None),
)
opinions_by_expert = Index("opinions_by_expert", opinions.c.expert, opinions.c.closed)

disagreements = Table(
    "disagreements",
    metadata,
    Column("ticket", _Place, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("state", Text, nullable=False),
    Column("first", Text),
    Column("first_label", Integer, nullable=False),
    Column("second", Text),
    Column("second_label", Integer, nullable=False),
    Column("label", Integer),
    Column("settled_by", Text),
    Column("closed", Double),
)
"""Two answers to one question that name different classes, and how that was settled."""

team = Table(
    "team",
    metadata,
    Column("expert", Text, primary_key=True),
    Column("found", Double),
    Column("answers", Integer),
    Column("why", Text),
    Column("stopped", Double),
    Column("since", Double, nullable=False),
)
"""People of whom more is to be known than their answers: who was found careless, and who gets no questions any more.

`since` is the time from which on their answers count against them."""

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


audit_outbox = Table(
    "audit_outbox",
    metadata,
    Column("seq", _Place, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("did", Text, nullable=False),
    Column("ticket", Text),
    Column("detail", Text),
)


def features_dropped_upto(connection: Connection) -> int:
    """The event up to which the features of unlabelled observations have been dropped."""
    return int(read_meta(connection, "floor"))


def _add_shown(connection: Connection) -> None:
    """Format 2 keeps when a question was first shown to a person."""
    connection.execute(text("ALTER TABLE tickets ADD COLUMN shown DOUBLE PRECISION"))


def _replace_indexes(connection: Connection) -> None:
    """Format 3 has an index of each expert's answers, and one of the journal's voids that leaves out empty ones."""
    connection.execute(text("DROP INDEX IF EXISTS ix_journal_voids"))
    for index in (voided_events, answers_by_expert):
        index.create(connection)


def _add_audit_outbox_and_erased(connection: Connection) -> None:
    """Format 4 keeps who did what until the service has copied it, and what of a ticket was erased."""
    audit_outbox.create(connection)
    connection.execute(text("ALTER TABLE tickets ADD COLUMN erased TEXT"))


def _add_taught(connection: Connection) -> None:
    """Format 5 keeps labels that nobody was asked for."""
    taught.create(connection)


def _add_numbers(connection: Connection) -> None:
    """Format 6 keeps the classes' probabilities, the numbers of the reason, and how much a question was worth."""
    kinds = {"probabilities": "BYTEA" if connection.dialect.name == "postgresql" else "BLOB", "numbers": "TEXT"}
    for name, kind in {**kinds, "priority": "DOUBLE PRECISION"}.items():
        connection.execute(text(f"ALTER TABLE tickets ADD COLUMN {name} {kind}"))


def _add_calls(connection: Connection) -> None:
    """Format 7 keeps what experts that are called were asked, and said."""
    calls.create(connection)
    connection.execute(text("ALTER TABLE tickets ADD COLUMN asked TEXT"))
    connection.execute(text("ALTER TABLE tickets ADD COLUMN paid DOUBLE PRECISION"))


def _add_opinions(connection: Connection) -> None:
    """Format 8 keeps second opinions, disagreements, and who was found careless."""
    for table in (opinions, disagreements, team):
        table.create(connection)


MIGRATIONS = Migrations(
    _add_shown, _replace_indexes, _add_audit_outbox_and_erased, _add_taught, _add_numbers, _add_calls, _add_opinions
)
