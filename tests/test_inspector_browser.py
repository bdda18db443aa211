"""The inspector in Chromium: every tab works, hostile text stays text, and no request leaves the
machine."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.helpers.browsing import (
    BROWSER,
    FIXTURES,
    PAYLOADS,
    RUN,
    Seen,
    big,
    choose_run,
    hostile,
    tab,
    token,
)
from tests.test_inspector import rollout
from workbench.inspector.token_view import page as html_page
from workbench.inspector.token_view import payload
from workbench.methods.bench import TINY_POLICY

address, browser, page, root, seen, shots = FIXTURES
pytestmark = BROWSER
MARKUP = "img, script, iframe, object, embed, form, link, base, meta, video, audio, svg, style"


def test_inspect_shows_tokens_claims_and_channels(page, shots):
    assert page.locator("#inspect-view .tv-t").count() == 41
    assert "".join(page.locator("#inspect-view .tv-t").all_inner_texts()).startswith(
        "<think>Both cross the river Osk."
    )
    assert big(page) == "+1.66"
    passages = page.locator("#inspect-view .tv-passages p")
    assert not passages.nth(1).is_visible()
    page.locator("#inspect-view .tv-passages summary").click()
    assert passages.nth(1).inner_text().startswith("[2] Osk tunnel The Osk tunnel, opened")
    assert "tv-neg" in token(page, "green").get_attribute("class") and "tv-pos" in token(
        page, "1934"
    ).get_attribute("class")
    assert "underline" in token(page, "green").evaluate(
        "e => getComputedStyle(e).textDecorationLine"
    )
    token(page, "green").hover()
    assert (
        page.locator("#inspect-view .tv-tip")
        .inner_text()
        .replace("\n", " ")
        .endswith("truthfulness −2.00 · claim 3")
    )
    page.locator("#inspect-view [data-method=truthrl]").click()
    assert big(page) == "+1.00" and "tv-neg" not in token(page, "green").get_attribute("class")
    page.locator("#inspect-view [data-channel=advantage]").click()
    assert page.locator("#inspect-view [data-channel=kl]").is_disabled()
    page.screenshot(path=shots / "inspect.png", full_page=True)


def test_claims_and_tokens_are_linked_both_ways(page, shots):
    rows = page.locator("#inspect-view tr[data-claim]")
    rows.nth(2).locator(".tv-id").click()
    chosen = page.locator("#inspect-view .tv-t.tv-on").all_inner_texts()
    assert "".join(chosen) == "the Tarven bridge was opened in 1934 and painted green".replace(
        "the", " the", 1
    )
    assert page.locator("#inspect-view .tv-t.tv-paid").all_inner_texts() == [" green"]
    assert rows.nth(2).locator("details").first.get_attribute("open") is not None
    assert rows.nth(2).locator("mark").all_inner_texts() == ["painted"]
    page.screenshot(path=shots / "linked.png", full_page=True)
    token(page, "1934").click()
    lit = [
        row.get_attribute("data-claim") for row in page.locator("#inspect-view tr.tv-row-on").all()
    ]
    assert lit == ["1", "2"]
    assert page.locator("#inspect-view .tv-claim-link").count() == 2
    page.locator("#inspect-view .tv-claim-link").first.click()
    assert page.locator("#inspect-view tr.tv-row-on").count() == 1


def test_what_if_by_hand(page, shots):
    """RLFH's reward is −0.25·α + 1.9051·β; the wrong claim has weight 1.0."""
    tab(page, "What if")
    view = "#what-if-view"
    page.wait_for_selector(f"{view} #wb-rlfh-alpha")
    assert big(page, view) == "+1.66"
    page.locator("#wb-rlfh-alpha").fill("2")
    page.wait_for_function(
        "document.querySelector('#what-if-view .tv-big').textContent === '+1.41'"
    )
    token(page, "green", view).hover()
    assert "−4.000" in page.locator(f"{view} .tv-tip").inner_text()
    page.get_by_label("verdict on claim 3").select_option("correct")
    # 2·2.75 + 1.9051
    page.wait_for_function(
        "document.querySelector('#what-if-view .tv-big').textContent === '+7.41'"
    )
    assert page.locator(f"{view} .wb-line-out").inner_text() == "--set rlfh.alpha=2"
    page.locator("#wb-rlfh-granularity").select_option("paragraph")
    page.wait_for_function("document.querySelectorAll('#what-if-view .tv-t.tv-pos').length === 1")
    with page.expect_download() as download:
        page.get_by_role("button", name="Config as JSON").click()
    kept = json.loads(Path(download.value.path()).read_text())
    assert (kept["method"], kept["alpha"], kept["granularity"]) == ("rlfh", 2, "paragraph")
    page.get_by_role("button", name="Save labels").click()
    page.get_by_text("saved in annotations/rollouts.jsonl").wait_for()
    page.locator(f"{view} [data-method=knowrl]").click()
    page.locator("#wb-knowrl-correct").fill("3")
    page.wait_for_function(
        "document.querySelector('#what-if-view .tv-big').textContent === '+5.00'"
    )
    page.screenshot(path=shots / "what-if.png", full_page=True)
    page.get_by_role("button", name="Reset all").click()
    page.wait_for_function(
        "document.querySelector('#what-if-view .tv-big').textContent === '+4.00'"
    )


def test_runs_show_curves_and_rollouts(page, shots):
    tab(page, "Runs")
    page.wait_for_selector(".wb-run-table tbody tr")
    names = [row.get_attribute("data-run") for row in page.locator(".wb-run-table tbody tr").all()]
    # labels stored by another test
    trained = [name for name in names if name != "annotations"]
    assert trained[0] == "hostile" and trained[-1] == RUN  # newest first
    choose_run(page, RUN)
    titles = page.locator(".wb-chart figcaption > span:first-child").all_inner_texts()
    assert titles[0] == "Reward"
    assert titles[-1] == "Rows not scored"
    assert "KL to the reference" not in titles
    now = dict(zip(titles, page.locator(".wb-chart .wb-values").all_inner_texts(), strict=True))
    shown = ("Reward", "Accuracy", "Claims not placed", "Rows not scored")
    assert [now[title] for title in shown] == ["0.300", "50.0%", "0%", "25.0%"]
    # RLFH and FoRAG rank these rollouts: both use the labels
    assert page.locator(".wb-disagreement").count() == 1
    page.get_by_label("draw logged").check()
    page.wait_for_selector(".wb-line-1")
    page.get_by_label("smoothing").fill("0.5")
    assert page.locator(".wb-chart").first.locator(".wb-raw").count() == 2
    rows = page.locator(".wb-listed tr.wb-open")
    assert [row.get_attribute("data-row") for row in rows.all()] == [
        f"tarven/3/{n}" for n in range(4)
    ]
    assert page.locator(".wb-listed th.tv-now").inner_text() == "RLFH ↑"
    page.get_by_label("Sort by").select_option("highest")
    page.wait_for_function(
        "document.querySelector('.wb-listed tr.wb-open').dataset.row === 'tarven/3/3'"
    )
    page.locator(".wb-curve").first.hover(position={"x": 2, "y": 40})
    assert set(page.locator(".wb-at").all_inner_texts()) == {"step 1"}  # in all charts at once
    page.locator(".wb-curve").first.click(position={"x": 2, "y": 40})  # the first step
    page.wait_for_function(
        "document.querySelector('.wb-listed tr.wb-open').dataset.row === 'tarven/1/3'"
    )
    page.get_by_text("Before and after", exact=True).click()
    page.get_by_text("50.0% [40.0%, 60.0%]").first.wait_for()
    page.screenshot(path=shots / "runs.png", full_page=True)
    rows.first.click()
    page.wait_for_function("new URLSearchParams(location.search).get('id') === 'tarven/1/3'")
    assert page.locator("#inspect-view .tv-big").is_visible() and big(page) == "+4.66"
    # the next row of the list, not of the file
    page.get_by_role("button", name="Next", exact=True).click()
    page.wait_for_function("new URLSearchParams(location.search).get('id') === 'tarven/1/2'")
    page.get_by_text("2 of 4 in the list").wait_for()


def test_a_permalink_opens_its_row(page, address):
    page.goto(f"{address}?run={RUN}&id=tarven/2/1&method=knowrl")
    page.wait_for_function(
        "document.querySelector('#inspect-view .tv-facts')?.textContent.includes('tarven/2/1')"
    )
    assert (
        page.locator("#inspect-view [data-method=knowrl]").get_attribute("aria-pressed") == "true"
    )
    page.locator("#inspect-view [data-method=rlfh]").click()
    page.wait_for_function(
        "location.search.includes('method=rlfh') && location.search.includes('id=tarven')"
    )
    long = "r" * 5000
    queries = (
        "run=../outside&id=1",
        "run=/etc&id=passwd",
        f"run={RUN}&id=none",
        f"run={RUN}&id=tarven/2/1&method=<b>",
    )
    for query in (*queries, f"run={long}&id=1", "run=damaged&id=1"):
        page.goto(f"{address}?{query}")
        page.wait_for_selector("[role=alert]")
        assert "Worked example" in page.locator("#inspect-view .tv-facts").inner_text()


def test_hostile_text_is_shown_as_text(page, address):
    page.goto(f"{address}?run=hostile&id={'x'}")  # no such row: the page still opens
    page.wait_for_selector("[role=alert]")
    tab(page, "Runs")
    page.wait_for_selector(".wb-run-table tbody tr")
    choose_run(page, "hostile")
    page.wait_for_function("document.querySelectorAll('.wb-listed tr.wb-open').length > 20")
    page.locator(".wb-listed tr.wb-open").first.click()
    page.wait_for_function(
        "document.querySelector('#inspect-view .tv-facts').textContent.includes('hostile')"
    )
    page.get_by_label("Row", exact=True).fill("1")
    for number, text in enumerate(PAYLOADS):
        if number:
            page.get_by_role("button", name="Next").click()
        shown = "document.querySelector('#inspect-view .tv-question').textContent"
        page.wait_for_function(f"want => {shown} === want", arg=text)
        assert page.locator("#inspect-view .tv-text").text_content().startswith(text)
        page.locator("#inspect-view .tv-t").first.hover()
        page.locator("#inspect-view tr[data-claim]").first.locator(".tv-id").click()
    assert page.locator(f"#inspect-view :is({MARKUP})").count() == 0
    for name in ("Compare", "What if", "Annotate"):
        tab(page, name)
        view = f"#{name.lower().replace(' ', '-')}-view"
        if name == "Annotate":
            page.get_by_label("Claims of run").select_option("hostile")
            claim = "document.querySelector('.wb-claim-text').textContent"
            page.wait_for_function(f"all => all.includes({claim})", arg=list(PAYLOADS))
        else:
            page.wait_for_selector(f"{view} .tv-t")
        assert page.locator(f"{view} :is({MARKUP})").count() == 0
    page.wait_for_timeout(300)


def test_an_exported_page_is_inert_and_self_contained(browser, tmp_path, shots):
    seen = Seen()
    for number, text in enumerate(PAYLOADS):
        (tmp_path / f"{number}.html").write_text(
            html_page(payload(hostile(number, text))), encoding="utf-8"
        )
    page = browser.new_page(viewport={"width": 900, "height": 900}, color_scheme="dark")
    seen.watch(page)
    for number, text in enumerate(PAYLOADS):
        page.goto((tmp_path / f"{number}.html").as_uri())
        assert page.locator(".tv-question").text_content() == text
        assert page.locator(".tv-t").count() > 2 and page.evaluate("window.hit || 0") == 0
    (tmp_path / "good.html").write_text(html_page(payload(rollout(1, 0), "rlfh")), encoding="utf-8")
    page.goto((tmp_path / "good.html").as_uri())
    page.locator("tr[data-claim]").nth(2).click()
    assert page.locator(".tv-t.tv-on").count() == 10
    assert (
        page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        == "rgb(16, 19, 23)"
    )
    page.screenshot(path=shots / "exported-dark.png", full_page=True)
    page.close()
    assert (seen.errors, seen.dialogs) == ([], []) and {
        urlsplit(url).scheme for url in seen.requests
    } == {"file"}


def test_the_notebook_widget_is_the_same_view(browser):
    """The widget's module, as anywidget loads it, with a simulated model of the notebook."""
    pytest.importorskip("anywidget", reason="the notebooks extra is not installed")
    from workbench.inspector.widgets import token_view

    widget = token_view(rollout(1, 0), "rlfh")
    page = browser.new_page()
    page.evaluate(
        """async ([code, data]) => {
            const blob = new Blob([code], {type: "text/javascript"});
            const module = await import(URL.createObjectURL(blob));
            const none = () => {}, set = (name, value) => (window[name] = value);
            const model = {get: () => data, set, save_changes: none, on: none};
            module.default.render({model, el: document.body});
        }""",
        [widget._esm, widget.data],
    )
    assert page.locator(".tv-t").count() == 41 and page.locator(".tv-big").inner_text() == "+1.66"
    page.locator("tr[data-claim]").nth(2).click()
    assert page.evaluate("window.selected") == {"claim": 2, "token": None}
    page.close()


def test_a_narrow_page_scrolls_only_vertically(browser, address, shots):
    seen = Seen()
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.set_default_timeout(15000)
    seen.watch(page)
    page.goto(f"{address}?run={RUN}&id=tarven/1/0")
    page.wait_for_selector("#inspect-view .tv-t")
    waits = {
        "Inspect": "#inspect-view .tv-big",
        "Compare": "#compare-view .tv-t",
        "What if": "#wb-rlfh-alpha",
        "Runs": ".wb-run-table tbody tr",
        "Live": "text=Temperature",
    }
    for name, selector in waits.items():
        tab(page, name)
        page.wait_for_selector(selector)
        page.wait_for_timeout(150)
        page.screenshot(path=shots / f"phone-{name.lower().replace(' ', '-')}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    page.close()
    assert (seen.outside(), seen.errors) == ([], [])


@pytest.mark.skipif(not TINY_POLICY.is_dir(), reason="the shipped policy is not in this checkout")
def test_live_answers_with_sources(page, shots):
    tab(page, "Live")
    answer = page.get_by_role("button", name="Answer with sources")
    answer.click()
    page.wait_for_selector("#sourced-view [role=alert]:visible")  # no question yet
    box = page.locator("textarea[placeholder^=Which]")
    box.fill("What is Dramem Torusin known for and how does it compare with Voku Kebas?")
    answer.click()
    page.wait_for_selector("#sourced-view .wb-sentences li:visible", timeout=60000)
    sentences, sources = (
        page.locator("#sourced-view .wb-sentences li"),
        page.locator("#sourced-view .wb-sources li"),
    )
    assert (
        "comparison" in page.locator("#sourced-view .wb-plan").inner_text() and sources.count() == 3
    )
    assert all(
        (line.locator(".tv-chip").count() == 1 and "p 0.00" in text) or "p 1.00" in text
        for line, text in zip(sentences.all(), sentences.all_inner_texts(), strict=True)
    )
    sentences.first.hover()
    [lit] = page.locator("#sourced-view .wb-sources li.wb-lit").all_inner_texts()
    assert lit.split("]")[0] + "]" in sentences.first.inner_text()
    page.screenshot(path=shots / "sourced.png", full_page=True)

    page.get_by_label("Passages to answer from").click()
    page.get_by_role("option", name="payloads").click()
    box.fill(f"Which payload is {PAYLOADS[2]}?")
    answer.click()
    page.wait_for_function(
        "document.querySelector('#sourced-view .tv-question').textContent.includes('payload')"
    )
    assert PAYLOADS[2] in page.locator("#sourced-view .tv-question").inner_text()
    assert (
        "payload" in sources.first.inner_text()
        and page.locator("#sourced-view img, #sourced-view script").count() == 0
    )
    # the sampled answers replace it
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector(".wb-listed tr.wb-open:visible", timeout=60000)
    assert page.locator("#sourced-view .wb-split").count() == 0
