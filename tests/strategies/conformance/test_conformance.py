"""Every registered strategy passes the conformance suite, and every check of the suite can fail."""

import functools
import inspect

import pytest

import sparingly
from sparingly.strategies import ConformanceError, check
from sparingly.strategies.conformance import CHECKS
from tests.strategies.conformance.hearing_toys import BROKEN_HEARING, AsksInOrder
from tests.strategies.conformance.toy import BROKEN, Honest

NAMES = tuple(one.__name__ for one in CHECKS)
LEARNING = ("asking_does_not_die", "it_beats_asking_at_random")


FEW_UPDATES = {"schedule": "geometric 1.5"}
SMALL = {"schedule": "geometric 2", "epochs": 2, "width": 16, "members": 2, "n_models": 3}


def quick(strategy, options):
    """The strategy with those of the options that it has: the contract does not depend on how well it learns."""
    known = inspect.signature(strategy).parameters
    chosen = {name: value for name, value in options.items() if name in known}
    if "options" in known:  # for the strategy inside
        chosen["options"] = {name: value for name, value in options.items() if name in ("schedule", "epochs")}
    return functools.partial(strategy, **chosen)


@pytest.mark.parametrize("strategy", sparingly.strategies().values(), ids=sparingly.strategies())
def test_every_strategy_keeps_the_contract(strategy):
    contract = [name for name in NAMES if name not in LEARNING]
    passed = check(quick(strategy, SMALL), short=True, only=contract)
    assert list(passed) == contract


@pytest.mark.parametrize("strategy", sparingly.strategies().values(), ids=sparingly.strategies())
def test_every_strategy_goes_on_asking_and_beats_the_coin(strategy):
    passed = check(quick(strategy, FEW_UPDATES), short=True, only=LEARNING)
    assert ("asking_does_not_die" in passed) is not strategy.stops_asking
    assert ("it_beats_asking_at_random" in passed) is strategy.beats_random


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cbp_side", {"link": "logistic"}),
        ("neural_cbp", {"preset": "paper"}),
        ("cesa", {"rule": "published"}),
        ("margin", {"rule": "published"}),
    ],
)
def test_the_other_forms_keep_the_contract_too(name, options):
    contract = [name for name in NAMES if name not in LEARNING]
    made = functools.partial(quick(sparingly.strategies()[name], SMALL), **options)
    assert list(check(made, short=True, only=contract)) == contract


def test_an_honest_toy_passes_in_full():
    assert check(Honest) == NAMES


def test_a_toy_that_hears_experts_who_may_err_passes_their_checks():
    hearing = [name for name in NAMES if name in BROKEN_HEARING]
    assert list(check(AsksInOrder, short=True, only=hearing)) == hearing


@pytest.mark.parametrize(
    ("name", "broken"), [(name, toy) for name, toys in BROKEN.items() for toy in toys], ids=lambda value: str(value)
)
def test_every_check_can_fail(name, broken):
    with pytest.raises(ConformanceError, match=f"honest fails {name}: .") as failure:
        check(broken, short=True, only=[name])
    assert "\n" not in str(failure.value)


def test_every_check_has_a_toy_that_fails_it():
    assert tuple(BROKEN) == NAMES


def test_a_factory_may_take_its_seed_in_third_place_and_an_unknown_check_is_named():
    assert check(lambda game, n, number: Honest(game, n, seed=number), short=True, only=[NAMES[0]]) == NAMES[:1]
    with pytest.raises(ValueError, match="'nonsense' is no check"):
        check(Honest, only=["nonsense"])
    with pytest.raises(ConformanceError, match="no Strategy"):
        check(lambda game, n_features, seed: object())
