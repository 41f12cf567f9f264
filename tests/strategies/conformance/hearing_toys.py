"""A toy that asks everyone in order, and dishonest versions of it for the checks of rounds with several answers."""

from __future__ import annotations

from sparingly.strategies.strategy import NEVER, Strategy, Why


class AsksInOrder(Strategy):
    """Asks everyone in the game's order until two agree, or the truth is told."""

    name, summary, reference, noisy_experts = "honest", "a toy", "tests", True

    def __init__(self, game, n_features, *, seed=0):
        super().__init__(game, n_features, seed=seed)
        self.learned = []

    def _assess(self, X):
        return {"nothing": [0] * len(X)}

    def _choose(self, assessment, row):
        return self.game.n_outcomes, 0, Why("first")

    def _choose_again(self, assessment, row, heard):
        said = [self.game.symbol_index(action, symbol) for action, symbol in heard if symbol is not None]
        announced = max(set(said), key=said.count) if said else 0
        if len(heard) == len(self.game.experts) or (len(said) > 1 and said.count(announced) > 1):
            return announced, announced, Why("agreed")
        return self.game.n_outcomes + len(heard), announced, Why("next")

    def _take(self, x, action, symbol):
        self.learned.append((float(x[0]), action, symbol))

    def _train(self): ...

    def _due_in(self):
        return NEVER

    def _scores(self, X):
        return X.new_zeros(len(X), self.game.n_outcomes)

    def _state(self):
        return {}

    def _restore(self, state): ...


class RefusesWithoutAReason(AsksInOrder):
    def __init__(self, game, n_features, *, seed=0):
        super().__init__(game, n_features, seed=seed)
        if game.noisy_experts:
            raise ValueError("no")


class MovesTheClockWithinARound(AsksInOrder):
    def _choose_again(self, assessment, row, heard):
        self.clock += 1
        return super()._choose_again(assessment, row, heard)


class ForgetsWhatItHeard(AsksInOrder):
    """Counts what it heard, and does not save it."""

    count = 0

    def _choose_again(self, assessment, row, heard):
        self.count += 1
        return 0, 0, Why("heard {count}", {"count": self.count})


class AsksAgainAndAgain(AsksInOrder):
    def _choose_again(self, assessment, row, heard):
        return self.game.n_outcomes, 0, Why("again")


class WantsAnAnswer(AsksInOrder):
    def _choose_again(self, assessment, row, heard):
        if all(symbol is None for _, symbol in heard):
            raise RuntimeError("nobody answers")
        return super()._choose_again(assessment, row, heard)


BROKEN_HEARING = {
    "experts_who_may_err_are_played_or_refused": (RefusesWithoutAReason, MovesTheClockWithinARound, AsksAgainAndAgain),
    "rounds_with_several_answers_can_be_repeated": (ForgetsWhatItHeard,),
    "answers_of_experts_may_be_late_or_missing": (WantsAnAnswer,),
}
