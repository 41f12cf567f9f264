"""The admin's pages: agents and their costs, people and tokens, tickets, settings, alerts; also on a phone."""

from __future__ import annotations

import re

import pytest

import sparingly as sp

pytest.importorskip("playwright")
from playwright.sync_api import expect
from sqlalchemy import update

from sparingly.live.service.service_database import webhook_messages
from sparingly.live.service.webhooks.webhook_outbox import WebhookMessage, add_messages
from tests.live.served import Served
from tests.live.service.browsing import SECONDS, eventually, needs_browser, violations
from tests.live.service.receiver import receiving

pytestmark = needs_browser


def confirm(page, name, question):
    """Click a button that asks again, and then once more."""
    page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("button", name=question).click()


def test_an_agent_is_made_paused_renamed_and_deleted(served, people, url):
    page = people("admin")
    page.locator(".agents summary").click()
    page.get_by_role("link", name="All agents").click()
    page.get_by_label("Name").fill("mails")
    page.get_by_label("Classes").fill("ham\nspam: nobody wants it\nnews")
    page.get_by_label("A question costs").fill("0.5")
    page.get_by_label("Announced spam, true ham").fill("5")
    reading = page.locator("#reading li")
    expect(reading.first).to_have_text(
        "A mistake costs 1, and a question 0.5: once it has learned, it asks where it is less than 50 % sure."
    )
    expect(reading.nth(1)).to_have_text("Saying “spam” when it is “ham” costs 5, as much as 10 questions.")
    page.get_by_label("Announced ham, true spam").fill("-1")
    expect(reading).to_have_text("Every cost must be a number from 0 on.")
    page.get_by_label("Announced ham, true spam").fill("1")
    page.get_by_role("button", name="Make the agent").click()
    page.wait_for_url("**/agents/mails/dashboard")
    settings = served.service.agents.get("mails").settings
    assert settings.classes == ("ham", "spam", "news")
    assert settings.costs == ((0, 1, 1), (5, 0, 1), (1, 1, 0), (0.5, 0.5, 0.5))
    assert settings.descriptions == {"spam": "nobody wants it"}
    page.get_by_role("link", name="Settings").click()
    expect(page.locator("#reading")).to_contain_text("Saying “spam” when it is “ham” costs 5")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#state")).to_have_text("paused")
    page.get_by_label("What classes mean").fill("ham: what one wants")
    page.get_by_role("button", name="Save the descriptions").click()
    expect(page.locator("#done")).to_have_text("The descriptions are saved.")
    assert served.service.agents.get("mails").settings.descriptions == {"ham": "what one wants"}
    page.get_by_role("link", name="Dashboard").click()
    expect(page.locator("#alerts")).to_have_text("The agent is paused: it takes no observations.")
    page.get_by_role("link", name="Settings").click()
    page.wait_for_url("**/agents/mails/settings")  # with its scripts: until then a form would be sent as it stands
    page.get_by_label("Name", exact=True).fill("post")
    page.get_by_role("button", name="Rename").click()
    page.wait_for_url("**/agents/post/settings")
    page.get_by_label("To delete it").fill("mails")
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("alert")).to_have_text("That is not its name: type post.")
    page.get_by_label("To delete it").fill("post")
    page.get_by_role("button", name="Delete for good").click()
    page.wait_for_url("**/admin/agents")
    expect(page.locator("#agents")).to_contain_text("default")
    assert served.service.agents.names() == ["default"]


def test_a_token_is_made_shown_once_and_revoked(served, people, url):
    page = people("admin")
    page.goto(f"{url}/admin/people")
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Agents").select_option(["default"])
    page.get_by_label("Ends after").fill("nonsense")
    page.get_by_role("button", name="Make the token").click()
    expect(page.get_by_role("alert")).to_contain_text("nonsense")
    page.get_by_label("Ends after").fill("30d")
    page.get_by_role("button", name="Make the token").click()
    secret = page.locator("#secret-token")
    expect(secret).to_have_text(re.compile("sparingly_"))
    token = served.service.tokens.check(secret.inner_text())
    assert (token.name, token.role, token.agents) == ("Ada", "expert", ("default",))
    page.get_by_role("button", name="Revoke Ada").click()
    assert served.service.tokens.check(secret.inner_text()) is not None  # it asks again first
    page.get_by_role("button", name="Revoke Ada").click()
    expect(page.locator("#tokens")).not_to_contain_text("Ada")
    assert served.service.tokens.check(secret.inner_text()) is None
    page.get_by_label("Also those").check()
    expect(page.locator("#tokens")).to_contain_text("revoked")


def test_tickets_are_found_opened_and_changed(served, people, url):
    agent = served.agent
    for i, text in enumerate(["a grey cat", "a brown dog", "<b>a</b> red fox"]):
        agent.observe([i, 2, 3], id=f"mail/{i}", payload=text)
    agent.questions("Ada")
    agent.answer("mail/0", "dog", expert="Ada")
    agent.questions("Bob")
    page = people("admin")
    page.get_by_role("link", name="Tickets").click()
    rows = page.locator("#tickets tr")
    expect(rows).to_have_count(3)
    page.get_by_label("Search").fill("GREY")
    page.get_by_label("Search").press("Enter")
    expect(rows).to_have_count(1)
    rows.get_by_role("link", name="mail/0").click()
    expect(page.locator("#shown")).to_have_text("a grey cat")
    expect(page.locator("#events")).to_contain_text("answered by Ada as dog")
    page.locator("#correct-label").fill("cow")
    page.get_by_role("button", name="Correct").click()
    expect(page.get_by_role("alert")).to_contain_text("cow")
    page.locator("#correct-label").fill("cat")
    page.get_by_role("button", name="Correct").click()
    expect(page.locator("#ticket-status")).to_contain_text("answered: cat")
    expect(page.locator("#events")).to_contain_text("corrected by admin as cat")
    confirm(page, "Take back", "Take the answer back?")
    expect(page.locator("#ticket-status")).to_have_text(re.compile("^open · "))
    assert agent.ticket("mail/0").status == "open"
    page.goto(f"{url}/agents/default/tickets?ticket=mail%2F1")
    expect(page.locator("#ticket-status")).to_contain_text("with Bob now")
    page.get_by_role("button", name="Release").click()
    expect(page.locator("#ticket-status")).not_to_contain_text("Bob")
    confirm(page, "Withdraw", "Withdraw it for good?")
    expect(page.locator("#ticket-status")).to_contain_text("withdrawn")
    page.goto(f"{url}/agents/default/tickets?ticket=mail%2F2")
    expect(page.locator("#shown")).to_have_text("<b>a</b> red fox")
    confirm(page, "Erase", "Erase content and features for good?")
    expect(page.locator("#shown")).to_have_text("What was observed is erased.")
    assert agent.ticket("mail/2").erased == "everything"


def test_a_ticket_tells_which_experts_were_asked_and_the_dashboard_their_bill(served, people, url):
    gpt = sp.FunctionExpert("gpt", lambda content: "dog", price=0.01)
    human = sp.Expert("human", price=1.0, gold=True)
    made = {"classes": ["cat", "dog"], "n_features": 3, "training": "inline"}
    agent = served.service.agents.create("team", **made, experts=[gpt, human])
    agent.observe([1, 2, 3], id="one", payload="a text")
    assert agent.wait("one", 60, for_people=False).asked == ("gpt", "human")
    page = people("admin")
    page.goto(f"{url}/agents/team/tickets?ticket=one")
    expect(page.locator("#events")).to_contain_text("asked gpt: answered as dog")
    expect(page.locator("#asked")).to_have_text("Asked: gpt, then human; paid for calls: 0.01.")
    page.get_by_role("link", name="Dashboard").click()
    expect(page.locator("#bill li")).to_have_text(["human1.00", "gpt0.01"])


def test_costs_of_a_living_agent_are_edited_and_webhooks_added(tmp_path, browser):
    served = Served(str(tmp_path / "store"), webhook_networks=["127.0.0.0/8"])
    made = {"classes": ["ham", "spam"], "n_features": 3, "strategy": "sparing", "training": "inline"}
    agent = served.service.agents.create("mails", **made)
    with receiving() as receiver, served.on_a_socket() as url, browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(1000 * SECONDS)
        page.goto(f"{url}/agents/mails/settings")
        page.get_by_label("Token").fill(served.tokens["admin"])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/agents/**")
        page.goto(f"{url}/agents/mails/settings")
        page.get_by_label("Announced spam, true ham").fill("5")
        page.get_by_label("A question costs").fill("0.5")
        reading = page.locator("#reading li")
        expect(reading.nth(1)).to_have_text("Saying “spam” when it is “ham” costs 5, as much as 10 questions.")
        page.get_by_role("button", name="Save the costs").click()
        expect(page.locator("#done")).to_contain_text("The costs are saved")
        assert agent.settings.costs == ((0, 1), (5, 0), (0.5, 0.5))
        page.get_by_label("Address").fill("http://10.0.0.1/")
        page.get_by_role("button", name="Add the webhook").click()
        expect(page.get_by_role("alert")).to_contain_text("not public")
        receiver.status = lambda body: 204 if body["event"] == "test" else 410
        page.get_by_label("Address").fill(receiver.url)
        page.get_by_label("alerts").uncheck()
        page.get_by_role("button", name="Add the webhook").click()
        expect(page.locator("#webhook-secret")).to_have_text(re.compile("whsec_"))
        secret = page.locator("#webhook-secret").inner_text()
        page.get_by_role("button", name="Test", exact=False).click()
        eventually(page, lambda: [one["event"] for one in receiver.bodies(secret)] == ["test"])
        hook = served.service.webhooks.of_agent("mails")[0].id
        message = WebhookMessage("event 1", "answered", 1.0, {"ticket": {"id": "mail/7"}})
        dead = {"state": "dead", "error": "it answered 410", "attempts": 5}
        with served.service.webhooks._database.locked() as connection:  # at once, or it would be sent in between
            add_messages(connection, hook, [message])
            connection.execute(update(webhook_messages).where(webhook_messages.c.event == "answered").values(**dead))
        page.reload()
        page.get_by_role("button", name="that were given up").click()
        expect(page.locator("#dead-letters li").first).to_have_text("answered mail/7: it answered 410, 5 times")
        assert violations(page) == []
        receiver.status = 200
        page.get_by_role("button", name="Send all of them again").click()
        eventually(page, lambda: len(receiver.bodies(secret)) == 2)
        expect(page.get_by_role("button", name="that were given up")).to_have_count(0)  # the table is drawn anew
        confirm(page, f"Remove {receiver.url}", "Remove http")
        expect(page.locator("#webhooks")).to_have_text("Nobody is told yet.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_for_everyone_and_fit_on_a_phone(served, people, url, scheme):
    served.agent.observe([1, 2, 3], id="one", payload="a text " * 50)
    page = people("admin", viewport={"width": 360, "height": 740}, color_scheme=scheme)
    found = {}
    views = {
        "/agents/default/tickets?ticket=one": "#ticket:not([hidden])",
        "/agents/default/settings": "#reading li",
        "/admin/people": "#tokens td",
        "/admin/agents": "#agents td",
    }
    for view, ready in views.items():
        page.goto(url + view)
        page.wait_for_selector(ready)
        if view == "/admin/agents":
            page.get_by_label("Classes").fill("ham\nspam\nnews")
            page.wait_for_selector("#cost-table input")
        found[view] = violations(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
    assert found == {view: [] for view in views}


def test_pages_of_the_service_are_for_its_admins(served, people, url):
    served.tokens["limited"] = served.service.tokens.create("limited", "admin", agents=["default"])[1]
    for role in ("expert", "limited"):
        page = people(role)
        answers = [page.request.get(f"{url}/admin/{view}").status for view in ("agents", "people")]
        assert answers == [403, 403]
    eventually(page, lambda: page.get_by_role("link", name="Tickets").is_visible())
    assert page.locator(".agents").count() == 0
