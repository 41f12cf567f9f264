"""What is shipped: a wheel and an sdist that install, a light core, types, and an import that costs nearly nothing."""

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTRAS = ("sklearn", "pandas", "pyarrow", "duckdb", "joblib", "pydantic", "jinja2", "river", "matplotlib", "gymnasium")
EXTRAS += ("ray", "fastapi", "uvicorn", "httpx", "PIL", "prometheus_client", "sse_starlette", "psycopg", "skactiveml")


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def python(program, **environment):
    """A fresh interpreter on these sources."""
    return run(sys.executable, "-c", program, env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment})


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel, made from the sdist, so that the sdist is whole."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def test_the_wheel_has_everything_and_nothing_else(built):
    shipped = {name for name in zipfile.ZipFile(built[0]).namelist() if not name.endswith("/")}
    source = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src/sparingly").rglob("*") if p.is_file()}
    source = {name for name in source if "__pycache__" not in name}
    assert {name for name in shipped if ".dist-info/" not in name} == source
    assert "sparingly/py.typed" in shipped
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in shipped)


def test_the_sdist_has_the_tests(built):
    with tarfile.open(built[1]) as archive:
        names = archive.getnames()
    assert any(name.endswith("tests/test_packaging.py") for name in names)
    assert not any("__pycache__" in name for name in names)


def test_the_wheel_installs_and_runs_in_a_clean_environment(built, tmp_path):
    """The environment has only the wheel; its dependencies are looked up where these tests run, not installed again."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    inside = next((tmp_path / "venv/lib").glob("python*")) / "site-packages"
    pip = [sys.executable, "-m", "pip", "--python", tmp_path / "venv/bin/python", "install", "--quiet"]
    run(*pip, "--no-deps", "--no-index", built[0])
    here = Path(pytest.__file__).parent.parent
    added = [
        str(p) for p in here.glob("*") if not p.name.lower().startswith(("sparingly", "__editable__", "_editable"))
    ]
    (tmp_path / "seen").mkdir()
    for path in added:
        (tmp_path / "seen" / Path(path).name).symlink_to(path)
    (inside / "dependencies.pth").write_text(f"{tmp_path / 'seen'}\n")
    program = tmp_path / "first.py"
    program.write_text(
        "import numpy as np, sparingly as sp\n"
        "game = sp.label_efficient(2)\n"
        "X = np.random.default_rng(0).normal(size=(100, 3))\n"
        "rounds = list(sp.play(sp.Sparing(game, 3), game, zip(X, (X[:, 0] > 0).astype(int))))\n"
        "print(sp.__file__, len(rounds))\n"
    )
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    where, rounds = run(tmp_path / "venv/bin/python", program, env=clean, cwd=tmp_path).split()
    assert Path(where).is_relative_to(tmp_path)
    assert rounds == "100"
    assert run(tmp_path / "venv/bin/sparingly", "--version", env=clean, cwd=tmp_path).startswith("sparingly 0.")


def test_importing_costs_nearly_nothing():
    counted = python(
        "import sys, time; before, began = set(sys.modules), time.process_time(); import sparingly; dir(sparingly)\n"
        "took, loaded = time.process_time() - began, sorted(set(sys.modules) - before)\n"
        "import json; print(json.dumps([took, loaded]))"
    )
    seconds, loaded = json.loads(counted)
    assert seconds < 1
    assert [name for name in loaded if name.startswith("sparingly")] == ["sparingly"]
    assert len(loaded) < 40, loaded
    assert not {"torch", "numpy", "scipy", "sqlalchemy"} & set(loaded)


@pytest.mark.parametrize("program", ["sparingly as sp; sp.analyze(sp.label_efficient(3))", "sparingly.commands.main"])
def test_games_and_the_command_line_need_no_torch(program):
    assert python(f"import {program}\nimport sys; print('torch' in sys.modules)").strip() == "False"


def test_the_core_needs_no_extra(tmp_path):
    """With every extra's packages hidden: play, an agent, and an error that names what to install."""
    program = f"""
import sys
for name in {EXTRAS}: sys.modules[name] = None
import numpy as np, sparingly as sp
game = sp.label_efficient(2)
X = np.random.default_rng(0).normal(size=(30, 3))
list(sp.play(sp.NeuralCBP(game, 3), game, zip(X, (X[:, 0] > 0).astype(int))))
agent = sp.Agent(["cat", "dog"], 3, path="{tmp_path}/a.db")
agent.answer(agent.observe([1, 2, 3]).id, "dog")
agent.close()
import sparingly.commands.main
for name in ("river", "river_ensemble", "sklearn", "skactiveml", "gymnasium", "label_studio"):
    try:
        __import__(f"sparingly.adapters.{{name}}")
    except ImportError as error:
        print(error)
"""
    told = python(program).splitlines()
    assert len(told) == 6
    assert all("pip install" in line for line in told)


def test_a_command_names_the_extra_that_it_needs():
    program = f"""
import sys
for name in {EXTRAS}:
    if name != "pydantic": sys.modules[name] = None  # which comes with typer
from sparingly.commands.main import main
sys.stderr = sys.stdout
for command in (["serve", "--classes", "a,b", "--store", "nowhere"], ["simulate", "--token", "x"], ["demo"]):
    try:
        main(command)
    except SystemExit as left:
        assert left.code == 2
"""
    told = python(program).splitlines()
    extras = [line.partition("pip install ")[2] for line in told]
    assert extras == ["'sparingly[service]'", "'sparingly[service]'", "'sparingly[experiments]'"]


def test_only_tried_versions_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    assert versions == ["3.11", "3.12", "3.13"]
    assert project["requires-python"] == ">=3.11"
