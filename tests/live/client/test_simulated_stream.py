"""What is replayed to a service comes from a table, however that is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparingly.live.agent.errors import AgentError
from sparingly.live.client.simulation import read_csv

TABLES = {
    "plain": b'legs,size,name,kind\n4,3.5,Rex,dog\n4,2,"Mia, old",cat\n',
    "semicolons, decimal commas, cp1252": "legs;size;name;kind\r\n4;3,5;Rex;dog\r\n4;2;Mäxi;cat\r\n".encode("cp1252"),
    "tabs, a mark at the beginning": "\ufefflegs\tsize\tname\tkind\n4\t3.5\tRex\tdog\n4\t2\tMia\tcat\n".encode(),
}


@pytest.mark.parametrize("written", TABLES.values(), ids=TABLES)
def test_a_table_is_read_however_it_is_written(written: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pets.csv"
    path.write_bytes(written)
    stream = read_csv(path, "kind")
    assert stream.classes == ("cat", "dog")
    assert [one.features for one in stream.examples] == [{"legs": 4.0, "size": 3.5}, {"legs": 4.0, "size": 2.0}]
    assert [one.label for one in stream.examples] == ["dog", "cat"]
    assert list(stream.examples[0].payload) == ["legs", "size", "name"]
    assert read_csv(path, None) == stream, "without a name the last column is the class"


@pytest.mark.parametrize(
    ("written", "target", "words"),
    [
        (b"a,kind\n", None, "has no rows"),
        (b"a,kind\n1,cat\n", "sort", "has no column 'sort': it has a, kind"),
        (b"a,kind\nx,cat\n", None, "has no column of numbers beside 'kind'"),
        (b"a,kind\n,cat\n1,dog\n", None, "has no column of numbers beside 'kind'"),
    ],
)
def test_what_cannot_be_replayed_is_said(written: bytes, target: str | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "pets.csv"
    path.write_bytes(written)
    with pytest.raises(AgentError, match=words):
        read_csv(path, target)
