"""What Prometheus reads: calls and how long they took, observations, answers, and how each agent stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sparingly.live.agent.errors import AgentError

if TYPE_CHECKING:
    from sparingly.live.service.dashboard_cache import DashboardCache

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The counters of one service process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "sparingly_requests", "Calls served.", ["route", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "sparingly_request_seconds", "How long calls took.", ["route"], buckets=SECONDS, registry=self.registry
        )
        self.observations = Counter(
            "sparingly_observations", "Observations acknowledged.", ["agent"], registry=self.registry
        )
        self.answers = Counter("sparingly_answers", "What people did.", ["agent", "did"], registry=self.registry)

    def watch(self, dashboard_cache: DashboardCache) -> None:
        """Export the statistics of the agents too."""
        self.registry.register(_AgentCollector(dashboard_cache))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _AgentCollector(Collector):
    """The statistics of every open agent, when they are asked for."""

    NAMES = ("observations", "questions", "answered", "open", "cost", "accuracy", "always_asking", "never_asking")

    PEOPLE: ClassVar = {
        "answers": "Answers given.",
        "accuracy": "The share of checked answers that were right.",
        "seconds": "The median time for an answer.",
        "cost": "What the answers have cost.",
    }

    def __init__(self, dashboard_cache: DashboardCache) -> None:
        self._dashboard_cache = dashboard_cache

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        families = {
            name: GaugeMetricFamily(f"sparingly_agent_{name}", f"The agent's {name}.", labels=["agent"])
            for name in self.NAMES
        }
        alerts = GaugeMetricFamily("sparingly_agent_alert", "What needs an admin.", labels=["agent", "kind"])
        people = [
            GaugeMetricFamily(f"sparingly_expert_{name}", text, labels=["agent", "expert"])
            for name, text in self.PEOPLE.items()
        ]
        for agent in self._dashboard_cache.agents():
            try:
                for one in self._dashboard_cache.people(agent):
                    for family, name in zip(people, self.PEOPLE, strict=True):
                        if one[name] is not None:
                            family.add_metric([agent, one.expert], float(one[name]))
                statistics = self._dashboard_cache.statistics(agent)
                for kind in {alert.kind for alert in self._dashboard_cache.alerts(agent)}:
                    alerts.add_metric([agent, kind], 1.0)
            except AgentError:
                continue
            for name, family in families.items():
                if statistics[name] is not None:
                    family.add_metric([agent], float(statistics[name]))
        yield from families.values()
        yield alerts
        yield from people
