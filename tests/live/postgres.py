"""A PostgreSQL server that tests start, and may stop and start again."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

PROGRAMS = [Path("/usr/lib/postgresql") / version / "bin" for version in ("17", "16", "15", "14")]


class Server:
    """A server in a folder of its own, on a free port of this machine."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.programs = programs
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Server]:
        server = cls(Path(tempfile.mkdtemp(prefix="sparingly-postgres-")), _programs())
        try:
            if os.geteuid() == 0:
                shutil.chown(server.folder, "postgres", "postgres")
            server._run("initdb", "-D", server._data, "-A", "trust", "-U", "tester", "--no-sync")
            server.start()
            yield server
        finally:
            server.stop("immediate")
            shutil.rmtree(server.folder)

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "-D", self._data, "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "-D", self._data, "-w", "-m", how, "stop", check=False)

    @contextmanager
    def database(self) -> Iterator[str]:
        """An empty database; its URL."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self._execute(f"CREATE DATABASE {name}")
        yield f"postgresql://tester@127.0.0.1:{self.port}/{name}"
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(f"postgresql://tester@127.0.0.1:{self.port}/postgres", autocommit=True) as connection:
            connection.execute(statement)

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        command = [str(self.programs / program), *arguments]
        user = "postgres" if os.geteuid() == 0 else None
        subprocess.run(command, check=check, user=user, cwd=self.folder, stdout=subprocess.DEVNULL, timeout=60)


def _programs() -> Path:
    for folder in [*PROGRAMS, Path(shutil.which("initdb") or "/nowhere").parent]:
        if (folder / "initdb").exists():
            break
    else:
        pytest.skip("the programs of a PostgreSQL server are not installed")
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root and there is no user postgres")
    return folder
