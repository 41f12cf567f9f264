"""Everything that must hold, in the order of what fails soonest: `python -m tests.everything [pytest arguments]`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent

STEPS = {
    "format": [BIN / "ruff", "format", "--check", "."],
    "lint": [BIN / "ruff", "check", "."],
    "types": [BIN / "mypy"],
    "imports": [BIN / "lint-imports"],
    "tests": [BIN / "python", "-m", "pytest", "-n", "2", "--dist", "worksteal", "--durations", "15"],
}


def main() -> int:
    failed = []
    for name, command in STEPS.items():
        extra = sys.argv[1:] if name == "tests" else []
        began = time.monotonic()
        print(f"== {name}", flush=True)  # noqa: T201
        code = subprocess.run([*map(str, command), *extra], check=False).returncode
        print(f"== {name}: {'failed' if code else 'passed'} in {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
        failed += [name] if code else []
    print(f"== failed: {', '.join(failed)}" if failed else "== all passed", flush=True)  # noqa: T201
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
