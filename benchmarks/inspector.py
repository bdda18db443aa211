"""Measure the response times of the inspector, and the seconds to open a large record.

    python -m benchmarks.inspector --results benchmarks/results/inspector.json [--rows 200000]

The script writes a record of this size, in steps of 512 rows, and an answer of 5,000 characters
with 200 claims. Times are measured in a browser (chromium on the path) with two servers, of which
the first opens the record without an index. A click on *Runs* opens the newest run.
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
from workbench.runs.rows import read_rows
from workbench.runs.store import append_feedback
from workbench.types import Claim, Feedback, Response, Verdict
from workbench.util.jsonl import encode, write_json

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
STEP = 512  # rows per step
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


def make(root: Path, count: int) -> Path:
    """Write a record of `count` rows, in steps of `STEP`; return its path."""
    append_feedback(root / "long", [long_answer()])
    row = worked_example()
    row = replace(row, response=replace(row.response, id="ID", group="GROUP", step=7))
    row = with_rewards(row, method_configs(("rlfh",)))
    append_feedback(root / "large", [row])
    template = encode(row.to_row())
    with (root / "large" / "rollouts.jsonl").open("wb") as file:
        for number in range(count):
            line = template.replace(b'"ID"', b'"r%d"' % number, 1).replace(
                b'"GROUP"', b'"g%d"' % (number // 8), 1
            )
            file.write(line.replace(b'"step": 7', b'"step": %d' % (number // STEP), 1))
    return root / "large" / "rollouts.jsonl"


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
            read_rows(path)  # writes the index
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
