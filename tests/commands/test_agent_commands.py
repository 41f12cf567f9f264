"""`sparingly agent`, as it is typed."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pexpect
import pyarrow.parquet as pq
import pytest
from PIL import Image

import sparingly as sp
from sparingly.commands.main import main
from sparingly.live.service.service import Service
from tests import fork_server

COMMAND = "from sparingly.commands.main import main; main()"


def run(
    *args: str, stdin: str = "", capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    with pytest.raises(SystemExit) as left:
        main(["agent", *args])
    said = capsys.readouterr()
    return int(left.value.code or 0), said.out, said.err


@pytest.fixture
def sparingly(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    return lambda *args, stdin="": run(*args, stdin=stdin, capsys=capsys, monkeypatch=monkeypatch)


def test_a_whole_life(sparingly, path: Path) -> None:  # type: ignore[no-untyped-def]
    place = str(path)
    code, said, _ = sparingly(
        "create", place, "--classes", "cat,dog", "--strategy", "always_ask", "--query-cost", "0.5"
    )
    assert (code, said) == (0, f"{place}: 2 classes, strategy always_ask\n")
    lines = "a,b,id\n1,2,first\n3,4,second\n"
    code, said, _ = sparingly("observe", place, stdin=lines)
    assert [json.loads(line)["id"] for line in said.splitlines()] == ["first", "second"]
    assert sparingly("observe", place, stdin=lines)[1] == said
    sparingly("observe", place, stdin='{"features": {"a": 5, "b": 6}, "id": "third", "payload": "look here"}\n')
    assert "look here" in sparingly("questions", place)[1]
    assert sparingly("answer", place, "first", "dog")[0] == 0
    code, said, _ = sparingly("answer", place, stdin="1\ns\nq\n")
    assert "question second" in said
    assert "1 answered" in said
    code, said, _ = sparingly("stats", place)
    assert "3 observations, 3 questions: 2 answered, 1 open" in said
    assert "always asking would have cost 1.5" in said
    assert json.loads(sparingly("stats", place, "--json")[1])["answered"] == 2
    for name in ("out.csv", "out.parquet"):
        assert sparingly("export", place, str(path.with_name(name)))[1].endswith("2 labelled observations\n")
    rows = list(csv.DictReader(path.with_name("out.csv").open()))
    assert [(row["id"], float(row["a"]), row["label"]) for row in rows] == [("first", 1, "dog"), ("second", 3, "cat")]
    table = pq.read_table(path.with_name("out.parquet")).to_pylist()
    assert [(row["id"], row["b"], row["label"], row["expert"]) for row in table] == [
        ("first", 2, "dog", None),
        ("second", 4, "cat", "terminal"),
    ]
    code, said, _ = sparingly("check", place)
    assert code == 0
    assert said.endswith("is whole\n")


@pytest.mark.parametrize(
    "words",
    [
        ("--cost", "announced=cat,true=dog,cost=5"),
        ("--cost", "announced=cat,true=dog:5"),
        ("--costs", "0 5; 1 0"),
        ("--costs", "[[0, 5], [1, 0]]"),
    ],
)
def test_costs_in_every_spelling(sparingly, path: Path, words: tuple[str, str]) -> None:  # type: ignore[no-untyped-def]
    code, _, error = sparingly("create", str(path), "--classes", "cat,dog", "--query-cost", "0.5", *words)
    assert (code, error) == (0, "")
    with sp.Agent.open(path) as agent:
        assert agent.settings.costs == ((0, 5), (1, 0), (0.5, 0.5))


@pytest.mark.parametrize(
    ("args", "stdin", "words"),
    [
        (("create", "{new}", "--classes", "cat"), "", "two or more classes, not 1"),
        (("create", "{new}", "--classes", "a,b", "--cost", "a:b=2"), "", "cost 'a:b=2' must look like"),
        (
            ("create", "{new}", "--classes", "cat,dog", "--cost", "announced=cat,true=dgo:2"),
            "",
            "there is no class 'dgo'; did you mean dog?",
        ),
        (("observe", "{place}"), '{"a": [1], "b": "x"}\n', "field 'a' is [1]: a category must be a word or a number"),
        (("observe", "{place}"), "a,b\n1\n", "line 2 has more or fewer fields"),
        (("observe", "{place}"), "{oops\n", "line 1 is not JSON"),
        (("observe", "{place}", "--format", "xml"), "x\n", "format 'xml' is unknown"),
        (("answer", "{place}", "nix", "cat"), "", "there is no ticket 'nix'"),
        (("answer", "{place}", "nix"), "", "the label for ticket 'nix' is missing"),
        (("stats", "{new}"), "", "does not exist"),
        (("export", "{place}", "{new}.xls"), "", "must end in .csv or .parquet"),
        (("check", "{new}"), "", "does not exist"),
    ],
)
def test_what_the_user_got_wrong_is_one_line(  # type: ignore[no-untyped-def]
    sparingly, path: Path, args: tuple[str, ...], stdin: str, words: str
) -> None:
    sp.Agent(["cat", "dog"], path=path, strategy="always_ask").close()
    names = {"place": str(path), "new": str(path.with_name("new.db"))}
    code, _, error = sparingly(*(arg.format(**names) for arg in args), stdin=stdin)
    assert code == 2
    assert words in error
    assert len(error.splitlines()) == 1


def test_answering_by_keypress_in_a_terminal(path: Path) -> None:
    with sp.Agent(["cat", "dog"], 2, path=path, strategy="always_ask") as agent:
        for i in range(4):
            agent.observe([i, i], payload={"legs": i})
    source = str(Path(sp.__file__).parents[1])
    child = pexpect.spawn(
        sys.executable,
        ["-c", COMMAND, "agent", "answer", str(path), "--expert", "ann"],
        env={**os.environ, "PYTHONPATH": source, "COLUMNS": "100"},
        encoding="utf-8",
        timeout=60,
    )
    for expect, key in (
        ("legs +0", "2"),
        ("legs +1", "d"),
        ("legs +2", "2"),
        ("legs +3", "u"),
        ("legs +2", "1"),
        ("legs +3", "?"),
    ):
        child.expect(expect)
        child.expect("quit")
        child.send(key)
    child.expect("none of the keys")
    child.expect("quit")
    child.send("q")
    child.expect("2 answered")
    child.expect(pexpect.EOF)
    with sp.Agent.open(path) as agent:
        assert [(e.label, e.status, e.expert) for e in agent.history()] == [
            ("dog", "answered", "ann"),
            (None, "unknown", "ann"),
            ("cat", "answered", "ann"),
            (None, "open", None),
        ]


def test_questions_and_stats_beside_the_process_that_has_the_file(path: Path) -> None:
    with sp.Agent(["cat", "dog"], 2, path=path, strategy="always_ask") as agent:
        agent.observe([1, 2])
        fork_server.install(path.with_name("sparingly"))
        words = [str(path.with_name("sparingly")), "agent", "stats", str(path)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert "1 observations, 1 questions" in done.stdout, done.stderr


@pytest.mark.parametrize("content", [b"", b"not a database, but a text that is long enough to be one\n" * 200, None])
def test_what_cannot_be_recovered_is_one_line(sparingly, path: Path, content: bytes | None) -> None:  # type: ignore[no-untyped-def]
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    code, _, said = sparingly("check", str(path), "--recover", str(path.with_name("left.csv")))
    assert (code, said.count("\n")) == (2, 1)
    assert str(path) in said
    assert not path.with_name("left.csv").exists()


def test_the_life_of_a_services_agent(sparingly, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    service = Service(str(tmp_path))
    service.agents.create("fruit", classes=["apple", "pear"], training="inline")
    service.close()
    store = ("--store", str(tmp_path))
    assert sparingly("pause", "fruit", *store)[:2] == (0, "fruit is paused\n")
    assert sparingly("resume", "fruit", *store)[1] == "fruit is active\n"
    assert sparingly("archive", "fruit", *store)[1] == "fruit is archived\n"
    assert sparingly("pause", "fruit", *store)[0] == 2
    assert sparingly("unarchive", "fruit", *store)[1] == "fruit is active\n"
    assert sparingly("rename", "fruit", "apples", *store)[1] == "fruit is now apples\n"
    assert sparingly("list", *store)[1] == "active    apples\n"
    assert sparingly("delete", "pears", "--yes", *store)[2] == "sparingly: there is no agent 'pears'\n"
    assert sparingly("delete", "apples", "--yes", *store)[1] == "apples is deleted\n"
    assert not list(tmp_path.glob("*.agent.db*"))
    assert sparingly("list", "--store", str(tmp_path / "none"))[0] == 2


def test_stats_say_what_the_next_questions_save(sparingly, path: Path) -> None:  # type: ignore[no-untyped-def]
    rng, place = np.random.default_rng(0), str(path)
    y = rng.integers(2, size=120)
    X = rng.normal(size=(120, 3)) + y[:, None]
    with sp.Agent(["cat", "dog"], 3, path=path, query_cost=0.3, seed=0) as agent:
        for x, label in zip(X, y, strict=True):
            ticket = agent.observe(x)
            if ticket.asks:
                agent.answer(ticket.id, ["cat", "dog"][label])
        told = agent.stats().outlook
    assert told is not None
    assert f"the next 100 questions cost 30 and save about {told.saves:.4g}" in sparingly("stats", place)[1]
    assert json.loads(sparingly("stats", place, "--json")[1])["outlook"]["saves"] == pytest.approx(told.saves)


def test_labels_from_a_file_are_taught(sparingly, path: Path) -> None:  # type: ignore[no-untyped-def]
    place, file = str(path), path.with_name("known.csv")
    file.write_text("age,job,kind,id\n39,clerk,1,a\n,smith,0,b\n41,clerk,,c\n")
    sparingly("create", place, "--classes", "0,1")
    assert sparingly("teach", place, str(file), "--target", "kind")[1] == (
        f"{place}: 2 labels taught, 1 rows without one left out\n"
    )
    assert sparingly("teach", place, "-", "--target", "kind", stdin=file.read_text())[1].startswith(
        f"{place}: 0 labels"
    )
    assert "; 2 labels taught" in sparingly("stats", place)[1]
    code, _, said = sparingly("teach", place, str(file), "--target", "nokind")
    assert code != 0
    assert "row 1 has no column 'nokind'" in said
    code, _, said = sparingly("teach", place, str(path.with_name("absent.csv")))
    assert code != 0
    assert "absent.csv" in said


def test_observe_reads_a_file_as_it_comes_and_predict_uses_the_model(sparingly, path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    place, known, new = str(path), path.with_name("known.csv"), path.with_name("new.csv")
    known.write_bytes("größe;art;id\n1,5;klein;a\n9,25;groß;b\n2,0;klein;c\n".encode("cp1252"))
    new.write_bytes("größe;bild;id\n8,75;ein Haus;x\n".encode("cp1252"))
    sparingly("create", place, "--classes", "klein,groß", "--strategy", "never_ask")
    assert "3 labels taught" in sparingly("teach", place, str(known), "--target", "art")[1]
    ticket = json.loads(sparingly("observe", place, str(new), "--payload", "bild")[1])
    assert (ticket["id"], set(ticket["probabilities"])) == ("x", {"klein", "groß"})
    code, _, said = sparingly("observe", place, str(new), "--payload", "foto")
    assert code != 0
    assert "no column 'foto'" in said
    model = str(path.with_name("sizes.model"))
    assert sparingly("export-model", place, model)[1] == f"{model}: a model with 2 classes\n"
    with pytest.raises(SystemExit) as left:
        main(["predict", model, "--data", str(new)])
    assert not left.value.code
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0] == "id,prediction,klein,groß"
    assert shown.out.splitlines()[1].startswith("x,klein,")
    assert "left out: bild" in shown.err
    with pytest.raises(SystemExit):
        main(["predict", model, "--data", str(new), "--out", str(path.with_name("out.csv"))])
    assert path.with_name("out.csv").read_text().splitlines() == shown.out.splitlines()


def test_the_terminal_shows_all_fields_with_their_names(sparingly, path: Path) -> None:  # type: ignore[no-untyped-def]
    place = str(path)
    sparingly("create", place, "--classes", "cat,dog", "--strategy", "always_ask")
    header = ",".join(f"field{i}" for i in range(25))
    sparingly("observe", place, stdin=f"{header}\n{','.join(map(str, range(25)))}\n")
    said = sparingly("answer", place, stdin="q\n")[1]
    assert all(f"field{i} " in said for i in range(25))
    assert "never asking would have cost is not known" in sparingly("stats", place)[1]
    other = str(path.with_name("words.db"))
    sparingly("create", other, "--classes", "cat,dog", "--strategy", "always_ask")
    sparingly("observe", other, stdin="age,job\n39,clerk\n,smith\n")
    said = sparingly("answer", other, stdin="s\nq\n")[1]
    assert "clerk" in said
    assert "missing" in said


def test_a_file_of_paths_is_a_file_of_pictures(sparingly, path: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    photos = tmp_path / "photos"
    photos.mkdir()
    for name, colour in (("a", 40), ("b", 200)):
        Image.new("RGB", (30, 20), (colour,) * 3).save(photos / f"{name}.png")
    (tmp_path / "known.csv").write_text("photo,kind\nphotos/a.png,dark\nphotos/b.png,light\n")
    (tmp_path / "new.csv").write_text("photo\nphotos/b.png\nphotos/a.png\n")
    sparingly("create", str(path), "--classes", "dark,light", "--strategy", "always_ask")
    assert "2 labels taught" in sparingly("teach", str(path), str(tmp_path / "known.csv"), "--target", "kind")[1]
    assert len(sparingly("observe", str(path), str(tmp_path / "new.csv"))[1].splitlines()) == 2
    with sp.Agent.open(path) as agent:
        assert (agent.settings.shape, agent.questions()[0].payload.kind) == ((3, 32, 32), "image")
    Image.new("1", (20_000, 20_000)).save(photos / "wall.png")
    Image.new("RGB", (1, 1)).save(photos / "dot.png")
    (photos / "half.png").write_bytes((photos / "a.png").read_bytes()[:50])
    (photos / "text.png").write_text("no picture at all")
    for name, words in (
        ("wall", "wall.png: the image has more than 40000000 pixels"),
        ("dot", "dot.png: the image has 1 x 1 pixels: 2 x 2 are the least"),
        ("half", "half.png: the image is broken"),
        ("text", "text.png: the image is none of PNG"),
        ("gone", "gone.png cannot be read: No such file"),
    ):
        (tmp_path / "bad.csv").write_text(f"photo\nphotos/a.png\nphotos/{name}.png\n")
        code, _, said = sparingly("observe", str(path), str(tmp_path / "bad.csv"))
        assert (code != 0, words in said, said.count("\n")) == (True, True, 1), said
    with sp.Agent.open(path) as agent:
        assert agent.stats().observations == 2


def test_a_text_that_ends_like_a_picture_is_a_text(sparingly, path: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "mails.csv").write_text("mail\nmy card is gone\nplease look at card.png\n")
    sparingly("create", str(path), "--classes", "a,b", "--strategy", "always_ask", "--encoder", "hashing")
    assert len(sparingly("observe", str(path), str(tmp_path / "mails.csv"))[1].splitlines()) == 2
