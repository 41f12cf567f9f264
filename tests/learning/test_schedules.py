"""When updates are due: by name, and one by one."""

from __future__ import annotations

import pytest

from sparingly.learning.schedules import Geometric, PaperSchedule, update_schedule


def test_schedules_agree_with_themselves() -> None:
    for made in (PaperSchedule(), update_schedule("every 7"), Geometric(1.3)):
        due = [t for t in range(1, 3000) if made.due(t)]
        walked, t = [], 0
        while (t := made.next(t)) < 3000:
            walked.append(t)
        assert walked == due


@pytest.mark.parametrize("name", ["papier", "every 0", "every", "geometric 1", "geometric x"])
def test_unknown_schedules_are_named(name: str) -> None:
    with pytest.raises(ValueError, match="is not known"):
        update_schedule(name)
