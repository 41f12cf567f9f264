"""The runner: what is missing is done, once, wherever and whatever happens on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from sparingly.experiments.runs.experiment_settings import Player, SettingsError, Task, study_of
from sparingly.experiments.runs.many_runs import TIDIED_UP, alone, local, on_ray, run_all
from sparingly.experiments.runs.run_records import Results
from tests import fork_server


def contents(results: Results) -> dict[str, str]:
    files = sorted((results.folder / "runs").iterdir())
    assert all(file.suffix == ".parquet" for file in files)
    return {file.stem: results.read(file.stem).content_hash() for file in files}


def test_what_is_missing_is_done_and_nothing_else(study, results):
    first = run_all(study.runs(), results, local(1))
    assert (first.done, first.already) == (6, 0)
    expected = contents(results)
    results.path(next(study.runs()).id).unlink()
    times = {file: file.stat().st_mtime_ns for file in (results.folder / "runs").iterdir()}
    second = run_all(study.runs(), results, local(1))
    assert (second.done, second.already) == (1, 5)
    assert all(file.stat().st_mtime_ns == before for file, before in times.items())
    assert contents(results) == expected


def test_no_run_begins_after_its_minutes_and_the_next_call_goes_on(study, results):
    short = run_all(study.runs(), results, local(1, minutes=1e-6))
    assert short.done <= 1
    rest = run_all(study.runs(), results, local(1, minutes=60))
    assert (rest.done, rest.already) == (6 - short.done, short.done)


def test_failures_are_collected_and_retried_on_request(results, tmp_path):
    (tmp_path / "fragile.py").write_text(
        "from pathlib import Path\nfrom sparingly.strategies.baselines.never_ask import NeverAsk\n\n\n"
        "class Fragile(NeverAsk):\n    def _choose(self, assessment, row):\n"
        f"        if self.clock == 20 and not Path({str(tmp_path / 'mended')!r}).exists():\n"
        "            raise RuntimeError('broken at 20')\n        return super()._choose(assessment, row)\n"
    )
    players = [Player(strategy=f"{tmp_path / 'fragile.py'}:Fragile"), Player(strategy="never_ask")]
    study = study_of([Task(dataset="phishing", horizon=40)], players, name="fragile", seeds=1)
    first = run_all(study.runs(), results, local(1))
    assert first.done == 1
    assert list(first.failed.values()) == ["RuntimeError: broken at 20"]
    assert results.failures() == first.failed
    (tmp_path / "mended").touch()
    second = run_all(study.runs(), results, local(1))
    assert second.skipped == list(first.failed)
    assert second.done == 0
    third = run_all(study.runs(), results, local(1), retry=True)
    assert third.done == 1
    assert not results.failures()


def test_two_runners_do_not_share_a_folder(study, results):
    with alone(results), pytest.raises(SettingsError, match="another runner is writing to"):
        run_all(study.runs(), results, local(1))


def test_a_full_disk_costs_the_run_in_flight_only(study, results, tmp_path, environment):
    """The size of files is limited, as a disk that is full limits it: the first record does not fit."""
    done = run_all(list(study.runs())[:1], results, local(1))
    assert done.done == 1
    script = (
        "import resource, signal\nfrom tests_study import *\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nrun_all(study.runs(), results, local(1))\n"
    )
    _write_study(study, results)
    words = f"import sys\nsys.path.insert(0, {str(results.folder.parent)!r})\n{script}"
    done = subprocess.run([*fork_server.python(tmp_path), words], env=environment, capture_output=True)
    assert done.returncode == 1
    assert b"cannot be written (File too large): 0 runs of this call are kept" in done.stderr
    assert list(contents(results)) == [next(study.runs()).id]
    assert not list(results.folder.rglob("*.part"))
    assert run_all(study.runs(), results, local(1)).done == 5


def test_killed_and_resumed_every_run_is_there_once(study, results, tmp_path, environment):
    study = study.model_copy(update={"seeds": 4})
    whole = Results(tmp_path / "whole").open()
    run_all(study.runs(), whole, local(1))
    folder = _write_study(study, results).parent
    words = f"import sys\nsys.path.insert(0, {str(folder)!r})\nfrom tests_study import *\n"
    typed, process = _forked(f"{words}run_all(study.runs(), results, local(2))\n", [], tmp_path, environment)
    _wait_for(lambda: 1 <= len(list((results.folder / "runs").glob("*.parquet"))) < 12)
    workers = [child for child in psutil.Process(process).children() if "LokyProcess" in str(child.cmdline())]
    os.kill(process, signal.SIGKILL)
    typed.wait(60)
    kept = contents(results)
    assert 0 < len(kept) < 12
    _wait_for(lambda: not any(_alive(worker) for worker in workers), 60)
    (results.folder / "runs" / ".half.parquet.1.part").write_bytes(b"half a file of a process that was killed")
    tally = run_all(study.runs(), results, local(1))
    assert (tally.already, tally.done) == (len(kept), 12 - len(kept))
    assert contents(results) == contents(whole)


def test_an_interrupt_keeps_what_is_done_and_says_how_to_go_on(environment, tmp_path):
    """Its workers are forked; those of the run that is killed start from nothing."""
    script = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from joblib.externals.loky.backend.context import set_start_method\nset_start_method('fork', force=True)\n"
        "from sparingly.commands.main import main\nmain()\n"
    )
    words = "run --data phishing --strategy always_ask,epochs=2 --strategy never_ask --seeds 40 --horizon 300"
    typed, process = _forked(script, words.split(), tmp_path, environment)
    results = Results(tmp_path / "results")
    _wait_for(lambda: any((results.folder / "runs").glob("*.parquet")))
    tidying = [one for child in psutil.Process(process).children() if "resource_tracker" in str(one := child.cmdline())]
    assert tidying, "loky has a process that tidies up"
    assert all(f"-W{TIDIED_UP}" in one for one in tidying)
    os.kill(process, signal.SIGINT)
    told = typed.communicate(timeout=60)[1].decode()
    assert typed.returncode == 130
    assert told.splitlines()[-1] == "sparingly: interrupted; what is done is kept, the same command goes on"
    assert 0 < len(contents(results)) < 80


@pytest.mark.timeout(900)
def test_ray_with_a_killed_worker_gives_the_records_of_the_local_run(
    study, results, tmp_path, monkeypatch, environment
):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    monkeypatch.setenv("RAY_worker_niceness", "0")  # by default 15: beside other tests its workers would hardly run
    monkeypatch.setenv("RAY_worker_register_timeout_seconds", "600")  # on a busy machine a worker starts slowly
    here = Results(tmp_path / "here").open()
    run_all(study.runs(), here, local(1))
    killed: list[int] = []

    def kill_one(run, well):
        if not killed:
            victims = [pid for pid in _ray_workers() if pid != os.getpid()]
            os.kill(victims[0], signal.SIGKILL)
            killed.append(victims[0])

    tally = run_all(study.runs(), results, on_ray(workers=2), watch=kill_one)
    assert killed, "a worker was killed in the middle"
    assert (tally.done, tally.failed) == (6, {})
    assert contents(results) == contents(here)
    assert not ray.is_initialized()


def _ray_workers() -> list[int]:
    """Ray's processes of this machine that work on a run right now, children of this process's cluster."""
    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if "perform" in " ".join(child.cmdline())]


def _alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def _write_study(study, results) -> Path:
    """A module with the study and the folder at hand."""
    module = results.folder.parent / "tests_study.py"
    module.write_text(
        "from sparingly.experiments.runs.run_records import Results\n"
        "from sparingly.experiments.runs.many_runs import local, run_all\n"
        "from sparingly.experiments.runs.experiment_settings import Study\n"
        f"results = Results({str(results.folder)!r})\n"
        f"study = Study.model_validate_json({study.model_dump_json()!r})\n"
    )
    return module


def _forked(script: str, words: list[str], folder: Path, environment) -> tuple[subprocess.Popen[bytes], int]:
    """A program in a process of its own, as whoever typed it sees it, and the id of the process."""
    number = folder / "process"
    command = [*fork_server.python(folder), f"import os\nopen({str(number)!r}, 'w').write(str(os.getpid()))\n{script}"]
    typed = subprocess.Popen(
        [*command, *words], env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    _wait_for(lambda: number.exists() and number.read_text())
    return typed, int(number.read_text())


def _wait_for(condition, seconds: float = 120) -> None:
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, "it did not happen in time"
        time.sleep(0.02)
