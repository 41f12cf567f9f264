"""Sparing: asks when a label is worth more, over the stream to come, than it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.counts import padded
from sparingly.learning.ensemble import Ensemble, MLPEnsemble, ModuleEnsemble, temperature
from sparingly.learning.memory import Memory
from sparingly.learning.networks import Network, build
from sparingly.learning.scaling import ImageScaling, QuantileScaling, Reservoir, Unscaled
from sparingly.strategies.questions import Evidence, Question, Questions
from sparingly.strategies.strategy import Assessment, Strategy, Why

FIRST = 20
"""Labels before there is a model."""
START = 60
"""Questions asked whatever the model says, at a price of one mistake."""
GROWTH = 4 / 3
"""An update is due once the labels have grown by this factor ..."""
PACE = 1.5
"""... or the rounds by this one, if there is any new label."""
SURPRISE = 3.0
"""Evidence above which random questions become more frequent."""
DISCOUNT = 0.6
"""The share of what a label saves that the labels bought after it would not have saved anyway."""
NEVER = 2**31


class Sparing(Strategy):
    """Asks when a label is worth more, over the stream to come, than it costs.

    A small ensemble, each member blind to one fold of the labels, gives calibrated probabilities and, by how far its
    members disagree in cost, v(x), what could still be learned about x. How much cost a unit of disagreement really
    removed in the past, gamma, is measured by comparing what each label cost when it was bought with what the members
    that never saw it would cost today. Both give the worth of a label in the currency of its price:

        worth(x) = 0.6 horizon * gamma * V / n * v(x) / V_bought

    with V the mean disagreement on the stream and V_bought that of the n labels bought. The horizon is unknown: as
    many rounds are taken to come as there have been, and `prior_horizon` more. It asks when worth(x) exceeds the price
    less what the announcement is expected to cost. A small, decreasing and never-ending share of random questions
    guards against confident ignorance; their rate rises with the evidence that announcements cost more than they are
    said to, and with enough evidence the labels from before the change are forgotten.

    Parameters
    ----------
    game
        A label-efficient game, with any costs, and one expert who gives the full label.
    n_features
        A number, or a shape such as (1, 28, 28).
    network, width, members
        "mlp" (six networks of one hidden layer of `width` units, trained as one), "lenet", any module, or a function
        of (shape, outputs); others than "mlp" have three members unless told. Or an `Ensemble` of models of any kind,
        which sees the features as they are.
    prior_horizon
        Rounds to come that are taken for granted before any has been seen.
    audit
        The share of random questions is audit / sqrt(t).
    alarm
        The evidence (see `Evidence`) at which earlier labels are forgotten.
    learnability, selection, crossfit
        For ablations: without them gamma stays at its prior, every observation counts as the average one, or every
        member sees every label.

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

    def __init__(
        self,
        game: Game,
        n_features: int | tuple[int, ...],
        *,
        network: Network | Ensemble = "mlp",
        width: int = 100,
        members: int | None = None,
        prior_horizon: int = 2000,
        audit: float = 0.3,
        alarm: float = 2000.0,
        intervals: int = 8,
        learnability: bool = True,
        selection: bool = True,
        crossfit: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        self.expert = _one_expert(game)
        self.prior_horizon, self.audit, self.alarm = prior_horizon, audit, alarm
        self._flags = (learnability, selection, crossfit)
        n = game.n_outcomes
        self._costs = torch.from_numpy(game.costs[:n].astype(np.float32))
        self._price = torch.from_numpy(game.costs[self.expert].astype(np.float32))
        self._worst = float(game.costs[:n].max() - game.costs[:n].min())
        self._scaling: QuantileScaling | ImageScaling | Unscaled
        self.ensemble: Ensemble
        if network == "mlp":
            self._scaling = QuantileScaling(intervals)
            self.ensemble = MLPEnsemble(n, members=members or 6, width=width)
        elif isinstance(network, Ensemble):
            self._scaling, self.ensemble = Unscaled(), network
        else:
            self._scaling = ImageScaling()
            module = build(network, self.shape, n, seed=seed, width=width, depth=2)
            self.ensemble = ModuleEnsemble(module, members=members or 3)
        if self.ensemble.members < 2:
            raise ValueError(f"members is {members}: an ensemble has at least 2")
        self.memory = Memory()
        self.questions = Questions()
        self.evidence = Evidence(n)
        self._reservoir = Reservoir(1000)
        self._counts = torch.zeros(n)
        self._fitted = False
        self._temperature = 1.0
        self._last = (0, 0)
        """Labels and clock at the last update."""
        self._worth = {"slope": 0.0, "each": 0.0, "gamma": 0.0, "risk": 0.0, "reach": 1.0}
        self._begun = 0
        """When the stream began: 0, or the last change that was noticed."""
        self.changes: list[int] = []
        """The rounds at which a change was noticed and earlier labels were forgotten."""

    @property
    def _noticed(self) -> int:
        """The last round whose announcements were those of a model that has been given up."""
        return self.changes[-1] if self.changes else -1

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
        if not self._fitted:
            share = (self._counts + 1 / len(self._counts)) / (self._counts.sum() + 1)
            return share.expand(1, len(X), -1)
        logits = self.ensemble.logits(padded(self._scaling(X)))[:, : len(X)]
        return (logits / self._temperature).softmax(2)

    def _scores(self, X: Tensor) -> Tensor:
        return self._members(X).mean(0)

    # deciding

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        x, values = assessment.X[row], assessment.values
        self._reservoir.add(x, self.rng)
        self.questions.expire(self.clock)
        draw = float(self.rng.random())
        cheapest, risk, value = values["cheapest"][row], values["risk"][row], values["value"][row]
        asks, why = self._rule(x, cheapest, risk, value, values["price"][row], draw)
        if not asks:
            return cheapest, cheapest, why
        if not self._fitted:
            risk = value = math.nan
        probability = values["probability"][row].clone()
        self.questions.add(Question(x, self.clock, cheapest, risk, value, probability, len(self.memory)))
        return self.expert, cheapest, why

    def _rule(
        self, x: Tensor, announced: int, risk: float, value: float, price: float, draw: float
    ) -> tuple[bool, Why]:
        known = len(self.memory) + len(self.questions)
        start = min(START, max(FIRST, round(START * self._worst / max(price, 1e-9))))
        if known < start:
            return True, Why("one of the first {start} questions", {"start": start})
        if not self._fitted:
            return self._audits(announced, draw, {})
        horizon = self.clock - self._begun + 1 + self.prior_horizon
        average = horizon * self._worth["slope"] / known
        worth = horizon * self._worth["each"] / known * value if self._flags[1] else average
        if len(self.questions):
            worth /= 1 + self.questions.nearby(x, self._worth["reach"])
        numbers = {"worth": worth, "net": price - risk, "risk": risk, "price": price, "average": average}
        if price < risk:
            return True, Why("a mistake would cost {risk:.2f} on average, the question {price:.2f}", numbers)
        if worth > price - risk:
            return True, Why("the label is worth {worth:.2f}, the question costs {net:.2f} more than guessing", numbers)
        if self._flags[1] and average > price - self._worth["risk"] and not len(self.questions):
            return True, Why("an average label is worth {average:.2f}, more than it costs", numbers)
        return self._audits(announced, draw, numbers)

    def _audits(self, announced: int, draw: float, numbers: Mapping[str, float]) -> tuple[bool, Why]:
        t = self.clock - self._begun + 1
        rate = min(0.25, self.audit / math.sqrt(t) * max(1.0, self.evidence.wealth[announced] / SURPRISE))
        found = {**numbers, "probability": rate, "audit": draw < rate}
        if draw < rate:
            return True, Why("a random question, to check what the model is sure of (rate {probability:.4f})", found)
        if not numbers:
            return False, Why("waiting for answers", found)
        return False, Why("the label is worth {worth:.2f}, the question costs {net:.2f} more than guessing", found)

    # learning

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        y = _outcome(self.game, action, symbol)
        question = self.questions.take(x)
        soft = value = math.nan
        asked, labels = self.clock - 1, len(self.memory)
        if question is not None:
            asked, labels, value = question.clock, question.labels, question.value
            soft = float(question.probability @ self._costs[:, y]) if not math.isnan(value) else math.nan
        self.memory.append(
            x=x, y=torch.tensor(y), fold=torch.tensor(len(self.memory) % self.ensemble.members),
            asked=torch.tensor(asked), labels=torch.tensor(labels), soft=torch.tensor(soft), value=torch.tensor(value),
        )  # fmt: skip
        self._counts[y] += 1
        if question is not None and not math.isnan(question.risk) and question.clock > self._noticed:
            self._watch(question, float(self._costs[question.announced, y]))

    def _watch(self, question: Question, met: float) -> None:
        """Hold what an announcement would have cost against what was expected; forget the past if it is too much."""
        least = float(self._costs.min())
        scale = self._worst or 1.0
        wealth = self.evidence.bet(
            question.announced, (question.risk - least) / scale, (met - least) / scale, question.clock
        )
        if wealth >= self.alarm:
            self._forget(self.evidence.since[question.announced])

    def _forget(self, since: int) -> None:
        """The stream begins anew: keep only the labels asked for since then."""
        state = self.memory.state_dict()
        keep = state["asked"] >= since
        self.memory = Memory()
        kept = {name: column[keep] for name, column in state.items()}
        kept["value"], kept["soft"] = torch.full_like(kept["value"], math.nan), torch.full_like(kept["soft"], math.nan)
        kept["fold"] = torch.arange(int(keep.sum())) % self.ensemble.members
        self.memory.load_state_dict(kept)
        self._counts = torch.bincount(kept["y"], minlength=len(self._counts)).float()
        self._begun = since
        self._last = (0, since)
        self.evidence.reset()
        self._reservoir.renew()
        self.changes.append(self.clock)

    # updating

    def _due_after_label(self) -> bool:
        n, (labels, clock) = len(self.memory), self._last
        if self._fitted and labels == 0:
            return True
        if n < FIRST:
            return False
        surprised = max(self.evidence.wealth) > SURPRISE**2 and n >= 1.05 * labels
        return (
            surprised
            or n >= max(labels + 1, GROWTH * labels)
            or self.clock - self._begun >= PACE * (clock - self._begun)
        )

    def _due_in(self) -> int:
        labels, clock = self._last
        if len(self.memory) < FIRST or len(self.memory) == labels:
            return NEVER
        return max(1, math.ceil(self._begun + PACE * (clock - self._begun)) - self.clock)

    def _train(self) -> None:
        n = len(self.memory)
        if n < FIRST:
            self._fitted = False
            return
        generator = torch.Generator().manual_seed(int(self.rng.integers(2**62)))
        sample = self._reservoir.rows if self._reservoir.seen else self.memory["x"]
        X, y, folds = self._scaling.fit(sample)(self.memory["x"]), self.memory["y"], self.memory["fold"]
        hidden = folds if self._flags[2] else torch.full_like(folds, -1)
        with torch.no_grad():
            self.ensemble.fit(X, y, hidden, min(350, 200 + n // 4), generator)
            logits = self.ensemble.held_out(X, folds)
            self._temperature = temperature(logits, y)
            self._fitted = True
            self._value_labels(logits, y, sample)
        self._last = (n, self.clock)

    def _value_labels(self, logits: Tensor, y: Tensor, sample: Tensor) -> None:
        """What disagreement has been worth so far, and what the next label is worth by it."""
        n, memory = len(y), self.memory
        known = ~memory["value"].isnan()
        value = memory["value"][known]
        now = ((logits / self._temperature).softmax(1) * self._costs[:, y].T).sum(1)[known]
        removed = float((memory["soft"][known] - now).sum())
        grown = torch.log(n / memory["labels"][known].clamp(min=1).float())
        explained = float((value * grown).sum())
        unit = self._worst or 1.0
        gamma = max(0.1, (removed / unit + 4.0) / (explained / unit + 1.0)) if self._flags[0] else 4.0
        seen = self._assess(sample)
        stream = float(np.mean(seen["value"]))
        bought = (float(value.sum()) + 20 * stream) / (len(value) + 20)
        self._worth = {
            "gamma": gamma,
            "slope": DISCOUNT * gamma * stream,
            "each": DISCOUNT * gamma * stream / max(bought, 1e-12),
            "risk": float(np.mean(seen["risk"])),
            "reach": 0.1 * float(sample.flatten(1).var(0, correction=0).sum()),
        }

    # keeping

    def _identity(self) -> dict[str, Any]:
        return {"members": self.ensemble.members, "kind": type(self.ensemble).__name__}

    def _state(self) -> dict[str, Any]:
        return {
            "memory": self.memory.state_dict(),
            "questions": self.questions.state_dict(),
            "evidence": self.evidence.state_dict(),
            "reservoir": self._reservoir.state_dict(),
            "model": None
            if not self._fitted
            else {"ensemble": self.ensemble.state_dict(), "scaling": self._scaling.state_dict()},
            "temperature": self._temperature,
            "worth": dict(self._worth),
            "last": list(self._last),
            "begun": self._begun,
            "changes": list(self.changes),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.memory.load_state_dict(state["memory"])
        self.questions.load_state_dict(state["questions"])
        self.evidence.load_state_dict(state["evidence"])
        self._reservoir.load_state_dict(state["reservoir"])
        self._fitted = state["model"] is not None
        if state["model"] is not None:
            self._scaling.load_state_dict(state["model"]["scaling"])
            self.ensemble.load_state_dict(state["model"]["ensemble"])
        self._temperature, self._worth = float(state["temperature"]), dict(state["worth"])
        self._last = (int(state["last"][0]), int(state["last"][1]))
        self._begun, self.changes = int(state["begun"]), [int(t) for t in state["changes"]]
        n = len(self._counts)
        known = self.memory["y"] if len(self.memory) else torch.zeros(0, dtype=torch.long)
        self._counts = torch.bincount(known, minlength=n).float()


def _one_expert(game: Game) -> int:
    """The expert's action, or an error that says what the game has instead."""
    n = game.n_outcomes
    if not game.is_label_efficient or game.n_actions != n + 1 or len(game.symbols(n)) != n:
        raise ValueError(f"sparing plays label-efficient games with one expert who gives the full label, not {game!r}")
    return n


def _outcome(game: Game, action: int, symbol: int) -> int:
    """The class that an expert's symbol (its index) stands for."""
    return list(game.feedback[action]).index(game.symbols(action)[symbol])
