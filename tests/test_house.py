"""The tree shows the architecture: small folders, each with one theme, and no name that means two things."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.call_path import CallCounter, count_post

import sparingly

SOURCE = Path(sparingly.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
MOST_FILES = 14
"""In one folder, with its `__init__.py`."""
MOST_FILES_A_POST = 24
"""That one POST of an observation passes through, from the middleware to the journal."""
MOST_LINES = 45
"""That a function has, its signature and its docstring aside."""
PREFIXED = {"SparingClassifier"}
"""Takes `strategy__name=value` and `module__name=value`, as scikit-learn's and skorch's estimators do."""


def _name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def _classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield _name(path), node


def test_no_folder_is_crowded() -> None:
    files = defaultdict(list)
    for path in FILES:
        files[_name(path.parent)].append(path.name)
    crowded = {folder: len(names) for folder, names in files.items() if len(names) > MOST_FILES}
    assert not crowded


def test_no_module_has_the_name_of_another() -> None:
    homes = defaultdict(list)
    for path in FILES:
        if path.stem not in ("__init__", "__main__"):
            homes[path.stem].append(_name(path))
    assert not {name: places for name, places in homes.items() if len(places) > 1}


def test_no_class_has_the_name_of_another() -> None:
    homes = defaultdict(list)
    for place, node in _classes():
        homes[node.name].append(place)
    assert not {name: places for name, places in homes.items() if len(places) > 1}


def test_every_package_says_in_a_sentence_what_it_is() -> None:
    for path in FILES:
        if path.name == "__init__.py":
            described = ast.get_docstring(ast.parse(path.read_text())) or ""
            assert described.partition("\n")[0].endswith("."), f"{_name(path)} does not begin with a sentence"


def test_constructors_spell_out_their_arguments() -> None:
    hidden = [
        f"{place}: {node.name}(**{method.args.kwarg.arg})"
        for place, node in _classes()
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__" and method.args.kwarg
        if node.name not in PREFIXED
    ]
    assert not hidden


def test_functions_fit_on_a_screen() -> None:
    long = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                if body and (lines := body[-1].end_lineno - body[0].lineno + 1) > MOST_LINES:
                    long[f"{_name(path)}: {node.name}"] = lines
    assert not long


def test_the_design_page_names_every_folder() -> None:
    page = (Path(__file__).parents[1] / "docs" / "design.md").read_text()
    for path in FILES:
        if path.name == "__init__.py" and path.parent != SOURCE and not _only_holds_packages(path.parent):
            assert f"| `{_name(path.parent)}/` |" in page, f"docs/design.md has no row for {_name(path.parent)}/"


def _only_holds_packages(folder: Path) -> bool:
    return [path.name for path in folder.glob("*.py")] == ["__init__.py"] and bool(list(folder.glob("*/__init__.py")))


def test_one_observation_passes_few_files() -> None:
    counter = CallCounter()
    with counter.installed():
        count_post(counter)
    assert len(counter.files) <= MOST_FILES_A_POST, sorted(counter.files)
