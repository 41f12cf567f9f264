"""Killed with SIGKILL thirty times while clients stream: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests import fork_server
from tests.live.service import http_crash, http_expert_crash, http_two


def test_a_service_killed_thirty_times_loses_and_doubles_nothing(tmp_path):
    command = [*fork_server.python_module(tmp_path, http_crash.__name__), str(tmp_path / "store"), "30"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert (report["lost"], report["doubled"], report["unasked_for"]) == ([], 0, 0)
    assert report["kills"] == 30
    assert report["observed"] > 100
    assert report["answered"] > 20
    assert all("run out" in refused or "leased" in refused for refused in report["refused"]), report["refused"]


def test_an_expert_who_counts_its_calls_is_never_paid_twice_however_often_the_service_is_killed(tmp_path):
    command = [*fork_server.python_module(tmp_path, http_expert_crash.__name__), str(tmp_path / "store"), "15"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    for what in ("lost", "repeated", "not_booked", "wrong", "stuck"):
        assert report[what] == [], what
    assert report["kills"] == 15
    assert report["called"] > 30
    assert report["states"].get("interrupted", 0) > 0
    assert report["bill"] == pytest.approx(0.01 * (report["states"]["answered"] + report["states"]["interrupted"]))


@pytest.mark.postgres
def test_of_two_processes_on_postgresql_one_is_killed_under_load(postgres, tmp_path):
    command = [*fork_server.python_module(tmp_path, http_two.__name__), postgres]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert (report["lost"], report["doubled"], report["unasked_for"]) == ([], 0, 0)
    assert report["after"] >= 40
