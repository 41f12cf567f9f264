"""`sparingly serve`, `token` and `simulate`, as they are typed: a first start, and what is done beside it."""

from __future__ import annotations

import datetime
import getpass
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

import sparingly as sp
from sparingly.commands.main import main
from tests import fork_server

COMMAND = "from sparingly.commands.main import main; main()"
SECRET = re.compile(r"sparingly_[0-9a-f]{12}_[\w-]{43}")


def start(
    folder: Path, *args: str, stderr: int | None = None, from_nothing: bool = False
) -> tuple[subprocess.Popen[str], str]:
    """A service in a folder of its own, and the first line it prints."""
    source = str(Path(sp.__file__).parents[1])
    fork_server.install(folder / "sparingly")
    command = [sys.executable, "-c", COMMAND] if from_nothing else [str(folder / "sparingly")]
    process = subprocess.Popen(
        [*command, "serve", "--port", "0", *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    return process, process.stdout.readline()


def stop(process: subprocess.Popen[str]) -> bool:
    """Whether it ends when it is told to."""
    process.send_signal(signal.SIGTERM)
    return process.wait(30) in (0, -signal.SIGTERM)


@pytest.fixture(scope="module")
def first_start(tmp_path_factory):
    """The folder, the address and the token of `sparingly serve --classes cat,dog` where nothing was before."""
    folder = tmp_path_factory.mktemp("serve")
    process, line = start(folder, "--classes", "cat,dog", from_nothing=True)
    told = process.stdout.readline()
    yield folder, line, told
    assert stop(process)


@pytest.fixture
def url(first_start):
    return first_start[1].split()[-1]


@pytest.fixture
def token(first_start):
    return SECRET.search(first_start[2])[0]


@pytest.fixture
def sparingly(capsys, monkeypatch, first_start):
    """Type a command where the service was started."""
    monkeypatch.chdir(first_start[0])

    def run(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(list(args))
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return run


def status(url: str, secret: str) -> int:
    return httpx.get(f"{url}/api/agents", headers={"authorization": f"Bearer {secret}"}, timeout=60).status_code


def test_a_first_start_prints_an_address_and_a_token_and_needs_nothing_else(first_start, url, token):
    folder, line, told = first_start
    assert re.fullmatch(r"sparingly serves default at http://127\.0\.0\.1:\d+\n", line)
    assert told.startswith("first token, an admin's, shown this once: ")
    assert httpx.get(f"{url}/ready", timeout=60).json() == {"status": "ready"}
    with sp.Client(url, token) as client:
        assert client.observe({"width": 2.0, "height": 3.5}).asks, "the first observation tells the features"
        (question,) = client.questions()
        client.answer(question.id, "dog")
        assert client.stats().answered == 1
    assert sorted(path.name for path in (folder / "sparingly-store").glob("*.db")) == ["default.agent.db", "service.db"]


def test_label_studio_finds_its_backend(url, token):
    found = httpx.get(f"{url}/api/agents/default/label-studio/health", auth=("label studio", token), timeout=60)
    assert found.json() == {"status": "UP", "model_class": "sparing"}


def test_started_again_it_has_everything_and_shows_no_token(tmp_path):
    process, _ = start(tmp_path, "--classes", "cat,dog", "--name", "pets", "--cost", "announced=cat,true=dog:5")
    secret = SECRET.search(process.stdout.readline())[0]
    assert stop(process)
    process, line = start(tmp_path)
    url = line.split()[-1]
    assert line.startswith("sparingly serves pets at ")
    assert status(url, secret) == 200
    found = httpx.get(f"{url}/api/agents/pets", headers={"authorization": f"Bearer {secret}"}, timeout=60).json()
    assert found["costs"] == [[0, 5], [1, 0], [1, 1]]
    assert stop(process)
    assert process.stdout.read() == ""


def test_tokens_are_made_listed_and_revoked_beside_a_running_service(sparingly, url):
    code, said, aside = sparingly("token", "create", "Ada Lovelace", "--role", "expert")
    secret = said.strip()
    assert (code, "for Ada Lovelace, expert" in aside) == (0, True)
    assert SECRET.fullmatch(secret), "nothing else, so that a script can take it"
    assert status(url, secret) == 200
    code, said, _ = sparingly("token", "list")
    assert [line.split()[1] for line in said.splitlines()] == ["admin", "expert"]
    assert re.search(r"expert .* in use +Ada Lovelace", said)
    assert secret.split("_", 2)[2] not in said
    assert sparingly("token", "revoke", "Ada Lovelace")[:2] == (0, "revoked Ada Lovelace\n")
    time.sleep(1.1)
    assert status(url, secret) == 401
    assert re.search(r"expert .* revoked +Ada Lovelace", sparingly("token", "list")[1])


def test_a_token_made_at_the_command_line_has_limits_and_is_in_the_audit_trail(sparingly, url, token):
    code, said, aside = sparingly("token", "create", "Guest", "--agent", "default", "--expires", "30d")
    assert (code, status(url, said.strip())) == (0, 200)
    until = datetime.datetime.fromtimestamp(time.time() + 30 * 86400).isoformat(" ", "minutes")[:10]
    assert f"for Guest, expert, only default, until {until}" in aside
    assert re.search(rf"in use +Guest, only default, until {until}", sparingly("token", "list")[1])
    assert sparingly("token", "revoke", "Guest")[0] == 0
    lines = httpx.get(f"{url}/api/audit", headers={"authorization": f"Bearer {token}"}, timeout=60).json()["lines"]
    made, revoked = (next(line for line in lines if line["did"] == f"{did} a token") for did in ("made", "revoked"))
    for line in (made, revoked):
        assert (line["who"], line["role"], line["token"]) == (getpass.getuser(), "operator", "command line")
        assert "Guest (expert); only default; until" in line["detail"]


def test_a_first_token_that_was_chosen_is_shown_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARINGLY_ADMIN_TOKEN", "0123456789abcdef" * 4)
    process, line = start(tmp_path, "--classes", "cat,dog", stderr=subprocess.STDOUT)
    assert status(line.split()[-1], "0123456789abcdef" * 4) == 200
    assert stop(process)
    assert process.stdout.read() == ""


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ("token", "create", "Eve", "--role", "king"),
            "role 'king' is unknown: the roles are producer, expert, host, admin",
        ),
        (("token", "create", "admin"), "there is already a token named 'admin'"),
        (("token", "create", "Eve", "--agent", "nobody"), "there is no agent 'nobody'"),
        (("token", "create", "Eve", "--expires", "soon"), "expires is 'soon': it must be a duration"),
        (("serve", "--port", "0", "--admin-token-file", "nothing"), "cannot be read from nothing: No such file"),
        (("token", "revoke", "nobody"), "there is no token 'nobody' that could be revoked"),
        (("token", "list", "--store", "elsewhere"), "elsewhere is not the folder of a service"),
        (("serve", "--store", "new", "--port", "0"), "name its classes, as in --classes cat,dog"),
        (("serve", "--store", "new", "--port", "0", "--classes", "cat"), "two or more classes"),
        (("serve", "--store", "new", "--port", "{port}"), "cannot be listened on"),
        (("serve", "--store", "new", "--port", "0", "--trusted-proxy", "proxy.lan"), "--trusted-proxy 'proxy.lan' is"),
        (("serve", "--port", "0"), "is in use by process"),
        (("simulate", "--token", ""), "an admin's token is needed"),
        (("simulate", "--token", "x", "--url", "http://127.0.0.1:9", "--data", "pets.csv"), "cannot be reached"),
        (("simulate", "--token", "x", "--url", "{url}", "--data", "pets.csv"), "unknown or was revoked"),
        (("simulate", "--token", "x", "--data", "pets.csv", "--target", "age"), "pets.csv has no column 'age'"),
        (("simulate", "--token", "x", "--data", "nothing.csv"), "nothing.csv"),
    ],
)
def test_what_is_wrong_is_one_line(sparingly, url, first_start, args, words):
    (first_start[0] / "pets.csv").write_text("legs,kind\n4,dog\n")
    code, _, error = sparingly(*(arg.format(url=url, port=url.rpartition(":")[2]) for arg in args))
    assert code == 2
    assert words in error
    assert len(error.splitlines()) == 1


def test_a_simulation_makes_people_who_answer_and_takes_their_tokens_back(sparingly, url, token, first_start):
    rows = [f"{i},{i % 7},{'dog' if i % 3 else 'cat'},rex{i}" for i in range(40)]
    (first_start[0] / "pets.csv").write_text("\n".join(["legs,weight,kind,name", *rows]))
    code, said, error = sparingly(
        *("simulate", "--url", url, "--token", token, "--data", "pets.csv", "--target", "kind", "--agent", "pets"),
        *("--experts", "2", "--rate", "40", "--thinking", "0.05", "--lunch", "0", "--wrong", "0.2", "--count", "60"),
    )
    assert (code, error) == (0, "")
    assert f"watch them at {url}/agents/pets/dashboard" in said
    observed, questions, answers = map(
        int, re.search(r"(\d+) observations, (\d+) questions, (\d+) answers", said).groups()
    )
    assert observed == 60
    assert 0 < answers <= questions <= 60
    with sp.Client(url, token, agent="pets") as client:
        history = client.history()
    assert len(history) == 60
    assert {entry.expert for entry in history if entry.label} <= {"Ada (simulated)", "Ben (simulated)"}
    assert {entry.label for entry in history if entry.label} == {"cat", "dog"}
    assert len(re.findall(r"revoked .*\(simulated\)", sparingly("token", "list")[1])) == 2
