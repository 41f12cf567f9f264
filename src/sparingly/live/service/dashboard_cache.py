"""The dashboard's cache: what is shown of an agent, computed the less often the longer it takes."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from sparingly.live.agent.agent import Agent
from sparingly.live.quality.quality_records import PersonQuality
from sparingly.live.service.agent_directory import Agents
from sparingly.live.service.alerts import Alert, alerts_of
from sparingly.live.service.page.plain_reasons import plain_reason
from sparingly.live.tickets.ticket_records import Entry, Statistics

SHARE, LONGEST = 4.0, 10.0
"""A dashboard is cached for this many times as long as it took to compute, and so many seconds at most."""


@dataclass
class _CachedValue:
    lock: threading.Lock = field(default_factory=threading.Lock)
    until: float = float("-inf")
    value: Any = None


def recent_out(entry: Entry) -> dict[str, Any]:
    """A ticket as pages list it: with a reason for people, without the probabilities of all classes."""
    shown = {name: value for name, value in dict(entry).items() if name != "probabilities"}
    return {**shown, "reason": plain_reason(entry.why, entry.asks, entry.probabilities, entry.numbers)}


class DashboardCache:
    """Statistics and dashboards by agent."""

    def __init__(self, agents: Agents, freshest: float = 0.5) -> None:
        self._agents = agents
        self._freshest = freshest
        self._kept: dict[tuple[str, str, str], _CachedValue] = {}
        self._lock = threading.Lock()

    def agents(self) -> list[str]:
        return self._agents.names()

    def statistics(self, name: str) -> Statistics:
        agent = self._agents.get(name)
        return self._remembered("statistics", name, agent.stats)  # type: ignore[no-any-return]

    def dashboard(self, name: str) -> dict[str, Any]:
        """Everything the dashboard draws."""
        agent = self._agents.get(name)

        def draw() -> dict[str, Any]:
            statistics = agent.stats()
            return {
                "events": agent.count_events(),
                "statistics": dict(statistics),
                "alerts": [asdict(alert) for alert in self._alerts(name, agent, statistics)],
                "over_time": [dict(point) for point in agent.over_time(60)],
                "experts": [dict(one) for one in agent.experts()],
                "recent": [recent_out(entry) for entry in agent.recent(12)],
                "open": [dict(question) for question in agent.waiting(12)],
            }

        return self._remembered("dashboard", name, draw)  # type: ignore[no-any-return]

    def alerts(self, name: str) -> list[Alert]:
        """What an admin should know of an agent now."""
        agent = self._agents.get(name)
        statistics = self.statistics(name)
        return self._remembered("alerts", name, lambda: self._alerts(name, agent, statistics))  # type: ignore[no-any-return]

    def _alerts(self, name: str, agent: Agent, statistics: Statistics) -> list[Alert]:
        oldest = next((question.at for question in agent.waiting(1)), None) if statistics.open else None
        state = self._agents.registry.find(name).state
        noticed, people = agent.noticed(), self._people(name, agent)
        return list(alerts_of(state, agent.settings.limits, statistics, oldest, time.time(), noticed, people))

    def people(self, name: str) -> list[PersonQuality]:
        """How often each expert of an agent is right."""
        return self._people(name, self._agents.get(name))

    def _people(self, name: str, agent: Agent) -> list[PersonQuality]:
        return self._remembered("people", name, agent.people)  # type: ignore[no-any-return]

    def _remembered(self, what: str, name: str, compute: Any) -> Any:
        """What was computed last while the agent's state was this one, or computed now."""
        key = what, name, self._agents.registry.find(name).state
        with self._lock:
            kept = self._kept.setdefault(key, _CachedValue())
        with kept.lock:
            began = time.monotonic()
            if began >= kept.until:
                kept.value = compute()
                took = time.monotonic() - began
                kept.until = time.monotonic() + min(max(self._freshest, SHARE * took), LONGEST)
        return kept.value
