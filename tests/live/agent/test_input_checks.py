"""What an agent, an adapter and a command refuse before anything is made or kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import sparingly as sp
from sparingly.adapters.growing_strategy import GrowingStrategy
from sparingly.adapters.strategy_factory import StrategyFactory
from sparingly.commands.main import app
from sparingly.games import label_efficient
from sparingly.live.agent.errors import AgentError, UnknownTicketError, shortened

BAD_CLASSES = [
    ("", "no visible character"),
    (" \u3000", "no visible character"),
    ("\u202e\ufeff", "no visible character"),
    ("a\0b", "control character"),
    ("a\nb", "control character"),
    ("\ud800", "surrogate"),
    ("x" * 201, "200 are the most"),
    (float("nan"), "not a finite number"),
    (float("inf"), "not a finite number"),
]


@pytest.mark.parametrize(("name", "said"), BAD_CLASSES)
def test_a_class_that_cannot_be_seen_or_kept_is_refused_everywhere(tmp_path: Path, name, said) -> None:
    with pytest.raises(AgentError, match=said):
        sp.Agent(["cat", name], path=tmp_path / "agent.db")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match=said):
        GrowingStrategy(StrategyFactory("always_ask"), ["cat", name])
    growing = GrowingStrategy(StrategyFactory("always_ask"))
    with pytest.raises(ValueError, match=said):
        growing.learn({"x": 1.0}, name)
    assert growing.classes == []
    with pytest.raises(ValueError, match=said):
        StrategyFactory().game(["cat", name])
    if isinstance(name, str):
        with pytest.raises(ValueError, match=said):
            label_efficient(classes=["cat", name])


@pytest.mark.parametrize("twice", [["cat", "cat"], ["cat", " cat"], [1, 1.0], [1, "1"], [True, "True"], [0.0, -0.0]])
def test_a_class_is_named_once(tmp_path: Path, twice) -> None:
    with pytest.raises(AgentError, match="named twice"):
        sp.Agent(twice, path=tmp_path / "agent.db")


def test_a_number_and_a_truth_value_are_two_classes(tmp_path: Path) -> None:
    with sp.Agent([True, 1, 2.5], 2, path=tmp_path / "agent.db", strategy="always_ask") as agent:
        assert agent.classes == (True, 1, 2.5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"query_cost": -0.01}, "the price of 'ask the expert' is -0.01: it must not be negative"),
        ({"query_cost": float("nan")}, "finite"),
        ({"query_cost": True}, "finite"),
        ({"game": label_efficient(2, experts={"nurse": -1.0})}, "the price of 'ask nurse' is -1"),
        ({"costs": [[0, -1], [1, 0]]}, "not be negative"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 10**5000}, "seed is"),
        ({"seed": True}, "seed is True"),
        ({"keep": -1}, "keep is -1"),
        ({"max_open": 2**63}, "max_open is 9223372036854775808"),
        ({"max_per_day": True}, "max_per_day is True"),
        ({"max_per_hour": 1.5}, "max_per_hour is 1.5"),
        ({"audit_rate": float("nan")}, "audit_rate is nan"),
        ({"n_features": 2**62}, "refuses these settings"),
        ({"classes": ["cat", 2**63]}, "below 2"),
    ],
)
def test_settings_out_of_range_are_named_and_nothing_is_made(tmp_path: Path, changes, said) -> None:
    settings = {"classes": ["cat", "dog"], "n_features": 3, "strategy": "always_ask", "path": tmp_path / "agent.db"}
    with pytest.raises(AgentError, match=said.replace("(", r"\(")):
        sp.Agent(**{**settings, **changes})
    assert list(tmp_path.iterdir()) == []


def test_adapters_refuse_a_negative_price() -> None:
    from sparingly.adapters.gymnasium import task

    for make in (
        lambda: StrategyFactory(query_cost=-1.0).make([0, 1], 2),
        lambda: GrowingStrategy(StrategyFactory(query_cost=-1.0)).decide({"x": 1.0}),
        lambda: task("digits", query_cost=-1.0, horizon=5),
    ):
        with pytest.raises(ValueError, match="must not be negative"):
            make()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--classes", "cat,"], "class '' has no visible character"),
        (["--classes", "cat,dog,cat"], "class 'cat' is named twice"),
        (["--classes", "cat,dog", "--query-cost", "-1"], "must not be negative"),
        (["--classes", "cat,dog", "--cost", "announced=cat,true=dog:-5"], "not be negative"),
        (["--classes", "cat,dog", "--max-open", "-3"], "max_open is -3"),
    ],
)
@pytest.mark.parametrize("command", ["agent create", "serve"])
def test_commands_refuse_them_too(tmp_path: Path, command: str, options, said) -> None:
    store = tmp_path / "store"
    place = ["agent", "create", str(tmp_path / "agent.db")] if "agent" in command else ["serve", "--store", str(store)]
    more = [] if "agent" in command else ["--port", "0"]
    result = CliRunner().invoke(app, [*place, *more, *options])
    assert result.exit_code != 0
    assert said in f"{result.output}{result.exception}"
    assert not (tmp_path / "agent.db").exists()
    assert list(store.glob("*.agent.db")) == []


@pytest.mark.parametrize("name", ["\0", "a\0b", "\ud800", 10**5000, "", None], ids=shortened)
def test_a_ticket_that_cannot_exist_is_unknown(make, name) -> None:
    agent = make()
    for call in (agent.ticket, agent.skip, agent.withdraw, lambda t: agent.answer(t, "dog")):
        with pytest.raises(UnknownTicketError, match="there is no ticket"):
            call(name)


@pytest.mark.parametrize("name", ["", " ", "a\0", "\ud800", "x" * 201, 10**200, 10**5000, True, 1.5], ids=shortened)
def test_an_id_that_cannot_be_kept_is_refused(make, name) -> None:
    agent = make()
    with pytest.raises(AgentError, match=r"^id "):
        agent.observe([1, 2, 3], id=name)
    assert agent.history() == []


def test_a_cost_beyond_the_models_precision_is_refused_everywhere(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"a cost is 1e\+308: 1e\+30 is the largest"):
        sp.Agent(["cat", "dog"], query_cost=1e308, path=tmp_path / "agent.db")
    assert list(tmp_path.iterdir()) == []
    with sp.Agent(["cat", "dog"], n_features=2, query_cost=1e30, path=tmp_path / "agent.db") as agent:
        for change in (lambda: agent.set_costs(query_cost=1e38), lambda: agent.add_class("bird", cost=1e38)):
            with pytest.raises(AgentError, match="is the largest"):
                change()
        assert agent.observe([1.0, 2.0]).prediction in ("cat", "dog")
