"""Measure the response times of the inspector, and the seconds to open a large record.

    python -m benchmarks.inspector --results benchmarks/results/inspector.json [--rows 200000]

The script writes a record of this size, in steps of 512 rows, and an answer of 5,000 characters
with 200 claims. A new process reads the record, without its index and with it. Other times are
measured in a browser (chromium on the path) with two servers, of which the first opens the record
without an index.

A click on *Runs* opens the newest run. Its last step is sorted after all rows are read, because
reading and sorting would share the processor.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.scoring import peak_memory
from workbench.inspector.examples import worked_example
from workbench.inspector.opened import with_rewards
from workbench.methods import method_configs
from workbench.runs.folder import versions
from workbench.runs.rows import index_path
from workbench.runs.store import append_feedback
from workbench.types import Claim, Feedback, Response, Verdict
from workbench.util.jsonl import encode, write_json

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
STEP = 512  # rows per step
OPENED = """
import sys, time
from pathlib import Path
import pandas  # which gradio has imported before a record is opened
from workbench.runs.rows import read_rows
start = time.perf_counter()
read_rows(Path(sys.argv[1]))
print(time.perf_counter() - start)
"""
LABELS = ("correct", "wrong", "vague", "hedged_correct", "hedged_wrong")


def long_answer(claims: int = 200, characters: int = 5000) -> Feedback:
    """Return an answer in which every sentence is a claim, with a verdict on each."""
    width = characters // claims
    sentences = [f"Number {number} stands".ljust(width - 2, "x") + ". " for number in range(claims)]
    text, spans = (
        "".join(sentences),
        [(width * number, width * (number + 1) - 1) for number in range(claims)],
    )
    offsets = tuple(match.span() for match in re.finditer(r"\s*\S+", text))
    response = Response(
        "long/0", worked_example().response.question, text, "long", offsets=offsets, source="words"
    )
    found = tuple(
        Claim(number, text[start:end], sentence=number, span=(start, end), end=end, coverage=1.0)
        for number, (start, end) in enumerate(spans)
    )
    verdicts = tuple(
        Verdict(f"claim:{n}", "fact", LABELS[n % 5], informativeness=1 + n % 5)
        for n in range(claims)
    )
    return Feedback(response, tuple(spans), found, verdicts)


def judged_otherwise(row: Feedback) -> list[Feedback]:
    """Return the row, and copies with one outcome or fact labelled wrong, on which methods
    disagree.
    """
    turned = {"outcome": "incorrect", "fact": "wrong"}
    kinds = [
        "outcome" if verdict.target == "outcome" else verdict.aspect for verdict in row.verdicts
    ]
    places = [
        place
        for place, kind in enumerate(kinds)
        if kind in turned and row.verdicts[place].label != turned[kind]
    ]
    changed = [
        (place, replace(row.verdicts[place], label=turned[kinds[place]], p=None))
        for place in places
    ]
    return [
        row,
        *(
            replace(row, verdicts=(*row.verdicts[:n], new, *row.verdicts[n + 1 :]))
            for n, new in changed
        ),
    ]


def make(root: Path, count: int) -> Path:
    """Write a record of `count` rows, in steps of `STEP`; return its path."""
    append_feedback(root / "long", [long_answer()])
    row = worked_example()
    row = replace(row, response=replace(row.response, id="ID", group="GROUP", step=7))
    rows = [with_rewards(one, method_configs(("rlfh",))) for one in judged_otherwise(row)]
    append_feedback(root / "large", rows[:1])
    templates = [encode(one.to_row()) for one in rows]
    with (root / "large" / "rollouts.jsonl").open("wb") as file:
        for number in range(count):
            line = (
                templates[number % len(templates)]
                .replace(b'"ID"', b'"r%d"' % number, 1)
                .replace(b'"GROUP"', b'"g%d"' % (number // 8), 1)
            )
            file.write(line.replace(b'"step": 7', b'"step": %d' % (number // STEP), 1))
    return root / "large" / "rollouts.jsonl"


def opened(path: Path) -> float:
    """Return the seconds in which a new process reads the record."""
    return float(
        subprocess.run(
            [sys.executable, "-c", OPENED, str(path)], capture_output=True, text=True, check=True
        ).stdout
    )


def served(root: Path) -> Iterator[tuple[str, int]]:
    """Yield the address and the process id of a new server."""
    command = [sys.executable, "apps/reward_inspector.py", "--runs", str(root), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout
    try:
        yield server.stdout.readline().split(": ", 1)[1].strip(), server.pid
    finally:
        server.terminate()
        server.wait(10)


WHOLE = "!/still being read/i.test(document.querySelector('#runs-view').textContent)"
LISTED = "document.querySelectorAll('#runs-view tr.wb-open').length === 60"


def timed(page: Any, act: Callable[[], Any], until: str) -> float:
    """Return the seconds from an action until its result is drawn."""
    start = time.perf_counter()
    act()
    page.wait_for_function(until, polling="raf", timeout=60_000)
    return round(time.perf_counter() - start, 3)


def open_runs(page: Any, address: str) -> float:
    """Return the seconds from the click on *Runs* to the last step of the newest (large) run."""
    page.goto(address)
    page.wait_for_selector("#inspect-view .tv-t")
    return timed(page, page.get_by_role("tab", name="Runs", exact=True).click, LISTED)


def interactions(page: Any, address: str) -> dict[str, float]:
    """Return the seconds of each interaction."""
    page.goto(f"{address}?run=long&id=long/0")
    page.wait_for_selector("#inspect-view tr[data-claim]")
    pressed = "document.querySelector('#inspect-view [data-method={0}]').ariaPressed === 'true'"
    press = page.locator("#inspect-view [data-method=forag]")
    times = {"switch the method of 200 claims": timed(page, press.click, pressed.format("forag"))}
    times["open the large run"] = open_runs(page, address)
    times["until all its rows are read"] = timed(page, lambda: None, WHOLE)
    order = page.get_by_label("Sort by")
    now = "document.querySelector('#runs-view th.tv-now')?.textContent.endsWith('{0}')"
    times["sort a step of 512 by reward"] = timed(
        page, lambda: order.select_option("highest"), now.format("↓")
    )
    ordered = (
        "document.querySelector('#runs-view th.tv-now')?.textContent.startsWith('Disagreement')"
    )
    times["sort it by disagreement, the first time"] = timed(
        page, lambda: order.select_option("disagreement"), ordered
    )
    times["sort it by reward again"] = timed(
        page, lambda: order.select_option("lowest"), now.format("↑")
    )
    times["sort it by disagreement again"] = timed(
        page, lambda: order.select_option("disagreement"), ordered
    )
    return times


def browsed(root: Path, look: Callable[[Any, str], Any]) -> Any:
    """Return the result of `look` on a new page of a new server.

    A dict also gets the server's peak memory.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for address, process in served(root):
            found = look(browser.new_page(viewport={"width": 1280, "height": 900}), address)
            if isinstance(found, dict):
                found["peak megabytes of the server"] = peak_memory(process)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--results", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = make(Path(folder), chosen.rows)
        os.sync()  # pending writes to the disk would slow down reading
        times: dict[str, Any] = {"rows": chosen.rows, "megabytes": round(path.stat().st_size / 1e6)}
        if CHROMIUM:
            times["open the large run, not read before"] = browsed(Path(folder), open_runs)
            index_path(path).unlink(missing_ok=True)
        times |= {
            "read anew": round(opened(path), 2),
            "read by its index": round(opened(path), 2),
            "megabytes of the index": round(index_path(path).stat().st_size / 1e6),
        }
        if CHROMIUM:
            times |= browsed(Path(folder), interactions)
    print("\n".join(f"{name:42} {value}" for name, value in times.items()))
    if chosen.results:
        write_json(
            chosen.results,
            {
                "date": date.today().isoformat(),
                "cores": os.cpu_count(),
                "versions": versions(),
                **times,
            },
        )


if __name__ == "__main__":
    main()
