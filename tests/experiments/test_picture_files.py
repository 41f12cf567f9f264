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
