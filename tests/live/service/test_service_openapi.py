"""Whatever the OpenAPI description allows, and much that it does not, is answered without an error of ours."""

from __future__ import annotations

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import response_schema_conformance

from tests.live.served import Served

EXAMPLES = int(os.environ.get("SPARINGLY_EXAMPLES", "12"))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    served = Served(str(tmp_path_factory.mktemp("openapi") / "store"))
    served.agent.observe([1, 2, 3], id="a")
    return served


def test_no_request_makes_the_service_fail(served):
    """Nothing fails, and what is answered is what the description says."""
    statuses = set()
    with served.on_a_socket() as url:
        described = schemathesis.openapi.from_url(f"{url}/openapi.json").exclude(path_regex="/events$")
        operations = [found.ok() for found in described.get_all_operations()]
        for operation in operations:

            @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
            @given(case=operation.as_strategy())
            def holds(case):
                response = case.call(headers=served.headers("admin"))
                statuses.add(response.status_code)
                assert response.status_code < 500, response.text
                case.validate_response(response, checks=[response_schema_conformance])

            holds()
    assert len(operations) > 20
    assert {200, 404, 422} <= statuses
