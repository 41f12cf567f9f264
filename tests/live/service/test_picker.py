"""The page among very many classes: type-ahead, groups, descriptions, by keyboard alone, on a phone."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import expect

from tests.live.service.browsing import SIZES, eventually, needs_browser, press, rest, violations

pytestmark = needs_browser
TOPICS = ["Account", "Banking", "Cards", "Cash", "Credit", "Delivery", "Fees", "Foreign", "Loans", "Savings"]
MATTERS = ["balance", "blocked", "charged twice", "lost", "not_recognised", "pending", "refund", "stolen", "transfer"]
BANKING = [f"{topic}/{matter}" for topic in TOPICS for matter in MATTERS]
SINGLE = [f"matter {i} of its own" for i in range(58)] + ["n/a", "Überweisung"]
CLASSES = [*BANKING, *SINGLE]
DESCRIPTIONS = {"Cards/lost": "The customer cannot find the card.", "Cards/stolen": "Somebody else has the card."}


def many_classes(served, classes, **settings):
    """An agent of the name `many` with these classes, which asks about everything."""
    told = {"n_features": 3, "strategy": "always_ask", "training": "inline", **settings}
    return served.service.agents.create("many", classes=classes, **told)


def open_page(people, **options):
    page = people(**options)
    page.goto(page.url.replace("default", "many"))
    expect(page.locator("#typed")).to_be_visible()
    return page


def options(page):
    return page.locator("#options").get_by_role("option")


def type_in(page, text):
    """Type once the next question is there; what is typed before it is no answer to it."""
    rest(page)
    page.keyboard.type(text)


def parts_out_of_view(page):
    """Which of what a person needs lies outside the window, or is too small to be of use."""
    return page.evaluate("""() => ["shown", "typed", "options", "unknown", "skip"].filter((id) => {
        const box = document.getElementById(id).getBoundingClientRect();
        const isInside = box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
        return !isInside || box.height < 30;
    })""")


def test_typing_filters_and_enter_answers_by_keyboard_alone(served, people):
    agent = many_classes(served, CLASSES, descriptions=DESCRIPTIONS)
    for i in range(4):
        agent.observe([i, 2, 3], payload="I cannot find my card since yesterday.")
    page = open_page(people)
    expect(page.locator("#typed")).to_be_focused()
    expect(page.locator("#found")).to_have_text("150 classes")
    press(page, "Enter")  # nothing is chosen yet
    assert agent.stats().answered == 0
    type_in(page, "lost ca")
    expect(options(page)).to_have_text(["Cards/lost", "Cash/lost"])
    expect(page.locator("#found")).to_have_text("2 of 150 classes")
    expect(page.locator("#described")).to_have_text("The customer cannot find the card.")
    assert violations(page) == []
    press(page, "ArrowDown")
    press(page, "Enter")
    expect(page.locator("#last-text")).to_contain_text("You said Cash/lost.")
    expect(page.locator("#typed")).to_have_value("")
    recent = page.get_by_role("group", name="Recent")
    expect(recent.get_by_role("option")).to_have_text(["Cash/lost"])
    press(page, "Control+z")
    expect(page.locator("#news")).to_have_text("Taken back. The question is open again.")
    type_in(page, "uberw")
    expect(options(page)).to_have_text(["Überweisung"])
    press(page, "Escape")
    expect(page.locator("#found")).to_have_text("150 classes")
    type_in(page, "somebody")  # which only a description says
    press(page, "Enter")
    expect(page.locator("#last-text")).to_contain_text("You said Cards/stolen.")
    type_in(page, "zebra")
    expect(page.locator("#found")).to_have_text("No class has “zebra” in it")
    press(page, "Enter")
    press(page, "Tab")
    expect(page.locator("#unknown")).to_be_focused()
    press(page, "Tab")
    press(page, "Enter")
    expect(page.locator("#last-text")).to_have_text("Skipped: someone else will be asked.")
    assert [(e.label, e.status) for e in agent.history()] == [("Cards/stolen", "answered"), *[(None, "open")] * 3]


def test_classes_come_in_groups_if_their_names_say_so(served, people):
    agent = many_classes(served, CLASSES, descriptions=DESCRIPTIONS)
    agent.observe([1, 2, 3])
    page = open_page(people)
    page.locator("#ask").focus()
    type_in(page, "c")  # a letter goes to the field from wherever it is typed
    expect(page.locator("#typed")).to_have_value("c")
    press(page, "Escape")
    groups = page.locator("#options").get_by_role("group")
    assert groups.evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))") == [*TOPICS, "Others"]
    cards = page.get_by_role("group", name="Cards")
    assert cards.get_by_role("option").all_inner_texts() == MATTERS
    assert cards.get_by_role("option", name="lost").get_attribute("title") == DESCRIPTIONS["Cards/lost"]
    assert page.get_by_role("group", name="Others").get_by_role("option").all_inner_texts() == SINGLE
    cards.get_by_role("option", name="lost").click()
    expect(page.locator("#last-text")).to_contain_text("You said Cards/lost.")


def test_the_likely_classes_come_first_and_the_reason_is_for_people(served, people):
    classes = [f"class {i:02}" for i in range(40)]
    agent = many_classes(served, classes, n_features=2, strategy="sparing", audit_rate=1.0)
    agent.teach([[i % 2, 1.0] for i in range(80)], [classes[20 + i % 2] for i in range(80)])
    agent.observe([0.0, 1.0])
    page = open_page(people)
    likely = page.get_by_role("group", name="Likely").get_by_role("option")
    expect(likely.first).to_be_visible()
    assert "class 20" in likely.all_inner_texts()
    assert likely.all_inner_texts() == sorted(likely.all_inner_texts())
    expect(page.locator("#why")).to_have_text(re.compile("best guess|guesses are close"))
    page.get_by_text("The numbers").click()
    expect(page.locator("#numbers")).to_contain_text("risk")
    assert violations(page) == []


@pytest.mark.parametrize("height", [740, 400])
def test_a_thousand_classes_on_a_phone_also_over_its_keyboard(served, people, height):
    agent = many_classes(served, [f"a_class_with_the_number_{i}" for i in range(1000)])
    for i in range(2):
        agent.observe([i, 2, 3], payload="word " * 400)
    page = open_page(people, viewport={"width": 360, "height": height}, has_touch=True, is_mobile=True)
    expect(options(page)).to_have_count(1000)
    assert parts_out_of_view(page) == []
    page.locator("#typed").tap()
    type_in(page, "765")
    expect(options(page)).to_have_text(["a_class_with_the_number_765"])
    assert options(page).bounding_box()["height"] >= 44
    assert violations(page) == []
    options(page).tap()
    expect(page.locator("#last-text")).to_contain_text("You said a_class_with_the_number_765.")
    expect(options(page)).to_have_count(1001)  # one of them also as a recent one
    assert parts_out_of_view(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert agent.history()[0].label == "a_class_with_the_number_765"


@pytest.mark.parametrize("height", [740, 400])
def test_a_class_that_nobody_has_named_on_a_phone(served, people, height):
    agent = many_classes(served, CLASSES, strategy="sparing")
    agent.allow_new_classes(["*"])
    agent.observe([1, 2, 3], payload="word " * 40)
    page = open_page(people, viewport={"width": 360, "height": height}, has_touch=True, is_mobile=True)
    assert parts_out_of_view(page) == []
    assert overlapping(page) == []
    expect(page.locator("#new-class")).to_be_hidden()
    page.locator("#typed").tap()
    type_in(page, "a matter of taste")
    expect(options(page)).to_have_count(0)
    expect(page.locator("#new-class")).to_be_visible()
    assert overlapping(page) == []
    page.get_by_label("None of these").fill("taste")
    page.get_by_role("button", name="Add this class").tap()
    expect(page.locator("#last-text")).to_contain_text("You said taste, which is a class now.")
    assert agent.history()[0].label == "taste"


def overlapping(page):
    """Which of the parts of a reply that are seen lie over each other."""
    return page.evaluate("""() => {
        const parts = ["typed", "options", "new-class", "unknown", "skip"].map((id) => document.getElementById(id));
        const seen = parts.filter((part) => part.getClientRects().length > 0);
        return seen.flatMap((one, i) => seen.slice(i + 1).filter((other) => {
            const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
            return a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
        }).map((other) => `${one.id} and ${other.id}`));
    }""")


@pytest.mark.parametrize("size", SIZES)
def test_no_word_is_broken(served, people, size):
    words = ["disappointment", "embarrassment", "anticipation", "joy", "card_payment_wrong_exchange_rate", "a b", "c"]
    many_classes(served, words).observe([1, 2, 3])
    page = people(viewport=SIZES[size])
    page.goto(page.url.replace("default", "many"))
    expect(page.locator("#choices button")).to_have_count(7)
    broken = page.evaluate("""() => [...document.querySelectorAll("#choices span")].flatMap((name) =>
        [...name.childNodes].filter((part) => part.nodeType === Node.TEXT_NODE).filter((part) => {
            const range = document.createRange();
            range.selectNodeContents(part);
            return !part.data.includes(" ") && range.getClientRects().length > 1;
        }).map((part) => part.data))""")
    assert broken == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]


def test_descriptions_of_few_classes(served, people, url):
    served.agent.observe([1, 2, 3])
    served.agent.describe_classes({"cat": "It purrs."})
    page = people("admin")
    page.goto(f"{url}/agents/default/answer")
    cat = page.locator("#choices").get_by_role("button", name="cat")
    eventually(page, lambda: cat.get_attribute("title") == "It purrs.")
