"""The demo's table and summary line from reports by hand; the notebooks test its training."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers import ROOT, read_json
from workbench.experiments.demo import (
    REWARDS,
    SHOWN_PER_TIER,
    fixed_questions,
    oracle_line,
    results_table,
    train_both,
)
from workbench.experiments.evaluate import report
from workbench.runs.folder import in_use
from workbench.types import Feedback, JsonObject, Question, Response, Verdict, WorkbenchError
from workbench.util.subprocess import INTERRUPTED
from workbench.world.facts import TIERS


def graded(outcomes: Mapping[str, str]) -> list[Feedback]:
    """One answer for each letter of a tier's outcomes: c(orrect), u(ncertain), i(ncorrect)."""
    labels = {"c": "correct", "u": "uncertain", "i": "incorrect"}
    return [
        Feedback(
            Response("r", Question(f"{tier}-{number}", "?", meta={"tier": tier}), ""),
            verdicts=(Verdict("outcome", "answer", labels[letter]),),
        )
        for tier, letters in outcomes.items()
        for number, letter in enumerate(letters)
    ]


@pytest.fixture(scope="module")
def reports() -> dict[str, JsonObject]:
    greedy = {
        # accuracy 1/2, truthfulness 0, oracle 1/2
        "initial policy": {"known": "cccc", "unknown": "iiii"},
        "ternary": {"known": "cccc", "unknown": "uuui"},  # truthfulness 3/8: +75 % of 1/2
        "binary": {"known": "ccci", "unknown": "iiii"},  # truthfulness -1/4: -50 % of 1/2
    }
    return {name: report(graded(outcomes), []) for name, outcomes in greedy.items()}


def printed(table: Any) -> str:
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_results_table_has_a_row_per_tier_and_policy(reports: dict[str, JsonObject]) -> None:
    text = printed(results_table(reports, "greedy"))
    assert text.splitlines()[0].strip() == "8 test questions, greedy [95 % intervals]"
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in text.splitlines()
        if "│" in line
    ]
    assert [row[:2] for row in rows] == [
        [tier if policy == "initial policy" else "", policy]
        for tier in ("all", "known", "unknown")
        for policy in reports
    ]
    whole = {row[1]: row[2:] for row in rows[:3]}
    assert [cell.split()[0] for cell in whole["ternary"]] == ["50%", "38%", "12%", "38%"]
    # ternary on unknown entities, without intervals
    assert rows[-2][2:] == ["0%", "75%", "25%", "-25%"]


def test_oracle_line_states_the_share_of_each_reward(reports: dict[str, JsonObject]) -> None:
    assert oracle_line(reports).endswith(": ternary +75%, binary -50%")
    never_wrong = {**reports, "initial policy": report(graded({"known": "cc"}), [])}
    assert oracle_line(never_wrong).endswith("this policy is wrong: ")


def test_fixed_questions_are_about_different_people() -> None:
    asked = fixed_questions()
    assert asked == fixed_questions()
    counts = Counter(question.meta["tier"] for question in asked)
    assert list(counts) == [tier for tier in TIERS if tier in counts] and set(counts.values()) == {
        SHOWN_PER_TIER
    }
    assert len({question.title for question in asked}) == len(asked)


def demo(out: Path, until: Callable[[], bool] | None = None) -> tuple[int, str]:
    """Run the demo as a user would, with Ctrl-C as soon as `until` is true; return code, stderr."""
    command = [sys.executable, "-m", "workbench.cli", "demo", "--out", str(out)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        while until and not until():
            assert process.poll() is None
            time.sleep(0.05)
        if until:
            process.send_signal(signal.SIGINT)
        return process.wait(), process.stderr.read() if process.stderr else ""


@pytest.mark.slow
def test_an_interrupt_stops_both_runs(tmp_path: Path) -> None:
    runs = [tmp_path / reward for reward in REWARDS]
    # while transformers and TRL import their parts, they can turn an interrupt into an ImportError
    code, err = demo(tmp_path, until=lambda: all((run / "metrics.jsonl").exists() for run in runs))
    assert code in INTERRUPTED and err.splitlines()[-1].startswith("workbench: interrupted"), err
    assert [read_json(run / "summary.json")["status"] for run in runs] == ["interrupted"] * 2
    assert not any(in_use(run) for run in runs)
    for run in runs:  # one thread for each, so that both cores train
        assert read_json(run / "config.json")["threads"] == 1


@pytest.mark.slow
def test_a_failed_second_run_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # replaces the first run, which takes a minute; the second is a subprocess
    done = SimpleNamespace(train=lambda out: {"status": "done"}, check=lambda out: None)
    monkeypatch.setattr("workbench.experiments.demo.plan_run", lambda *_: done)
    second = tmp_path / REWARDS[1]
    second.mkdir()
    (second / "metrics.jsonl").write_text("{}\n")  # a file of another program
    with pytest.raises(WorkbenchError, match=f"the binary reward failed: .*{second}.* config.json"):
        train_both(tmp_path, seed=1, threads=2)


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("metrics.jsonl", "{}\n", "metrics.jsonl but no config.json"),
        ("config.json", '{"seed": 9}', "another run"),
    ],
)
def test_foreign_files_are_refused_before_a_run_starts(
    tmp_path: Path, reward: str, name: str, text: str, reason: str
) -> None:
    file = tmp_path / reward / name
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(WorkbenchError, match=f"{reward}' holds {reason}"):
        train_both(tmp_path, seed=1, threads=2)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]


@pytest.mark.slow
def test_too_many_failures_in_the_first_run_end_the_demo(tmp_path, monkeypatch):
    failed = {"status": "too_many_failures"}
    run = SimpleNamespace(train=lambda out: failed, check=lambda out: None)
    monkeypatch.setattr("workbench.experiments.demo.plan_run", lambda *_: run)
    assert train_both(tmp_path, 1, 2) == {REWARDS[0]: failed}
