"""What a person sees of texts, and "none of these" for those who may add classes."""

from __future__ import annotations

import pytest

from tests.live.served import Served

pytest.importorskip("playwright")
from playwright.sync_api import expect

from tests.live.service.browsing import SIZES, needs_browser, press, violations

pytestmark = needs_browser
MAIL = "Dear bank,\n\nmy card was stolen.\n  - on Monday\n  - in Rome\n\nPlease block it!" + " It is urgent." * 300
HEBREW = "שלום, הכרטיס שלי נגנב ביום שני.\nOrder 4711\nאנא חסמו אותו."
MARGINS = """box => {
    const range = document.createRange(), edge = box.getBoundingClientRect();
    const at = (i) => {
        range.setStart(box.firstChild, i);
        range.setEnd(box.firstChild, i + 1);
        return range.getBoundingClientRect();
    };
    return [edge.right - at(0).right, at(box.textContent.indexOf("Order")).left - edge.left];
}"""
CODE = "def total(items):\n    s = 0\n    for item in items:\n        s += item.price\n    return s\n"


@pytest.fixture
def served(tmp_path):
    served = Served(str(tmp_path / "store"))
    served.service.agents.create("mails", classes=["card", "money"], encoder="hashing", training="inline")
    return served


@pytest.mark.parametrize("size", SIZES)
def test_mails_other_scripts_and_code_are_shown_well(served, people, url, size, tmp_path):
    agent = served.service.agents.get("mails")
    for text in (MAIL, HEBREW, CODE):
        agent.observe(text)
    page = people(viewport=SIZES[size])
    page.goto(f"{url}/agents/mails/answer")
    text = page.locator("#shown .text")
    for shown in (MAIL, HEBREW, CODE):
        expect(text).to_have_text(shown.strip())
        page.screenshot(path=tmp_path / f"{shown[:3]}.png")
        assert page.locator("#shown").evaluate("box => box.scrollWidth - box.clientWidth") == 0
        style = text.evaluate("box => { const s = getComputedStyle(box); return [s.whiteSpace, s.fontFamily]; }")
        assert style[0] in ("pre-wrap", "preserve")
        assert ("monospace" in style[1]) == (shown is CODE)
        if shown is HEBREW:  # its first line begins at the right, the number in Latin letters at the left
            assert max(text.evaluate(MARGINS)) < 2
        press(page, "1")
    expect(page.get_by_role("heading", name="Nothing to answer")).to_be_visible()


def test_code_between_fences_is_code_and_the_mail_around_it_is_not(served, people, url):
    agent = served.service.agents.get("mails")
    agent.observe("It fails:\n\n```python\nx = <b>1</b>\n```\n\nWhy is that? And ``` alone begins no code.")
    page = people()
    page.goto(f"{url}/agents/mails/answer")
    text = page.locator("#shown .text")
    expect(text).to_have_text(
        ["It fails:", "```python x = <b>1</b> ```", "Why is that? And ``` alone begins no code."], use_inner_text=True
    )
    fonts = text.evaluate_all("boxes => boxes.map((box) => getComputedStyle(box).fontFamily)")
    assert ["monospace" in font for font in fonts] == [False, True, False]


def test_none_of_these_adds_a_class_with_the_answer(served, people, url, tmp_path):
    agent = served.service.agents.get("mails")
    for text in ("my card is lost", "close my account", "where is my money"):
        agent.observe(text)
    page = people()
    page.goto(f"{url}/agents/mails/answer")
    expect(page.get_by_role("heading", name="Which class is it?")).to_be_visible()
    expect(page.get_by_label("None of these:")).to_be_hidden()
    agent.allow_new_classes(["*"])
    page.reload()
    expect(page.get_by_label("None of these:")).to_be_visible()
    press(page, "1")
    expect(page.locator("#shown .text")).to_have_text("close my account")
    field = page.get_by_label("None of these:")
    field.fill("closing")
    page.screenshot(path=tmp_path / "none of these.png")
    assert violations(page) == []
    field.press("Enter")
    expect(page.locator("#last-text")).to_have_text("You said closing, which is a class now.")
    expect(page.locator("#choices").get_by_role("button", name="closing")).to_be_visible()
    assert [entry.label for entry in agent.history()] == ["card", "closing", None]
    assert agent.classes == ("card", "money", "closing")
