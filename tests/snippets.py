"""The programs and commands on a page, in order, and how each is run.

Python blocks of a page share one set of names, and commands run beside them in the same, at first empty, folder: a page
may write a file in one block and use it in the next. A block that must not run says so on the line before it, with the
reason: `<!-- not run: it serves until it is stopped -->`. Lines with `>>>` are left to doctest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests import fork_server

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = ("python", "console", "sh")
_BLOCK = re.compile(r"(?:<!-- not run: *(?P<reason>.*?) *-->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Snippet:
    """A fenced block: what it is, what it says, its line on the page, and why it is not run (None: it is)."""

    kind: str
    text: str
    line: int
    reason: str | None

    @property
    def runs(self) -> bool:
        return self.kind in RUN and self.reason is None and not self.text.lstrip().startswith(">>>")


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text()
    return [
        Snippet(found["kind"], found["text"], text.count("\n", 0, found.start("text")), found["reason"])
        for found in _BLOCK.finditer(text)
    ]


def play(page: Path, folder: Path) -> dict[str, Any]:
    """Run everything on a page that is to be run, from the given folder; the names that its programs left behind."""
    module = ModuleType(f"page_{page.stem.replace('-', '_')}")
    sys.modules[module.__name__] = module  # so that a class of the page can be pickled
    try:
        for one in snippets(page):
            if one.runs and one.kind == "python":
                exec(compile("\n" * one.line + one.text, str(page), "exec"), vars(module))
            elif one.runs:
                _run_commands(one, f"{page.name}:{one.line}", folder)
    finally:
        del sys.modules[module.__name__]
    return vars(module)


def _run_commands(one: Snippet, where: str, folder: Path) -> None:
    """Every command must succeed; what a `console` block shows must be what it says, numbers and dots apart."""
    shown = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", one.text, flags=re.M)
    for command, output in shown if one.kind == "console" else [(one.text, "")]:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=folder,
            env=environment(folder),
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{where}: {command}\n{done.stdout}\n{done.stderr}"
        said = _words(done.stdout + done.stderr)
        for line in filter(None, map(str.strip, output.splitlines())):
            pattern = ".*".join(map(re.escape, _words(line).split("...")))
            assert re.search(pattern, said), f"{where}: {command}\nsays\n{said}\nnot\n{line}"


def _words(text: str) -> str:
    return re.sub(r"\d[\d.,]*", "9", re.sub(r"[ \t]+", " ", text))


def environment(folder: Path) -> dict[str, str]:
    """As a user has it: this Python first, the command `sparingly` of this very tree, a terminal that does not wrap."""
    programs = folder.parent / f"{folder.name}-programs"
    programs.mkdir(exist_ok=True)
    fork_server.install(programs / "sparingly")
    paths = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    settings = {"PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT / "src")}
    return {**os.environ, **settings, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}
