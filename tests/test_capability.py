"""The capability guard: lm-evaluation-harness accuracies before and after training."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import Cli
from tests.test_compare import write_run
from workbench import compare
from workbench.metrics.capability import accuracy_changes, read_accuracies
from workbench.types import JsonObject


def results(path: Path, tasks: dict[str, JsonObject], **more: Any) -> Path:
    path.write_text(json.dumps({"results": tasks, **more}))
    return path


def before_after(folder: Path) -> tuple[Path, Path]:
    """ARC falls from .8 to .7 (errors .015, .02) and GSM8K from .31 to .30 (.03, .04)."""
    pairs = {"before": (0.8, 0.31, 0.03), "after": (0.7, 0.3, 0.04)}
    first, second = (
        results(
            folder / f"{name}.json",
            {
                "arc": {"alias": "arc", "acc,none": arc, "acc_stderr,none": error / 2},
                "gsm8k": {"exact_match,strict": gsm, "exact_match_stderr,strict": error},
            },
            **{"n-samples": {"arc": {"original": 900, "effective": 900}}},
        )
        for name, (arc, gsm, error) in pairs.items()
    )
    return first, second


def test_a_drop_is_an_interval_below_0(tmp_path: Path) -> None:
    """ARC: −.1 ± 1.96 · √(.015² + .02²) = −.1 ± 1.96 · .025, below 0: z is 4. GSM8K:
    −.01 ± 1.96 · .05, which includes 0: z is .2, so p = .841.
    """
    first, second = before_after(tmp_path)
    found = compare(second, first, against=str(first))
    [cells] = found["paired"].values()
    arc, gsm = cells["arc acc"], cells["gsm8k exact_match,strict"]
    assert (arc["value"], arc["other"], arc["n"], arc["drop"]) == (0.7, 0.8, 900, True)
    assert (arc["low"], arc["high"]) == (
        pytest.approx(-0.149, abs=1e-4),
        pytest.approx(-0.051, abs=1e-4),
    )
    assert arc["p"] == pytest.approx(6.33e-5, rel=1e-2)
    assert not gsm["drop"] and gsm["high"] == pytest.approx(0.088, abs=1e-4)
    assert gsm["p"] == pytest.approx(0.841, abs=1e-3)
    rows = {row["name"]: row["metrics"]["capability"] for row in found["rows"]}
    assert rows[str(first)]["arc acc"]["value"] == 0.8


def test_values_that_are_not_accuracies_are_left_out(tmp_path: Path) -> None:
    """Perplexities, losses and names are left out. A missing standard error is computed: 100
    samples with accuracy .5 give √(.25 / 100).
    """
    tasks: dict[str, JsonObject] = {
        "wiki": {"word_perplexity,none": 11.0, "bits,none": 0.5, "bits_stderr,none": 0.1},
        "old": {"acc": 0.5, "acc_stderr": "N/A", "alias": " - old"},
        "bare": {"acc": 1},
    }
    path = results(
        tmp_path / "r.json",
        tasks,
        higher_is_better={"wiki": {"bits": False}},
        **{"n-samples": {"old": {"effective": 100}}},
    )
    found = read_accuracies(path)
    assert found is not None and list(found) == ["old acc", "bare acc"]
    assert found["old acc"]["stderr"] == pytest.approx(0.05)
    assert found["bare acc"] == {"value": 1, "low": None, "high": None, "n": None, "stderr": None}
    assert list(accuracy_changes(found, found)) == ["old acc"]


@pytest.mark.parametrize(("after", "p"), [(0.0, 1.0), (0.5, 0.0)])
def test_accuracies_without_error_have_a_p_value(after: float, p: float, tmp_path: Path) -> None:
    """A small model that solves no task has accuracy 0 and standard error 0."""
    first, second = (
        read_accuracies(
            results(tmp_path / f"{value}.json", {"gsm8k": {"acc": value, "acc_stderr": 0.0}})
        )
        for value in (0.0, after)
    )
    assert first and second
    assert accuracy_changes(second, first)["gsm8k acc"]["p"] == p


@pytest.mark.parametrize("text", ["[]", '{"status": "done"}', '{"results": 3}', "{"])
def test_other_files_are_not_results(text: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)
    assert read_accuracies(tmp_path / "r.json") is None


def test_the_command_reports_a_drop_and_an_unpaired_run(tmp_path: Path, cli: Cli) -> None:
    first, second = before_after(tmp_path)
    run = write_run(tmp_path / "run", "ccuu")
    code, out, err = cli("compare", run, second, first, "--against", first)
    assert code == 0 and "arc acc" in out and "−10.0" in out.replace("-", "−")
    assert f"{second.name}: arc acc dropped by 10.0 points" in err and "gsm8k" not in err
    assert "is not paired with" in err  # about the run
