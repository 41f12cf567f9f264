"""The corners that are drawn are those of the cells."""

from __future__ import annotations

import numpy as np
import pytest

from sparingly.games import Game, analyze, label_efficient
from sparingly.games.picture import cell_corners, save_picture


@pytest.mark.parametrize("price", [1.0, 2 / 3, 0.6, 0.3])
def test_corners_are_optimal_and_cells_fill_the_triangle(price):
    geometry = analyze(label_efficient(3, query_cost=price))
    area = 0.0
    for action in range(4):
        corners = cell_corners(geometry, action)
        assert (len(corners) > 0) == (action not in geometry.dominated)
        for p in corners:
            expected = geometry.game.costs @ p
            assert expected[action] == pytest.approx(expected.min())
        if action in geometry.pareto:
            x, y = corners[:, 0], corners[:, 1]
            area += abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2
    assert area == pytest.approx(0.5)


@pytest.mark.parametrize("price", [1.0, 0.5, 0.3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_kind_of_cell_is_drawn(tmp_path, price, n_classes):
    geometry = analyze(label_efficient(n_classes, query_cost=price if n_classes == 2 else price * 4 / 3))
    save_picture(geometry, tmp_path / "cells.svg")
    drawn = (tmp_path / "cells.svg").read_text()
    assert drawn.startswith("<?xml")
    save_picture(geometry, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawn


def test_only_two_or_three_outcomes_can_be_drawn(tmp_path):
    with pytest.raises(ValueError, match="this game has 1"):
        save_picture(analyze(Game([[1.0]], [["a"]])), tmp_path / "cells.png")
    assert list(tmp_path.iterdir()) == []
