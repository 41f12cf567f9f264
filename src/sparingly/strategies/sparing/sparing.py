"""Sparing: asks when a label is worth more, over the stream to come, than it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.networks import Network
from sparingly.strategies.forecast import Forecast
from sparingly.strategies.sparing.ablation import Ablation
from sparingly.strategies.sparing.beliefs import Beliefs
from sparingly.strategies.sparing.class_names import class_vectors as named_classes
from sparingly.strategies.sparing.coming_rows import ComingRows
from sparingly.strategies.sparing.consulting.answer_forecast import AnswerOutlook
from sparingly.strategies.sparing.consulting.panel import Panel
from sparingly.strategies.sparing.knowledge import Knowledge
from sparingly.strategies.sparing.models.ensemble import Ensemble
from sparingly.strategies.sparing.open_questions import OpenQuestion, OpenQuestions
from sparingly.strategies.sparing.purchase import (
    ANNOUNCED,
    ASKED_FIRST,
    BLIND,
    FIRST,
    GUESSED,
    LABELS_FOR_EACH,
    MANY,
    NEAREST,
    START,
    ExpectedCosts,
    Offer,
    OfferBlock,
    PurchaseRule,
    first_true,
    scale,
)
from sparingly.strategies.sparing.training_data import GROWTH
from sparingly.strategies.sparing.watch import Watch
from sparingly.strategies.sparing.worth import SLOPE_ERROR, SPREAD
from sparingly.strategies.strategy import AHEAD, FEW_AHEAD, Assessment, Heard, Strategy, Why

BLOCK = ("risk", "value", "price", "novelty")
"""What decisions on a whole block look at, in this order."""
SEEN = ("risk", "value", "price", "novelty", "cheapest", "probability")
"""What a decision on one row looks at."""
TRIAL = 0.2
"""The share of the price of the truth up to which an expert is asked beside the first truths, whatever is expected."""
ENOUGH = 150
"""Labels beside which everyone was heard who was worth it; then answers are no longer bought for comparison."""
MANY_PANEL_HORIZON = 7500
"""Rounds to come that are taken for granted beside experts who may be wrong with more than `MANY` classes: answers make
it easy to wait with labels, which then come too late for most rounds."""
PANEL_START = 40
"""Beside experts who may be wrong at most so many truths are bought whatever is believed, or one a class if that is
more: with fewer than `FIRST` there is no model, and only random questions would bring the others."""
NEW_CLASS_ROUNDS = 100
"""Rounds in which the cheapest expert is asked as long as there is a class that no truth has shown."""
NEW_CLASS = "{named} is named, and no truth has shown it yet"
"""Why the truth is bought where an expert names such a class for the first time."""
PANEL_CHECKS = 3
"""Beside experts who may be wrong so many times fewer random questions: their answers check announcements, too."""


class Sparing(Strategy):
    """Asks when a label is worth more, over the stream to come, than it costs.

    A small ensemble, each member blind to one fold of the labels (`Beliefs`), gives calibrated probabilities and v(x),
    how far its members disagree in cost (`ExpectedCosts`). How much cost a unit of disagreement has removed in the past
    is measured (`Worth`), and gives the worth of a label in the currency of its price. It asks when that exceeds the
    price less what the announcement is expected to cost (`PurchaseRule`). Random questions about every announcement,
    ever fewer and never none, more where no label is near, guard against confident ignorance; one that costs more than
    it is said to is checked more often, and with enough evidence its class's earlier labels are forgotten (`Watch`).

    Parameters
    ----------
    game
        Label-efficient, with any costs, and one expert who gives the full label; or with named experts, some of whom
        may be wrong: how far each is trusted is learned (`Panel`), and in a round several may be asked.
    network, width, members
        "mlp" (six networks of one hidden layer of `width` units, trained as one), "lenet", any module, or a function of
        (shape, outputs); others than "mlp" have three members by default. A kernel regression stands beside each. Or
        an `Ensemble` of models of any kind, which sees the features as they are, and alone.
    horizon
        How many observations are expected in all; None if nobody knows. A guess of the right order will do: the more
        rounds are to come, the more a label is worth.
    prior_horizon
        Without a horizon: rounds to come that are taken for granted before any has been seen.
    audit, alarm
        An announcement made m times is checked at a rate of audit / sqrt(m) (`PurchaseRule`); how much
        `Evidence` forgets.
    class_vectors
        What the classes are called, `[class, n_features]`, encoded as observations are; or the name of the text
        encoder that encodes them, for the names of the game's outcomes. Where observations are texts, as vectors of
        length 1, names say much before there is any label; how much is learned. Beside experts who may be wrong they
        are left out: a language model knows what classes are called, and saying it twice costs more than it saves.
    ablation
        Parts that are taken out, to measure what they are worth; None takes nothing out.

    Examples
    --------
    >>> import numpy as np
    >>> from sparingly import label_efficient, play
    >>> strategy = Sparing(label_efficient(2), n_features=3, seed=0)
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> rounds = list(play(strategy, strategy.game, zip(X, (X[:, 0] > 0).astype(int))))
    >>> 60 <= strategy.n_labels <= 160
    True
    """

    name = "sparing"
    summary = "asks when a label is worth more, over the stream to come, than it costs"
    reference = "sparingly"
    playable = "label-efficient games with one expert, or with named ones who may be wrong"
    scales = True
    noisy_experts = True

    def __init__(
        self,
        game: Game,
        n_features: int | tuple[int, ...],
        *,
        horizon: int | None = None,
        network: Network | Ensemble = "mlp",
        width: int = 100,
        members: int | None = None,
        prior_horizon: int = 2000,
        audit: float = 0.12,
        alarm: float = 30_000.0,
        class_vectors: ArrayLike | str | None = None,
        ablation: Ablation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        ablation = ablation or Ablation()
        if horizon is not None and (isinstance(horizon, bool) or not isinstance(horizon, int) or horizon < 1):
            raise ValueError(f"horizon is {horizon!r}: it must be a positive number of observations, or None")
        self.expected_costs = ExpectedCosts(game)
        vectors = named_classes(game, self.shape, class_vectors)
        beliefs = Beliefs(
            game.n_outcomes,
            self.shape,
            network=network,
            width=width,
            members=members,
            intervals=ablation.intervals,
            kernel=ablation.kernel,
            trees=ablation.trees,
            crossfit=ablation.crossfit,
            class_vectors=None if game.noisy_experts else vectors,
            beside_experts=bool(game.noisy_experts),
            seed=seed,
        )
        self._names_by = class_vectors if isinstance(class_vectors, str) and not game.noisy_experts else None
        self.panel = Panel(game) if game.noisy_experts else None
        self.knowledge = Knowledge(
            self.expected_costs,
            beliefs,
            panel=self.panel,
            learnability=ablation.learnability,
            horizon_known=horizon is not None,
        )
        self._audit = audit
        rule = PurchaseRule(self.expected_costs.unit, prior_horizon, audit, ablation.selection, horizon=horizon)
        self.purchase_rule = self._scaled_to_classes(rule)
        self.questions = OpenQuestions()
        self.watch = Watch(self.expected_costs.costs, alarm, self.rng.random(game.n_outcomes).tolist())

    def _scaled_to_classes(self, rule: PurchaseRule) -> PurchaseRule:
        """Each announcement checked the less the more classes there are, and one question a class at the start."""
        n_classes = len(self.expected_costs.costs)
        many = n_classes > MANY
        audit = self._audit * math.sqrt(min(1.0, MANY / n_classes))
        rule = replace(rule, indiscriminate=LABELS_FOR_EACH * n_classes if many else None)
        if self.panel is None:
            choosy = many and self.expected_costs.cheap
            return replace(rule, audit=audit, most_first=max(START, n_classes), choosy=choosy)
        rule = replace(rule, audit=audit / PANEL_CHECKS, most_first=PANEL_START, choosy=True)
        if not many:
            return rule
        most_first = max(PANEL_START, n_classes)
        return replace(rule, most_first=most_first, prior_horizon=max(rule.prior_horizon, MANY_PANEL_HORIZON))

    @property
    def rng(self) -> np.random.Generator:
        """Its generator, once everything was drawn that the rounds before have to draw; they draw many at once."""
        if (knowledge := self.__dict__.get("knowledge")) is not None:
            knowledge.settle()
        return self._rng

    @rng.setter
    def rng(self, rng: np.random.Generator) -> None:
        self._rng = rng

    @property
    def changes(self) -> list[int]:
        """The rounds at which a change was noticed and earlier labels were forgotten."""
        return self.watch.changes

    @property
    def has_learned(self) -> bool:
        """A model of a handful of labels does not count where many more are there, and only the training is late."""
        trained, known = self.knowledge.schedule.labels, len(self.knowledge.bought)
        return self.knowledge.worth is not None and (trained == 0 or known <= GROWTH * trained + 1)

    def noticed(self) -> list[tuple[int, str | None]]:
        found: list[tuple[int, str | None]] = [(clock, None) for clock in self.watch.changes]
        if self.panel is not None:
            for action, one in zip(self.panel.actions, self.panel.reliability, strict=True):
                expert = self.game.expert(action)
                found += [(clock, None if expert is None else expert.name) for clock in one.changes]
        return sorted(found, key=lambda change: change[0])

    def reliability(self) -> dict[str, tuple[float, float, float]]:
        known = [] if self.panel is None else self.panel.reliability
        return {one.expert.name: (one.accuracy, *one.interval(0.95)) for one in known}

    def _scores(self, X: Tensor) -> Tensor:
        return self.knowledge.members(X).mean(0)

    def _probabilities(self, assessment: Assessment) -> Tensor:
        held: Tensor = assessment.values["probability" if self.panel is None else "members"]
        return held if self.panel is None else held.mean(1)

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        members, novelty, learned = self.knowledge.assess(X)
        if self.panel is not None:
            found = {"members": members.transpose(0, 1), "novelty": novelty.tolist()}
            return found if self.knowledge.forecasts is None else {**found, "foreseen": self.knowledge.forecasts(X)}
        found = {**self.knowledge.seen(members, learned), "novelty": novelty.tolist()}
        if X.shape[0] >= FEW_AHEAD:
            found["block"] = ComingRows(*(np.array(found[name]) for name in BLOCK))
        return found

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        x, seen = assessment.X[row], {name: one[row] for name, one in assessment.values.items() if name != "block"}
        self.knowledge.observe(x, self._rng)
        if self.panel is None:
            return self._buy_or_announce(x, seen, self.clock)
        self.questions.expire(self.clock)
        return self._consult(self.panel, x, seen, ())

    def _announce_ahead(self, assessment: Assessment, first: int, last: int) -> list[tuple[int, Why]]:
        worth, labels, waiting = self.knowledge.worth, len(self.knowledge.bought), len(self.questions)
        rule, known = self.purchase_rule, labels + waiting
        if self.panel is not None or (worth is not None and known < rule.most_first):
            return []
        rows: ComingRows = assessment.values["block"]
        if worth is None:
            offers = self._offers(assessment, first, last)
            count = first_true(known < rule.starts(offers, self.knowledge.guess(), BLIND))
        else:
            last = min(last, first + self.questions.rounds_to_expiry(self.clock))
            count = rows.quiet(rule, worth, first, last, clock=self.clock, known=known, waiting=waiting)
        said, first_rates = assessment.values["cheapest"][first : first + count], rows.first_rates(rule)
        rates = self.watch.announce(rule, first_rates[first : first + count], said)
        if not rates:
            return []
        self.knowledge.observe_block(assessment.X[first : first + len(rates)], self._rng)
        if worth is None:
            guess = GUESSED if labels < FIRST else NEAREST
            checks = ({"probability": rate, "audit": False} for rate in rates)
            return [(one, Why(guess, check)) for one, check in zip(said, checks, strict=False)]
        numbers = rows.numbers(rule, first, len(rates), known=known, waiting=waiting)
        return [
            (
                one,
                Why(
                    ANNOUNCED,
                    {"worth": w, "net": n, "risk": r, "price": p, "average": a, "probability": c, "audit": False},
                ),
            )
            for one, w, n, r, p, a, c in zip(said, *numbers, rates, strict=False)
        ]

    def _choose_ahead(self, assessment: Assessment, first: int, last: int) -> list[tuple[int, int, Why]]:
        if self.panel is not None:
            return []
        if self.knowledge.worth is None:
            return self._ask_first(assessment, first, last)
        columns = [assessment.values[name][first:last] for name in SEEN]
        X, probability = assessment.X[first:last], columns.pop()
        by_labels = assessment.values.get("learned")
        learned = [None] * len(X) if by_labels is None else by_labels[first:last].unbind()
        chosen: list[tuple[int, int, Why]] = []
        announced = 0
        for x, p, taught, *numbers in zip(X.unbind(), probability.unbind(), learned, *columns, strict=True):
            seen = {**dict(zip(SEEN, (*numbers, p), strict=True)), "learned": taught}
            one = self._buy_or_announce(x, seen, self.clock + len(chosen))
            chosen.append(one)
            announced = announced + 1 if one[0] == one[1] else 0
            if announced == AHEAD:
                break
        self.knowledge.observe_block(X[: len(chosen)], self._rng)
        return chosen

    def _ask_first(self, assessment: Assessment, first: int, last: int) -> list[tuple[int, int, Why]]:
        """The first questions, before there is a model: nothing is computed for each of them."""
        labels, waiting = len(self.knowledge.bought), len(self.questions)
        offers, said = self._offers(assessment, first, last), assessment.values["cheapest"][first:last]
        starts = self.purchase_rule.starts(offers, self.knowledge.guess(), BLIND)
        count = first_true(labels + waiting + np.arange(len(starts)) >= starts)
        X, believed = assessment.X[first : first + count], assessment.values["probability"][first : first + count]
        self.knowledge.observe_block(X, self._rng)
        asked = zip(X.unbind(), said[:count], believed.clone().unbind(), strict=True)
        self.questions.add(
            *(
                OpenQuestion(x, self.clock + i, announced, math.nan, math.nan, p, labels)
                for i, (x, announced, p) in enumerate(asked)
            )
        )
        known = range(labels + waiting, labels + waiting + count)
        whys = [self.purchase_rule.asked_first(int(start), k) for start, k in zip(starts[:count], known, strict=True)]
        return list(zip([self.expected_costs.expert or 0] * count, said[:count], whys, strict=True))

    def _offers(self, assessment: Assessment, first: int, last: int) -> OfferBlock:
        """The rows as offers, up to the round in which a question is given up."""
        last, waiting = min(last, first + self.questions.rounds_to_expiry(self.clock)), len(self.questions)
        rows: ComingRows = assessment.values["block"]
        return rows.offers(first, last, clock=self.clock, known=len(self.knowledge.bought) + waiting, waiting=waiting)

    def _choose_again(self, assessment: Assessment, row: int, heard: Heard) -> tuple[int, int, Why]:
        if self.panel is None:
            return super()._choose_again(assessment, row, heard)
        seen = {name: value[row] for name, value in assessment.values.items()}
        return self._consult(self.panel, assessment.X[row], seen, heard)

    def _consult(self, panel: Panel, x: Tensor, seen: Mapping[str, Any], heard: Heard) -> tuple[int, int, Why]:
        """Ask the expert with the largest net gain, if there is one; else the truth, or announce."""
        # Before there is a model, each label changes what is held, and an assessment may be older than the last one.
        own = seen["members"] if self.knowledge.worth is not None else self.knowledge.members(x[None])[:, 0]
        outlooks = self._outlooks(panel, x, own, seen, heard)
        self._note_answer(panel, own, heard, outlooks)
        answers = panel.answers(heard)
        asked = [action for action, _ in heard]
        after = self.knowledge.posterior(panel, x[None], own[:, None], torch.tensor([answers]))
        if outlooks and not asked:
            after = next(iter(outlooks.values())).before[:, None]
        found = {name: one[0] for name, one in self.expected_costs(after).items()}
        # The first truths are bought whatever is believed: what everyone says of them is the fairest comparison.
        starting = self.knowledge.worth is None or (not asked and self._looks_for_classes())
        cheap = TRIAL * found["price"] if starting and self.expected_costs.expert is not None else 0.0
        offered = {} if asked or starting else outlooks
        truth_price = self._truth_price(found["price"])
        best = panel.best_offer(found["probability"], asked, truth=truth_price, cheap=cheap, outlooks=offered)
        if best is not None:
            action, why = best
            return action, found["cheapest"], why
        self.knowledge.hear(x, answers, self.rng)
        truth = self.expected_costs.expert
        said = panel.foretold(outlooks) if outlooks and not asked else panel.words(answers)
        if truth is None or truth in asked:
            panel.leave(own.mean(0), answers)
            numbers = {"said": said, "risk": found["risk"]}
            why = Why(
                "{said}; nobody who knows can be asked: by agreement alone it is wrong {risk:.0%} of the time", numbers
            )
            return found["cheapest"], found["cheapest"], why
        seen = {**found, "own": own, "novelty": seen["novelty"]}
        action, announced, why = self._buy_or_announce(x, seen, self.clock, tuple(answers))
        words = why.sentence
        if action != truth and "risk" in why.values:
            words = (
                f"{self.game.experts[truth - self.game.n_outcomes].name} would cost {{price:g}} and save {{risk:.2f}}"
            )
        return action, announced, Why("{said}; " + words, {**why.values, "said": said})

    def _outlooks(
        self, panel: Panel, x: Tensor, own: Tensor, seen: Mapping[str, Any], heard: Heard
    ) -> dict[int, AnswerOutlook]:
        """What is believed before the first answer, by what each expert is foreseen to say."""
        if "foreseen" not in seen or len(heard) > 1 or self.knowledge.worth is None:
            return {}
        truth = self._truth_price(self.expected_costs(own[:, None])["price"][0])
        return self.knowledge.outlooks(panel, x, own, seen["foreseen"], truth)

    def _looks_for_classes(self) -> bool:
        """Whether it is early, and one of few classes may be there that no truth has shown."""
        n_classes = len(self.expected_costs.costs)
        return n_classes <= MANY and self.clock < NEW_CLASS_ROUNDS and self.knowledge.bought.n_met() < n_classes

    def _truth_price(self, price: float) -> float:
        """What the truth costs beyond what its label is worth: where it is bought anyway, an answer saves nothing.

        Until enough answers were heard beside a truth, these are worth having, too: then it is all of the price.
        """
        worth, labels = self.knowledge.worth, len(self.knowledge.bought)
        if self.expected_costs.expert is None:
            return math.inf
        if worth is None or labels < ENOUGH:
            return price
        to_come: int = self.purchase_rule.rounds_to_come(self.clock)
        label = to_come * worth.average / (labels + len(self.questions))
        return max(0.0, price - label)

    def _note_answer(self, panel: Panel, own: Tensor, heard: Heard, outlooks: Mapping[int, AnswerOutlook]) -> None:
        """Hold the last answer against the belief without it, and against what was foreseen of the first one."""
        if not heard:
            return
        action, symbol = heard[-1]
        if action not in panel.actions:
            return
        e = panel.actions.index(action)
        said = panel.answers(heard)[e]
        belief = outlooks[e].before.mean(0) if e in outlooks else panel.tempered(own.mean(0))
        truth = self._truth_price(self.expected_costs(own[:, None])["price"][0])
        panel.compare(e, own, panel.answers(heard[:-1]), said, truth, outlooks.get(e))
        likely = outlooks[e].likely if e in outlooks else None
        panel.reliability[e].hear(belief, None if symbol is None else said, self.clock, likely)
        self._notice_changes(panel)

    def _notice_changes(self, panel: Panel) -> None:
        for e, one in enumerate(panel.reliability):
            if one.change_noticed(self.clock):
                self.knowledge.disregard(e, one.since)

    def _buy_or_announce(
        self, x: Tensor, seen: Mapping[str, Any], clock: int, answers: tuple[int, ...] = ()
    ) -> tuple[int, int, Why]:
        """Buy the truth if it is worth its price, or announce, in the round `clock`."""
        self.questions.expire(clock)
        announced, risk, value = seen["cheapest"], seen["risk"], seen["value"]
        labels, waiting, worth = len(self.knowledge.bought), len(self.questions), self.knowledge.worth
        check = self.watch.check(announced)
        if self.panel is not None and self.panel.suspects(answers):
            check = check._replace(suspect=True)
        known, guess = labels + waiting, self._start_guess()
        offer = Offer(risk, value, seen["price"], clock, known, waiting, 0.0, seen["novelty"], check, guess)
        asks, why = self.purchase_rule(offer, worth)
        if not asks and worth is not None and answers and not waiting and len(self.expected_costs.costs) <= MANY:
            new = self.knowledge.bought.named_first(answers)
            asks, why = (asks, why) if new is None else (True, Why(NEW_CLASS, {"named": self.game.outcomes[new]}))
        if asks and worth is not None and waiting:
            # Open questions can only speak against another, and looking through them takes longer than all the rest.
            asks, why = self.purchase_rule(offer._replace(nearby=self.questions.nearby(x, worth.reach)), worth)
        if "probability" in why.values:
            self.watch.count_announcement(announced, why["probability"])
        unselected = "probability" in why.values or why.sentence == ASKED_FIRST
        if self.panel is not None and unselected:
            self.panel.leave(seen["own"].mean(0), answers)
        if not asks:
            return announced, announced, why
        risk, value = (math.nan, math.nan) if worth is None else (risk, value)
        believed, learned = seen["probability"].clone(), seen.get("learned")
        learned = None if learned is None else learned.clone()
        asked = OpenQuestion(x, clock, announced, risk, value, believed, labels, answers, unselected, learned)
        self.questions.add(asked)
        return self.expected_costs.expert or 0, announced, why

    def _start_guess(self) -> float | None:
        """What an announcement is expected to cost at the start, by which the number of first questions is priced.

        Beside experts who may be wrong it is what announcements cost after their answers; with few classes, what those
        of the labels bought would cost unseen, for a model of so few is too sure, or the best expert alone if less.
        Before there is a model the first truths are bought without such a price, and later there is no start: None.
        """
        worth = self.knowledge.worth
        if worth is not None and len(self.knowledge.bought) >= self.purchase_rule.most_first:
            return None
        if self.panel is None:
            return self.knowledge.guess()
        if worth is None:
            return None
        if len(self.expected_costs.costs) > MANY:
            return worth.risk
        return min(worth.asked, self.panel.best_alone() * self.expected_costs.unit)

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        if self.panel is not None and action in self.panel.actions:
            return
        y, question = self.expected_costs.outcome(symbol), self.questions.take(x)
        if self.panel is not None and question is not None:
            self._check_experts(self.panel, x, y, question)
        self.knowledge.add(x, y, question, self.clock, self._rng)
        stale = None if question is None else self.watch.detect_change(question, y, self.clock)
        if stale is not None:
            self.knowledge.forget(*stale, self.clock)

    def _check_experts(self, panel: Panel, x: Tensor, y: int, question: OpenQuestion) -> None:
        """Hold what experts said against the truth."""
        trusts: list[float] = []
        if question.random:
            trusts = panel.trusts(self.knowledge.untaught(x), question.answers)
        for e, (one, said) in enumerate(zip(panel.reliability, question.answers, strict=True)):
            if said >= 0:
                trust = trusts[e] if trusts else None
                one.check(y, said, question.probability, question.clock, random=trust)
        self._notice_changes(panel)

    def _forgo(self, x: Tensor) -> None:
        self.questions.take(x)

    def _teach(self, X: Tensor, action: int, outcomes: Sequence[int]) -> None:
        """Labels without a question: the scaling sees the observations, and nothing was predicted of them."""
        for x, outcome in zip(X, outcomes, strict=True):
            self.knowledge.add(x, outcome, None, self.clock, self._rng)

    def _preview(self, X: Tensor) -> None:
        self.knowledge.observe_block(X, self.rng)

    def _add_class(self, game: Game) -> None:
        self.expected_costs = ExpectedCosts(game)
        self.panel = None if self.panel is None else self.panel.grown(game)
        vectors = named_classes(game, self.shape, self._names_by)
        self.knowledge.add_class(self.expected_costs, self.panel, self.clock, None if vectors is None else vectors[-1])
        self.purchase_rule = self._scaled_to_classes(replace(self.purchase_rule, unit=self.expected_costs.unit))
        self.questions.add_class()
        self.watch.add_class(self.expected_costs.costs, float(self.rng.random()))

    def _set_costs(self, game: Game) -> None:
        before, self.expected_costs = self.expected_costs, ExpectedCosts(game)
        factor = scale(before.costs, self.expected_costs.costs)
        self.panel = None if self.panel is None else self.panel.with_game(game)
        self.knowledge.set_costs(self.expected_costs, self.panel, factor, self.clock)
        self.purchase_rule = self._scaled_to_classes(replace(self.purchase_rule, unit=self.expected_costs.unit))
        self.questions.set_costs(factor)
        self.watch.set_costs(self.expected_costs.costs)

    def forecast(self) -> Forecast | None:
        """By what labels have been worth up to now; None before there is a model, or where nobody knows the truth."""
        worth, expert = self.knowledge.worth, self.expected_costs.expert
        if worth is None or expert is None or not worth.slope:
            return None
        labels, to_come = len(self.knowledge.bought), self.purchase_rule.rounds_to_come(self.clock)
        price = float(self.game.costs[expert].mean())
        error = math.hypot(worth.error, SLOPE_ERROR * worth.slope)
        return Forecast(labels, worth.slope, error, SPREAD * worth.risk, worth.asked, price, to_come)

    def _due_after_label(self) -> bool:
        if self.panel is not None and len(self.knowledge.bought) == self.knowledge.schedule.labels:
            return False
        fitted = self.knowledge.worth is not None
        return self.knowledge.schedule.after_label(len(self.knowledge.bought), self.clock, fitted)

    def _due_in(self) -> int:
        return self.knowledge.schedule.rounds(len(self.knowledge.bought), self.clock)

    def _train(self) -> None:
        self.knowledge.train(self.clock, self.rng)

    def _identity(self) -> dict[str, Any]:
        return {
            "form": 2,
            "members": self.knowledge.beliefs.members,
            "kind": type(self.knowledge.beliefs.ensemble).__name__,
        }

    def _state(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._parts().items()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        for name, part in self._parts().items():
            part.load_state_dict(state[name])

    def _parts(self) -> dict[str, Knowledge | OpenQuestions | Watch]:
        """What changes, by the names that state files have for it."""
        return {"knows": self.knowledge, "questions": self.questions, "watch": self.watch}
