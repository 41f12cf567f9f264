"""The sentence encoder: what sentence-transformers makes of the same weights, and nearly that in 8 bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparingly.encoders.minilm_encoder import MiniLM, folder

TEXTS = ["My card was stolen yesterday", "naïve €50 — שלום ✓ 漢字", "When my father died I felt lost. " * 60]
BY_SENTENCE_TRANSFORMERS = [
    -0.03937000036239624,
    0.12872999906539917,
    -0.056120000779628754,
    0.01995999924838543,
    -0.0706000030040741,
    -0.011020000092685223,
]
"""The first numbers that sentence-transformers 5 has for the second text."""


@pytest.fixture(scope="module")
def rounded():
    return MiniLM(folder())


@pytest.fixture(scope="module")
def exact():
    return MiniLM(folder(), exact=True)


def test_it_is_what_sentence_transformers_computes(exact):
    np.testing.assert_allclose(exact(TEXTS)[1][:6], BY_SENTENCE_TRANSFORMERS, atol=1e-4)


def test_in_8_bits_it_is_nearly_the_same(exact, rounded):
    assert ((exact(TEXTS) * rounded(TEXTS)).sum(1) > 0.98).all()
    assert not np.array_equal(exact(TEXTS), rounded(TEXTS))


def test_a_text_does_not_depend_on_those_beside_it(rounded):
    lengths = [*range(1, 40), 12, 12, 13, 90, 300]
    texts = [*TEXTS, *(" ".join(["card", "was", "stolen", "my"][k % 4] for k in range(n)) for n in lengths)]
    alone = np.concatenate([rounded([text]) for text in texts])
    np.testing.assert_array_equal(rounded(texts), alone)
    np.testing.assert_array_equal(rounded(texts[::-1])[::-1], alone)


def test_no_texts_are_no_vectors(rounded):
    assert rounded([]).shape == (0, 384)


def test_of_a_long_text_the_beginning_counts(rounded):
    long = "Where is my card? " * 100
    np.testing.assert_array_equal(rounded([long]), rounded([long + "And something else."]))


def test_without_torchscript_it_is_the_same_to_the_bit(rounded, monkeypatch):
    def script(layers):
        raise OSError("could not get source code")

    monkeypatch.setattr(torch.jit, "script", script)
    np.testing.assert_array_equal(MiniLM(folder())(TEXTS), rounded(TEXTS))
