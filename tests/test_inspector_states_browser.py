"""The inspector in a real Chromium where there is little to show: empty forms, mistakes, bare
runs, narrow windows.
"""

from __future__ import annotations

import re

import pytest

from tests.helpers.browsing import BROWSER, FIXTURES, ROOT, RUN, choose_run, tab, token
from workbench.recipes import METHODS

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


@pytest.mark.skipif(
    not (ROOT / "data" / "verifier").is_dir(), reason="the shipped verifier is not in this checkout"
)
def test_the_worked_example_is_judged_by_the_local_verifier(page, shots):
    page.get_by_label("Paste").check()
    page.get_by_role("button", name="Show the worked example").click()
    page.locator("#inspect-view .tv-facts .tv-tag").filter(has_text="Worked example").wait_for(
        timeout=60000
    )
    assert (
        page.get_by_label("Answer", exact=True)
        .input_value()
        .startswith("The Eiffel Tower stands in Paris.")
    )
    page.wait_for_function(
        "document.querySelector('#inspect-view .tv-text').textContent.startsWith('The Eiffel"
        " Tower')"
    )
    rows = page.locator("#inspect-view tr[data-claim]")
    assert rows.count() == 4
    sure = [
        float(text.removeprefix("P(true) ")) for text in rows.locator(".tv-p").all_inner_texts()
    ]
    assert sure[1] < sure[2] and sure[3] < sure[2]  # one is contradicted and one left open
    assert all(text.startswith("Source ") for text in rows.locator("summary b").all_inner_texts())
    paid = [float(text.replace("−", "-")) for text in rows.locator("td.tv-now").all_inner_texts()]
    assert paid[1] < 0 < paid[2]
    assert "tv-neg" in token(page, "1925").get_attribute("class") and "tv-pos" in token(
        page, "year"
    ).get_attribute("class")
    page.screenshot(path=shots / "paste.png", full_page=True)
    page.get_by_role("button", name="Clear the form").click()
    page.get_by_text("Nothing is scored yet").wait_for()
    assert (
        page.get_by_label("Answer", exact=True).input_value() == ""
        and not page.locator("#inspect-view .tv").is_visible()
    )


def test_every_label_is_in_words(page):
    for method in METHODS:
        page.locator(f"#inspect-view [data-method={method}]").click()
        told = page.locator("#inspect-view").inner_text()
        assert not re.search(r"\w_\w|stood|outcome: answer|\bp \d", told), method
        assert (
            page.locator(
                "#inspect-view .tv-pay :is(.tv-bar-row, .tv-also-row):not([title])"
            ).count()
            == 0
        )
    assert page.locator("#inspect-view .tv-also-row, #inspect-view .tv-bar-row").count() == 3
    page.locator("#inspect-view [data-method=forag]").click()
    assert page.locator("#inspect-view .tv-also-row").all_inner_texts()[0].split() == [
        "sentences",
        "scored",
        "2",
    ]
    glossary = page.locator("#inspect-view .tv-glossary").inner_text()
    assert "wrong: the evidence contradicts it." in glossary and "P(true):" in glossary


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


FONTS = {
    "its own": "",
    "wide": "'DejaVu Sans', Verdana",
    "narrow": "'Liberation Sans Narrow'",
    "serif": "'Liberation Serif', Georgia",
}
FITS = """() => [document.documentElement.scrollWidth <= innerWidth,
    document.querySelector(".wb-controls").getBoundingClientRect().bottom <= innerHeight,
    [...document.querySelectorAll("#what-if-view :is(.tv-table-frame, .wb-controls)")]
        .every((e) => e.scrollWidth <= e.clientWidth + 1)]"""
TABS = {
    "Inspect": "#inspect-view .tv-big",
    "Runs": ".wb-run-table tbody tr",
    "What if": "#wb-rlfh-min_coverage",
}


@pytest.mark.parametrize("size", [16, 24])
@pytest.mark.parametrize("font", FONTS)
def test_the_page_fits_with_any_usual_font_and_a_large_default_size(browser, address, font, size):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(15000)
    page.goto(address)
    family = f"* {{ font-family: {FONTS[font]} !important; }}" if FONTS[font] else ""
    page.add_style_tag(content=f"html {{ font-size: {size}px; }} {family}")
    page.wait_for_selector("#inspect-view .tv-t")
    for name, selector in TABS.items():
        tab(page, name)
        page.wait_for_selector(selector)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    page.wait_for_timeout(200)
    assert page.evaluate(FITS) == [True, True, True]
    page.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1024, 768)])
def test_what_if_fits_the_window(browser, address, shots, width, height):
    page = browser.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(15000)
    page.goto(address)
    page.wait_for_selector("#inspect-view .tv-t")
    tab(page, "What if")
    page.wait_for_selector("#wb-rlfh-min_coverage")
    panel = page.locator(".wb-controls").bounding_box()
    assert panel["y"] + panel["height"] <= height
    # it may scroll down, in a large font
    assert page.locator(".wb-controls").evaluate("e => e.scrollWidth <= e.clientWidth")
    cut = (
        "[...document.querySelectorAll('#what-if-view .tv-table-frame')].filter(e => e.scrollWidth"
        " > e.clientWidth).length"
    )
    assert page.evaluate(cut) == 0 and page.evaluate(
        "document.documentElement.scrollWidth <= innerWidth"
    )
    page.screenshot(path=shots / f"what-if-{width}.png", full_page=True)
    page.close()


def test_an_imported_run_has_curves_and_its_logged_numbers_are_no_methods(page, shots):
    tab(page, "Runs")
    page.wait_for_selector(".wb-run-table tbody tr")
    choose_run(page, "logged")
    page.get_by_text("Logged, accuracy").wait_for()
    assert page.locator(".wb-chart figcaption > span:first-child").all_inner_texts() == [
        "Reward",
        "Spread of the reward in a group",
        "Logged, accuracy",
        "Logged, format",
        "Logged, completion length",
        "Length, tokens",
        "Rows not scored",
    ]
    assert (
        page.get_by_label("Sort by").locator("option").first.inner_text()
        == "Logged reward, lowest first"
    )
    heads = page.locator("#runs-view .wb-listed th").all_inner_texts()
    logged = [f"{name}, logged by TRL" for name in ("accuracy", "format", "completion length")]
    assert heads == ["Question and answer", "Outcome", *logged]
    assert "KLCF n/a:" in page.locator(".wb-listed").inner_text()
    page.screenshot(path=shots / "runs-logged.png", full_page=True)
    page.locator(".wb-listed tr.wb-open").last.click()
    page.wait_for_function(
        "document.querySelector('#inspect-view .tv-facts').textContent.includes('accuracy, logged"
        " by TRL: 2')"
    )
    values = page.locator("#inspect-view .tv-tab[data-method] .tv-tab-value").all_inner_texts()
    assert values == ["n/a"] * 5
