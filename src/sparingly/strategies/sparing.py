"""Sparing: asks when a label is worth more, over the stream to come, than it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.beliefs import Beliefs
from sparingly.learning.ensemble import Ensemble
from sparingly.learning.networks import Network
from sparingly.learning.scaling import Reservoir
from sparingly.strategies.bought import Bought
from sparingly.strategies.evidence import Evidence
from sparingly.strategies.purchase import FIRST, START, Offer, Purchase
from sparingly.strategies.questions import Question, Questions
from sparingly.strategies.strategy import Assessment, Strategy, Why
from sparingly.strategies.worth import Worth

GROWTH = 4 / 3
"""An update is due once the labels have grown by this factor ..."""
PACE = 1.5
"""... or the rounds by this one, if there is any new label."""
NEVER = 2**31


class Sparing(Strategy):
    """Asks when a label is worth more, over the stream to come, than it costs.

    A small ensemble, each member blind to one fold of the labels (`Beliefs`), gives calibrated probabilities and, by
    how far its members disagree in cost, v(x), what could still be learned about x. How much cost a unit of
    disagreement really removed in the past, gamma, is measured by comparing what each label cost when it was bought
    with what the members that never saw it would cost today (`Worth`). Both give the worth of a label in the currency
    of its price:

        worth(x) = 0.6 horizon * gamma * V / n * v(x) / V_bought

    with V the mean disagreement on the stream and V_bought that of the n labels bought. The horizon is unknown: as
    many rounds are taken to come as there have been, and `prior_horizon` more. It asks when worth(x) exceeds the price
    less what the announcement is expected to cost (`Purchase`). A small, decreasing and never-ending share of random
    questions guards against confident ignorance; an announcement that costs more than it is said to is checked more
    often, and with enough evidence against it (`Evidence`) the earlier labels of its class are forgotten.

    Parameters
    ----------
    game
        A label-efficient game, with any costs, and one expert who gives the full label.
    n_features
        A number, or a shape such as (1, 28, 28).
    network, width, members
        "mlp" (six networks of one hidden layer of `width` units, trained as one, each beside a kernel regression),
        "lenet", any module, or a function of (shape, outputs); others than "mlp" have three members unless told. Or an
        `Ensemble` of models of any kind, which sees the features as they are.
    prior_horizon
        Rounds to come that are taken for granted before any has been seen.
    audit
        The share of random questions is audit / t^(1/3).
    alarm
        The evidence (see `Evidence`) at which the earlier labels of a class are forgotten.
    kernel, learnability, selection, crossfit
        For ablations: without them there are only networks, gamma stays at its prior, every observation counts as the
        average one, or every member sees every label.

    Examples
    --------
    >>> from sparingly import label_efficient
    >>> strategy = Sparing(label_efficient(2), n_features=3, seed=0)
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> for x in X:
    ...     decision = strategy.decide(strategy.assess(x[None]), 0)
    ...     if decision.asks:
    ...         strategy.learn(x, decision.action, strategy.game.feedback[decision.action][int(x[0] > 0)])
    >>> 60 <= strategy.n_labels <= 160
    True
    """

    name = "sparing"
    summary = "asks when a label is worth more, over the stream to come, than it costs"
    reference = "sparingly"
    plays = "label-efficient games with one expert"
    scales = True

    def __init__(
        self,
        game: Game,
        n_features: int | tuple[int, ...],
        *,
        network: Network | Ensemble = "mlp",
        width: int = 100,
        members: int | None = None,
        prior_horizon: int = 2000,
        audit: float = 0.09,
        alarm: float = 1000.0,
        intervals: int = 8,
        kernel: bool = True,
        learnability: bool = True,
        selection: bool = True,
        crossfit: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        self.expert = _one_expert(game)
        self.alarm = alarm
        self._learnability = learnability
        n = game.n_outcomes
        self._costs = torch.from_numpy(game.costs[:n].astype(np.float32))
        self._price = torch.from_numpy(game.costs[self.expert].astype(np.float32))
        self.rule = Purchase(float(game.costs[:n].max() - game.costs[:n].min()), prior_horizon, audit, selection)
        models: dict[str, Any] = {"network": network, "width": width, "members": members, "intervals": intervals}
        self.beliefs = Beliefs(n, self.shape, **models, kernel=kernel, crossfit=crossfit, seed=seed)
        self.bought = Bought(self.beliefs.members)
        self.questions = Questions()
        self.evidence = Evidence(n)
        self.worth = Worth()
        self._reservoir = Reservoir(1000)
        self._fitted = False
        self._last = (0, 0)
        """Labels and clock at the last update."""
        self.changes: list[int] = []
        """The rounds at which a change was noticed and earlier labels were forgotten."""

    # looking

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        p = self._members(X)
        mean = p.mean(0)
        costs = mean @ self._costs.T
        risk, cheapest = costs.min(1)
        informed = (p @ self._costs.T).amin(2).mean(0)
        return {
            "probability": mean,
            "cheapest": cheapest.tolist(),
            "risk": risk.tolist(),
            "value": (risk - informed).clamp(min=0).tolist(),
            "price": (mean @ self._price).tolist(),
        }

    def _members(self, X: Tensor) -> Tensor:
        """The members' calibrated probabilities, `[member, block, class]`; the labels' shares before there are any."""
        if self._fitted:
            return self.beliefs(X)
        return self.bought.shares(self.game.n_outcomes).expand(1, len(X), -1)

    def _scores(self, X: Tensor) -> Tensor:
        return self._members(X).mean(0)

    # deciding

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        x, values = assessment.X[row], assessment.values
        self._reservoir.add(x, self.rng)
        self.questions.expire(self.clock)
        announced, risk, value = values["cheapest"][row], values["risk"][row], values["value"][row]
        offer = Offer(
            risk, value, values["price"][row], self.clock, len(self.bought) + len(self.questions), len(self.questions),
            0.0, self.evidence.against(announced),
        )  # fmt: skip
        worth, draw = self.worth if self._fitted else None, float(self.rng.random())
        asks, why = self.rule(offer, worth, draw)
        if asks and worth is not None and len(self.questions):
            # Open questions can only speak against another, and looking through them takes longer than all the rest.
            asks, why = self.rule(replace(offer, nearby=self.questions.nearby(x, worth.reach)), worth, draw)
        if not asks:
            return announced, announced, why
        if not self._fitted:
            risk = value = math.nan
        probability = values["probability"][row].clone()
        self.questions.add(Question(x, self.clock, announced, risk, value, probability, len(self.bought)))
        return self.expert, announced, why

    # learning

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        y = _outcome(self.game, action, symbol)
        question = self.questions.take(x)
        self.bought.add(x, y, question, clock=self.clock - 1, costs=self._costs)
        if question is not None and question.labels >= START and not math.isnan(question.risk):
            self._watch(question, y)

    def _watch(self, question: Question, y: int) -> None:
        """Hold what an announcement would have cost against what was expected; if it is too much, forget.

        What is forgotten are the labels, from before the change, of the class and of those met in its place: where
        two classes have swapped their names, labels of either are wrong.
        """
        if question.clock <= max(self.changes, default=-1):
            return
        announced, least, unit = question.announced, float(self._costs.min()), self.rule.unit or 1.0
        expected, met = ((cost - least) / unit for cost in (question.risk, float(self._costs[announced, y])))
        if self.evidence.bet(announced, y, expected, met, question.clock) < self.alarm:
            return
        gone = [announced, *self.evidence.instead[announced]]
        self.bought.forget(gone, self.evidence.since[announced])
        self.evidence.reset(gone)
        self._reservoir.renew()
        self._last = (0, self.clock)
        self.changes.append(self.clock)

    # updating

    def _due_after_label(self) -> bool:
        n, (labels, clock) = len(self.bought), self._last
        if self._fitted and labels == 0:
            return True
        return n >= FIRST and (n >= max(labels + 1, GROWTH * labels) or self.clock >= PACE * clock)

    def _due_in(self) -> int:
        labels, clock = self._last
        if len(self.bought) < FIRST or len(self.bought) == labels:
            return NEVER
        return max(1, math.ceil(PACE * clock) - self.clock)

    def _train(self) -> None:
        n = len(self.bought)
        self._fitted = n >= FIRST
        if not self._fitted:
            return
        generator = torch.Generator().manual_seed(int(self.rng.integers(2**62)))
        X, y, folds = self.bought["x"], self.bought["y"], self.bought["fold"]
        sample = self._reservoir.rows if self._reservoir.seen else X
        with torch.no_grad():
            unseen = self.beliefs.fit(sample, X, y, folds, generator)
            seen = self._assess(sample)
        bought = {name: self.bought[name] for name in ("value", "soft", "labels")}
        stream = {"value": torch.tensor(seen["value"]), "risk": torch.tensor(seen["risk"]), "x": sample}
        now = (unseen * self._costs[:, y].T).sum(1)
        self.worth = Worth.measure(bought, now, stream, unit=self.rule.unit or 1.0, learnability=self._learnability)
        self._last = (n, self.clock)

    # keeping

    def _identity(self) -> dict[str, Any]:
        return {"members": self.beliefs.members, "kind": type(self.beliefs.ensemble).__name__}

    def _state(self) -> dict[str, Any]:
        return {
            "bought": self.bought.state_dict(),
            "questions": self.questions.state_dict(),
            "evidence": self.evidence.state_dict(),
            "reservoir": self._reservoir.state_dict(),
            "beliefs": self.beliefs.state_dict() if self._fitted else None,
            "worth": self.worth.state_dict(),
            "last": list(self._last),
            "changes": list(self.changes),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.bought.load_state_dict(state["bought"])
        self.questions.load_state_dict(state["questions"])
        self.evidence.load_state_dict(state["evidence"])
        self._reservoir.load_state_dict(state["reservoir"])
        self._fitted = state["beliefs"] is not None
        if self._fitted:
            self.beliefs.load_state_dict(state["beliefs"])
        self.worth = Worth(**state["worth"])
        self._last = (int(state["last"][0]), int(state["last"][1]))
        self.changes = [int(t) for t in state["changes"]]


def _one_expert(game: Game) -> int:
    """The expert's action, or an error that says what the game has instead."""
    n = game.n_outcomes
    if not game.is_label_efficient or game.n_actions != n + 1 or len(game.symbols(n)) != n:
        raise ValueError(f"sparing plays label-efficient games with one expert who gives the full label, not {game!r}")
    return n


def _outcome(game: Game, action: int, symbol: int) -> int:
    """The class that an expert's symbol (its index) stands for."""
    return list(game.feedback[action]).index(game.symbols(action)[symbol])
