"""What the pages show runs as it stands, what they link to is there, and the notebooks give what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import nbformat
import pytest
from docs._build.notebooks import as_markdown

from tests import fork_server
from tests.snippets import PAGES, ROOT, RUN, Snippet, environment, play, snippets


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


ELSEWHERE = {"docs/own-strategy.md": "tests/strategies/conformance/test_own_strategy_page.py"}
"""Pages that another test runs, to look at what they leave behind."""
RUNNING = [page for page in PAGES if _name(page) not in ELSEWHERE and any(one.runs for one in snippets(page))]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", RUNNING, ids=_name)
def test_a_page_runs_from_an_empty_folder(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    play(page, tmp_path)


def test_pages_that_run_elsewhere_do() -> None:
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    fences = page.read_text().count("\n```")
    found = snippets(page)
    assert fences % 2 == 0
    assert len(found) == fences // 2, "a block is not seen: a fence begins and ends a line, and has no options"
    for one in found:
        assert one.kind, f"{page.name}:{one.line}: the block does not say what it is; `text` is not run"
        assert one.reason is None or one.kind in RUN, f"{page.name}:{one.line}: `{one.kind}` is never run anyway"
        assert one.reason is None or len(one.reason.split()) >= 3, f"{page.name}:{one.line}: say why it is not run"


def test_a_page_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    for text in (
        "```python\n1 / 0\n```\n",
        "```sh\nfalse\n```\n",
        "```console\n$ echo 12 apples\n13 pears\n```\n",
        "```sh\nfalse\ntrue\n```\n",
    ):
        page = tmp_path / "page.md"
        page.write_text(text)
        with pytest.raises((AssertionError, ZeroDivisionError)):
            play(page, tmp_path)
    page.write_text(
        "<!-- not run: it takes a week -->\n```sh\nfalse\n```\n\n```python\nx = 1\n```\n```python\ny = x\n```\n"
    )
    assert play(page, tmp_path)["y"] == 1
    page.write_text(
        "<!-- not run: it takes a week -->\n```sh\nfalse\n```\n\n```console\n$ echo 12 apples\n13 ...s\n```\n"
    )
    play(page, tmp_path)
    assert snippets(page)[0] == Snippet("sh", "false\n", 2, "it takes a week")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=_name)
def test_a_notebook_runs_and_shows_what_it_was_saved_with(path: Path, tmp_path: Path) -> None:
    """Each in a process of its own, since two kernels one after the other may stumble over each other's sockets."""
    data = Path(os.environ.get("SPARINGLY_DATA", "."), "banking77.parquet")
    if "SPARINGLY_DATA" in path.read_text() and not data.is_file():
        pytest.skip("the data set that it reads is not here")
    done, kernel = tmp_path / "done.ipynb", tmp_path / "jupyter" / "kernels" / "forked"
    kernel.mkdir(parents=True)
    for program in ("kernel", "notebook"):
        fork_server.install(tmp_path / program, program)
    started = {"argv": [str(tmp_path / "kernel"), "-f", "{connection_file}"], "display_name": "", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(started))
    command = [str(tmp_path / "notebook"), str(path), str(done), kernel.name]
    settings = {**environment(tmp_path), "JUPYTER_PATH": str(tmp_path / "jupyter")}
    ran = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert _outputs(done) == _outputs(path)
    assert any(_outputs(path))


def _outputs(path: Path) -> list[list[str]]:
    """Which kinds of outputs each cell of a notebook has."""
    cells = nbformat.read(path, as_version=4).cells
    return [sorted({output.output_type for output in cell.get("outputs", [])}) for cell in cells]


def test_there_are_three_notebooks_and_the_site_has_them() -> None:
    names = {path.stem for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
    assert len(names) >= 3
    site = (ROOT / "mkdocs.yml").read_text()
    for name in names:
        assert f"notebooks/{name}.md" in site
        page = as_markdown(ROOT / "docs" / "notebooks" / f"{name}.ipynb")
        assert page.startswith("# ")
        assert "data:image/png" in page


EXAMPLES = {"src/sparingly/strategies/baselines/nearest_mean.py"}
"""Files that a page names and that are the reader's to write."""


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_files_of_the_source_that_a_page_names_are_there(page: Path) -> None:
    for path in re.findall(r"\b(?:src/sparingly|tests|benchmarks|docs/_build)/[\w/]*(?:\.py)?", page.read_text()):
        assert path in EXAMPLES or (ROOT / path).exists(), f"{page.name} names {path}, which is not there"


def _prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as both GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", _prose(page)):
        if "://" in target:
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]+(/[\w./~%+-]*)?", target), (
                f"{page.name}: {target} is no address"
            )
            continue
        there = (page.parent / target) if target else page
        if there.suffix == ".md" and "notebooks" in there.parts and not there.exists():
            there = there.with_suffix(".ipynb")
        assert there.exists(), f"{page.name} links to {target}, which is not there"
        if anchor and there.suffix == ".md":
            assert anchor in _anchors(there), f"{page.name} links to {target}#{anchor}, and there is no such heading"
