"""How an agent's database is turned back to what earlier versions made: the migrations, undone."""

from __future__ import annotations

from sparingly.live.store.tables import MIGRATIONS


def _without(*columns: str) -> list[str]:
    return [f"ALTER TABLE tickets DROP COLUMN {name}" for name in columns]


_BACK = (
    _without("shown"),
    ["DROP INDEX answers", "DROP INDEX taken_back", "CREATE INDEX ix_journal_voids ON journal (voids)"],
    [*_without("erased"), "DROP TABLE audit_outbox"],
    ["DROP TABLE taught"],
    _without("probabilities", "numbers", "priority"),
    [*_without("asked", "paid"), "DROP TABLE calls"],
    ["DROP TABLE opinions", "DROP TABLE disagreements", "DROP TABLE team"],
)
"""What leads from each format back to the one before, the first from 2 to 1."""


def back_to(version: int) -> list[str]:
    """Statements that lead from the newest format back to this one, except for the version's own row."""
    assert len(_BACK) == MIGRATIONS.latest - 1, "a new format needs what undoes it here"
    return [statement for step in reversed(_BACK[version - 1 :]) for statement in step]
