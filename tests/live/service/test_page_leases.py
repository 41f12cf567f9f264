"""The lease of the question on the page: renewed while someone is there, and given up, told and taken again if not."""

from __future__ import annotations

import itertools
import re

import pytest

from sparingly.live.service.service_limits import ServiceLimits
from tests.live.served import Served

pytest.importorskip("playwright")
from playwright.sync_api import expect

from tests.live.service.browsing import choice, eventually, needs_browser, observe, press

pytestmark = needs_browser


@pytest.fixture
def served(request, tmp_path):
    return Served(str(tmp_path / "store"), getattr(request, "param", None))


@pytest.mark.parametrize("served", [ServiceLimits(lease_seconds=6)], indirect=True)
def test_the_page_renews_its_lease_while_it_is_open_and_counts_down(served, people):
    (ticket,) = observe(served)
    page = people()
    expect(page.locator("#lease")).to_have_text(re.compile("Yours for 0:0[1-5]"))
    (lease,) = served.agent.questions()
    eventually(page, lambda: served.agent.questions()[0].until > lease.until)
    assert served.agent.waiting()[0].expert == "expert"
    assert served.agent.questions("other") == []
    press(page, "1")
    expect(page.locator("#today-answers")).to_have_text("1")
    assert served.agent.ticket(ticket).label == "cat"


@pytest.mark.parametrize("served", [ServiceLimits(lease_seconds=1)], indirect=True)
def test_a_page_that_nobody_is_at_gives_its_question_up(served, people):
    observe(served)
    page = people()
    places = itertools.count(100)

    def is_kept_while_the_mouse_moves():
        page.mouse.move(next(places), 100)
        return page.locator("#lease").text_content() == "Yours for 0:01"

    eventually(page, is_kept_while_the_mouse_moves)
    expect(page.locator("#lease")).to_have_text("No longer kept for you alone")
    eventually(page, is_kept_while_the_mouse_moves)


@pytest.mark.parametrize("served", [ServiceLimits(lease_seconds=1)], indirect=True)
def test_a_page_behind_another_tab_does_not_renew_its_lease(served, people):
    (ticket,) = observe(served)
    page = people()
    expect(choice(page, "dog")).to_be_visible()
    page.evaluate("Object.defineProperty(document, 'hidden', {configurable: true, value: true})")
    eventually(page, lambda: [one.id for one in served.agent.questions("other")] == [ticket])


@pytest.mark.parametrize("served", [ServiceLimits(lease_seconds=1)], indirect=True)
def test_a_lease_that_ran_out_is_told_and_taken_again_with_the_answer(served, people):
    """As after a while without a network: the answer is refused first, and taken when it is sent again."""
    (ticket,) = observe(served)
    page = people()
    expect(choice(page, "dog")).to_be_visible()
    page.route("**/renew", lambda route: route.abort())
    page.route("**/questions", lambda route: route.abort())
    expect(page.locator("#lease")).to_have_text("No longer kept for you alone")
    press(page, "2")
    expect(page.locator("#refused .refusal")).to_contain_text("has run out")
    page.unroute("**/renew")
    page.unroute("**/questions")
    page.get_by_role("button", name="Send it again").click()
    expect(page.locator("#today-answers")).to_have_text("1")
    assert served.agent.ticket(ticket).label == "dog"


def test_an_admin_releases_a_question_on_the_dashboard(served, people):
    (ticket,) = observe(served)
    served.agent.questions("somebody")
    page = people("admin")
    expect(page.locator("#waiting")).to_contain_text("somebody")
    page.get_by_role("button", name="Release").click()
    expect(page.locator("#waiting")).to_contain_text("no one yet")
    assert served.agent.questions("other")[0].id == ticket


def test_a_closed_tab_gives_its_question_back(served, people):
    observe(served)
    page = people()
    expect(choice(page, "cat")).to_be_visible()
    served.tokens["second"] = served.service.tokens.create("second", "expert")[1]
    page.goto("about:blank")
    second = people("second")
    expect(choice(second, "cat")).to_be_visible()
