"""Several experts who may be wrong: what their answers make of a belief, and whom to ask next."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.strategies.sparing.consulting.reliability import Reliability
from sparingly.strategies.strategy import Why

WEIGHTS = (0.3, 0.5, 0.7, 0.85, 1.0, 1.2)
"""That the own model's and an expert's word are given in the posterior, by held-out likelihood."""
NEAR_START = 5.0
"""How much less likely, in nats, a weight e times off its start is taken to be before anything is known."""
LEAST = 1e-6
"""No class is held impossible."""
NO_ANSWER = -1
ROUNDS = 8
"""Of expectation and maximisation, whenever reliability is counted anew."""
TRIED = 1.0
"""Cost that answers were expected to save, and did, before any were heard."""
OWN = 0.6
"""The weight of the own model before anything is known of it."""


class Panel:
    """The experts of a game who may be wrong.

    The posterior after answers is p(y)^alpha times the product of q_e(answer | y)^beta_e: weights below 1 where the own
    model knows little, or where experts err together.

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
        self._symbols = {a: {symbol: y for y, symbol in enumerate(game.feedback[a])} for a in self.actions}
        self.alpha, self.betas = OWN, [len(self.experts) ** -0.5] * len(self.experts)
        self.saved = [(TRIED, TRIED)] * len(self.experts)
        """For each expert the cost that its answers were expected to save, and that they did by today's beliefs."""

    def __len__(self) -> int:
        return len(self.experts)

    def answers(self, heard: Sequence[tuple[int, Any]]) -> list[int]:
        """For each expert the class it named, `NO_ANSWER` where it named none or was not asked."""
        said = dict(heard)
        return [NO_ANSWER if said.get(a) is None else self._symbols[a][said[a]] for a in self.actions]

    def posterior(self, members: Tensor, answers: Tensor) -> Tensor:
        """Probabilities `[member, block, class]` after answers `[block, expert]`."""
        if not bool((answers >= 0).any()):
            return members
        weight, alone = torch.zeros(members.shape[1:]), self._alone((answers >= 0).sum(1))
        for e, one in enumerate(self.reliability):
            known = answers[:, e] >= 0
            weight[known] += (self.betas[e] * alone[known])[:, None] * one.matrix[:, answers[known, e]].T.log()
        told = (answers >= 0).any(1)
        after = (self.alpha * members.clamp(min=LEAST).log() + weight).softmax(2)
        return torch.where(told[None, :, None], after, members)

    def _alone(self, heard: Tensor) -> Tensor:
        """How much more an answer counts the fewer were `heard`: those of all share what they know together."""
        return (len(self) / heard.clamp(min=1)).sqrt()

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

    def suspects(self, answers: Sequence[int]) -> bool:
        """Whether anyone who answered seems to have become worse."""
        return any(one.suspect and y >= 0 for one, y in zip(self.reliability, answers, strict=True))

    def best_offer(
        self, belief: Tensor, risk: float, asked: Sequence[int], *, cheap: float = 0.0
    ) -> tuple[int, Why] | None:
        """The question whose answer lowers the risk by the most more than its price, and why; None if there is none.

        Up to a price of `cheap` everyone is asked.
        """
        best, found = 0.0, None
        for e, (action, expert) in enumerate(zip(self.actions, self.experts, strict=True)):
            expected, met = self.saved[e]
            if action in asked:
                continue
            gain = self.gain(e, belief, risk, len(asked)) * met / expected
            if gain - expert.price > best or (found is None and 0 < expert.price <= cheap):
                best, found = gain - expert.price, (action, expert, gain)
        if found is None:
            return None
        action, expert, gain = found
        numbers = {"risk": risk, "gain": gain, "price": expert.price, "name": expert.name}
        sentence = (
            "a mistake would cost {risk:.2f} on average; {name} is expected to save {gain:.2f} and costs {price:g}"
        )
        return action, Why(sentence, numbers)

    def compare(self, e: int, own: Tensor, answers: Sequence[int], said: int) -> None:
        """Hold what an answer was expected to save against what it does, for the members' beliefs `[member, class]`.

        An answer saves where it changes the announcement. Experts who err together agree more often than they are
        expected to, and save less.
        """
        before = self.posterior(own[:, None], torch.tensor([answers])).mean(0)[0]
        risk, announced = (self.costs @ before).min(0)
        expected, met = self.gain(e, before, float(risk), sum(one >= 0 for one in answers)), 0.0
        if said >= 0:
            told = [said if k == e else one for k, one in enumerate(answers)]
            after = self.costs @ self.posterior(own[:, None], torch.tensor([told])).mean(0)[0]
            met = float(after[announced] - after.min())
        self.saved[e] = (self.saved[e][0] + expected, self.saved[e][1] + met)

    def trust(self, e: int, own: Tensor, answers: Tensor) -> Tensor:
        """How likely each class is, `[block, class]`, by the own belief `[block, class]` and answers `[block, expert]`.

        Neither the own belief nor the expert's word have a weight here: one below 1 says that others know the same, not
        that an expert is wrong.
        """
        held = own.clamp(min=LEAST).log()
        for k, one in enumerate(self.reliability):
            known = answers[:, k] >= 0
            if bool(known.any()):
                held[known] += (1.0 if k == e else self.betas[k]) * one.matrix[:, answers[known, k]].T.log()
        return held.softmax(1)

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

    def gain(self, e: int, belief: Tensor, risk: float, heard: int = 0) -> float:
        """By how much the next answer of an expert is expected to lower the risk of a belief `[class]`.

        The belief is that after so many answers `heard` from others.
        """
        q = self.reliability[e].matrix
        said = belief @ q
        after = belief.clamp(min=LEAST)[:, None] * q ** (self.betas[e] * math.sqrt(len(self) / (heard + 1)))
        least = (self.costs @ (after / after.sum(0))).amin(0)
        return (risk - float(said @ least)) * self.reliability[e].answers

    def fit(self, unseen: Tensor, y: Tensor, answers: Tensor) -> Tensor:
        """Choose the weights that make labels likeliest, given beliefs formed without them; the posterior of these."""
        own = unseen.clamp(min=LEAST).log()
        words, alone = [], self._alone((answers >= 0).sum(1))
        for e, one in enumerate(self.reliability):
            known = answers[:, e] >= 0
            word = torch.zeros_like(own)
            if bool(known.any()):
                word[known] = one.left_out(y[known], answers[known, e]).clamp(min=LEAST).log()
            words.append(word * alone[:, None])
        told = (answers >= 0).any(1)
        if bool(told.any()):
            self._weigh(own[told], [word[told] for word in words], y[told])
        after = self.alpha * own + sum(beta * word for beta, word in zip(self.betas, words, strict=True))
        return torch.where(told[:, None], after.softmax(1), unseen)

    def likelihood(self, unseen: Tensor, y: Tensor, answers: Tensor) -> float:
        """How likely labels are, in nats, with the weights that suit beliefs formed without them best."""
        after = self.fit(unseen, y, answers).clamp(min=LEAST)
        return -float(nn.functional.nll_loss(after.log(), y, reduction="sum"))

    def _weigh(self, own: Tensor, words: list[Tensor], y: Tensor) -> None:
        """Coordinate-wise, twice around; a prior holds every weight near where it started."""
        weights = [self.alpha, *self.betas]
        prior = [OWN, *[len(words) ** -0.5] * len(words)]
        parts = [own, *words]
        for _, k in itertools.product(range(2), range(len(parts))):
            rest = sum(w * part for j, (w, part) in enumerate(zip(weights, parts, strict=True)) if j != k)
            scores = []
            for candidate in WEIGHTS:
                fit = nn.functional.cross_entropy(rest + candidate * parts[k], y, reduction="sum")
                scores.append(float(fit) + NEAR_START * float(torch.tensor(candidate / prior[k]).log()) ** 2)
            weights[k] = WEIGHTS[scores.index(min(scores))]
        self.alpha, self.betas = weights[0], weights[1:]

    def recount(self, own: Tensor, answers: Tensor, checked: tuple[Tensor, Tensor, Tensor]) -> None:
        """Count answers `[block, expert]` whose truth nobody told beside what is believed of their items today.

        Whom to ask, and whether the truth is bought, was decided by what is counted here, so these counts and the
        truths together are those of Dawid and Skene's estimate with the own model as one more annotator. How far that
        is off is seen on `checked`: of truths bought whatever was believed, what is held of them unseen, the answers
        and the classes.
        """
        held, said, y = checked
        for _, (e, one) in itertools.product(range(ROUNDS), enumerate(self.reliability)):
            known = said[:, e] >= 0
            right = (said[known, e] == y[known]).float()
            one.recheck(right - self.trust(e, held[known], said[known]).gather(1, said[known, e : e + 1])[:, 0])
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
        panel.load_state_dict(state)
        return panel

    def state_dict(self) -> dict[str, Any]:
        return {
            "experts": [one.state_dict() for one in self.reliability],
            "weights": [self.alpha, *self.betas],
            "saved": [list(one) for one in self.saved],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for one, saved in zip(self.reliability, state["experts"], strict=True):
            one.load_state_dict(saved)
        self.alpha, *self.betas = (float(weight) for weight in state["weights"])
        self.saved = [(float(expected), float(met)) for expected, met in state["saved"]]
