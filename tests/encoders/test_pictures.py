"""Pictures become arrays of one size by a stated rule, or are refused in one line."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparingly.encoders import EncodingError
from sparingly.encoders.learned_schema import learn_schema
from sparingly.encoders.pictures import is_picture, pixels, read_picture, shape_of
from sparingly.encoders.row_schema import RowSchema


def saved(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def test_a_path_bytes_and_an_image_are_the_same(tmp_path: Path) -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(256, size=(50, 70, 3), dtype=np.uint8))
    path = tmp_path / "one.png"
    path.write_bytes(saved(image))
    found = [pixels(read_picture(form), (3, 8, 8)) for form in (image, path, str(path), path.read_bytes())]
    assert all(np.array_equal(found[0], other) for other in found)
    assert (found[0].shape, found[0].dtype) == ((3, 8, 8), np.float32)
    assert 0 <= found[0].min() < found[0].max() <= 1


def test_the_rule() -> None:
    half = np.zeros((4, 4), dtype=np.uint8)
    half[:, 2:] = 255
    assert pixels(Image.fromarray(half), (1, 2, 2)).tolist() == [[[0, 1], [0, 1]]]  # means of the parts
    clear = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    assert pixels(clear, (3, 2, 2)).min() == 1.0  # on white
    turned = saved(Image.fromarray(half), "JPEG", exif=_turned())
    assert pixels(read_picture(turned), (1, 2, 2))[0, 0].mean() != pixels(read_picture(turned), (1, 2, 2))[0, 1].mean()
    deep = Image.fromarray(np.full((4, 4), 65535, dtype=np.uint16))
    assert pixels(deep, (1, 2, 2)).max() == 1.0
    assert [shape_of(Image.new(mode, (9, 9))) for mode in ("L", "RGB", "P")] == [(1, 32, 32), (3, 32, 32), (3, 32, 32)]


def _turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6  # by a quarter
    return exif


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: Image.new("L", (1, 1)), "the image has 1 x 1 pixels: 2 x 2 are the least"),
        (lambda: saved(Image.new("1", (20_000, 20_000))), "the image has more than 40000000 pixels"),
        (lambda: saved(Image.new("1", (8000, 8000))), "the image has 8000 x 8000 pixels: 40000000 are the most"),
        (lambda: saved(Image.new("L", (9, 9)))[:60], "the image is broken"),
        (lambda: b"\x89PNG nonsense", "the image is none of PNG"),
        (lambda: Path("/nowhere/x.png"), "the image /nowhere/x.png cannot be read: No such file"),
        (lambda: 7, "a picture is 7"),
    ],
)
def test_what_is_no_picture_is_refused_in_one_line(given, words) -> None:
    with pytest.raises(EncodingError, match=words) as refused:
        read_picture(given())
    assert "\n" not in str(refused.value)


def test_a_picture_among_numbers_and_words(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    Image.new("RGB", (40, 40), "teal").save(path)
    schema = learn_schema([{"photo": path, "age": 3, "job": "smith"}])
    assert schema.described.startswith("photo: picture (32 x 32, colour), age: number, job: category")
    again = RowSchema.from_dict(schema.to_dict())
    assert again == schema
    row = {"photo": Image.new("RGB", (9, 9)), "age": 4, "job": "smith"}
    assert again.encode([row]).shape == (1, schema.width)
    with pytest.raises(EncodingError, match=r"field 'photo' is '/etc/x\.png': give a picture, or its path as a"):
        again.encode([{**row, "photo": "/etc/x.png"}])  # a string may come from anybody, a path does not


def test_strings_are_pictures_only_if_there_is_such_a_file(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    Image.new("RGB", (40, 40)).save(path)
    assert is_picture(str(path))
    assert not is_picture(str(tmp_path / "two.png"))
    assert not is_picture("where is my card?")
