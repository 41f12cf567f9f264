"""A folder of pictures, and a table with paths: read, broken files named and left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparingly.experiments.csv_files import DataError
from sparingly.experiments.datasets import load
from sparingly.experiments.picture_files import content_hash


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARINGLY_CACHE", str(tmp_path / "cache"))
    for kind, colour in (("cats", "teal"), ("dogs", "gold")):
        (tmp_path / "zoo" / kind).mkdir(parents=True)
        for i in range(4):
            Image.new("RGB", (40 + i, 50), colour).save(tmp_path / "zoo" / kind / f"{i}.png")
    return tmp_path / "zoo"


def test_a_folder_with_a_subfolder_a_class(zoo: Path) -> None:
    (zoo / "cats" / "bad.png").write_bytes(b"nonsense")
    (zoo / "cats" / "notes.txt").write_text("no picture")
    data = load(zoo, "encoded", flat=False)
    assert (data.raw.shape, data.classes, data.y.tolist()) == ((8, 3, 32, 32), ("cats", "dogs"), [0] * 4 + [1] * 4)
    assert data.raw[0, :, 0, 0].tolist() == [0, 128, 128]
    assert len(data.notes) == 1
    assert "bad.png: the image is none of" in data.notes[0]
    assert load(zoo).X.shape == (8, 3072)
    before = content_hash(zoo)
    Image.new("RGB", (9, 9)).save(zoo / "cats" / "new.png")
    assert content_hash(zoo) != before
    assert len(load(zoo)) == 9


def test_grey_pictures_have_one_channel(zoo: Path) -> None:
    for path in zoo.glob("*/*.png"):
        Image.open(path).convert("L").save(path)
    assert load(zoo, flat=False).raw.shape == (8, 1, 32, 32)


def test_a_table_with_paths_beside_numbers(zoo: Path) -> None:
    lines = [f"{path.relative_to(zoo)},{i},{path.parent.name}" for i, path in enumerate(sorted(zoo.glob("*/*.png")))]
    (zoo / "list.csv").write_text("\n".join(["photo,age,kind", *lines, "cats/gone.png,3,cats"]))
    data = load(zoo / "list.csv", "encoded", target="kind")
    assert (data.raw.shape[0], data.classes) == (8, ("cats", "dogs"))
    assert np.isfinite(data.raw).all()
    assert data.schema is not None
    assert data.schema.described.startswith("photo: picture (32 x 32, colour), age: number")
    assert "gone.png cannot be read: No such file" in data.notes[-1]


def test_what_is_no_folder_of_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no pictures: give a folder with one subfolder a class"):
        load(tmp_path)
    Image.new("RGB", (9, 9)).save(tmp_path / "cat.png")
    with pytest.raises(DataError, match="has pictures beside its subfolders only: give a folder"):
        load(tmp_path)


def test_every_kind_of_bad_picture_is_named_and_left_out(zoo: Path) -> None:
    whole = (zoo / "cats" / "0.png").read_bytes()
    Image.new("RGB", (1, 1)).save(zoo / "cats" / "dot.png")
    Image.new("1", (20_000, 20_000)).save(zoo / "cats" / "wall.png")
    (zoo / "dogs" / "half.png").write_bytes(whole[: len(whole) // 2])
    (zoo / "dogs" / "text.png").write_text("no picture at all")
    (zoo / "dogs" / "void.png").write_bytes(b"")
    wanted = {
        "dot.png: the image has 1 x 1 pixels: 2 x 2 are the least",
        "wall.png: the image has more than 40000000 pixels",
        "half.png: the image is broken",
        "text.png: the image is none of",
        "void.png: the image is none of",
    }
    lines = [f"{path},{path.parent.name}" for path in sorted(zoo.glob("*/*.png"))]
    (zoo / "list.csv").write_text("\n".join(["photo,kind", *lines]))
    for data in (load(zoo, "encoded"), load(zoo / "list.csv", "encoded", target="kind")):
        assert len(data) == 8
        told = [note for note in data.notes if note.startswith("warning")]
        assert all(sum(one in note for note in told) == 1 for one in wanted), told
        assert len(told) == len(wanted)
