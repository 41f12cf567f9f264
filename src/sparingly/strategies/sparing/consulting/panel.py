"""Several experts who may be wrong: what their answers make of a belief, and whom to ask next."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.strategies.sparing.consulting.answer_forecast import AnswerOutlook
from sparingly.strategies.sparing.consulting.opinion_pool import OpinionPool
from sparingly.strategies.sparing.consulting.reliability import Reliability
from sparingly.strategies.strategy import Why

LEAST = 1e-6
"""No class is held impossible."""
NO_ANSWER = -1
ROUNDS = 8
"""Of expectation and maximisation, whenever reliability is counted anew."""
TOGETHER = 3
"""Experts whose answers are looked at together, at most."""
LIKELIEST = 4
"""Classes that are looked at for each of several experts who might answer."""
STEPS = (0.02, 0.05, 0.1, 0.2)
"""Of the saving expected of an answer, as shares of the largest cost."""
TRIED = 1.0
"""Cost that answers were expected to save, and did, before any were heard."""
DEAR, DOUBTED = 0.3, 0.5
"""An expert who costs more than this share of the truth has to show what answers save: before that, this share of it
is believed. So dear an answer hardly ever pays, and finding that out by asking costs more than the truth would."""


def formerly(answers: Tensor) -> Tensor:
    """Answers from before an expert changed, as they are kept beside others; the other way round it is the same.

    >>> formerly(torch.tensor([0, 1, -2, -3])).tolist()
    [-2, -3, 0, 1]
    """
    return -2 - answers


class Labels(Protocol):
    """Columns by name, such as classes `y`, answers `answers` and folds `fold`."""

    def __getitem__(self, name: str, /) -> Tensor: ...


class Panel:
    """The experts of a game who may be wrong.

    What is believed after answers is the own belief and what each answer says, pooled (`OpinionPool`).

    Parameters
    ----------
    game
        With one or more such experts.
    """

    def __init__(self, game: Game) -> None:
        self.actions = [a for a in range(game.n_actions) if (e := game.expert(a)) is not None and not e.gold]
        self.experts = list(game.noisy_experts)
        self.reliability = [Reliability(expert, game.n_outcomes) for expert in self.experts]
        self.n_classes, self._outcomes = game.n_outcomes, game.outcomes
        self.costs = torch.tensor(game.costs[: self.n_classes], dtype=torch.float32)
        self._unit = float(self.costs.max()) or 1.0
        self._symbols = {a: {symbol: y for y, symbol in enumerate(game.feedback[a])} for a in self.actions}
        self.pool = OpinionPool(len(self.experts))
        self.sharpness = 1.0
        """The power of what is believed after answers under which it is right on the stream."""
        self.saved = torch.full((len(self.experts), 2, len(STEPS) + 1, 2), TRIED)
        """The cost that answers were expected to save, and that they did by today's beliefs, `[expert, 2, step, 2]`: of
        those heard first, and of those heard after others, which experts who err together make worth less; apart for
        each step of what was expected, for where the own model is sure it often knows what an expert would say."""
        truth = min((one.price for one in game.experts if one.gold), default=math.inf)
        dear = torch.tensor([one.price > DEAR * truth for one in self.experts])
        self.saved[dear, ..., 1] *= DOUBTED

    def __len__(self) -> int:
        return len(self.experts)

    def answers(self, heard: Sequence[tuple[int, Any]]) -> list[int]:
        """For each expert the class it named, `NO_ANSWER` where it named none or was not asked."""
        said = dict(heard)
        return [NO_ANSWER if said.get(a) is None else self._symbols[a][said[a]] for a in self.actions]

    def posterior(self, members: Tensor, answers: Tensor, *, former: bool = False) -> Tensor:
        """Probabilities `[member, block, class]` after answers `[block, expert]`, with `former` ones if so said."""
        heard = (answers >= 0) | (answers < NO_ANSWER) if former else answers >= 0
        if not bool(heard.any()):
            return members
        after = self.pool(members.clamp(min=LEAST).log(), self._words(answers), heard)
        return torch.where(heard.any(1)[None, :, None], (self.sharpness * after).softmax(2), members)

    def _words(self, answers: Tensor) -> Tensor:
        """`log q(answer | class)`, `[block, expert, class]`, for answers `[block, expert]`; 0 where there is none."""
        said = torch.zeros(*answers.shape, self.n_classes)
        for e, one in enumerate(self.reliability):
            now, before = answers[:, e] >= 0, answers[:, e] < NO_ANSWER
            said[now, e] = one.matrix[:, answers[now, e]].T.log()
            if one.former is not None:
                said[before, e] = one.former[:, formerly(answers[before, e])].T.log()
        return said

    def words(self, answers: Sequence[int]) -> str:
        """Who says what, and how often that is right.

        >>> from sparingly import Expert, label_efficient
        >>> panel = Panel(label_efficient(classes=["joy", "fear"], experts=[Expert("gpt", 0.01)]))
        >>> panel.words([0]), panel.words([-1])
        ('gpt says joy and is then right 8 times in 10', 'nobody has answered')
        """
        said = [
            f"{one.expert.name} says {self._outcomes[y]} and is then right {10 * one.precision(y):.0f} times in 10"
            for one, y in zip(self.reliability, answers, strict=True)
            if y >= 0
        ]
        return ", ".join(said) or "nobody has answered"

    def foretold(self, outlooks: Mapping[int, AnswerOutlook]) -> str:
        """Who would say what, of whom that is surest.

        >>> from sparingly import Expert, label_efficient
        >>> panel = Panel(label_efficient(classes=["joy", "fear"], experts=[Expert("gpt", 0.01)]))
        >>> panel.foretold({0: AnswerOutlook(torch.zeros(1, 2), 0.1, 0.1, torch.tensor([0.03, 0.97]))})
        'nobody was asked: gpt would say fear in 97 of 100 cases'
        """
        e, one = max(outlooks.items(), key=lambda known: float(known[1].likely.max()))
        name, said = self.experts[e].name, self._outcomes[int(one.likely.argmax())]
        return f"nobody was asked: {name} would say {said} in {100 * float(one.likely.max()):.0f} of 100 cases"

    def suspects(self, answers: Sequence[int]) -> bool:
        """Whether anyone who answered seems to have become worse."""
        return any(one.suspect and y >= 0 for one, y in zip(self.reliability, answers, strict=True))

    def best_alone(self) -> float:
        """How often the best of the experts is wrong."""
        return 1 - max(one.accuracy for one in self.reliability)

    def best_offer(
        self,
        belief: Tensor,
        asked: Sequence[int],
        *,
        truth: float = math.inf,
        cheap: float = 0.0,
        outlooks: Mapping[int, AnswerOutlook] = MappingProxyType({}),
    ) -> tuple[int, Why] | None:
        """The question whose answer lowers the risk by the most more than its price, and why; None if there is none.

        Parameters
        ----------
        belief, asked
            What is believed after the answers so far, `[class]`, and the actions of those who were asked.
        truth
            Its price: no risk is higher, before an answer or after it, for the truth can be bought instead.
        cheap
            Up to this price everyone is asked.
        outlooks
            Of experts of whom it is foreseen what they would say, by their places.
        """
        left = [e for e, action in enumerate(self.actions) if action not in asked]
        if not left:
            return None
        risk, *after = self.outlook([(e,) for e in left], belief, truth)
        later = len(asked) > 0
        expected = {e: risk - one for e, one in zip(left, after, strict=True)}
        expected |= {e: one.risk - one.after for e, one in outlooks.items()}
        gains = {e: self._kept(e, later, one) * one for e, one in expected.items()}
        best, *others = sorted(left, key=lambda e: self.experts[e].price - gains[e])
        gain, price = gains[best], self.experts[best].price
        if gain <= price and others and not outlooks:
            # An answer alone may change nothing that two or three of them would.
            group = (best, *others[: TOGETHER - 1])
            _, together = self.outlook([group], belief, truth)
            gain = min(self._kept(e, later, risk - together) for e in group) * (risk - together)
            price = sum(self.experts[e].price for e in group)
        if gain <= price:
            cheapest = min(left, key=lambda e: self.experts[e].price)
            if not 0 < self.experts[cheapest].price <= cheap:
                return None
            best = cheapest
        expert = self.experts[best]
        numbers = {"risk": risk, "gain": gain, "price": expert.price, "name": expert.name}
        sentence = (
            "a mistake would cost {risk:.2f} on average; {name} is expected to save {gain:.2f} and costs {price:g}"
        )
        return self.actions[best], Why(sentence, numbers)

    def outlook(self, groups: Sequence[tuple[int, ...]], belief: Tensor, truth: float = math.inf) -> list[float]:
        """The risk of a belief `[class]`, and for each group of experts what is expected of it once they have answered.

        As if answers were independent given the class. Of several who answer each is taken to name one of the few
        likeliest classes; if one does not, nothing changes.
        """
        risk = min(truth, float((self.costs @ belief).min()))
        found = [risk]
        for group in groups:
            named = belief.topk(self.n_classes if len(group) == 1 else min(self.n_classes, LIKELIEST)).indices
            joint = belief[None]
            for e in group:
                said = self.reliability[e].matrix[:, named].T * self.reliability[e].answers
                joint = (joint[:, None] * said).flatten(0, 1)
            likely = joint.sum(1)
            least = torch.minimum((joint @ self.costs.T).amin(1), truth * likely)
            found.append(float(least.sum() + (1 - likely.sum()) * risk))
        return found

    def _step(self, expected: float) -> int:
        """The place among the steps of a saving that is expected."""
        return bisect.bisect(STEPS, expected / self._unit)

    def _kept(self, e: int, later: bool, expected: float) -> float:
        """The share of a saving expected of an expert's answer, heard first or later, that such answers did bring."""
        hoped, met = self.saved[e, int(later), self._step(expected)].tolist()
        return float(met / hoped)

    def compare(
        self,
        e: int,
        own: Tensor,
        answers: Sequence[int],
        said: int,
        truth: float = math.inf,
        outlook: AnswerOutlook | None = None,
    ) -> None:
        """Hold what an answer was expected to save against what it does, for the members' beliefs `[member, class]`.

        An answer saves where it changes the announcement, or whether the truth is bought at its price. Experts who err
        together agree more often than they are expected to, and save less. `outlook` is what was foreseen, if anything.
        """
        more = [said if k == e else one for k, one in enumerate(answers)]
        before, after = (self.posterior(own[:, None], torch.tensor([one])).mean(0)[0] for one in (answers, more))
        if outlook is None:
            risk, after_answer = self.outlook([(e,)], before, truth)
        else:
            before, risk, after_answer = outlook.before.mean(0), outlook.risk, outlook.after
        guesses, costs = self.costs @ before, self.costs @ after
        unchanged = truth if float(guesses.min()) > truth else float(costs[guesses.argmin()])
        expected, met = risk - after_answer, unchanged - min(truth, float(costs.min()))
        self.saved[e, int(max(answers) >= 0), self._step(expected)] += torch.tensor([expected, met])

    def tempered(self, own: Tensor) -> Tensor:
        """The own belief `[..., class]` as it counts beside one answer."""
        return (self.pool.weights[1, 0] * own.clamp(min=LEAST).log()).softmax(-1)

    def foreseen(self, e: int, own: Tensor) -> Tensor:
        """How likely each answer of an expert is, `[block, class]`, by own beliefs and its reliability alone."""
        return self.tempered(own) @ self.reliability[e].matrix

    def trust(self, e: int, own: Tensor, answers: Tensor, words: Tensor | None = None) -> Tensor:
        """How likely each class is, `[block, class]`, by the own belief `[block, class]` and answers `[block, expert]`.

        `words` is what these say, if not by what is held of experts now. Neither the own belief nor the expert's word
        have a weight here: one below 1 says that others know the same, not that an expert is wrong.
        """
        heard = answers >= 0
        weights = self.pool.weights[heard.sum(1), 1:] * heard
        weights[:, e] = heard[:, e].float()
        words = self._words(answers) if words is None else words
        return (own.clamp(min=LEAST).log() + (weights[:, :, None] * words).sum(1)).softmax(1)

    def trusts(self, own: Tensor, answers: Sequence[int]) -> list[float]:
        """For each expert how likely its answer is right; `own` is the own belief `[class]`; 0 without an answer."""
        heard = torch.tensor([answers])
        held = [self.trust(e, own[None], heard)[0] for e in range(len(self))]
        return [float(one[said]) if said >= 0 else 0.0 for one, said in zip(held, answers, strict=True)]

    def leave(self, own: Tensor, answers: Sequence[int]) -> None:
        """Keep how likely answers, whose truth is not bought for a reason, are by the own belief `[class]`."""
        for one, said, trust in zip(self.reliability, answers, self.trusts(own, answers), strict=True):
            if said >= 0:
                one.leave(trust)

    def fit(self, unseen: Tensor, labels: Labels) -> Tensor:
        """Choose the weights that make labels likeliest, given beliefs formed without them; the posterior of these.

        Of the labels, classes `y`, `answers` and folds `fold`; what is held of experts comes from the other folds, too.
        """
        y, answers, folds = (labels[name] for name in ("y", "answers", "fold"))
        own, heard, words = unseen.clamp(min=LEAST).log(), answers >= 0, self._unseen_words(y, answers, folds)
        self.pool.fit(own, words, heard, y)
        return torch.where(heard.any(1)[:, None], self.pool(own, words, heard).softmax(1), unseen)

    def unaided(self, shares: Tensor, labels: Labels) -> Tensor:
        """What answers alone make of labels, `[n, class]`; besides, only shares of classes `[class]` are known."""
        y, answers, folds = (labels[name] for name in ("y", "answers", "fold"))
        own = shares.clamp(min=LEAST).log().expand(len(y), -1)
        return self.pool(own, self._unseen_words(y, answers, folds), answers >= 0).softmax(1)

    def _unseen_words(self, y: Tensor, answers: Tensor, folds: Tensor) -> Tensor:
        """What answers `[n, expert]` beside truths say, `[n, expert, class]`, by truths of other folds."""
        words = torch.zeros(*answers.shape, self.n_classes)
        for e, one in enumerate(self.reliability):
            known = answers[:, e] >= 0
            words[known, e] = one.held_out(y[known], answers[known, e], folds[known]).clamp(min=LEAST).log()
        return words

    def likelihood(self, unseen: Tensor, labels: Labels) -> float:
        """How likely labels are, in nats, with the weights that suit beliefs formed without them best."""
        after = self.fit(unseen, labels).clamp(min=LEAST)
        return -float(nn.functional.nll_loss(after.log(), labels["y"], reduction="sum"))

    def recount(self, own: Tensor, answers: Tensor, checked: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
        """Count answers `[block, expert]` whose truth nobody told beside what is believed of their items today.

        Whom to ask, and whether the truth is bought, was decided by what is counted here, so these counts and the
        truths together are those of Dawid and Skene's estimate with the own model as one more annotator. How far that
        is off is seen on `checked`: of truths bought whatever was believed, what is held of them unseen, the answers,
        the classes and the folds. What is held of experts must not have seen these truths either: where classes are
        many, each would speak for itself.
        """
        held, said, y, folds = checked
        for _, (e, one) in itertools.product(range(ROUNDS), enumerate(self.reliability)):
            known = said[:, e] >= 0
            right, words = (said[known, e] == y[known]).float(), self._unseen_words(y, said, folds)[known]
            trust = self.trust(e, held[known], said[known], words)
            one.recheck(right - trust.gather(1, said[known, e : e + 1])[:, 0])
            known = answers[:, e] >= 0
            counts = torch.zeros(self.n_classes, self.n_classes)
            counts.index_add_(1, answers[known, e], self.trust(e, own[known], answers[known]).T)
            one.believe(counts)

    def with_game(self, game: Game) -> Panel:
        """The panel of a game with other costs, knowing what this one does."""
        panel = Panel(game)
        panel.load_state_dict(self.state_dict())
        return panel

    def grown(self, game: Game) -> Panel:
        """The panel of a game with one more class, knowing what this one does."""
        panel = Panel(game)
        state = self.state_dict()
        for one in state["experts"]:
            one |= {name: nn.functional.pad(one[name], (0, 1, 0, 1)) for name in ("truths", "beliefs")}
            one["matrix"] = None
            if one["former"] is not None:
                one["former"] = nn.functional.pad(one["former"], (0, 1, 0, 1), value=LEAST)
        panel.load_state_dict(state)
        return panel

    def state_dict(self) -> dict[str, Any]:
        return {
            "experts": [one.state_dict() for one in self.reliability],
            "weights": self.pool.weights.tolist(),
            "sharpness": self.sharpness,
            "saved": self.saved.clone(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for one, saved in zip(self.reliability, state["experts"], strict=True):
            one.load_state_dict(saved)
        self.pool.load(state["weights"])
        self.sharpness = float(state.get("sharpness", 1.0))
        # Earlier states do not tell steps apart, nor, still earlier, those heard first from those heard after others.
        saved = torch.as_tensor(state["saved"], dtype=torch.float32)
        saved = saved[:, None].repeat(1, 2, 1) if saved.dim() == 2 else saved
        self.saved = saved.clone() if saved.dim() == 4 else saved[:, :, None].repeat(1, 1, len(STEPS) + 1, 1)
