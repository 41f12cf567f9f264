"""The record of decisions notices a change, and says what kind it is."""

from __future__ import annotations

from benchmarks import decisions


def test_a_record_is_the_same_twice_and_a_change_is_named() -> None:
    case = next(case for case in decisions.cases() if case.name == "made")
    before = {f"{name}/made": decisions.of_strategy(name, case) for name in ("never_ask", "tspm")}
    assert before["tspm/made"] == "refused ValueError"
    again = {**before, "never_ask/made": decisions.of_strategy("never_ask", case)}
    assert decisions.differences(before, again) == []
    decided, cost, reasons, scores = before["never_ask/made"]
    other_words = {**before, "never_ask/made": [decided, cost, "other", scores]}
    assert "reasons or scores differ" in decisions.differences(before, other_words)[0]
    other_decisions = {**before, "never_ask/made": ["other", cost, reasons, scores]}
    assert "decisions differ" in decisions.differences(before, other_decisions)[0]
    assert len(decisions.differences(before, {})) == 2
