"""Label Studio's tasks and labelling configurations, as an agent needs them: features, choices, ids."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np

from sparingly.adapters.label_studio.label_studio_bodies import ResultIn
from sparingly.live.agent.errors import AgentError, shortened

WORDS = 256
"""Features that a text becomes, if the agent does not say how many it has."""
_TEXTS = ("Text", "HyperText", "Paragraphs")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Choices:
    """The question of a labelling configuration: one class out of several.

    >>> text, choice = '<Text name="t" value="$letter"/>', '<Choice value="ham"/>'
    >>> choices = Choices.of(f'<View>{text}<Choices name="c" toName="t">{choice}</Choices></View>')
    >>> choices.labels, choices.texts
    (('ham',), ('letter',))
    >>> choices.result("ham")
    [{'from_name': 'c', 'to_name': 't', 'type': 'choices', 'value': {'choices': ['ham']}}]
    """

    name: str
    to: str
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    """The fields of a task's data that are shown as text."""

    @classmethod
    def of(cls, config: str) -> Choices:
        """Read a configuration; its first single-choice `Choices` is the question."""
        if "<!" in config.replace("<!--", ""):
            raise AgentError("the labelling configuration has a document type or an entity: it must be plain tags")
        try:
            tags = list(ElementTree.fromstring(config).iter())
        except (ElementTree.ParseError, ValueError) as error:
            raise AgentError(f"the labelling configuration is not XML: {error}") from None
        shown = [tag.get("value", "").removeprefix("$") for tag in tags if tag.tag in _TEXTS]
        for tag in tags:
            if tag.tag == "Choices" and tag.get("choice", "single") in ("single", "single-radio"):
                found = [choice.get("alias") or choice.get("value") or "" for choice in tag.iter("Choice")]
                return cls(tag.get("name", ""), tag.get("toName", ""), tuple(found), tuple(shown))
        raise AgentError("the labelling configuration has no <Choices> with a single choice: only classes are learned")

    def check(self, classes: Sequence[Any]) -> None:
        """Refuse an agent whose classes are not the choices, with the one that differs."""
        known = {str(label) for label in classes}
        for label in sorted(known ^ set(self.labels)):
            whose = "the agent's classes" if label in known else "the choices"
            raise AgentError(f"{label!r} is only among {whose}: the agent's classes are {', '.join(sorted(known))}")

    def result(self, label: str) -> list[dict[str, Any]]:
        """A class as Label Studio has it in predictions and annotations."""
        return [{"from_name": self.name, "to_name": self.to, "type": "choices", "value": {"choices": [label]}}]

    def chosen(self, result: Sequence[ResultIn]) -> str | None:
        """The class in an annotation's result; None if the question was left open."""
        for part in result:
            choices = (part.value or {}).get("choices")
            if part.from_name == self.name and choices:
                if not isinstance(choices, list) or not isinstance(choices[0], str):
                    raise AgentError(f"the choices {shortened(choices)} of an annotation are no list of names")
                return choices[0]
        return None


def features_of(task: Mapping[str, Any], choices: Choices, width: int = WORDS) -> Any:
    """The numbers of a task: its `features`, else its numeric fields by name, else the words of its text.

    >>> features_of({"id": 1, "data": {"letter": "...", "length": 120}}, Choices("c", "t", (), ("letter",)))
    {'length': 120}
    """
    data = task.get("data") or {}
    if "features" in data:
        return data["features"]
    numbers = {
        name: value
        for name, value in sorted(data.items())
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    if numbers:
        return numbers
    texts = [str(data[field]) for field in choices.texts if data.get(field)]
    if not texts:
        raise AgentError(f"task {task.get('id')} has neither numbers nor text: put numbers into its data as `features`")
    return hashed_words(" ".join(texts), width)


def hashed_words(text: str, width: int = WORDS) -> list[float]:
    """A text as the square roots of how often its words occur, each word at the place that its hash gives.

    >>> hashed_words("win money, win", 4)
    [1.0, 0.0, 1.4142135623730951, 0.0]
    """
    counts = np.zeros(width)
    for word in _WORD.findall(text.lower()):
        counts[zlib.crc32(word.encode()) % width] += 1
    roots: list[float] = np.sqrt(counts).tolist()
    return roots


def ticket_id(project: Any, task: Mapping[str, Any], features: Any) -> str:
    """The ticket of a task with this content; another content is another ticket.

    >>> ticket_id("3.1763251200", {"id": 17}, [1.0, 2.0])
    'label-studio.3.17.4a2b53f1'
    """
    try:
        written = json.dumps(features, sort_keys=True)
    except RecursionError:
        raise AgentError(f"the features {shortened(features)} of task {task.get('id')} are nested too deep") from None
    content = hashlib.blake2b(written.encode(), digest_size=4).hexdigest()
    return f"label-studio.{project_number(project)}.{task.get('id')}.{content}"


def project_number(project: Any) -> str:
    """The number of a project, which Label Studio gives as such or with the time of its making.

    >>> project_number("3.1763251200"), project_number(3)
    ('3', '3')
    """
    return str(project).partition(".")[0]
