"""The page of `workbench compare --html` in a browser, as a file and in the inspector."""

import os
from pathlib import Path
from typing import Any

from tests.helpers import Cli
from tests.helpers.browsing import BROWSER, FIXTURES, Seen, choose_run, tab
from tests.test_compare import sweep, write_run
from tests.test_evaluate import run as answers
from workbench.runs.store import ROLLOUTS, append_feedback

address, browser, page, root, seen, shots = FIXTURES
pytestmark = BROWSER


def test_the_tables_are_sorted_without_a_network(
    tmp_path: Path, cli: Cli, browser: Any, seen: Seen
) -> None:
    """A file name is not read as HTML. Runs that were asked other questions have another figure."""
    files, out = [tmp_path / "<b>hard.jsonl", tmp_path / "easy.jsonl"], tmp_path / "page.html"
    for file, outcomes in zip(files, ("ciii", "ccci"), strict=True):
        append_feedback(file, answers(outcomes))
    runs = sweep(tmp_path / "runs")
    write_run(runs / "numbers", "cuuu", prompts={"eval_kinds": "numeric"})
    assert cli("compare", runs, *files, "--against", files[1], "--html", out)[0] == 0
    page = browser.new_page()
    seen.watch(page)
    page.goto(f"file://{out}")
    table = page.locator("h2:text-is('Questions: responses') + div")
    table.locator("th:text-is('accuracy')").click()
    assert table.locator("td:first-child").all_inner_texts() == ["easy.jsonl", "<b>hard.jsonl"]
    assert table.locator("td.best").first.inner_text().startswith("75.0")
    page.get_by_text("Full names of the rows").click()
    assert f"easy.jsonl: {files[1]}" in page.inner_text("details")
    titles = page.locator(".plotly-graph-div .gtitle").all_text_contents()
    assert [title.rpartition(": ")[2] for title in titles[:2]] == ["test", "test (numeric)"]
    assert len(titles) == 3 and page.locator("a").count() == 0
    command = f"workbench inspect --run {files[1]}"
    assert table.locator("td:first-child").first.get_attribute("title") == command
    assert seen.errors == [] and all(one.startswith("file:") for one in seen.outside())
    page.close()


def test_a_row_in_the_inspector_leads_to_its_rollouts(page: Any, root: Path, shots: Path) -> None:
    sweep(root / "sweep")
    tab(page, "Runs")
    choose_run(page, "sweep/t1")
    page.get_by_label("draw sweep/b1").check()
    page.get_by_label("draw sweep/b2").check()
    with page.expect_popup() as opened:
        page.get_by_text("Compare the checked runs on one page").click()
    comparison = opened.value
    comparison.screenshot(path=shots / "comparison.png", full_page=True)
    comparison.get_by_role("link", name="2", exact=True).first.click()
    comparison.wait_for_selector("#inspect-view .tv-facts:has-text('sweep/b2')")
    comparison.go_back()
    comparison.get_by_role("link", name="truthrl reward=ternary").first.click()
    comparison.wait_for_selector("#inspect-view .tv-facts:has-text('sweep/t1')")
    (root / "sweep" / "out").mkdir()
    (root / "sweep" / "out" / ROLLOUTS).write_bytes(b"")
    (root / "sweep" / "out" / "linked").symlink_to(root.parent)
    os.mkfifo(root / "sweep" / "out" / "summary.json")  # reading it would never end
    for names, message in (
        ("run=sweep/running", "is not finished"),
        ("run=sweep/t1/../../x", "not inside the runs folder"),
        ("run=sweep/out", "no run to compare"),
    ):
        comparison.goto(f"{page.url}compare?{names}")
        assert message in comparison.inner_text("body")
    comparison.goto(f"{page.url}compare?run=sweep/t1&run=sweep/t1&run=sweep/out")
    assert comparison.locator("h1").inner_text() == "Comparison of 1 rows"
    comparison.close()
