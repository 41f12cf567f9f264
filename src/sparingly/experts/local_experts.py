"""Experts that need no network: a function, and answers that were recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sparingly.experts.answer_parsing import Label, named_class
from sparingly.experts.expert import checked_price
from sparingly.experts.machine_expert import AMBIGUOUS, NO_CLASS, CallLimits, ExpertReply, Inquiry, MachineExpert

Told = Label | tuple[Label | None, float] | None
"""A class, None for no answer, or (class or None, price paid)."""


class FunctionExpert(MachineExpert):
    """A Python function of the item; it returns a class, None, or (class or None, price paid).

    >>> rules = FunctionExpert("rules", lambda text: "spam" if "win" in text else None, price=0.0)
    >>> rules.ask(Inquiry("t.1", "win a car", ["spam", "ham"]))
    ExpertReply(label='spam', price=0.0, state='answered', detail='')
    >>> rules.ask(Inquiry("t.2", "hello", ["spam", "ham"])).state
    'no class'
    """

    def __init__(
        self,
        name: str,
        function: Callable[[Any], Told],
        price: float | None = None,
        *,
        gold: bool = False,
        accuracy: float | None = None,
        limits: CallLimits | None = None,
        repeatable: bool = False,
    ) -> None:
        super().__init__(name, price, gold=gold, accuracy=accuracy, limits=limits, repeatable=repeatable)
        if not callable(function):
            raise ValueError(f"the function of {name} is {function!r}: it must be a function of an item")
        self._function = function

    def _call(self, inquiry: Inquiry) -> ExpertReply:
        return held_to_classes(self, self._function(inquiry.content), inquiry)


class RecordedExpert(MachineExpert):
    """Answers that were recorded, by the ticket's id; a call costs nothing to repeat.

    >>> gpt = RecordedExpert("gpt", {"a": "joy", "b": ("fear", 0.03)}, price=0.01)
    >>> [gpt.ask(Inquiry(id, "", ["joy", "fear"])).price for id in "ab"], gpt.ask(Inquiry("c", "", ["joy"])).detail
    ([0.01, 0.03], 'nothing was recorded for c')
    """

    def __init__(
        self,
        name: str,
        answers: Mapping[str, Told],
        price: float | None = None,
        *,
        gold: bool = False,
        accuracy: float | None = None,
        limits: CallLimits | None = None,
    ) -> None:
        super().__init__(name, price, gold=gold, accuracy=accuracy, limits=limits, repeatable=True)
        self._answers = answers

    def _call(self, inquiry: Inquiry) -> ExpertReply:
        if inquiry.id not in self._answers:
            return self.silent(NO_CLASS, f"nothing was recorded for {inquiry.id}")
        return held_to_classes(self, self._answers[inquiry.id], inquiry)


def held_to_classes(expert: MachineExpert, answer: Any, inquiry: Inquiry) -> ExpertReply:
    """A reply from what an expert answered: one of the classes as it is, or a text that names one."""
    price = expert.expert.price
    if isinstance(answer, tuple) and len(answer) == 2:
        answer, price = answer[0], checked_price(answer[1], expert.name)
    if answer is None:
        return expert.silent(NO_CLASS, "no answer", price)
    for label in inquiry.classes:
        if type(answer) is type(label) and answer == label:
            return ExpertReply(label, price)
    return reply_of(expert, str(answer), inquiry, price)


def reply_of(expert: MachineExpert, said: str, inquiry: Inquiry, price: float) -> ExpertReply:
    """A reply from what an expert said in words."""
    named = named_class(said, inquiry.classes)
    if named.label is not None:
        return ExpertReply(named.label, price)
    if named.mentioned:
        return expert.silent(AMBIGUOUS, f"it names {' and '.join(map(str, named.mentioned[:5]))}: {said[:500]}", price)
    return expert.silent(NO_CLASS, f"it names no class: {said[:500]}", price)
