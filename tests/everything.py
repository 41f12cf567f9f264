"""Every check: `python -m tests.everything [pytest arguments]`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

BIN = Path(sys.executable).parent


def steps(site: str, pytest_arguments: list[str]) -> dict[str, list[Path | str]]:
    """Each check's name and its command; the documentation is built into the folder `site`."""
    return {
        "format": [BIN / "ruff", "format", "--check", "."],
        "lint": [BIN / "ruff", "check", "."],
        "types": [BIN / "mypy"],
        "imports": [BIN / "lint-imports"],
        "docs": [BIN / "mkdocs", "build", "--strict", "--quiet", "--site-dir", site],
        "tests": [
            *(BIN / "python", "-m", "pytest", "-n", "4", "--dist", "worksteal", "--durations", "15"),
            *pytest_arguments,
        ],
    }


BESIDE = ("types", "imports", "docs")
"""Run one after the other beside the tests, which often wait; what they say comes at the end."""


MEMORY, ROOM = Path("/dev/shm"), 6 * 2**30
"""Temporary files are kept in memory where there are so many bytes left: no test is about how fast a disk is."""


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder for everything that is written and not kept; also another user, PostgreSQL's, may look into it."""
    in_memory = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM
    with tempfile.TemporaryDirectory(prefix="sparingly-", dir=MEMORY if in_memory else None) as folder:
        Path(folder).chmod(0o755)
        yield folder


def main() -> int:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or some hundred processes would compile everything anew
    with temporary_folder() as folder, ThreadPoolExecutor(1) as executor:
        environment["TMPDIR"] = folder
        todo = steps(f"{folder}/site", sys.argv[1:])
        beside = {name: executor.submit(run, todo.pop(name), environment, subprocess.PIPE) for name in BESIDE}
        done = {name: _told(name, run(command, environment)) for name, command in todo.items()}
        done |= {name: _told(name, one.result()) for name, one in beside.items()}
    failed = [name for name, passed in done.items() if not passed]
    _say(f"== failed: {', '.join(failed)}" if failed else "== all passed")
    return bool(failed)


def run(command: list[Path | str], environment: dict[str, str], said: int | None = None) -> tuple[int, float, str]:
    """A command's exit code, how many seconds it took, and what it said if that is not shown as it comes."""
    began = time.monotonic()
    done = subprocess.run(
        command, check=False, env=environment, stdout=said, stderr=said and subprocess.STDOUT, text=True
    )
    return done.returncode, time.monotonic() - began, done.stdout or ""


def _told(name: str, done: tuple[int, float, str]) -> bool:
    code, seconds, said = done
    _say(f"{said}== {name}: {'failed' if code else 'passed'} in {seconds:.0f} s")
    return not code


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
