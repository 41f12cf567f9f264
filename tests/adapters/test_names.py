"""The adapters' names, each from its module and from the package."""

import importlib

import pytest

from sparingly import adapters


@pytest.mark.parametrize("name", adapters.__all__)
def test_a_name_is_found_when_it_is_used(name):
    found = getattr(adapters, name)
    assert found.__name__ == name
    assert getattr(importlib.import_module(found.__module__), name) is found
    assert found.__doc__


def test_other_names_are_errors():
    with pytest.raises(AttributeError, match="has no attribute 'clairvoyance'"):
        adapters.clairvoyance  # noqa: B018
