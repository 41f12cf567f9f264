"""A small honest strategy, and one dishonest version of it for every check of the conformance suite."""

from __future__ import annotations

import random
import sys

import numpy as np
import torch

from sparingly.strategies.families.classifier_strategy import full_expert
from sparingly.strategies.strategy import NEVER, Strategy, Why
from tests.strategies.conformance.hearing_toys import BROKEN_HEARING


class Honest(Strategy):
    """Announces the nearest class mean, and asks ever more seldom."""

    name, summary, reference = "honest", "a toy", "tests"

    def __init__(self, game, n_features, *, seed=0):
        super().__init__(game, n_features, seed=seed)
        self.expert = full_expert(game, self.name)
        self.sums = torch.zeros(game.n_outcomes, self.n_features, dtype=torch.float64)
        self.counts = torch.zeros(game.n_outcomes, dtype=torch.float64)

    def _assess(self, X):
        return {"scores": self._scores(X)}

    def _choose(self, assessment, row):
        scores = assessment.values["scores"][row]
        best = int(scores.argmax())
        asks = self.rng.random() < 3 / (self.clock + 3) ** 0.5
        why = Why("its score is {score:.3g}", {"score": float(scores[best])})
        return (self.expert if asks else best), best, why

    def _take(self, x, action, symbol):
        self.sums[symbol] += x
        self.counts[symbol] += 1

    def _train(self):
        pass

    def _due_in(self):
        return NEVER

    def _due_after_label(self):
        return True

    def _scores(self, X):
        means = self.sums / self.counts.clamp_min(1)[:, None]
        far = torch.where(self.counts[None] > 0, (X[:, None].double() - means).square().sum(2), 1e9)
        return -far

    def _state(self):
        return {"sums": self.sums, "counts": self.counts}

    def _restore(self, state):
        self.sums, self.counts = state["sums"].clone(), state["counts"].clone()


class SaysNothing(Honest):
    def _choose(self, assessment, row):
        return self.expert, self.expert, Why("always")


class TakesAnything(Honest):
    def __init__(self, game, n_features, *, seed=0):
        Strategy.__init__(self, game, n_features, seed=seed)
        self.expert = game.n_actions - 1
        self.sums = torch.zeros(game.n_outcomes, self.n_features, dtype=torch.float64)
        self.counts = torch.zeros(game.n_outcomes, dtype=torch.float64)


class Unseeded(Honest):
    def __init__(self, game, n_features, *, seed=0):
        super().__init__(game, n_features, seed=seed)
        self.rng = np.random.default_rng()


class MindsItsBlock(Honest):
    def _choose(self, assessment, row):
        action, best, why = super()._choose(assessment, row)
        return (self.expert if len(assessment) > 3 else action), best, why


class ChangesByLooking(Honest):
    def _assess(self, X):
        self.counts[0] += 1
        return super()._assess(X)


class HalfAState(Honest):
    def _restore(self, state):
        self.sums = state["sums"].clone()

    def _state(self):
        return {"sums": self.sums}


class SharesWithItsCopy(Honest):
    def __deepcopy__(self, memo):
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin


class HoldsALambda(Honest):
    def __init__(self, game, n_features, *, seed=0):
        super().__init__(game, n_features, seed=seed)
        self.rule = lambda: None


class DrawsFromNumpy(Honest):
    def _choose(self, assessment, row):
        np.random.random()
        return super()._choose(assessment, row)


class DrawsFromRandom(Honest):
    def _choose(self, assessment, row):
        random.random()
        return super()._choose(assessment, row)


class SeedsTorch(Honest):
    def __init__(self, game, n_features, *, seed=0):
        super().__init__(game, n_features, seed=seed)
        torch.manual_seed(seed)


class Peeks(Honest):
    """Looks through its callers' variables for the outcome."""

    def _choose(self, assessment, row):
        action, best, why = super()._choose(assessment, row)
        frame = sys._getframe()
        while frame is not None and not hasattr(frame.f_locals.get("stream"), "outcomes"):
            frame = frame.f_back
        if frame is not None:
            best = int(frame.f_locals["stream"].outcomes[self.clock])
        return (action if action == self.expert else best), best, why


class WantsItsLabelNow(Honest):
    def _choose(self, assessment, row):
        self.last = assessment.X[row]
        return super()._choose(assessment, row)

    def _take(self, x, action, symbol):
        if not torch.equal(x, self.last):
            raise RuntimeError("not the last observation")
        super()._take(x, action, symbol)


class SwallowsNan(Honest):
    def _block(self, X):
        return super()._block(np.nan_to_num(np.asarray(X)))


class LearnsBeforeLooking(Honest):
    """Refuses an unknown symbol, but only after counting it."""

    def learn(self, x, action, symbol):
        self.n_labels += 1
        super().learn(x, action, symbol)
        self.n_labels -= self.game.informative_mask[action]


class TakesAnyState(Honest):
    def _check_state(self, state):
        pass


class BreaksOnConstants(Honest):
    def _scores(self, X):
        return super()._scores(X) / X.std(0).sum()


class CountsTaughtAsAsked(Honest):
    def _teach(self, X, action, outcomes):
        for x, outcome in zip(X, outcomes, strict=True):
            self.learn(x, action, self.game.symbols(action)[outcome])


class KeepsHalfOfARefusal(Honest):
    def _teach(self, X, action, outcomes):
        super()._teach(X, action, outcomes)
        raise ValueError("it changed its mind")


class GivesUp(Honest):
    def _choose(self, assessment, row):
        *_, why = super()._choose(assessment, row)
        return (self.expert if self.clock < 3 else 0), 0, why


class PaysAlways(Honest):
    def _choose(self, assessment, row):
        _, best, why = super()._choose(assessment, row)
        return self.expert, best, why


class Grows(Honest):
    """Takes on classes, as it should."""

    def _add_class(self, game):
        self.sums = torch.nn.functional.pad(self.sums, (0, 0, 0, 1))
        self.counts = torch.nn.functional.pad(self.counts, (0, 1))
        self.expert += 1


class ForgetsWhatItHadLearned(Grows):
    """Counts no label any more after a class was added."""

    def _add_class(self, game):
        super()._add_class(game)
        self.n_labels = 0


class HasNoPlaceForTheNewClass(Grows):
    """Grows by nothing."""

    def _add_class(self, game):
        self.expert += 1


BROKEN = {
    "decisions_are_well_formed": (SaysNothing,),
    "every_game_is_played_or_refused": (TakesAnything,),
    "same_seed_same_decisions": (Unseeded,),
    "blocks_of_one_equal_blocks_of_many": (MindsItsBlock,),
    "looking_changes_nothing": (ChangesByLooking,),
    "saving_changes_nothing": (HalfAState,),
    "copies_go_their_own_way": (SharesWithItsCopy, HoldsALambda),
    "global_random_state_is_left_alone": (DrawsFromNumpy, DrawsFromRandom, SeedsTorch),
    "outcomes_are_never_seen": (Peeks,),
    "labels_may_be_late_reordered_or_missing": (WantsItsLabelNow,),
    "bad_observations_are_refused": (SwallowsNan,),
    "unknown_actions_and_symbols_are_refused": (LearnsBeforeLooking,),
    "foreign_states_are_refused": (TakesAnyState,),
    "odd_streams_do_not_break_it": (BreaksOnConstants,),
    **BROKEN_HEARING,
    "known_outcomes_are_learned_or_refused": (CountsTaughtAsAsked, KeepsHalfOfARefusal),
    "a_class_is_added_or_refused": (ForgetsWhatItHadLearned, HasNoPlaceForTheNewClass),
    "asking_does_not_die": (GivesUp,),
    "it_beats_asking_at_random": (PaysAlways,),
}
