"""An agent observes pictures: as PIL images, paths or bytes; a broken one is refused and nothing is kept."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from torch import nn

import sparingly as sp
from sparingly.adapters.torch import FrozenFeatures
from sparingly.live.agent.errors import AgentError
from tests.live.served import picture


def test_pictures_in_every_form(make, path, tmp_path) -> None:
    agent = make(n_features=None)
    file = tmp_path / "teal.png"
    file.write_bytes(picture())
    image = Image.open(io.BytesIO(picture()))
    for form in (image, file, str(file), picture()):
        agent.observe(form)
    agent.observe_many([image, file])
    assert agent.settings.shape == (3, 32, 32)
    questions = agent.questions(limit=10)
    assert len({question.features for question in questions}) == 1
    assert {(q.payload.kind, q.payload.media) for q in questions} == {("image", "image/png")}
    agent.observe(np.zeros((3, 32, 32)))  # numbers of the same shape are taken as ever
    agent.close()
    with sp.Agent.open(path) as opened:
        assert not opened.observe(file, id="again").asks or opened.ticket("again").asks
        assert opened.count_events() == 8


def test_they_are_brought_to_the_shape_that_is_stated(make) -> None:
    agent = make(n_features=(1, 8, 8))
    agent.observe(picture("JPEG"), payload="a note")
    (question,) = agent.questions()
    assert (len(question.features), question.payload.content) == (64, "a note")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (picture()[:60], "the image is broken"),
        (Image.new("RGB", (1, 1)), "1 x 1 pixels"),
        (b"\x89PNG....", "the image is none of"),
    ],
)
def test_a_broken_picture_is_refused(make, given, words) -> None:
    agent = make(n_features=None)
    with pytest.raises(AgentError, match=words):
        agent.observe(given)
    assert (agent.count_events(), agent.settings.shape) == (0, None)
    agent.observe([1.0, 2.0])  # nothing was fixed by it


def test_bytes_that_are_no_picture_are_no_text_where_pictures_are_expected(make) -> None:
    agent = make(n_features=(3, 32, 32))
    with pytest.raises(AgentError, match="the image is none of PNG, JPEG"):
        agent.observe(b"hello")
    with pytest.raises(AgentError, match=r"not the text 'cat\.png': give a pathlib\.Path, bytes or a PIL image"):
        agent.observe("cat.png")
    with pytest.raises(AgentError, match="an observation is a picture of 3 x 32 x 32 numbers, not words: category"):
        agent.observe({"words": "hello"})


def test_an_agent_of_numbers_takes_no_picture(make) -> None:
    agent = make()
    with pytest.raises(AgentError, match="not that of an image"):
        agent.observe(picture())


def test_a_frozen_module_in_front_and_lenet(make, tmp_path) -> None:
    module = nn.Sequential(nn.Conv2d(3, 2, 5, stride=4), nn.Flatten())
    frozen = FrozenFeatures(sp.label_efficient(classes=["cat", "dog"]), (3, 16, 16), extractor=module)
    agent = make(strategy=frozen, n_features=None)
    assert agent.observe(picture()).asks
    agent.add_class("cow")
    assert agent.scores([picture()]).shape == (1, 3)
    other = make(path=tmp_path / "lenet.db", n_features=(3, 16, 16), strategy="sparing", options={"network": "lenet"})
    assert other.observe(picture()).asks
