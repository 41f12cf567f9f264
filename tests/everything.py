"""Every check, in the order of what fails soonest: `python -m tests.everything [pytest arguments]`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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
            *(BIN / "python", "-m", "pytest", "-n", "3", "--dist", "worksteal", "--durations", "15"),
            *pytest_arguments,
        ],
    }


BESIDE = "types"
"""Runs beside all others, since it uses one core for a minute and tests often wait."""


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
    failed = []
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or some hundred processes would compile everything anew
    with temporary_folder() as folder, tempfile.TemporaryFile() as said:
        site, environment["TMPDIR"] = f"{folder}/site", folder
        todo = {name: [str(part) for part in words] for name, words in steps(site, sys.argv[1:]).items()}
        beside = subprocess.Popen(todo.pop(BESIDE), stdout=said, stderr=subprocess.STDOUT, env=environment)
        for name, command in todo.items():
            began = time.monotonic()
            _say(f"== {name}")
            code = subprocess.run(command, check=False, env=environment).returncode
            _say(f"== {name}: {'failed' if code else 'passed'} in {time.monotonic() - began:.0f} s")
            failed += [name] if code else []
        failed += [BESIDE] if beside.wait() else []
        said.seek(0)
        _say(f"== {BESIDE}\n{said.read().decode()}")
    _say(f"== failed: {', '.join(failed)}" if failed else "== all passed")
    return bool(failed)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
