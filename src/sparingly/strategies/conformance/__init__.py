"""The conformance suite: what every strategy must do, ours and yours, whatever it is made of.

Each check is a function of a `Case` that raises a `ConformanceError` with the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from sparingly.strategies.conformance.adding import a_class_is_added_or_refused
from sparingly.strategies.conformance.case import Case, ConformanceError, Factory
from sparingly.strategies.conformance.hearing import (
    answers_of_experts_may_be_late_or_missing,
    experts_who_may_err_are_played_or_refused,
    rounds_with_several_answers_can_be_repeated,
)
from sparingly.strategies.conformance.known_outcomes import known_outcomes_are_learned_or_refused
from sparingly.strategies.conformance.refusing import (
    bad_observations_are_refused,
    foreign_states_are_refused,
    unknown_actions_and_symbols_are_refused,
)
from sparingly.strategies.conformance.repeating import (
    blocks_of_one_equal_blocks_of_many,
    copies_go_their_own_way,
    global_random_state_is_left_alone,
    looking_changes_nothing,
    outcomes_are_never_seen,
    same_seed_same_decisions,
    saving_changes_nothing,
)
from sparingly.strategies.conformance.streaming import (
    asking_does_not_die,
    decisions_are_well_formed,
    every_game_is_played_or_refused,
    it_beats_asking_at_random,
    labels_may_be_late_reordered_or_missing,
    odd_streams_do_not_break_it,
)
from sparingly.strategies.strategy import Strategy

Check = Callable[[Case], None]

CHECKS: tuple[Check, ...] = (
    decisions_are_well_formed,
    every_game_is_played_or_refused,
    same_seed_same_decisions,
    blocks_of_one_equal_blocks_of_many,
    looking_changes_nothing,
    saving_changes_nothing,
    copies_go_their_own_way,
    global_random_state_is_left_alone,
    outcomes_are_never_seen,
    labels_may_be_late_reordered_or_missing,
    bad_observations_are_refused,
    unknown_actions_and_symbols_are_refused,
    foreign_states_are_refused,
    odd_streams_do_not_break_it,
    experts_who_may_err_are_played_or_refused,
    rounds_with_several_answers_can_be_repeated,
    answers_of_experts_may_be_late_or_missing,
    known_outcomes_are_learned_or_refused,
    a_class_is_added_or_refused,
    asking_does_not_die,
    it_beats_asking_at_random,
)
"""All checks, in the order in which they run."""


def check(
    strategy_factory: Factory | type[Strategy] | Callable[..., Strategy],
    *,
    short: bool = False,
    only: Collection[str] = (),
) -> tuple[str, ...]:
    """Run the conformance suite on a strategy; the first check that fails is a `ConformanceError`.

    Parameters
    ----------
    strategy_factory
        A strategy class, or a function of (game, n_features, seed) that builds one. A game that it cannot play it
        refuses with a ValueError; the suite then plays another.
    short
        Shorter streams: seconds instead of a minute for a neural strategy.
    only
        The names of the checks to run; all when left out.

    Returns
    -------
    The names of the checks that were passed; those that the strategy's definition exempts it from are not among them.

    Examples
    --------
    >>> from sparingly import strategies
    >>> passed = strategies.check(strategies.NeverAsk, short=True)
    >>> len(passed), "same_seed_same_decisions" in passed, "asking_does_not_die" in passed
    (20, True, False)
    """
    unknown = set(only) - {one.__name__ for one in CHECKS}
    if unknown:
        raise ValueError(f"{sorted(unknown)[0]!r} is no check: they are {', '.join(one.__name__ for one in CHECKS)}")
    case = Case(_with_seed(strategy_factory), short=short)
    passed = []
    for one in CHECKS:
        if (only and one.__name__ not in only) or one.__name__ in exemptions(case.make()):
            continue
        try:
            one(case)
        except ConformanceError as error:
            raise ConformanceError(f"{case.make().name} fails {one.__name__}: {error}") from error
        except Exception as error:
            raise ConformanceError(f"{case.make().name} fails {one.__name__}: {error!r}") from error
        passed.append(one.__name__)
    return tuple(passed)


def exemptions(strategy: Strategy) -> set[str]:
    """The checks that a strategy's definition exempts it from."""
    exempt = set()
    if strategy.stops_asking:
        exempt.add(asking_does_not_die.__name__)
    if not strategy.beats_random:
        exempt.add(it_beats_asking_at_random.__name__)
    return exempt


def _with_seed(factory: Any) -> Factory:
    """Call the factory with its seed by name where it takes one by name, else in third place."""

    def make(game: Any, n_features: int, *, seed: int) -> Strategy:
        try:
            made = factory(game, n_features, seed=seed)
        except TypeError as error:
            if "seed" not in str(error):
                raise
            made = factory(game, n_features, seed)
        if not isinstance(made, Strategy):
            raise ConformanceError(f"the factory made {made!r}, which is no Strategy")
        return made

    return make


__all__ = ["CHECKS", "Case", "Check", "ConformanceError", "Factory", "check", "exemptions"]
