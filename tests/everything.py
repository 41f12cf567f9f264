"""Every check, in the order of what fails soonest: `python -m tests.everything [pytest arguments]`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
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


def main() -> int:
    failed = []
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    with tempfile.TemporaryDirectory() as site:
        for name, command in steps(site, sys.argv[1:]).items():
            began = time.monotonic()
            print(f"== {name}", flush=True)  # noqa: T201
            code = subprocess.run([str(part) for part in command], check=False, env=environment).returncode
            print(f"== {name}: {'failed' if code else 'passed'} in {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
            failed += [name] if code else []
    print(f"== failed: {', '.join(failed)}" if failed else "== all passed", flush=True)  # noqa: T201
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
