"""A browser, and people who sign in with it."""

from __future__ import annotations

import pytest

from tests.live.service.browsing import SECONDS, launch, rest


@pytest.fixture(scope="module")
def browser():
    """A browser for one file of tests: while it is open, its own event loop is in the way of others'."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def url(served):
    with served.on_a_socket() as url:
        yield url


@pytest.fixture
def people(browser, served, url):
    """Sign someone in; what a page complains about fails the test."""
    contexts, complaints = [], []

    def sign_in(role: str = "expert", **options):
        contexts.append(browser.new_context(**{"reduced_motion": "reduce", **options}))
        page = contexts[-1].new_page()
        page.set_default_timeout(1000 * SECONDS)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda told: complaints.append(told.text) if told.type == "error" else None)
        # By the route that the form of the sign-in page posts to, which has tests of its own: one page less to draw.
        contexts[-1].request.post(f"{url}/sign-in", form={"token": served.tokens[role]}, max_redirects=0)
        page.goto(url)
        page.wait_for_url("**/agents/default/**")
        rest(page)  # its question is on the page, and no one else's
        return page

    yield sign_in
    for context in contexts:
        context.close()
    expected = ("status of 409", "status of 422", "ERR_FAILED")  # refusals, which the page tells
    assert [c for c in complaints if not any(one in c for one in expected)] == []
