"""Where an agent lives: tables, journal, snapshots, in SQLite or PostgreSQL; and how a damaged file is recovered."""
