"""RLFH's tables by hand, the figures that show them, and the metrics command."""

import re
from pathlib import Path

import pytest

from tests.helpers import Cli, printed
from tests.helpers.score_helpers import write
from tests.test_metrics import row, stored, with_outcome
from workbench.metrics import distributions as tables
from workbench.metrics.rows import Row

# accuracy 1/4 with 4 claims, 1/1, 1/2, a refusal, a failure
BEFORE = [
    row("a", "cwww"),
    row("b", "c"),
    row("c", "cw"),
    row("d", text="I don't know."),
    row("e", "f"),
]
AFTER = [
    row("a", text="I don't know."),
    row("b", "ccc"),
    row("c", "ccw"),
    row("d", "cc"),
    row("e", "c"),
]


def test_accuracy_distribution() -> None:
    """The accuracies are .25, .5 and 1."""
    table = tables.accuracy_distribution(BEFORE)
    assert [row["n"] for row in table] == [0, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    assert [row["share"] for row in table if row["n"]] == pytest.approx([1 / 3] * 3)


def test_claims_per_response() -> None:
    assert [(r["claims"], r["n"]) for r in tables.claims_per_response(BEFORE)] == [
        (1, 1),
        (2, 1),
        (3, 0),
        (4, 1),
    ]
    assert [(r["claims"], r["n"]) for r in tables.claims_per_response(BEFORE, "wrong")] == [
        (0, 1),
        (1, 1),
        (2, 0),
        (3, 1),
    ]


def test_claims_by_accuracy() -> None:
    """a has an accuracy of .25, c of .5 and b of 1."""
    table = tables.claims_by_accuracy(BEFORE)
    assert [row["claims"] for row in table] == [[], [4], [2], [], [1]]
    assert [row["mean"] for row in table] == [None, 4, 2, None, 1]


def test_refusals_by_accuracy_before() -> None:
    """a was .25 before and is refused after; c was .5 and b was 1, and both are answered; d and e
    had no accuracy.
    """
    table = tables.refusal_by_accuracy(BEFORE, AFTER)
    assert [row["questions"] for row in table] == [0, 1, 1, 0, 1]
    assert [row["refused"] for row in table] == [None, 1, 0, None, 0]


def test_trade_off_has_one_point_per_step() -> None:
    steps = [
        Row("r", "q", "scored", labels, (0,) * len(labels), step=step)
        for labels, step in ((("correct",), 1), (("wrong",), 1))
    ]
    later = Row("r", "q", "scored", ("correct", "wrong"), (0, 0), step=2)
    assert tables.trade_off({"run": [*steps, later]}) == [
        {"run": "run", "step": 1, "n": 2, "accuracy": 0.5, "claims": 1},
        {"run": "run", "step": 2, "n": 1, "accuracy": 0.5, "claims": 2},
    ]


def test_command_prints_one_object(tmp_path: Path, cli: Cli) -> None:
    a = write(tmp_path / "a.jsonl", [with_outcome(stored("a", "ccw"), "correct"), stored("b", "c")])
    b = write(tmp_path / "b.jsonl", [with_outcome(stored("a", "cww"), "incorrect")])
    result = cli(f"metrics {a} {b} --k 2 --json")
    found = printed(result)
    assert result[2] == ""
    assert found["recall@2"]["value"] == 0.75
    assert found["other"]["truthfulness"]["value"] == -1
    assert found["paired"]["truthfulness"]["diff"] == 2


def test_tables_list_outcomes_before_claims(tmp_path: Path, cli: Cli) -> None:
    both = [with_outcome(stored(name, "cw"), "correct") for name in "ab"]
    for rows, first, absent in (
        (both, "accuracy", "aurc"),
        ([stored("a", "cw")], "factscore", "accuracy"),
        ([with_outcome(stored("a"), "correct")], "accuracy", "factscore"),
    ):
        path = write(tmp_path / "rows.jsonl", rows)
        table = cli(f"metrics {path}")[1].splitlines()
        names = [line.split()[0] for line in table[3:] if line.strip()]
        assert names[0] == first and absent not in names and table[0].startswith(str(path))


def test_command_prints_tables_and_figures(tmp_path: Path, cli: Cli) -> None:
    a = write(tmp_path / "a.jsonl", [stored("a", "ccw"), stored("b", "f")])
    code, out, err = cli("metrics", str(a), str(a), "--figures", str(tmp_path / "figures"))
    assert code == 3  # done, but a row failed
    assert re.search(r"factscore +66\.7 +66\.7 +0\.0 +— +\d+ *\n", out)
    assert re.search(r"factscore +66\.7 +1 *\n", cli("metrics", str(a))[1])
    assert re.search("accuracy.*: no response has an outcome", err) and "accuracy" not in out
    assert re.search(r"no_claims +abstained +failed +unverified +not_judged\n", out)
    assert f"1 of 2 rows of {a} failed" in err and "None" not in out
    never = {**stored("c"), "schema": 1}
    _, out, err = cli("metrics", str(write(tmp_path / "b.jsonl", [stored("a", "c"), never])))
    assert "excluded, because not judged: 1 of 2 rows of" in err
    code, out, err = cli("metrics", str(write(tmp_path / "c.jsonl", [never])))
    assert (code, out, len(err.splitlines())) == (2, "", 1) and "0 of 1 rows are judged" in err
    assert len(list((tmp_path / "figures").glob("fig*.html"))) == 6
