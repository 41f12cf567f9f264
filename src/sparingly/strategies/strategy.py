"""The contract that every strategy keeps: assess a block, decide a row, learn a symbol."""

from __future__ import annotations

import abc
import copy
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from sparingly.games import Game
from sparingly.learning import state_files
from sparingly.learning.determinism import one_thread, without_gradients
from sparingly.strategies.checks import check_finite, checked_outcomes, checked_shape
from sparingly.strategies.decision import Decision as Decision
from sparingly.strategies.decision import Why as Why
from sparingly.strategies.forecast import Forecast

STATE_VERSION = 1

Shape = int | tuple[int, ...]
"""A number of features, or a shape such as (1, 28, 28)."""
NEVER = 2**31
"""What `_due_in` returns where no round brings an update: more rounds than any stream has."""
FEW_AHEAD, AHEAD = 4, 16
"""Fewer rows are decided one by one; with more, so many are tried at once at first, and twice as many each time that
all of them could be."""


Heard = Sequence[tuple[int, Hashable]]
"""What was heard of one observation, in the order asked: (action, symbol), the symbol None where no answer came."""


class StateError(ValueError):
    """A state that this strategy cannot take; the strategy is unchanged."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the networks say of a block of observations; valid until the strategy's next update.

    Attributes
    ----------
    X
        The observations, `[block, *shape]`.
    generation
        The number of updates the strategy had made; a decision on an older assessment assesses its row anew.
    values
        Whatever the strategy wants to find again when it decides, by name; each has one row an observation.
    """

    X: Tensor
    generation: int
    values: Mapping[str, Any]

    def __len__(self) -> int:
        return self.X.shape[0]


class Strategy(abc.ABC):
    """Decides for each observation which action of a game to play, and learns from the symbols.

    A subclass says what it estimates (`_assess`), what it plays (`_choose`), what it keeps of a symbol (`_take`),
    how it trains (`_train`), when (`_due_in`), and what its state is (`_state`, `_restore`).
    The checks, the clock, the order of events and the file format are here, once.

    The order: `decide` advances the clock. An update that is due after a round runs at the end of that round: in
    `decide` if the action tells nothing, in `learn` once its symbol is there.

    Assessing and training use one thread of torch's, unless observations are images or the network is the user's own;
    the number of threads is as it was when a call returns.
    """

    name: ClassVar[str]
    """The name in the registry."""
    summary: ClassVar[str]
    """One line for `sparingly strategies`."""
    reference: ClassVar[str]
    """Where it is published, or "sparingly"."""
    playable: ClassVar[str] = "any game that is not hopeless"
    """Which games it can play, in words."""
    stops_asking: ClassVar[bool] = False
    """Whether, by its definition, it may stop asking for ever after a handful of labels."""
    beats_random: ClassVar[bool] = True
    """Whether it must cost less than asking at random on an easy stream; False where its definition forbids that."""
    scales: ClassVar[bool] = False
    """Whether it scales features by itself, so that it is best given them as they are."""

    noisy_experts: ClassVar[bool] = False
    """Whether it plays games with experts whose answers may be wrong; False if it takes every answer for the truth."""

    made_with: Mapping[str, Any]
    """The keyword arguments it was made with besides the game and the features: enough to make it again."""

    def __new__(cls, *args: Any, **options: Any) -> Self:
        strategy = super().__new__(cls)
        strategy.made_with = {name: value for name, value in options.items() if name not in ("game", "n_features")}
        return strategy

    def __init__(self, game: Game, n_features: int | tuple[int, ...], *, seed: int = 0) -> None:
        if game.noisy_experts and not self.noisy_experts:
            raise ValueError(
                f"{self.name} takes every answer for the truth, and that of {game.noisy_experts[0].name} may be wrong"
            )
        self.game = game
        self.shape = checked_shape(n_features)
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.clock = 0
        """Rounds decided so far."""
        self.generation = 0
        """Updates made so far."""
        self.n_labels = 0
        """Symbols of informative actions learned so far."""
        self.n_taught = 0
        """Outcomes that it was taught without having asked (`teach`)."""
        self._frozen = False
        self._due = False
        own = self.made_with.get("network")
        self._small = len(self.shape) == 1 and (own is None or isinstance(own, str))
        """Whether its networks are ours and small, so that one thread is quicker than several."""

    # what a subclass writes

    @abc.abstractmethod
    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        """Estimates for a block `[block, *shape]`, one row an observation in each value; changes nothing."""

    @abc.abstractmethod
    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        """The action, the prediction and the reason for one row, at round `self.clock` (counted from 0)."""

    def _choose_again(self, assessment: Assessment, row: int, heard: Heard) -> tuple[int, int, Why]:
        """The action, the prediction and the reason once answers were heard, or did not come.

        By default the likeliest class is announced, as by a strategy that takes every answer for the truth.
        """
        likeliest = int(self._scores(assessment.X[row : row + 1])[0].argmax())
        return likeliest, likeliest, Why("no answer came")

    def _announce_ahead(self, assessment: Assessment, first: int, last: int) -> list[tuple[int, Why]]:
        """The rows from `first` on that tell nothing, up to the first that does: (action, why) of each.

        As many of them as can be decided at once, none if that is not worth it; the state is then as if they had been
        chosen one by one.
        """
        return []

    def _choose_ahead(self, assessment: Assessment, first: int, last: int) -> list[tuple[int, int, Why]]:
        """The rows from `first` on, whether they ask or not, where no answer comes before they end.

        What `_choose` would return for each, and otherwise as in `_announce_ahead`.
        """
        return []

    @abc.abstractmethod
    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        """Keep the symbol (as an index among the action's symbols) of an informative action for the next update."""

    def _teach(self, X: Tensor, action: int, outcomes: Sequence[int]) -> None:
        """Keep outcomes that nobody was asked for; a strategy that cannot use them raises a ValueError that says why.

        `action` is the cheapest that would have told them; its symbols are numbered as the outcomes are.
        """
        for x, outcome in zip(X, outcomes, strict=True):
            self._take(x, action, outcome)

    def _preview(self, X: Tensor) -> None:  # noqa: B027
        """Called with observations without a label; for a strategy that scales by itself."""

    def _add_class(self, game: Game) -> None:
        """Go on with a game that has one more class, which no label has named yet; `self.game` is still the old one."""
        raise ValueError(
            f"strategy {self.name} cannot take on class {game.outcomes[-1]!r}: make it anew with all classes"
        )

    def _set_costs(self, game: Game) -> None:
        """Go on with a game that has other costs and is else the same; `self.game` is still the old one."""
        raise ValueError(f"strategy {self.name} cannot change its costs: make it anew, and teach it the labels")

    def _forgo(self, x: Tensor) -> None:  # noqa: B027
        """Called for a question that is not asked; for a strategy that counts on answers to come."""

    @abc.abstractmethod
    def _train(self) -> None:
        """Update the parameters from everything kept."""

    @abc.abstractmethod
    def _due_in(self) -> int:
        """After how many more rounds an update is due, at least 1; `NEVER` if only labels bring one."""

    @abc.abstractmethod
    def _scores(self, X: Tensor) -> Tensor:
        """`[block, outcome]`: the larger, the likelier."""

    @abc.abstractmethod
    def _state(self) -> dict[str, Any]:
        """Everything that is not in the base class: nested dicts of tensors and plain values."""

    @abc.abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None:
        """The inverse of `_state`, on a strategy made with the same arguments."""

    def _identity(self) -> dict[str, Any]:
        """What a state must agree on besides the game and the shape: options, the sizes of networks."""
        return {}

    def _due_after_label(self) -> bool:
        """Whether the symbol just taken brings an update at once, whatever the schedule says."""
        return False

    # what everyone calls

    @property
    def n_features(self) -> int:
        return math.prod(self.shape)

    @property
    def has_learned(self) -> bool:
        """Whether there is a model yet: before, an announcement is a guess."""
        return self.generation > 0 and self.n_labels + self.n_taught > 0

    def assess(self, X: ArrayLike | Tensor) -> Assessment:
        """Estimates for a block of observations `[block, *shape]`; changes nothing."""
        block = self._block(X)
        with without_gradients(), one_thread(self._small):
            return Assessment(block, self.generation, self._assess(block))

    def valid(self, assessment: Assessment) -> bool:
        """Whether no update has been made since the assessment."""
        return assessment.generation == self.generation

    def decide(self, assessment: Assessment, row: int, heard: Heard = ()) -> Decision:
        """Choose the action for one row of an assessment; the clock advances with the first decision on it.

        In a game whose experts have names a round goes on after an answer that may be wrong, or that did not come:
        decide again with what was `heard` so far about this observation, (action, symbol or None) in the order asked.
        The caller keeps that, so a round can go on at once, much later, or in another process. The truth ends it.
        """
        if not 0 <= row < len(assessment):
            raise IndexError(f"row {row} is not in an assessment of {len(assessment)} observations")
        for asked, symbol in heard:
            if symbol is not None:
                self.game.symbol_index(asked, symbol)
        if assessment.generation != self.generation:
            assessment, row = self.assess(assessment.X[row : row + 1]), 0
        with without_gradients():
            chosen = self._choose_again(assessment, row, heard) if heard else self._choose(assessment, row)
        action, prediction, why = chosen
        asks = self.game.informative_mask[action]
        if not heard:
            self._due = self._due or self._due_in() <= 1
            self.clock += 1
        if self._due and not asks:
            self._update()
        return Decision(action, prediction, asks, why)

    def decide_block(
        self, assessment: Assessment, first: int = 0, last: int | None = None, *, past_questions: bool = False
    ) -> list[Decision]:
        """Decide the rows from `first` to before `last`, as `decide` would one after the other, and often faster.

        Up to and including the first that asks, whose symbol may change what comes after, or that brings an update.
        With `past_questions` no answer comes before the block ends, and only an update stops it.
        """
        end = len(assessment) if last is None else min(last, len(assessment))
        decisions: list[Decision] = []
        looks_ahead, window = self._looks_ahead, AHEAD
        while (row := first + len(decisions)) < end:
            if looks_ahead:
                reach = min(end, row + window)
                decisions += self._decide_ahead(assessment, row, reach, past_questions)
                if (row := first + len(decisions)) == reach:
                    window *= 2
                    continue
                window = AHEAD
            decision = self.decide(assessment, row)
            decisions.append(decision)
            if (decision.asks and not past_questions) or assessment.generation != self.generation:
                break
        return decisions

    @property
    def _looks_ahead(self) -> bool:
        """Whether it can decide several rows at once; most strategies cannot."""
        kind = type(self)
        return kind._announce_ahead is not Strategy._announce_ahead or kind._choose_ahead is not Strategy._choose_ahead

    def _decide_ahead(self, assessment: Assessment, row: int, end: int, past_questions: bool) -> list[Decision]:
        """The rows from `row` on that can be decided at once; none if that is not worth it."""
        end = min(end, row + (NEVER if self._frozen else self.rounds_to_update() - 1))
        if end - row < FEW_AHEAD or not self.valid(assessment):
            return []
        with without_gradients():
            ahead = [Decision(action, action, False, why) for action, why in self._announce_ahead(assessment, row, end)]
            self._pass_rounds(len(ahead))
            if past_questions and row + len(ahead) < end:
                chosen, informative = self._choose_ahead(assessment, row + len(ahead), end), self.game.informative_mask
                ahead += [Decision(action, said, informative[action], why) for action, said, why in chosen]
                self._pass_rounds(len(chosen))
        return ahead

    def _pass_rounds(self, count: int) -> None:
        """Advance the clock by rounds, none of which brings an update before it ends."""
        self._due = self._due or (count > 0 and self._due_in() <= count)
        self.clock += count

    def learn(self, x: ArrayLike | Tensor, action: int, symbol: Hashable) -> None:
        """Learn the symbol that an action brought for an observation: at once or much later, in any order."""
        index = self.game.symbol_index(action, symbol)
        row = self._block(np.asarray(x)[None] if not isinstance(x, Tensor) else x[None])[0]
        if not self.game.informative_mask[action]:
            return
        with without_gradients():
            self._take(row, action, index)
        self.n_labels += 1
        if self._due or self._due_after_label():
            self._update()

    def learn_many(self, X: ArrayLike | Tensor, answers: Sequence[tuple[int, Hashable]]) -> None:
        """Learn what many actions brought, (action, symbol) for each observation, with one update at the end.

        Nothing is learned if any of it makes no sense.
        """
        block = self._block(X)
        if len(block) != len(answers):
            raise ValueError(f"there are {len(answers)} answers for {len(block)} observations")
        for answer in answers:
            self.game.symbol_index(*answer)
        frozen, self._frozen = self._frozen, True
        for x, answer in zip(block[:-1], answers[:-1], strict=True):
            self.learn(x, *answer)
        self._frozen, self._due = frozen, True
        for x, answer in zip(block[-1:], answers[-1:], strict=True):
            self.learn(x, *answer)

    def teach(self, X: ArrayLike | Tensor, y: ArrayLike | Tensor) -> None:
        """Learn outcomes that are known already, `y[i]` of `X[i]`, with one update; it costs no question.

        The clock stands still, and nothing is learned if any of it makes no sense.
        """
        block, action = self._block(X), self.game.labelling_action
        if action is None:
            raise ValueError(
                f"{self.name} cannot be taught: no action of {self.game!r} tells every outcome for certain"
            )
        outcomes = checked_outcomes(y, len(block), self.game.n_outcomes)
        if not outcomes:
            return
        with torch.no_grad():
            self._teach(block, action, outcomes)
        self.n_taught += len(outcomes)
        self._due = True
        self._update()

    def preview(self, X: ArrayLike | Tensor) -> None:
        """See observations that nobody has labelled before the stream begins: a strategy that scales by itself scales
        by them, too. No rounds are counted and nothing is decided.
        """
        block = self._block(X)
        if len(block):
            self._preview(block)

    def add_class(self, name: str, cost: float | None = None) -> None:
        """Take on a class that was not known before: the game grows by one outcome, the strategy by one output.

        Nothing that was learned is lost. `cost` is that of every mistake about the class, the largest that there is if
        left out. Announcements are numbered before questions, so the numbers of those that ask grow by one.
        """
        game, grown = self.game.with_class(name, cost), copy.deepcopy(self)
        with torch.no_grad():
            grown._add_class(game)
        grown.game = game
        grown.generation += 1
        self.__dict__.update(grown.__dict__)

    def set_costs(self, costs: ArrayLike) -> None:
        """Go on with other costs, [action, outcome]; nothing that was learned about the outcomes is lost.

        The strategy decides with them from now on, after one update. One that cannot says why, and is unchanged.
        """
        game, changed = self.game.with_costs(costs), copy.deepcopy(self)
        with torch.no_grad():
            changed._set_costs(game)
        changed.game = game
        changed.generation += 1
        self.__dict__.update(changed.__dict__)
        self._due = True
        self._update()

    def forgo(self, x: ArrayLike | Tensor) -> None:
        """Know that a question which was decided on is not asked, so that no answer to it will come."""
        self._forgo(self._block(np.asarray(x)[None] if not isinstance(x, Tensor) else x[None])[0])

    def advance(self, rounds: int) -> None:
        """Move the clock by rounds that another copy of this strategy decided."""
        self.clock += rounds

    def forecast(self) -> Forecast | None:
        """How far more labels would lower the cost of announcements; None if it cannot tell."""
        return None

    def noticed(self) -> list[tuple[int, str | None]]:
        """The changes that it has noticed: the round of each, and the expert's name if one got worse."""
        return []

    def reliability(self) -> dict[str, tuple[float, float, float]]:
        """How often each expert who may be wrong is right, by name: an estimate and a 95 % interval, if it has one."""
        return {}

    def freeze(self) -> Self:
        """Leave every update that falls due to another copy; this one goes on deciding and keeping symbols."""
        self._frozen = True
        return self

    def rounds_to_update(self) -> int:
        """For how many rounds from now an assessment stays valid, if no label brings an earlier update."""
        if self._frozen:
            return NEVER
        return 1 if self._due else max(1, self._due_in())

    def scores(self, X: ArrayLike | Tensor) -> NDArray[np.float64]:
        """`[block, outcome]`: how likely each outcome is held to be, for tests on held-out data; changes nothing."""
        with torch.no_grad(), one_thread(self._small):
            return self._scores(self._block(X)).double().cpu().numpy()

    def probabilities(self, assessment: Assessment) -> NDArray[np.float64]:
        """`[block, outcome]`: how likely each outcome is held to be, rows that sum to 1; changes nothing.

        Where a strategy's scores are no probabilities, they are made such: divided by their sum, or by a softmax.
        """
        with without_gradients():
            held = self._probabilities(assessment).double().cpu()
            total = held.sum(1, keepdim=True)
        values: NDArray[np.float64] = held.numpy()
        sums: NDArray[np.float64] = total.numpy()
        if len(values) and values.min() >= 0 and sums.min() > 0:
            return values / sums
        none = (held < 0).any(1, keepdim=True) | (total <= 0)
        return torch.where(none, held.softmax(1), held / total).numpy()

    def _probabilities(self, assessment: Assessment) -> Tensor:
        """The scores of an assessed block, from what was computed for it where that is enough; `_scores` by default."""
        return self._scores(assessment.X)

    def state_dict(self) -> dict[str, Any]:
        """Everything: weights, optimiser, counts, clock, generator, as nested dicts of tensors and plain values."""
        return {
            "version": STATE_VERSION,
            "made_for": self._made_for(),
            "clock": self.clock,
            "generation": self.generation,
            "n_labels": self.n_labels,
            "n_taught": self.n_taught,
            "due": self._due,
            "rng": self.rng.bit_generator.state,
            "own": copy.deepcopy(self._state()),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> Self:
        """Continue where the other strategy was; a state that does not fit is refused and changes nothing."""
        self._check_state(saved)
        fresh = copy.deepcopy(self)
        try:
            fresh.clock, fresh.generation = int(saved["clock"]), int(saved["generation"])
            fresh.n_labels, fresh._due = int(saved["n_labels"]), bool(saved["due"])
            fresh.n_taught = int(saved.get("n_taught", 0))  # states of release 0.1 have none
            fresh.rng.bit_generator.state = saved["rng"]
            fresh._restore(copy.deepcopy(saved["own"]))
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise StateError(f"the state does not fit {self.name}: {error!r}") from error
        self.__dict__.update(fresh.__dict__)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `state_dict` to a file (safetensors and JSON, never pickle); it appears whole or not at all."""
        state_files.save(self.state_dict(), path)

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Continue where the strategy that wrote the file was; a file that does not fit changes nothing."""
        return self.load_state_dict(state_files.read(path))

    # details

    def _made_for(self) -> dict[str, Any]:
        return {"strategy": self.name, "game": self.game.fingerprint, "shape": list(self.shape), **self._identity()}

    def _check_state(self, saved: Mapping[str, Any]) -> None:
        version = saved.get("version")
        if version != STATE_VERSION:
            raise StateError(f"state version {version!r} is not {STATE_VERSION}, which this release reads")
        theirs = saved.get("made_for", {})
        for what, ours in self._made_for().items():
            if theirs.get(what) != ours:
                raise StateError(f"the state is for {what} {theirs.get(what)!r}, not {ours!r}")

    def _update(self) -> None:
        if self._frozen:
            return
        self._due = False
        with one_thread(self._small):
            self._train()
        self.generation += 1

    def _block(self, X: ArrayLike | Tensor) -> Tensor:
        """The observations as a finite float32 tensor of the right shape, or an error that names the value."""
        try:
            block = torch.as_tensor(X if isinstance(X, Tensor) else _writable(X), dtype=torch.float32)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"observations must be numbers: {error}") from error
        if block.dim() == 2 and len(self.shape) > 1 and block.shape[1] == self.n_features:
            block = block.reshape(len(block), *self.shape)
        if block.dim() == 0 or tuple(block.shape[1:]) != self.shape:
            raise ValueError(f"observations have shape {tuple(block.shape[1:])}, not {self.shape}")
        if not math.isfinite(float(block.sum())):
            check_finite(block)
        return block


def _writable(X: ArrayLike) -> NDArray[Any]:
    """An array that torch takes without a warning: numbers in an array of objects are numbers, too."""
    array = np.asarray(X)
    if array.dtype == object:
        array = array.astype(np.float64)
    return array if array.flags.writeable else array.copy()
