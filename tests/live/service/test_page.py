"""The pages in a browser: by keyboard and by mouse, by two people at once, on a phone, for a screen reader."""

from __future__ import annotations

import re

import pytest

from sparingly.strategies.forecast import Forecast
from tests.live.served import Served, picture

pytest.importorskip("playwright")
from playwright.sync_api import expect

from tests.live.service.browsing import SIZES, choice, eventually, needs_browser, observe, press, rest, violations

pytestmark = needs_browser
SCRIPT = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture
def served(tmp_path):
    return Served(str(tmp_path / "store"))


def test_answering_by_mouse_by_key_and_back(served, people):
    first, second, third = observe(served, 3)
    page = people()
    expect(page.get_by_role("heading", name="Which class is it?")).to_be_visible()
    choice(page, "dog").click()
    expect(page.locator("#last-text")).to_contain_text("You said dog. The agent would have said")
    expect(page.locator("#today-answers")).to_have_text("1")
    expect(page.locator("#open")).to_have_text("2")
    press(page, "1")
    expect(page.locator("#today-answers")).to_have_text("2")
    assert [entry.label for entry in served.agent.history()] == ["dog", "cat", None]
    press(page, "u")
    expect(page.locator("#last")).to_be_hidden()
    assert [entry.status for entry in served.agent.history()] == ["answered", "open", "open"]
    press(page, "2")
    expect(page.locator("#last-text")).to_contain_text("You said dog")
    press(page, "s")
    expect(page.locator("#last-text")).to_have_text("Skipped: someone else will be asked.")
    expect(page.get_by_role("heading", name="Nothing for you just now")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Which class is it?")).to_be_visible()
    press(page, "d")
    expect(page.get_by_role("heading", name="Nothing to answer")).to_be_visible()
    history = served.agent.history()
    assert [(e.id, e.label, e.status) for e in history] == [
        (first, "dog", "answered"),
        (second, "dog", "answered"),
        (third, None, "unknown"),
    ]
    assert {entry.expert for entry in history} == {"expert"}


def test_a_key_pressed_while_the_page_is_busy(served, people):
    """Undo waits for its turn, however long the service takes; an answer is dropped, for no one has seen what to."""
    first, second = observe(served, 2)
    page = people()
    expect(choice(page, "dog")).to_be_visible()
    held = []
    page.route("**/answer", lambda route: held.append(route) if route.request.method == "POST" else route.continue_())
    press(page, "2")
    expect(page.locator("body")).to_have_class(re.compile("busy"))
    page.keyboard.press("1")
    page.keyboard.press("u")
    held[0].continue_()
    expect(page.locator("#news")).to_have_text("Taken back. The question is open again.")
    assert [(entry.id, entry.status) for entry in served.agent.history()] == [(first, "open"), (second, "open")]
    expect(page.locator("#shown td").first).to_have_text("0")
    assert len(held) == 1


def test_a_reply_given_while_the_page_looks_for_news_is_not_lost(served, people):
    (ticket,) = observe(served)
    page = people()
    held = []
    page.route("**/questions", lambda route: held.append(route), times=1)
    page.evaluate("void inTurn(next)")
    eventually(page, lambda: held)
    page.keyboard.press("2")
    held[0].continue_()
    expect(page.locator("#today-answers")).to_have_text("1")
    assert served.agent.ticket(ticket).label == "dog"


def test_any_own_answer_can_be_taken_back(served, people):
    first, _, third = observe(served, 3)
    served.agent.answer(third, "cat", expert="somebody")
    page = people()
    press(page, "1")
    expect(page.locator("#today-answers")).to_have_text("1")
    page.get_by_text("Your last answers").click()
    given = page.locator("#answers li")
    expect(given).to_have_count(1)
    press(page, "2")
    expect(given).to_have_count(2)
    assert violations(page) == []
    page.get_by_role("button", name=f"Take back cat for {first}").click()
    expect(given).to_have_count(1)
    expect(page.locator("#shown td").first).to_have_text("0")
    assert [entry.status for entry in served.agent.history()] == ["open", "answered", "answered"]
    expect(page.locator("#last-text")).to_contain_text("You said dog")  # which can still be undone


def test_shortcuts_leave_the_browser_its_own_and_can_be_turned_off(served, people):
    observe(served, 2)
    page = people()
    expect(choice(page, "cat")).to_be_visible()
    press(page, "Control+1")
    press(page, "Alt+2")
    press(page, "9")
    page.get_by_label("Keyboard shortcuts").uncheck()
    press(page, "1")
    assert served.agent.stats().answered == 0
    page.get_by_label("Keyboard shortcuts").check()
    press(page, "1")
    expect(page.locator("#today-answers")).to_have_text("1")


def test_a_question_comes_by_itself_and_the_guess_only_after(served, people):
    page = people()
    expect(page.get_by_role("heading", name="Nothing to answer")).to_be_visible()
    observe(served)
    expect(choice(page, "cat")).to_be_visible()
    expect(page.locator("#hint")).to_be_hidden()
    expect(page.locator("#why")).to_have_text("It asks about everything.")


def test_a_question_that_comes_while_the_page_looks_for_one_is_not_missed(served, people):
    """The page has been told that there is none, but has not heard it yet."""
    page = people()
    expect(page.get_by_role("heading", name="Nothing to answer")).to_be_visible()
    held = []
    page.route("**/questions", lambda route: held.append((route, route.fetch())), times=1)
    page.evaluate("for (let timer = 1; timer < 99; timer += 1) clearInterval(timer)")  # it also looks now and then
    page.evaluate("void inTurn(next)")
    eventually(page, lambda: held)
    observe(served)
    expect(page.locator("#open")).to_have_text("1")
    route, none = held[0]
    route.fulfill(response=none)
    expect(choice(page, "cat")).to_be_visible()


def test_two_people_never_have_the_same_question(served, people):
    observe(served, 4, payload=None)
    served.tokens["second"] = served.service.tokens.create("second", "expert")[1]
    one, two = people("expert"), people("second")
    seen = []
    for page in (one, two, one, two):
        expect(choice(page, "cat")).to_be_visible()
        rest(page)
        seen.append(page.locator("#shown td").first.inner_text())
        before = page.locator("#today-answers").inner_text()
        press(page, "1")
        expect(page.locator("#today-answers")).not_to_have_text(before)
    assert sorted(seen) == ["0", "1", "2", "3"]
    assert [entry.status for entry in served.agent.history()] == ["answered"] * 4


def test_a_payload_with_script_stays_text(served, people):
    served.agent.observe([1, 2, 3], payload=SCRIPT)
    served.agent.observe([1, 2, 4], payload={SCRIPT: SCRIPT}, id="<b>bold</b>")
    page = people()
    expect(page.locator("#shown .text")).to_have_text(SCRIPT)
    press(page, "1")
    expect(page.locator("#shown td")).to_have_text(SCRIPT)
    assert page.locator("#shown img, #shown script").count() == 0
    dashboard = people("admin")
    expect(dashboard.locator("#recent")).to_contain_text("<b>bold</b>")
    assert "owned" not in page.title() + dashboard.title()


INSIDE = """([box, part]) => {
    part.scrollIntoView({block: "nearest"});
    const [outer, inner] = [box.getBoundingClientRect(), part.getBoundingClientRect()];
    const fits = inner.left >= outer.left && inner.right <= outer.right;
    return fits && inner.top >= outer.top && inner.bottom <= outer.bottom;
}"""


def can_be_seen(page, part):
    """Whether a part of what is shown can be scrolled into the box, all of it."""
    return page.evaluate(INSIDE, [page.locator("#shown").element_handle(), part.element_handle()])


@pytest.mark.parametrize("size", SIZES)
def test_every_row_of_a_long_table_can_be_read(served, people, size):
    fields = {f"field {i}": i for i in range(300)}
    long = {"n" * 60: "v" * 120, "notes": "one\ntwo\n\nfour", "nested": {"a": [1]}, "nothing": None}
    served.agent.observe([1, 2, 3], payload=long | fields)
    page = people(viewport=SIZES[size])
    rows = page.locator("#shown tr")
    expect(rows).to_have_count(40)
    assert page.locator("#shown").evaluate("box => box.scrollTop") == 0
    assert can_be_seen(page, rows.last)
    assert can_be_seen(page, rows.first)
    page.get_by_role("button", name="Show all 304 fields").click()
    expect(rows).to_have_count(304)
    expect(page.get_by_role("button", name="Show all")).to_be_hidden()
    assert all(can_be_seen(page, rows.nth(place)) for place in (0, 1, 40, 303))
    assert page.locator("#shown").evaluate("box => box.scrollWidth - box.clientWidth") == 0
    assert page.locator("#shown td").nth(2).inner_text() == '{"a":[1]}'
    styles = page.locator("#shown td").nth(1).evaluate("cell => [getComputedStyle(cell).textAlign, cell.innerText]")
    assert styles == ["left", "one\ntwo\n\nfour"]


@pytest.mark.parametrize("size", SIZES)
def test_a_long_text_begins_at_its_beginning(served, people, size):
    served.agent.observe([1, 2, 3], payload="\n".join(f"line {i}" for i in range(200)) + "x" * 3000)
    page = people(viewport=SIZES[size])
    expect(page.locator("#shown .text")).to_be_visible()
    top = page.evaluate("document.querySelector('.text').getBoundingClientRect().top")
    assert top >= page.locator("#shown").bounding_box()["y"]
    assert page.locator("#shown").evaluate("box => box.scrollWidth - box.clientWidth") == 0
    page.locator("#shown").focus()
    page.keyboard.press("End")
    left = "box => box.scrollHeight - box.clientHeight - box.scrollTop"
    eventually(page, lambda: page.locator("#shown").evaluate(left) < 2)


def test_very_many_numbers_are_opened_in_steps(served, people):
    agent = served.service.agents.create(
        "wide", classes=["cat", "dog"], n_features=5000, strategy="always_ask", training="inline"
    )
    agent.observe(list(range(5000)))
    page = people()
    page.goto(page.url.replace("default", "wide"))
    for name, count in (("2,000 more of 5,000", 2040), ("2,000 more of 5,000", 4040), ("all 5,000", 5000)):
        page.get_by_role("button", name=f"Show {name} fields").click()
        expect(page.locator("#shown tr")).to_have_count(count)
    assert can_be_seen(page, page.locator("#shown tr").last)


def test_an_image_is_shown(served, people):
    served.agent.observe([1, 2, 3], payload=picture())
    page = people()
    image = page.get_by_alt_text("The image to classify")
    expect(image).to_be_visible()
    expect(image).to_have_js_property("naturalWidth", 24)


def test_the_dashboard_moves(served, people):
    page = people("admin")
    expect(page.locator("#questions")).to_have_text("0")
    expect(page.locator("#live")).to_have_text("live")
    (ticket,) = observe(served)
    expect(page.locator("#questions")).to_have_text("1")
    expect(page.locator("#waiting")).to_contain_text(ticket)
    expect(page.locator("#recent")).to_contain_text("it asks about everything")
    served.agent.questions("expert")
    served.agent.answer(ticket, "dog", expert="expert")
    expect(page.locator("#experts")).to_contain_text("expert")
    expect(page.locator("#cost")).to_have_text("1")
    expect(page.locator("#chart-cost svg path.line")).to_have_count(3)


def test_before_the_first_observation_the_pages_say_so_and_what_to_do(served, people, url):
    page = people("admin")
    expect(page.locator("#start pre")).to_contain_text(f"curl {url}/api/agents/default/observations")
    page.get_by_role("link", name="Answer").click()
    expect(page.locator("#idle-text")).to_contain_text("Nothing has been observed yet")
    asked = observe(served)
    expect(choice(page, "cat")).to_be_visible()
    served.agent.withdraw(*asked)
    expect(page.locator("#idle-text")).to_contain_text("sure enough for now")
    page.get_by_role("link", name="Dashboard").click()
    expect(page.locator("#recent")).to_contain_text("withdrawn")
    expect(page.locator("#start")).to_be_hidden()


def test_a_lost_lease_is_told_and_the_next_question_comes(served, people):
    first, _ = observe(served, 2)
    page = people()
    expect(choice(page, "cat")).to_be_visible()
    served.agent.withdraw(first)
    press(page, "1")
    expect(page.get_by_role("alert")).to_contain_text("was withdrawn")
    expect(page.locator("#shown td").first).to_have_text("1")


def test_a_refused_answer_stays_and_can_be_sent_again(served, people):
    first, second = observe(served, 2)
    page = people()
    expect(choice(page, "dog")).to_be_visible()

    def lose_the_lease(route):
        """While the answer is on its way, so that the page cannot notice before."""
        served.agent.release(first, expert="expert")
        assert served.agent.questions("other")[0].id == first
        route.continue_()

    page.route("**/api/agents/default/answer", lose_the_lease, times=1)
    press(page, "2")
    told = page.locator("#refused .refusal")
    refusal = f"Your answer “dog” to question {first} was not taken: ticket '{first}' is leased to other."
    expect(told.locator("p")).to_have_text(refusal)
    expect(page.locator("#shown td").first).to_have_text("1")
    assert violations(page) == []
    for count in (3, 4):
        observe(served)
        expect(page.locator("#open")).to_have_text(str(count))
    press(page, "1")
    expect(page.locator("#today-answers")).to_have_text("1")
    expect(told.locator("p")).to_have_text(refusal)
    with page.expect_response("**/api/agents/default/answer") as reply:
        told.get_by_role("button", name="Send it again").click()
    assert reply.value.status == 409
    rest(page)
    expect(told.locator("p")).to_have_text(refusal)
    served.agent.release(first, expert="other")
    told.get_by_role("button", name="Send it again").click()
    expect(told).to_have_count(0)
    expect(page.locator("#today-answers")).to_have_text("2")
    assert [(e.id, e.label) for e in served.agent.history()[:2]] == [(first, "dog"), (second, "cat")]


def test_an_answer_that_could_not_be_sent_stays_and_can_be_sent_again_or_discarded(served, people):
    first, second = observe(served, 2)
    page = people()
    expect(choice(page, "dog")).to_be_visible()
    page.route("**/api/agents/default/answer", lambda route: route.abort(), times=2)
    told = page.locator("#refused .refusal")
    press(page, "2")
    expect(told).to_contain_text(f"Your answer “dog” to question {first} was not taken: the service cannot be reached.")
    expect(page.locator("#shown td").first).to_have_text("0")
    observe(served)
    expect(page.locator("#open")).to_have_text("3")
    told.get_by_role("button", name="Discard it").click()
    expect(told).to_have_count(0)
    press(page, "2")
    told.get_by_role("button", name="Send it again").click()
    expect(told).to_have_count(0)
    expect(page.locator("#today-answers")).to_have_text("1")
    assert served.agent.ticket(first).label == "dog"
    assert served.agent.ticket(second).status == "open"


def test_a_wrong_token_a_right_one_and_signing_out(served, url, browser):
    page = browser.new_page()
    page.goto(url)
    page.get_by_label("Token").fill("nonsense")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("This token is unknown or was revoked.")
    page.get_by_label("Token").fill(served.tokens["admin"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/agents/default/dashboard")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(f"{url}/agents/default/answer")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.close()


def test_everything_fits_on_a_phone(served, people):
    served.agent.observe([1, 2, 3], payload="word " * 400)
    page = people("admin", viewport={"width": 360, "height": 740}, has_touch=True)
    for view in ("dashboard", "answer"):
        page.goto(page.url.rsplit("/", 1)[0] + f"/{view}")
        expect(page.locator("#open")).to_have_text("1")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    box = choice(page, "dog").bounding_box()
    assert box["height"] >= 44
    choice(page, "dog").tap()
    expect(page.locator("#today-answers")).to_have_text("1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible_to_everyone(served, people, url, browser, scheme):
    observe(served, 2, payload="something to read")
    page = people("admin", color_scheme=scheme)
    found = {}
    for view, ready in (("dashboard", "#recent td"), ("answer", "#choices button")):
        page.goto(f"{url}/agents/default/{view}")
        page.wait_for_selector(ready)
        found[view] = violations(page)
    press(page, "1")
    expect(page.locator("#last")).to_be_visible()
    found["answered"] = violations(page)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("#token")
    found["sign-in"] = violations(page)
    assert found == {view: [] for view in found}


def test_large_numbers_beside_a_chart_are_not_cut_off(served, people, url):
    observe(served, 2)
    page = people("admin")
    page.goto(f"{url}/agents/default/dashboard")
    page.wait_for_selector("#chart-cost svg")
    least = page.evaluate("""() => {
        const series = [{ name: "one", className: "ours", points: [[0, 0], [100, 12345678]] }];
        chart(document.getElementById("chart-cost"), { series, format: money, summary: "costs" });
        return Math.min(...[...document.querySelectorAll("#chart-cost .tick")].map((tick) => tick.getBBox().x));
    }""")
    assert least >= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_when_one_can_stop_is_told_to_everyone(served, people, url, scheme, monkeypatch):
    """The card with what asking on would save, of a strategy that says so, on a phone."""
    forecast = Forecast(labels=200, slope=0.02, error=0.005, spread=0.001, risk=0.3, price=0.5, rounds=5000)
    monkeypatch.setattr(type(served.agent._runtime.decider.strategy), "forecast", lambda self: forecast)
    observe(served, 2, payload="something to read")
    page = people("admin", color_scheme=scheme, viewport=SIZES["phone"])
    page.goto(f"{url}/agents/default/dashboard")
    expect(page.locator("#next")).to_contain_text(
        "The next 100 questions cost 50 and save about 70.55 (46.32 to 94.77)"
    )
    expect(page.locator("#stopping")).to_be_hidden()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
