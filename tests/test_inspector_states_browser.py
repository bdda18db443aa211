"""The inspector in a real Chromium where there is little to show: empty forms, mistakes, bare
runs, narrow windows.
"""

from __future__ import annotations

from tests.helpers.browsing import BROWSER, FIXTURES, RUN, choose_run, tab

address, browser, page, root, seen, shots = FIXTURES
pytestmark = BROWSER


def test_an_empty_form_and_a_mistake_leave_nothing_open(page, shots):
    page.get_by_label("Paste").check()
    page.get_by_text("Fill in the question, the answer and the sources").wait_for()
    assert not page.locator("#inspect-view .tv").is_visible()
    page.screenshot(path=shots / "paste-empty.png", full_page=True)
    page.get_by_label("Answer", exact=True).fill("The Osk is a river.")
    page.get_by_label("No judge: only find the claims").check()
    page.get_by_role("button", name="Score").click()
    page.wait_for_function(
        "document.querySelector('#inspect-view .tv-text').textContent.startsWith('The Osk is')"
    )
    page.get_by_label("Answer", exact=True).fill(" ")
    page.get_by_role("button", name="Score").click()
    page.wait_for_selector("[role=alert]:visible")
    assert (
        not page.locator("#inspect-view .tv").is_visible()
        and not page.get_by_role("button", name="Save as HTML").count()
    )
    for name in ("Compare", "What if"):
        tab(page, name)
        page.locator(f"#{name.lower().replace(' ', '-')}-view").get_by_text(
            "No answer is open"
        ).wait_for()
        assert not page.locator(".tv-text:visible").count()


def test_a_run_without_steps_or_rollouts_has_no_slider(page, shots):
    tab(page, "Runs")
    page.wait_for_selector(".wb-run-table tbody tr")
    slider = page.get_by_label("step", exact=True)
    choose_run(page, RUN)
    slider.wait_for()
    choose_run(page, "scored")
    page.get_by_text("This run has no training steps: its 4 rows are listed below.").wait_for()
    assert page.locator(".wb-listed tr.wb-open").count() == 4 and not slider.count()
    page.get_by_label("Sort by").select_option("disagreement")
    page.get_by_text("the value is an answer's highest rank less its lowest").wait_for()
    outcomes = page.locator(".wb-listed td.tv-outcome").all_inner_texts()
    assert sorted(" ".join(text.split()) for text in outcomes) == [
        "! failed the judge gave no answer (stage: judge, timeout)",
        "– no gold answer",
        "– not judged",
        "✓ correct",
    ]
    page.screenshot(path=shots / "runs-without-steps.png", full_page=True)
    choose_run(page, "empty")
    page.get_by_text("This run has no rollouts yet").wait_for()
    assert not page.locator("#runs-view .wb-listed tr").count() and not slider.count()
    choose_run(page, RUN)
    page.wait_for_selector(".wb-chart")
    slider.wait_for()
