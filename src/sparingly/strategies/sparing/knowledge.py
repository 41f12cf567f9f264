"""What a strategy knows: the models trained on the labels it bought, and what another label is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.strategies.sparing.beliefs import Beliefs, sharpness
from sparingly.strategies.sparing.consulting.answer_forecast import AnswerForecasts, AnswerOutlook
from sparingly.strategies.sparing.consulting.answer_model import AnswerModel
from sparingly.strategies.sparing.consulting.panel import NO_ANSWER, Panel, formerly
from sparingly.strategies.sparing.open_questions import OpenQuestion
from sparingly.strategies.sparing.purchase import FIRST, MANY, PRIOR_SLOPE, ExpectedCosts
from sparingly.strategies.sparing.training_data import (
    GROWTH,
    MANY_GROWTH,
    MANY_PACE,
    PACE,
    PANEL_GROWTH,
    Bought,
    RefitSchedule,
    Reservoir,
)
from sparingly.strategies.sparing.worth import (
    DISCOUNT,
    EMBEDDED_DISCOUNT,
    EMBEDDED_FURTHER,
    MANY_PANEL_DISCOUNT,
    PANEL_DISCOUNT,
    TOLD_DISCOUNT,
    TOLD_EMBEDDED_DISCOUNT,
    Worth,
)

LIKELY_ANSWERS = 6
"""Of an expert, that are looked at before it is asked: the rest are hardly ever given."""
TRIED_ANSWERS = 3
"""The same for many rows at once."""
KEPT_APART = 4
"""One in so many rows with experts' answers is not trained on, to see there what labels are worth."""
ANSWERED_SAMPLE = 2000
"""Observations that are kept with experts' answers, to learn what these would say of others."""
STREAM_SAMPLE = 1000
"""Observations of the stream that are kept, to scale features by and to see what labels are worth."""
FEW_FOR_EACH = 2
"""With more than `MANY` classes, labels a class up to which what labels teach is mostly what is usual."""
USUAL_SLOPE, USUAL_SPREAD = 0.35, 0.2
"""Beside experts who may be wrong and with more than `MANY` classes: the share of what announcing costs that an e-fold
of labels usually removes, and how much that varies. With a few labels a class a learning curve is mostly noise, and
whether it came out above that decided about hundreds of purchases; so it counts by its standard error."""
TAUGHT = 40
"""Labels from which on it is seen what they have taught beyond what experts say, ..."""
UNTAUGHT = 5
"""... and up to which they have taught nothing."""
MOST_REMOVED = 0.5
"""Beside experts, and with few classes, an e-fold of labels removes at most this share of what announcing costs."""
UNMEASURED = 100
"""So many labels of which nothing was believed beforehand are enough to measure on what labels teach."""


class Knowledge:
    """Labels in, probabilities out; trained anew as they grow, and measured each time on labels not seen.

    Parameters
    ----------
    expected_costs
        The costs of the game.
    beliefs
        The models.
    panel
        The experts who may be wrong, if there are any: what they said is part of what is known of an observation.
    learnability
        Without it, what labels have taught is not measured: `Worth` keeps its prior.
    horizon_known
        Whether it is known how many rounds there will be.
    """

    def __init__(
        self,
        expected_costs: ExpectedCosts,
        beliefs: Beliefs,
        *,
        panel: Panel | None = None,
        learnability: bool = True,
        horizon_known: bool = False,
    ) -> None:
        self.expected_costs, self.beliefs, self.learnability = expected_costs, beliefs, learnability
        self.horizon_known = horizon_known
        self.panel = panel
        self._named = beliefs.named
        self.answer_model: AnswerModel | None = None
        self.forecasts: AnswerForecasts | None = None
        """What each expert would say; None before anyone was heard."""
        self.bought = Bought(beliefs.members, 0 if panel is None else len(panel))
        self.schedule = self._paced(RefitSchedule())
        self.worth: Worth | None = None
        """None as long as there is no model."""
        self._stream = Reservoir(STREAM_SAMPLE)
        self._heard = Reservoir(2000)
        """A sample of the stream with what experts who may be wrong said of it, where there are such."""
        self._answered = Reservoir(ANSWERED_SAMPLE)
        """The same of those of which anyone said anything."""

    def _paced(self, schedule: RefitSchedule) -> RefitSchedule:
        """A schedule at the pace that this many classes, or a panel, call for."""
        growth, pace = (MANY_GROWTH, MANY_PACE) if len(self.expected_costs.costs) > MANY else (GROWTH, PACE)
        if self.panel is not None:
            growth = pace = PANEL_GROWTH
        return replace(schedule, growth=growth, pace=pace)

    def observe(self, x: Tensor, rng: np.random.Generator) -> None:
        """See an observation of the stream, whether or not it is asked about."""
        self._stream.defer(x[None], rng)

    def observe_block(self, X: Tensor, rng: np.random.Generator) -> None:
        """The same for a block, in its order."""
        self._stream.defer(X, rng)

    def settle(self) -> None:
        """Draw what the observations seen so far still have to be drawn for, before the generator serves others."""
        self._stream.settle()

    def guess(self) -> float:
        """The expected cost of the announcement that is best without looking; with classes taken for equally common
        before there is a model, for a handful of labels may all be of one class by chance."""
        if self.worth is None:
            return self.expected_costs.blind_guess
        costs = self.expected_costs.costs
        return float((costs @ self.bought.shares(len(costs))).min())

    def hear(self, x: Tensor, answers: Sequence[int], rng: np.random.Generator) -> None:
        """Keep what experts said of an observation in the end, `NO_ANSWER` where nothing."""
        row = torch.cat([x.flatten(), torch.tensor(answers, dtype=x.dtype)])
        self._heard.add(row, rng)
        if max(answers) >= 0 and len(self.expected_costs.costs) <= MANY:
            self._answered.add(row, rng)

    def disregard(self, expert: int, since: int) -> None:
        """Keep no answer of an expert from before a round as one of today; it has changed.

        What it said of rows whose truth nobody told goes on teaching, by what was known of it then.
        """
        self.bought.disregard(expert, since)
        if self._heard.seen:
            said = self._heard.rows[:, expert - self.bought.experts]
            said[:] = torch.where(said >= 0, formerly(said), NO_ANSWER)
            self._heard.renew()
        if self._answered.seen:
            self._answered.rows[:, expert - self.bought.experts] = NO_ANSWER
            self._answered.renew()
        if self.forecasts is not None:
            self.forecasts.forget(expert)

    def add(self, x: Tensor, y: int, question: OpenQuestion | None, clock: int, rng: np.random.Generator) -> None:
        """Keep a label, with what was believed when it was asked for.

        Labels that nobody asked for are a part of the stream as long as there are more of them than rounds: they are
        what is there before the first.
        """
        if question is None and self._stream.seen <= len(self.bought):
            self.observe(x, rng)
        self.bought.add(x, y, question, clock=clock - 1, costs=self.expected_costs.costs)

    def forget(self, classes: list[int], since: int, clock: int) -> None:
        """Keep no label of some classes from before a round; the next label brings an update."""
        self.bought.forget(classes, since)
        self._stream.renew()
        self.schedule = replace(self.schedule, labels=0, clock=clock)

    def add_class(
        self, expected_costs: ExpectedCosts, panel: Panel | None, clock: int, vector: Tensor | None = None
    ) -> None:
        """Take on one more class, with what it is called if that is known; the next label brings an update."""
        self.expected_costs, self.panel, self.answer_model = expected_costs, panel, None
        self.forecasts = None
        self.beliefs.add_class(vector)
        self.schedule = self._paced(self.schedule)
        if self.worth is not None:
            self.schedule = replace(self.schedule, labels=0, clock=clock)

    def set_costs(self, expected_costs: ExpectedCosts, panel: Panel | None, factor: float, clock: int) -> None:
        """Go on with other costs, `factor` times what they were, nan if they are others; an update must follow.

        What was believed of labels in other costs is measured anew, as of labels that nobody asked for.
        """
        self.expected_costs, self.panel = expected_costs, panel
        self.bought.set_costs(factor)
        if self.worth is not None:
            self.schedule = replace(self.schedule, labels=0, clock=clock)
            if factor == factor:
                self.worth = self.worth.scaled(factor)

    def members(self, X: Tensor) -> Tensor:
        """The members' calibrated probabilities, `[member, block, class]`; the labels' shares before there are any.

        Where labels are there and only the training is late, as beside another process that trains, the nearest of
        them say more than their shares. Where it is known what classes are called, that says more than a few labels.
        """
        n_classes = len(self.expected_costs.costs)
        if self.worth is not None:
            return self.beliefs(X)
        if len(self.bought) >= FIRST:
            return self.bought.nearest(X, n_classes)[None]
        if not self._named:
            return self.bought.shares(n_classes).expand(1, len(X), -1)
        held = self.beliefs.by_names(X) * self.bought.shares(n_classes, added=n_classes)
        return (held / held.sum(1, keepdim=True))[None]

    def untaught(self, x: Tensor) -> Tensor:
        """Probabilities of one observation by labels alone, `[class]`, whatever experts said of others."""
        held = self.beliefs(x[None], taught=False) if self.worth is not None else self.members(x[None])
        return held.mean(0)[0]

    def novelty(self, X: Tensor) -> Tensor:
        """How far off the nearest label is, 1 on average; 1 before there is a model."""
        return self.beliefs.novelty(X) if self.worth is not None else torch.ones(len(X))

    def assess(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Both of the above, and the members by labels alone where names have a part; the models' view is made once."""
        if self.worth is None:
            return self.members(X), self.novelty(X), None
        rows = self.beliefs.scaled(X)
        members, learned = self.beliefs.with_learned(X, rows)
        return members, self.beliefs.novelty(X, rows), learned

    def seen(self, members: Tensor, learned: Tensor | None) -> dict[str, Any]:
        """The costs expected of probabilities `[member, block, class]`.

        What labels may still teach is a matter of what labels have taught: the disagreement is that of the members by
        labels alone. A name is the same for all of them.
        """
        found = self.expected_costs(members)
        if learned is not None:
            by_labels = self.expected_costs(learned)
            found = {**found, "value": by_labels["value"], "learned": by_labels["probability"]}
            found["learned_risk"] = by_labels["risk"]
        return found

    def train(self, clock: int, rng: np.random.Generator) -> None:
        """Draw and train new models, and compare what they hold of labels not seen with what was held before."""
        n = len(self.bought)
        if n < FIRST:
            self.worth = None
            return
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        X, y, folds = (self.bought[name] for name in ("x", "y", "fold"))
        sample = self._stream.rows if self._stream.seen else X
        with torch.no_grad():
            self._measure_teaching(sample, generator)
            unseen = self.beliefs.fit(sample, X, y, folds, generator)
            rows, seen = sample, self.seen(*self.beliefs.with_learned(sample))
            if self.panel is not None:
                self.panel.sharpness = 1.0
                held, unseen = unseen, self.panel.fit(unseen, self.bought)
                if self._heard.seen:
                    rows, members, answers, held = self._after_answers(self.panel, held)
                    unseen = self._fit_answers(self.panel, self.panel.fit(held, self.bought), generator)
                    unseen = self._sharpened(self.panel, unseen, self.posterior(self.panel, rows, members, answers))
                    self._fit_forecasts(self.panel, sample, generator)
                    seen = self.expected_costs(self._believed(self.panel, rows, members, answers))
        learned = unseen if self.beliefs.learned is None or self.panel is not None else self.beliefs.learned
        now, by_labels = ((held * self.expected_costs.costs[:, y].T).sum(1) for held in (unseen, learned))
        bought = {name: self.bought[name] for name in ("value", "soft", "labels")}
        stream = {"value": torch.tensor(seen["value"]), "risk": torch.tensor(seen["risk"]), "x": sample}
        unit = self.expected_costs.unit or 1.0
        slope = self._slope(rows, by_labels, torch.tensor(seen.get("learned_risk", seen["risk"])))
        risk = float(stream["risk"].mean())
        slope = max(slope, self._prior_slope(risk))
        most = math.inf if self.panel is None else self._most_taught(self.panel, unseen, risk)
        known = {"discount": self._discount(), "slope": slope, "most": most}
        self.worth = Worth.measure(bought, by_labels, stream, unit=unit, learnability=self.learnability, **known)
        if self.panel is None and self.beliefs.directions and not self.horizon_known:
            self.worth = replace(self.worth, further=EMBEDDED_FURTHER)
        if learned is not unseen:
            self.worth = replace(self.worth, asked=self.worth.asked - float((by_labels - now).mean()))
        self.schedule = replace(self.schedule, labels=n, clock=clock)

    def _discount(self) -> float:
        if self.panel is None and self.beliefs.directions:
            return TOLD_EMBEDDED_DISCOUNT if self.horizon_known else EMBEDDED_DISCOUNT
        if self.panel is None:
            return TOLD_DISCOUNT if self.horizon_known else DISCOUNT
        many = len(self.expected_costs.costs) > MANY
        return MANY_PANEL_DISCOUNT if many and not self.horizon_known else PANEL_DISCOUNT

    def _stream_risk(self, sample: Tensor, now: Tensor, risk: Tensor) -> float:
        """What announcements cost on the stream: for rows with a label by the member that has not seen it."""
        places = {x.numpy().tobytes(): place for place, x in enumerate(self.bought["x"])}
        place = torch.tensor([places.get(x.numpy().tobytes(), -1) for x in sample])
        return float(torch.where(place >= 0, now[place.clamp(min=0)], risk.to(now.dtype)).mean())

    def _slope(self, sample: Tensor, now: Tensor, risk: Tensor) -> float:
        """What an e-fold of labels saves a round by the learning curve of trees or kernels; 0 where there is none.

        Half of the labels are compared with all of them on labels unseen by either, after what experts who may be wrong
        said of them; labels are chosen to be harder than the stream is. A standard error is taken off. Beside such
        experts and with few classes there are few labels, and it is looked at often: two are taken off. With many
        classes it is joined with what is usual instead.
        """
        if self.beliefs.halves is None:
            return 0.0
        costs, y = self.expected_costs.costs, self.bought["y"]
        halves = torch.stack(self.beliefs.halves)
        if self.panel is not None:
            halves = self.panel.posterior(halves, self.bought["answers"])
        few, all_ = (costs[(held @ costs.T).argmin(1), y].double() for held in halves)
        saved = (few - all_) / math.log(2)
        mean, paid = float(saved.mean()), max(float(now.mean()), 1e-12)
        error: float = float(saved.std()) / len(saved) ** 0.5
        if self.panel is None:
            curve = mean - error
        elif len(costs) <= MANY:
            curve = mean - 2 * error
        else:
            curve = _shrunk(mean, error, USUAL_SLOPE * paid, USUAL_SPREAD * paid)
        return max(0.0, curve) * min(1.0, self._stream_risk(sample, now, risk) / paid)

    def _prior_slope(self, risk: float) -> float:
        """With many classes, what an e-fold of labels is taken to save before it can be measured.

        As long as most classes have a label or two, a label left out is one of a class that is hardly known without it:
        neither what labels have removed nor a learning curve says what more of them would teach.
        """
        n_classes = len(self.expected_costs.costs)
        if n_classes <= MANY:
            return 0.0
        if self.panel is not None:
            return USUAL_SLOPE * risk if self.beliefs.halves is None else 0.0
        few = FEW_FOR_EACH * n_classes
        return PRIOR_SLOPE * risk * few / (few + len(self.bought))

    def _most_taught(self, panel: Panel, unseen: Tensor, risk: float) -> float:
        """With few classes, the most that an e-fold of labels saves a round after what experts said of it.

        It is a share of what announcing still costs, the `risk`, and no more than labels have taught up to now: what
        the announcement costs that experts' answers alone call for, less what it costs with the own model, on labels
        unseen; a standard error is added, and it took all e-folds so far. On embeddings, where answers may be foreseen
        and not asked for, only labels beside which there was one say what answers leave to learn.
        """
        costs, y, heard = self.expected_costs.costs, self.bought["y"], (self.bought["answers"] >= 0).any(1)
        if len(costs) > MANY or not self.learnability:
            return math.inf
        if not self.beliefs.directions:
            heard = torch.ones_like(heard)
        n, most = int(heard.sum()), MOST_REMOVED * risk
        if n < TAUGHT:
            return most
        alone = panel.unaided(self.bought.shares(len(costs)), self.bought)
        without, with_ = (costs[(held @ costs.T).argmin(1), y].double() for held in (alone, unseen))
        saved = (without - with_)[heard]
        efolds = math.log(len(y) / UNTAUGHT)
        return min(most, max(0.0, float(saved.mean() + saved.std() / n**0.5)) / efolds)

    def _measure_teaching(self, sample: Tensor, generator: torch.Generator) -> None:
        """What labels that nobody asked for have taught: train on the first quarter, and see what it says of the rest.

        Labels bought one by one need no such thing, for each was predicted before it was known.
        """
        beyond = max(FIRST, len(self.bought) // 4)
        if int(self.bought["value"][beyond:].isnan().sum()) < UNMEASURED:
            return
        X, y, folds = (self.bought[name] for name in ("x", "y", "fold"))
        self.beliefs.fit(sample, X[:beyond], y[:beyond], folds[:beyond], generator)
        self.bought.believe(beyond, self.expected_costs(self.beliefs(X[beyond:])), self.expected_costs.costs)

    def _unlabelled(self, rows: Tensor) -> Tensor:
        """Which rows, as features, have no label."""
        bought = {x.flatten().numpy().tobytes() for x in self.bought["x"]}
        return torch.tensor([x.contiguous().numpy().tobytes() not in bought for x in rows], dtype=torch.bool)

    def posterior(self, panel: Panel, X: Tensor, members: Tensor, answers: Tensor) -> Tensor:
        """The members' probabilities `[member, block, class]` after answers `[block, expert]`."""
        pooled = panel.posterior(members, answers)
        return pooled if self.answer_model is None else self.answer_model(pooled, X, answers)

    def _fit_forecasts(self, panel: Panel, sample: Tensor, generator: torch.Generator) -> None:
        """Learn anew what experts would say, where their answers have grown enough.

        On embeddings only: of tables nothing was gained by it. Nor with many classes: there an answer is hardly ever
        foreseen where the own model is not sure itself.
        """
        shape = tuple(self.bought["x"].shape[1:])
        if not self._answered.seen or panel.n_classes > MANY or not self.beliefs.directions:
            return
        rows, answers = self._answered.rows[:, : -len(panel)], self._answered.rows[:, -len(panel) :].long()
        forecasts = self.forecasts or AnswerForecasts(panel.n_classes, shape, len(panel))
        for e in range(len(panel)):
            known = answers[:, e] >= 0
            if forecasts.due(e, int(known.sum()), self._answered.seen):
                X, said = rows[known].view(-1, *shape), answers[known, e]
                plain = panel.foreseen(e, self.beliefs(X).mean(0))
                forecasts.fit(e, sample, (X, said, plain), self._answered.seen, generator)
        self.forecasts = forecasts

    def outlooks(
        self, panel: Panel, x: Tensor, own: Tensor, foreseen: Tensor, truth: float = math.inf
    ) -> dict[int, AnswerOutlook]:
        """What is believed of an observation before anyone is asked, by what each expert is foreseen to say.

        Parameters
        ----------
        own, foreseen
            The members' probabilities `[member, class]`, and the forecasts `[expert, class]` (`AnswerForecasts`).
        truth
            Its price: no risk is higher.
        """
        used = {} if self.forecasts is None else self.forecasts.used
        found: dict[int, AnswerOutlook] = {}
        for e, one in used.items():
            if bool(foreseen[e].isnan().any()):
                continue
            likely = one.mixed(foreseen[e], panel.foreseen(e, own.mean(0)[None])[0])
            weights, said = likely.topk(min(LIKELY_ANSWERS, panel.n_classes))
            weights = weights / weights.sum()
            answers = torch.full((len(said), len(panel)), NO_ANSWER)
            answers[:, e] = said
            after = self.posterior(
                panel, x.expand(len(said), *x.shape), own[:, None].expand(-1, len(said), -1), answers
            )
            before = (weights[:, None] * after).sum(1)
            risk = min(truth, float((panel.costs @ before.mean(0)).min()))
            later = (after.mean(0) @ panel.costs.T).amin(1).clamp(max=truth)
            found[e] = AnswerOutlook(before, risk, float(weights @ later), likely)
        surest = min(found.values(), key=lambda one: one.risk, default=None)
        return {e: one._replace(before=surest.before, risk=surest.risk) for e, one in found.items() if surest}

    def _believed(self, panel: Panel, X: Tensor, members: Tensor, answers: Tensor) -> Tensor:
        """What is believed of rows of the stream, `[member, block, class]`: after answers, or by what is foreseen.

        Where nobody was asked because the answer was foreseen, the own belief alone would make labels look worth more.
        """
        after, silent = self.posterior(panel, X, members, answers), (answers < 0).all(1)
        used = {} if self.forecasts is None else self.forecasts.used
        if not used or not bool(silent.any()):
            return after
        X, own, found = X[silent], members[:, silent], []
        for e, one in used.items():
            likely = one.mixed(one(X), panel.foreseen(e, own.mean(0)))
            weights, said = likely.topk(min(TRIED_ANSWERS, panel.n_classes))
            before = torch.zeros_like(own)
            for weight, answer in zip((weights / weights.sum(1, keepdim=True)).T, said.T, strict=True):
                heard = torch.full((len(X), len(panel)), NO_ANSWER)
                heard[:, e] = answer
                before += weight[:, None] * self.posterior(panel, X, own, heard)
            found.append(before)
        surest = torch.stack([(one.mean(0) @ panel.costs.T).amin(1) for one in found]).argmin(0)
        after = after.clone()
        after[:, silent] = torch.stack(found)[surest, :, torch.arange(len(X))].transpose(0, 1)
        return after

    def _fit_answers(self, panel: Panel, pooled: Tensor, generator: torch.Generator) -> Tensor:
        """Train the model whose features are the answers, too; what is held of labels unseen then."""
        if self.answer_model is None and self.beliefs.plain and AnswerModel.suits(panel.n_classes, len(panel)):
            self.answer_model = AnswerModel(panel.n_classes, self.bought["x"][0].numel(), len(panel))
        if self.answer_model is None:
            return pooled
        rows = self._heard.rows[:STREAM_SAMPLE]
        sample = rows[:, : -len(panel)], rows[:, -len(panel) :].long()
        labels = {name: self.bought[name] for name in ("x", "y", "fold", "answers")}
        return self.answer_model.fit(sample, labels, pooled, generator)

    def _sharpened(self, panel: Panel, unseen: Tensor, stream: Tensor) -> Tensor:
        """With many classes: find the power under which what is believed after answers is right on the stream; what is
        held of labels unseen then. With few classes the weights of the pool are enough."""
        if panel.n_classes <= MANY:
            return unseen
        panel.sharpness = sharpness(unseen, self.bought["y"], stream.mean(0))
        return (unseen.clamp(min=1e-12).log() * panel.sharpness).softmax(1)

    def _after_answers(self, panel: Panel, held: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows whose answers were heard, members' beliefs of them, the answers, and what is held of labels unseen.

        The experts' reliability is counted anew by what labels alone teach, and the models learn from what is believed
        of rows whose truth nobody told. Some rows are kept apart, to see there what labels are worth.
        """
        rows, answers = self._heard.rows[:, : -len(panel)], self._heard.rows[:, -len(panel) :].long()
        unlabelled, apart = self._unlabelled(rows), torch.arange(len(rows)) % KEPT_APART == 0
        rows = rows.view(len(rows), *self.bought["x"].shape[1:])
        members, labelled = self.beliefs(rows), {name: self.bought[name] for name in ("x", "y", "fold", "answers")}
        random = self.bought["random"]
        checked = held[random], labelled["answers"][random], labelled["y"][random], labelled["fold"][random]
        panel.recount(members.mean(0)[unlabelled], answers[unlabelled], checked)
        soft = unlabelled & (answers != NO_ANSWER).any(1) & ~apart
        if bool(soft.any()):
            believed = panel.posterior(members[:, soft], answers[soft], former=True)
            likely = partial(panel.likelihood, labels=labelled)
            held = self.beliefs.teach(labelled, held, rows[soft], believed, likely)
            panel.fit(held, labelled)
        # Members know the labels of rows that have one; rows to come will be like the others.
        shown = unlabelled & apart if self.beliefs.taught else unlabelled
        if int(shown.sum()) < FIRST:
            shown = apart if self.beliefs.taught and int(apart.sum()) >= FIRST else torch.ones_like(apart)
        return rows[shown], self.beliefs(rows[shown]), answers[shown], held

    def state_dict(self) -> dict[str, Any]:
        return {
            **({} if self.panel is None else self._panel_state(self.panel)),
            "bought": self.bought.state_dict(),
            "schedule": self.schedule.state_dict(),
            "stream": self._stream.state_dict(),
            "beliefs": None if self.worth is None else self.beliefs.state_dict(),
            "worth": None if self.worth is None else self.worth.state_dict(),
        }

    def _panel_state(self, panel: Panel) -> dict[str, Any]:
        model = None if self.answer_model is None else self.answer_model.state_dict()
        forecasts = None if self.forecasts is None else self.forecasts.state_dict()
        samples = {"heard": self._heard.state_dict(), "answered": self._answered.state_dict()}
        return {"panel": panel.state_dict(), **samples, "answer_model": model, "forecasts": forecasts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.bought.load_state_dict(state["bought"])
        self.schedule = replace(self.schedule, **state["schedule"])
        self._stream.load_state_dict(state["stream"])
        self.worth = None if state["worth"] is None else Worth(**state["worth"])
        if self.worth is not None:
            self.beliefs.load_state_dict(state["beliefs"])
        if self.panel is not None:
            self.panel.load_state_dict(state["panel"])
            self._heard.load_state_dict(state["heard"])
            self.answer_model, saved = None, state.get("answer_model")
            if saved is not None:
                self.answer_model = AnswerModel(self.panel.n_classes, self.bought["x"][0].numel(), len(self.panel))
                self.answer_model.load_state_dict(saved)
            # Earlier states have no forecasts: they begin with the answers to come.
            self.forecasts, saved = None, state.get("forecasts")
            self._answered = Reservoir(ANSWERED_SAMPLE)
            if "answered" in state:
                self._answered.load_state_dict(state["answered"])
            if saved is not None:
                shape = tuple(self.bought["x"].shape[1:])
                self.forecasts = AnswerForecasts(self.panel.n_classes, shape, len(self.panel))
                self.forecasts.load_state_dict(saved)


def _shrunk(mean: float, error: float, usual: float, spread: float) -> float:
    """A measurement with its standard error, joined with what is usual and how much that varies.

    >>> round(_shrunk(0.0, 0.1, usual=0.2, spread=0.1), 3), round(_shrunk(0.3, 0.01, usual=0.2, spread=0.1), 3)
    (0.1, 0.299)
    """
    trust = spread * spread / (spread * spread + error * error)
    return usual + trust * (mean - usual)
