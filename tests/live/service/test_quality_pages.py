"""The pages about people: second opinions never go to the same person, and disagreements are settled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import expect

from tests.live.service.browsing import SIZES, eventually, needs_browser, press, violations

pytestmark = needs_browser
SHOTS = os.environ.get("SPARINGLY_SHOTS")
"""A folder for screenshots, to look at."""


def shot(page, name):
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


@pytest.fixture
def team(served):
    served.agent.team.set_checks(second_opinions=1.0)
    for name in ("Ada", "Ben", "Cleo"):
        served.tokens[name] = served.service.tokens.create(name, "expert")[1]
    return served


def disagree(served, ticket, text="a grey animal", labels=("cat", "dog")):
    served.agent.observe([1, 2, 3], id=ticket, payload=text)
    for name, label in zip(("Ada", "Ben"), labels, strict=False):
        served.agent.questions(name)
        served.agent.answer(ticket, label, expert=name)


def test_a_second_opinion_never_goes_to_the_same_person(team, people):
    team.agent.observe([1, 2, 3], id="one", payload="a grey animal")
    ada, ben = people("Ada"), people("Ben")
    expect(ada.locator("#shown")).to_have_text("a grey animal")
    expect(ben.locator("#idle")).to_be_visible()
    press(ada, "1")
    expect(ada.locator("#idle")).to_be_visible()
    expect(ben.locator("#shown")).to_have_text("a grey animal")  # appears by itself
    ada.reload()
    expect(ada.locator("#idle")).to_be_visible()
    press(ben, "2")
    expect(ben.locator("#idle")).to_be_visible()
    cleo = people("Cleo")
    expect(cleo.locator("#shown")).to_have_text("a grey animal")
    press(cleo, "2")
    eventually(cleo, lambda: team.agent.ticket("one").label == "dog")
    assert [(o.reason, o.expert, o.label) for o in team.agent.team.opinions("one")] == [
        ("first", "Ada", "cat"),
        ("share", "Ben", "dog"),
        ("third", "Cleo", "dog"),
    ]


def test_a_second_opinion_is_taken_back_like_any_answer(team, people):
    team.agent.observe([1, 2, 3], id="one", payload="a grey animal")
    team.agent.answer("one", "cat", expert="Ada")
    ben = people("Ben")
    press(ben, "2")
    expect(ben.locator("#idle")).to_be_visible()
    press(ben, "u")
    expect(ben.locator("#question")).to_be_visible()
    assert team.agent.team.disagreements() == []
    press(ben, "1")
    expect(ben.locator("#idle")).to_be_visible()
    assert [o.label for o in team.agent.team.opinions("one")] == ["cat", "cat"]
    assert team.agent.team.disagreements() == []
    assert team.agent.ticket("one").expert == "Ada"


def test_an_admin_settles_disagreements_one_after_the_other(team, people):
    disagree(team, "one")
    disagree(team, "two", "<b>a</b> brown one", ("dog", "cat"))
    page = people("admin")
    expect(page.locator("#alerts")).to_contain_text("2 disagreements wait to be settled.")
    page.get_by_role("link", name="Disagreements").click()
    expect(page.locator("#dispute-title")).to_have_text("Ticket one")
    expect(page.locator("#shown")).to_have_text("a grey animal")
    expect(page.locator("#sides .side")).to_have_text(["catAda said so", "dogBen said so"])
    expect(page.locator("#events")).to_contain_text("second opinion by Ben as dog")
    shot(page, "disagreement")
    page.get_by_role("button", name="dog Ben said so").click()
    expect(page.locator("#done")).to_have_text("one is dog.")
    expect(page.locator("#shown")).to_have_text("<b>a</b> brown one")
    page.get_by_label("Another class").fill("cow")
    page.get_by_role("button", name="Let it stand").click()
    expect(page.get_by_role("alert")).to_contain_text("cow")
    page.get_by_label("Another class").fill("dog")
    page.get_by_role("button", name="Let it stand").click()
    expect(page.locator("#dispute")).to_be_hidden()
    expect(page.locator("#settled tr")).to_have_count(2)
    assert [team.agent.ticket(one).label for one in ("one", "two")] == ["dog", "dog"]


def test_disagreements_are_settled_by_keyboard_alone(team, people, url):
    disagree(team, "one")
    page = people("admin")
    page.goto(f"{url}/agents/default/disagreements")
    page.wait_for_selector("#sides .side")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "side":
            break
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#done")).to_have_text("one is dog.")
    assert team.agent.ticket("one").label == "dog"


def test_the_page_of_people_tells_how_often_each_is_right_and_stops_one(team, people, url):
    for i in range(12):
        disagree(team, f"t{i}", labels=("cat", "cat" if i % 3 else "dog"))
        if i % 3 == 0:
            team.agent.adjudicate(f"t{i}", "cat", expert="root")
    page = people("admin")
    page.get_by_role("link", name="People").click()
    row = page.locator("#people tr").filter(has_text="Ben")
    expect(row).to_contain_text("67 % (39–86)")
    expect(row).to_contain_text("0 of 4")
    expect(page.locator("#agreement")).to_contain_text("12 questions were answered by two or more.")
    shot(page, "people")
    page.get_by_role("button", name="Stop asking: Ben").click()
    page.get_by_role("button", name="Stop asking: Ben").click()
    expect(page.locator("#done")).to_have_text("Ben gets no questions any more.")
    team.agent.observe([1, 2, 3], id="more")
    assert team.agent.questions("Ben") == []
    page.get_by_role("button", name="Ask again: Ben").click()
    expect(page.locator("#done")).to_have_text("Ben gets questions again.")
    page.get_by_label("Second opinions").fill("150")
    page.get_by_role("button", name="Save").click()
    assert team.agent.team.checks.second_opinions == 1.0  # the browser refuses it
    page.get_by_label("Second opinions").fill("15")
    page.get_by_label("Disagreements are settled by").select_option("admin")
    page.get_by_label("Whoever is found careless").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#done")).to_have_text("Saved.")
    checks = team.agent.team.checks
    assert (checks.second_opinions, checks.disagreements, checks.stop_careless) == (0.15, "admin", True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_for_everyone_and_fit_on_a_phone(team, people, url, scheme):
    for i in range(4):
        disagree(team, f"ticket {i}", "a text " * 50)
    page = people("admin", viewport=SIZES["phone"], color_scheme=scheme)
    found = {}
    for view, ready in {"people": "#people td", "disagreements": "#sides .side"}.items():
        page.goto(f"{url}/agents/default/{view}")
        page.wait_for_selector(ready)
        shot(page, f"{view}-phone-{scheme}")
        found[view] = violations(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
    assert found == {"people": [], "disagreements": []}


def test_the_pages_are_for_admins(team, people, url):
    page = people("Ada")
    assert [page.request.get(f"{url}/agents/default/{view}").status for view in ("people", "disagreements")] == [
        403,
        403,
    ]
    assert page.get_by_role("link", name="Disagreements").count() == 0
