"""Ready games: label-efficient games of every kind, and the classics of the literature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparingly.experts import Expert
from sparingly.experts.expert import named_experts
from sparingly.games.costs import read_costs
from sparingly.games.game import Game, Symbol
from sparingly.games.matrices import check_class, cost_matrix

Partition = Sequence[Sequence[int | str]]

_SILENT = "-"


def label_efficient(
    n_classes: int | None = None,
    costs: ArrayLike | Sequence[Sequence[float]] | Sequence[Mapping[str, Any]] | Path | None = None,
    query_cost: float | Sequence[float] = 1.0,
    *,
    experts: int | Sequence[float] | Sequence[Expert] | Mapping[str, float] = 1,
    questions: Sequence[Partition] | Mapping[str, Partition] = (),
    question_costs: float | Sequence[float] | None = None,
    classes: Sequence[str] | None = None,
) -> Game:
    """Announce a class, or pay to hear the true one.

    Actions 0..M-1 announce that class and show nothing; then come the experts, who tell the class; then the coarse
    questions, each a partition of the classes, whose answer says which part the class is in.

    A hard game when asking is never the cheapest action, as in Helmbold and Panizza, "Some label efficient learning
    results" (COLT 1997), and in the generalised form of Heuillet et al., "Neural active learning meets the partial
    monitoring framework" (UAI 2024); easy or trivial where asking is cheap enough.

    Parameters
    ----------
    n_classes
        M, if neither `costs` nor `classes` says it.
    costs
        [announced, true], M x M; 1 for every error and 0 otherwise when left out. With `classes` also by their names:
        `"announced=ham,true=spam:5"`, records, a CSV, TOML or JSON file (`sparingly.games.costs.read_costs`).
    query_cost
        The price of an expert, and of a coarse question that has none of its own; or one price an expert.
    experts
        How many experts at `query_cost`, or the price of each: `[1.0, 0.3]`, `{"doctor": 1.0, "nurse": 0.3}`; or
        `Expert` objects, some of whom may be wrong. In a round one may then ask, hear, and ask another or announce.
    questions
        Partitions of the classes: `[[(0, 1), (2,)]]` asks "0 or 1, or else 2?"; a mapping names them.
    question_costs
        The price of each question, or one for all.
    classes
        Names of the classes.

    Examples
    --------
    >>> label_efficient(costs=[[0, 1], [0.5, 0]], query_cost=1.0).costs.tolist()
    [[0.0, 1.0], [0.5, 0.0], [1.0, 1.0]]
    >>> label_efficient(classes=["ham", "spam"], costs="announced=spam,true=ham:5").costs.tolist()
    [[0.0, 1.0], [5.0, 0.0], [1.0, 1.0]]
    >>> game = label_efficient(3, experts={"doctor": 1.0, "nurse": 0.7}, questions=[[(0, 1), (2,)]], question_costs=0.2)
    >>> game.actions
    ('announce 0', 'announce 1', 'announce 2', 'ask doctor', 'ask nurse', 'ask 0 1 | 2')
    >>> game.costs[3:].max(axis=1).tolist(), game.symbols(5)
    ([1.0, 0.7, 0.2], ('0 1', '2'))
    >>> game = label_efficient(3, experts=[Expert("gpt", 0.01), Expert("human", 1.0, gold=True)])
    >>> game.actions[3:], [expert.name for expert in game.noisy_experts]
    (('ask gpt', 'ask human'), ['gpt'])
    """
    announce, names = _announcements(n_classes, costs, classes)
    who = named_experts(experts)
    if who:
        experts = {expert.name: expert.price for expert in who}
    prices, price_of_one = _who_asks_what(experts, query_cost)
    asks = _expert_prices(prices, price_of_one)
    partitions = _partitions(questions, names)
    asks += list(zip(partitions, _question_prices(question_costs, price_of_one, len(partitions)), strict=True))
    if not asks:
        raise ValueError("a label-efficient game needs at least one expert or question")
    answers = [names] * (len(asks) - len(partitions)) + list(partitions.values())
    return Game(
        np.vstack([announce, *(np.full(len(names), _price(price, name)) for name, price in asks)]),
        [[_SILENT] * len(names)] * len(names) + [list(answer) for answer in answers],
        actions=[f"announce {name}" for name in names] + [f"ask {name}" for name, _ in asks],
        outcomes=names,
        experts=who,
    )


def apple_tasting() -> Game:
    """Sell an apple unseen, or taste it: only the tasted apple shows whether it was rotten.

    Easy. From Helmbold, Littlestone and Long, "Apple tasting" (2000).

    >>> apple_tasting().costs.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return Game(
        costs=[[0, 1], [1, 0]],
        feedback=[[_SILENT, _SILENT], ["good", "rotten"]],
        actions=["sell", "taste"],
        outcomes=["good", "rotten"],
    )


def dynamic_pricing(n_prices: int = 3, refusal_cost: float = 2.0) -> Game:
    """Offer a price to a customer who buys if it is not above a hidden value, and who never tells that value.

    A sale costs what the customer would have paid beyond the price, a refusal a constant. Easy with 2 prices, hard
    with 3 or more. From Kleinberg and Leighton (2003); as a game in Bartok et al., "Partial monitoring" (2014).

    >>> dynamic_pricing(3).costs.tolist()
    [[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [2.0, 2.0, 0.0]]
    """
    n_prices = _size(n_prices, "n_prices")
    price, value = np.arange(n_prices)[:, None], np.arange(n_prices)[None, :]
    return Game(
        np.where(price <= value, value - price, _price(refusal_cost, "refusal_cost")),
        np.where(price <= value, "bought", "refused"),
        actions=[f"offer {i + 1}" for i in range(n_prices)],
        outcomes=[f"worth {i + 1}" for i in range(n_prices)],
    )


def bandit(n_actions: int = 2) -> Game:
    """Play one of several Bernoulli arms and see only its own cost; an outcome says which arms would have paid.

    Easy. The bandit of Lai and Robbins (1985) with its 2^n outcomes written out as a partial monitoring game.

    >>> bandit(2).costs.tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]]
    """
    n_actions = _size(n_actions, "n_actions", largest=12)
    pays = (np.arange(2**n_actions)[None, :] >> np.arange(n_actions)[::-1, None]) & 1
    return Game(
        1 - pays,
        np.where(pays == 1, "pays", "fails"),
        actions=[f"play {i}" for i in range(n_actions)],
        outcomes=["".join(map(str, column)) for column in pays.T],
    )


def full_information(n_outcomes: int = 2, costs: ArrayLike | Sequence[Sequence[float]] | None = None) -> Game:
    """Guess the outcome (or pay any costs given), and see it afterwards whatever was guessed.

    Easy. Prediction with expert advice, Cesa-Bianchi and Lugosi, "Prediction, learning, and games" (2006).

    >>> full_information(2).feedback
    (('outcome 0', 'outcome 1'), ('outcome 0', 'outcome 1'))
    """
    matrix = 1 - np.eye(_size(n_outcomes, "n_outcomes")) if costs is None else cost_matrix(costs)
    outcomes = [f"outcome {i}" for i in range(matrix.shape[1])]
    return Game(matrix, [outcomes] * matrix.shape[0], outcomes=outcomes)


def no_information(n_outcomes: int = 2) -> Game:
    """Guess the outcome and never see anything: regret grows linearly whatever one does.

    Hopeless, the standard example of Bartok et al., "Partial monitoring" (2014).

    >>> no_information(2).informative_mask
    (False, False)
    """
    size = _size(n_outcomes, "n_outcomes")
    return Game(1 - np.eye(size), [[_SILENT] * size] * size, actions=[f"announce {i}" for i in range(size)])


READY: dict[str, Callable[..., Game]] = {
    "label_efficient": label_efficient,
    "apple_tasting": apple_tasting,
    "dynamic_pricing": dynamic_pricing,
    "bandit": bandit,
    "full_information": full_information,
    "no_information": no_information,
}


def ready_game(name: str) -> Game:
    """Return a ready game by its name, and its size after a colon; two classes if a label-efficient one has none.

    >>> ready_game("label_efficient:3")
    Game(4 actions, 3 outcomes)
    """
    kind, _, size = name.replace("-", "_").partition(":")
    if kind not in READY:
        near = get_close_matches(kind, READY, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"ready games are {', '.join(READY)}"
        raise ValueError(f"there is no game or file {name!r}: {hint}")
    if not size:
        return label_efficient(2) if kind == "label_efficient" else READY[kind]()
    if not size.isdecimal() or kind == "apple_tasting":
        raise ValueError(f"the size of {name!r} must be a whole number, of a game that comes in sizes")
    return READY[kind](int(size))


def _with_names(costs: Any, n_classes: int | None, classes: Sequence[str] | None) -> Any:
    """Costs that are said with the names of classes, as a text, or in a file, as a matrix; a matrix as it is."""
    several = isinstance(costs, list | tuple) and bool(costs) and all(isinstance(one, Mapping | str) for one in costs)
    if not isinstance(costs, str | Path) and not several:
        return costs
    if classes is None and n_classes is None:
        raise ValueError(f"costs is {costs!r}: say which classes there are (classes=)")
    return read_costs(costs, classes if classes is not None else range(_size(n_classes, "n_classes")))


def _announcements(
    n_classes: int | None, costs: Any, classes: Sequence[str] | None
) -> tuple[NDArray[np.float64], list[str]]:
    """Return the costs of announcing, [announced, true], and the names of the classes."""
    sizes = {}
    if n_classes is not None:
        sizes["n_classes"] = _size(n_classes, "n_classes")
    costs = _with_names(costs, n_classes, classes)
    if costs is not None:
        matrix = cost_matrix(costs, axes="rows are what is announced and columns what is true")
        if matrix.shape[0] != matrix.shape[1]:
            shape = f"{matrix.shape[0]} x {matrix.shape[1]}"
            raise ValueError(
                f"costs is {shape}: it must be square, rows are what is announced and columns what is true"
            )
        sizes["costs"] = len(matrix)
        classes = _labels(costs) if classes is None else classes
    if classes is not None:
        sizes["classes"] = len(classes)
    if not sizes:
        raise ValueError("label_efficient needs the number of classes, their names or their costs")
    if len(set(sizes.values())) > 1:
        raise ValueError("the number of classes differs: " + ", ".join(f"{n} from {name}" for name, n in sizes.items()))
    size = next(iter(sizes.values()))
    if size < 2:
        raise ValueError(f"a label-efficient game needs two or more classes, not {size}")
    for name in classes if classes is not None else ():
        check_class(name)
    names = [str(name) for name in classes] if classes is not None else [str(i) for i in range(size)]
    return (matrix if costs is not None else 1 - np.eye(size)), names


def _labels(costs: Any) -> list[str] | None:
    """Return the classes a data frame names on both axes, which must be in the same order."""
    if not hasattr(costs, "columns"):
        return None
    announced, true = [str(name) for name in costs.index], [str(name) for name in costs.columns]
    if announced != true:
        raise ValueError(f"costs has rows {announced} and columns {true}: both must name the classes in the same order")
    return true


def _who_asks_what(experts: Any, query_cost: float | Sequence[float]) -> tuple[Any, float]:
    """Prices given as `query_cost` are the experts', if nothing else is said of them."""
    if not isinstance(query_cost, list | tuple | np.ndarray):
        return experts, query_cost  # type: ignore[return-value]
    prices = [float(price) for price in query_cost]
    if experts not in (1, len(prices)) or not prices:
        raise ValueError(f"query_cost is {query_cost!r}: give one price, or one for each of the experts")
    return prices, max(prices)


def _expert_prices(experts: int | Sequence[float] | Mapping[str, float], query_cost: float) -> list[tuple[str, Any]]:
    if isinstance(experts, Mapping):
        return list(experts.items())
    if isinstance(experts, int | np.integer) and not isinstance(experts, bool):
        if experts < 0:
            raise ValueError(f"experts is {experts}: it must not be negative")
        prices: list[float] = [query_cost] * int(experts)
    elif isinstance(experts, Sequence | np.ndarray) and not isinstance(experts, str):
        prices = list(experts)
    else:
        raise ValueError(f"experts is {experts!r}: it must be a number of experts, or their prices")
    names = ["the expert"] if len(prices) == 1 else [f"expert {e}" for e in range(len(prices))]
    return list(zip(names, prices, strict=True))


def _partitions(questions: Any, names: Sequence[str]) -> dict[str, list[Symbol]]:
    """Return for each question, by name, the answer it gets for every class."""
    named = questions.items() if isinstance(questions, Mapping) else [(None, parts) for parts in questions]
    answers: dict[str, list[Symbol]] = {}
    for q, (name, parts) in enumerate(named):
        members = [[_class_index(member, names, q) for member in part] for part in parts]
        _check_partition(members, names, q)
        labels = [" ".join(names[i] for i in part) for part in members]
        part_of = {i: label for part, label in zip(members, labels, strict=True) for i in part}
        answers[" | ".join(labels) if name is None else str(name)] = [part_of[i] for i in range(len(names))]
    return answers


def _check_partition(members: list[list[int]], names: Sequence[str], q: int) -> None:
    flat = [i for part in members for i in part]
    for i, name in enumerate(names):
        if flat.count(i) != 1:
            raise ValueError(f"questions[{q}] names class {name} {flat.count(i)} times: it must be a partition")
    if len(members) < 2 or not all(members):
        raise ValueError(f"questions[{q}] has a single or an empty part: its answer must tell something")


def _class_index(member: Any, names: Sequence[str], q: int) -> int:
    if isinstance(member, int | np.integer) and not isinstance(member, bool) and 0 <= member < len(names):
        return int(member)
    if isinstance(member, str) and member in names:
        return list(names).index(member)
    raise ValueError(f"questions[{q}] names class {member!r}, which the game does not have")


def _question_prices(prices: float | Sequence[float] | None, query_cost: float, count: int) -> list[Any]:
    if prices is None:
        return [query_cost] * count
    if not isinstance(prices, Sequence | np.ndarray):
        return [prices] * count
    if len(prices) != count:
        raise ValueError(f"question_costs has {len(prices)} prices for {count} questions")
    return list(prices)


def _price(price: Any, name: str) -> float:
    if isinstance(price, bool) or not isinstance(price, Real) or not np.isfinite(float(price)):
        raise ValueError(f"the price of {name} is {price!r}: it must be a finite number")
    return float(price)


def _size(size: Any, name: str, largest: int = 10**6) -> int:
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= largest:
        raise ValueError(f"{name} is {size!r}: it must be a whole number from 1 to {largest}")
    return int(size)
