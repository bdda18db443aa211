"""The page of `workbench compare --html` in a browser."""

from pathlib import Path
from typing import Any

from tests.helpers import Cli
from tests.helpers.browsing import BROWSER, Seen
from tests.helpers.browsing import browser as browser
from tests.helpers.browsing import seen as seen
from tests.test_compare import sweep
from tests.test_evaluate import run as answers
from workbench.runs.store import append_feedback

pytestmark = BROWSER


def test_the_tables_are_sorted_without_a_network(
    tmp_path: Path, cli: Cli, browser: Any, seen: Seen
) -> None:
    """A file name that is HTML is shown as text."""
    files, out = [tmp_path / "<b>hard.jsonl", tmp_path / "easy.jsonl"], tmp_path / "page.html"
    for file, outcomes in zip(files, ("ciii", "ccci"), strict=True):
        append_feedback(file, answers(outcomes))
    runs = sweep(tmp_path / "runs")
    assert cli("compare", runs, *files, "--against", files[1], "--html", out)[0] == 0
    page = browser.new_page()
    seen.watch(page)
    page.goto(f"file://{out}")
    table = page.locator("h2:text-is('Questions: responses') + div")
    table.locator("th:text-is('accuracy')").click()
    assert table.locator("td:first-child").all_inner_texts() == [str(files[1]), str(files[0])]
    assert table.locator("td.best").first.inner_text().startswith("75.0")
    assert page.locator(".plotly-graph-div").count() == 2
    assert seen.errors == [] and all(one.startswith("file:") for one in seen.outside())
    page.close()
