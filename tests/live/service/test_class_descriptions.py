"""What classes mean: told at the beginning or later, kept, read by whoever answers, changed by admins."""

from __future__ import annotations

import pytest

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError
from tests.live.served import AT

TOLD = {"descriptions": {"cat": "It purrs."}}


def test_descriptions_are_kept_with_the_agent(tmp_path):
    made = {"classes": ["cat", 7], "path": tmp_path / "a.db", "strategy": "always_ask"}
    Agent(**made, descriptions={"cat": "It purrs.", 7: "A number.\nOf lives."}).close()
    with Agent(**made) as agent:  # as it is, for none are given
        assert agent.settings.descriptions == {"cat": "It purrs.", "7": "A number.\nOf lives."}
    with Agent(**made, descriptions={"cat": "It meows.", 7: " "}) as agent:
        assert agent.settings.descriptions == {"cat": "It meows."}
        agent.describe_classes({})
    with Agent.open(tmp_path / "a.db") as agent:
        assert agent.settings.descriptions == {}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"cow": "It moos."}, "'cow', which is none of the classes"),
        ({"cat": 1}, "the description of 'cat' is int"),
        ({"cat": "x" * 1001}, "1001 characters long"),
        ({"cat": "\0"}, "cannot be printed"),
        ({"cat": "\ud800"}, "cannot be printed"),
        ("It purrs.", "descriptions is str"),
    ],
)
def test_bad_descriptions_are_refused(tmp_path, given, why):
    with pytest.raises(AgentError, match=why):
        Agent(["cat", "dog"], path=tmp_path / "a.db", descriptions=given)
    assert not (tmp_path / "a.db").exists()


def test_admins_change_them_over_http_and_experts_read_them(ask):
    assert ask("expert", "GET", f"{AT}/descriptions").json() == {"descriptions": {}}
    assert ask("expert", "PUT", f"{AT}/descriptions", TOLD).status_code == 403
    assert ask("admin", "PUT", f"{AT}/descriptions", TOLD).json() == TOLD
    refused = ask("admin", "PUT", f"{AT}/descriptions", {"descriptions": {"cow": "It moos."}})
    assert (refused.status_code, refused.json()) == (
        422,
        {"error": "descriptions name 'cow', which is none of the classes"},
    )
    assert ask("expert", "GET", f"{AT}/descriptions").json() == TOLD
    assert ask("producer", "GET", f"{AT}/descriptions").status_code == 403
    (line, *_) = ask("admin", "GET", "/api/audit").json()["lines"]
    assert (line["did"], line["detail"], line["agent"]) == ("described classes", "1", "default")
    made = {"name": "fruit", "classes": ["apple", "pear"], "descriptions": {"pear": "The long one."}}
    assert ask("admin", "POST", "/api/agents", made).status_code == 201
    assert ask("expert", "GET", "/api/agents/fruit/descriptions").json()["descriptions"] == made["descriptions"]
