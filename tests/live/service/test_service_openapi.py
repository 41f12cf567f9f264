"""What the OpenAPI description allows and what it forbids, singly and in sequence, never makes the service fail."""

from __future__ import annotations

import copy
import functools
import os

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance

from sparingly.live.service.auth.tokens import Operator
from tests.live.served import Served

EXAMPLES = int(os.environ.get("SPARINGLY_EXAMPLES", "4"))
SECONDS = 20
"""The most that a call may take."""
UNSHORTENED = (Phase.generate,)
"""A sequence that fails is told as it was played: to look for a shorter one takes longer than a test may."""
QUIETLY = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    served = Served(str(tmp_path_factory.mktemp("openapi") / "store"))
    served.service.agents.create = functools.partial(served.service.agents.create, training="inline")
    served.agent.observe([1, 2, 3], id="a")
    return served


@pytest.fixture(scope="module")
def url(served):
    with served.on_a_socket() as url:
        yield url


@pytest.fixture(scope="module")
def session():
    """One connection for all calls, which asks neither the environment nor the disk about proxies and passwords."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@pytest.mark.parametrize("mode", GenerationMode)
def test_no_request_makes_the_service_fail(served, url, session, mode):
    """Nothing fails, and what is answered is what the description says; what it forbids is refused in one line."""
    statuses = set()
    described = schemathesis.openapi.from_url(f"{url}/openapi.json").exclude(path_regex="/events$")
    operations = [found.ok() for found in described.get_all_operations()]
    if mode is GenerationMode.NEGATIVE:
        operations = [one for one in operations if one.body or list(one.query) or list(one.path_parameters)]
    for operation in operations:

        @settings(max_examples=EXAMPLES, **QUIETLY)
        @given(case=operation.as_strategy(generation_mode=mode))
        def holds(case):
            response = case.call(headers=served.headers("admin"), timeout=SECONDS, session=session)
            statuses.add(response.status_code)
            assert response.status_code < 500, response.text
            if mode is GenerationMode.POSITIVE:
                case.validate_response(response, checks=[response_schema_conformance])
            elif response.status_code >= 400:
                assert set(response.json()) == {"error"}

        holds()
    assert len(operations) > 20
    assert {200, 404, 422} <= statuses


TICKETS = {"enum": ["a", "b"]}
"""Open questions with which a sequence begins."""
ANY_TICKET = ("answer", "correct", "skip", "dont-know", "release", "renew", "undo", "withdraw")
BODIES = ("ObservationIn", "AnswerIn", "TicketIn", "ReleaseIn")


def linked(description):
    """What is done with tickets, narrowed to calls that get somewhere, and linked by the tickets' ids.

    Any call may also be about one of two tickets that are there from the beginning, and so about what others did to it.
    """
    description = copy.deepcopy(description)
    at, named = "/api/agents/{agent}", {"agent": {"enum": ["default"]}, "ticket": TICKETS}
    kept = ("observations", "questions", "ticket", "history", "statistics", *ANY_TICKET)
    description["paths"] = {f"{at}/{name}": description["paths"][f"{at}/{name}"] for name in kept}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            operation["operationId"] = f"{method} {path.rpartition('/')[2]}"
            for parameter in operation["parameters"]:
                parameter["schema"] = named.get(parameter["name"], parameter["schema"])
    number = {"type": "number", "minimum": -1e6, "maximum": 1e6}
    features = {"type": "array", "items": number, "minItems": 3, "maxItems": 3}
    bodies = {name: description["components"]["schemas"][name]["properties"] for name in BODIES}
    bodies["ObservationIn"] |= {"features": features, "id": {"anyOf": [TICKETS, {"type": "null"}]}}
    for other in ("text", "image"):
        del bodies["ObservationIn"][other]
    for name in BODIES[1:]:
        bodies[name]["ticket"] = TICKETS
    bodies["AnswerIn"]["label"] = {"enum": ["cat", "dog", "bird"]}
    for source, where in (("post observations", "id"), ("post answer", "ticket"), ("post questions", "questions/0/id")):
        path = f"{at}/{source.split()[1]}"
        links = {}
        for name in ANY_TICKET:
            body = {"ticket": f"$response.body#/{where}"} | ({"label": "dog"} if name in ("answer", "correct") else {})
            links[name] = {
                "operationId": f"post {name}",
                "parameters": {"path.agent": "default"},
                "requestBody": body,
            }
        links["ticket"] = {
            "operationId": "get ticket",
            "parameters": {"path.agent": "default", "query.ticket": f"$response.body#/{where}"},
        }
        description["paths"][path]["post"]["responses"]["200"]["links"] = links
    return description


def test_no_sequence_of_requests_makes_the_service_fail(served, url, session):
    """Observe, lease, answer, correct, undo, withdraw in any order: the ids of one reply go into the next calls."""
    description = schemathesis.openapi.from_dict(linked(served.app.openapi()))
    description.config.update(base_url=url)
    seen = set()

    class Machine(description.as_state_machine()):
        def setup(self):
            """Each sequence begins with a new agent: what the sequences before it left would change its replies."""
            served.service.delete_agent("default", Operator("root"))
            served.create_default()
            for ticket in TICKETS["enum"]:
                served.agent.observe([1, 2, 3], id=ticket)

        def get_call_kwargs(self, case):
            return {"headers": served.headers("admin"), "timeout": SECONDS, "session": session}

        def validate_response(self, response, case, **more):
            seen.add((case.operation.path.rpartition("/")[2], response.status_code))
            assert response.status_code < 500, response.text
            case.validate_response(response, checks=[response_schema_conformance])

    wanted = {(name, 200) for name in ("observations", "questions", "ticket", *ANY_TICKET)}
    # Which calls get somewhere depends on when replies come: other sequences are played until all have.
    quietly = settings(max_examples=3 * EXAMPLES, stateful_step_count=24, phases=UNSHORTENED, **QUIETLY)
    for number in range(15):
        if not wanted <= seen:
            run_state_machine_as_test(seed(number)(Machine), settings=quietly)
    assert wanted <= seen, sorted(seen)
    assert 409 in {status for _, status in seen}
