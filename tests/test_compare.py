"""`workbench compare`: runs over seeds and settings, feedback files, and paired differences."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import Cli, examples, printed, write_json
from tests.helpers.errors import raises_error
from tests.test_evaluate import run as answers
from workbench import compare
from workbench.experiments.evaluate import report
from workbench.runs.naming import short_names
from workbench.runs.store import AFTER, BEFORE, EVALUATION, ROLLOUTS, append_feedback


def write_run(folder: Path, after: str, seed: int = 1, stored: bool = True, **config: Any) -> Path:
    """A finished run whose answers to q0, q1, … have these outcomes; "cccc" before training."""
    graded = {BEFORE: answers("cccc"), AFTER: answers(after)}
    for name, feedbacks in graded.items() if stored else ():
        append_feedback(folder / EVALUATION / name, feedbacks)
    reports = [report(one, [], split="test", resamples=20) for one in graded.values()]
    before, done = (json.loads(json.dumps(one)) for one in reports)
    done["greedy"]["coherent"] = {"value": seed - 1, "low": 0, "high": 1}
    settings = {"reward": "ternary", "grpo": {"steps": 3}} | config
    about = {"method": "truthrl", "seed": seed, "threads": 2, "config": settings}
    result = {"before": before, "after": done, "seconds": 2.0, "cost": {"calls": seed}}
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", about)
    write_json(folder / "summary.json", {**about, **result, "status": "done"})
    append_feedback(folder, graded[AFTER])
    return folder


def sweep(root: Path, stored: bool = True) -> Path:
    """A queue's folder with two seeds of two settings, an unfinished run and a shared stage."""
    for seed, after in ((1, "ccuu"), (2, "cuuu")):
        write_run(root / f"t{seed}", after * 2, seed, stored)
        write_run(root / f"b{seed}", "cici" * 2, seed, stored, reward="binary")
    write_run(root / "running", "cccc", 3)
    (root / "running" / "summary.json").write_text('{"status": "interrupted"}')
    (root / "prepared").mkdir()
    (root / "prepared" / "summary.json").write_text('{"status": "done"}')
    return root


def test_seeds_share_one_row_named_by_the_settings_that_differ(tmp_path: Path) -> None:
    """Ternary has 4 and 2 of 8 right, binary 4 right and 4 wrong; before training all are right."""
    found = compare(sweep(tmp_path), against="truthrl reward=binary", resamples=50)
    rows = {row["name"]: row for row in found["rows"]}
    assert set(rows) == {"truthrl reward=ternary", "truthrl reward=binary"}
    row = rows["truthrl reward=ternary"]
    assert (row["method"], row["seeds"], row["cost"]["calls"]) == ("truthrl", [1, 2], 3)
    cell = row["metrics"]["test"]["truthfulness"]
    assert (cell["value"], cell["n"]) == (0.375, 8) and cell["low"] < 0.375 < cell["high"]
    assert row["metrics"]["test before training"]["accuracy"]["value"] == 1
    # it needs the plan of a response, which the stored answers do not have
    assert row["metrics"]["test"]["coherent"] == {"value": 0.5, "low": None, "high": None, "n": 8}
    assert found["differences"] == {
        "reward": {"truthrl reward=binary": "binary", "truthrl reward=ternary": "ternary"}
    }
    [cells] = found["paired"].values()
    assert [cells["truthfulness"][key] for key in ("value", "other", "diff", "n")] == [
        *(0.375, 0, 0.375),
        8,
    ]
    other = write_run(tmp_path / "other", "cccc", grpo={"clip": 1})
    (other / "summary.json").write_text(
        (other / "summary.json").read_text().replace('"truthrl"', '"rlfh"')
    )
    assert compare(tmp_path / "t1", other)["differences"] == {}
    # the settings of a trainer that is not used do not count
    for trainer, differences in (("ppo", {}), ("grpo", {"grpo.clip": {"rlfh": 1, "truthrl": 2}})):
        mine = write_run(tmp_path / "one", "cccc", grpo={"clip": 2})
        theirs = write_run(tmp_path / "two", "cccc", trainer=trainer, grpo={"clip": 1})
        (theirs / "summary.json").write_text(
            (theirs / "summary.json").read_text().replace('"truthrl"', '"rlfh"')
        )
        assert compare(mine, theirs)["differences"] == differences
    other_clip = write_run(tmp_path / "three", "cccc", trainer="ppo", grpo={"clip": 3})
    unused = write_run(tmp_path / "four", "cccc", trainer="ppo", grpo={"clip": 1})
    assert compare(other_clip, unused)["differences"] == {}
    again = compare(tmp_path / "t1", tmp_path / "b2", tmp_path / "t1", against=f"{tmp_path}/b2")
    assert len(again["rows"]) == 2 and again["against"] == "truthrl reward=binary"
    assert next(iter(again["paired"].values()))["accuracy"]["diff"] == 0


def test_rows_are_named_by_their_queue_or_by_settings_that_are_no_defaults(tmp_path: Path) -> None:
    write_run(tmp_path / "plain", "cccc", knowledge=False)
    write_run(tmp_path / "probed", "ccii", knowledge=True, reward="binary")
    write_run(tmp_path / "begun", "cccc")
    (tmp_path / "begun" / "summary.json").unlink()
    found = compare(tmp_path, against="truthrl")
    assert [row["short"] for row in found["rows"]] == ["truthrl", "truthrl reward=binary"]
    assert found["against"] == "truthrl reward=ternary knowledge=False"
    assert found["unfinished"] == [str(tmp_path / "begun")]
    (tmp_path / "probed" / "name.txt").write_text("mine\n")
    assert [row["short"] for row in compare(tmp_path)["rows"]] == ["truthrl", "mine"]
    (tmp_path / "plain" / "name.txt").write_text("mine\n")  # not the name of one row
    assert compare(tmp_path)["rows"][0]["short"] == "truthrl"
    write_run(tmp_path / "other", "cccc", method="knowrl")
    assert set(compare(tmp_path)["differences"]["knowledge"]) == {
        "truthrl reward=ternary knowledge=False",
        "truthrl reward=binary knowledge=True",
    }


def test_runs_without_stored_answers_are_averaged_and_not_paired(tmp_path: Path) -> None:
    found = compare(sweep(tmp_path, stored=False), against="truthrl reward=binary")
    [row] = [row for row in found["rows"] if row["name"] == "truthrl reward=ternary"]
    cell = row["metrics"]["test"]["truthfulness"]
    assert (cell["value"], cell["low"], cell["n"]) == (0.375, None, 8)
    assert "workbench evaluate RUN" in found["paired"]["truthrl reward=ternary"]["reason"]


def test_feedback_files_of_any_name_are_compared(tmp_path: Path, cli: Cli) -> None:
    files = [tmp_path / "a" / ROLLOUTS, tmp_path / "r.jsonl"]
    for file, outcomes in zip(files, ("cccci", "cciii"), strict=True):
        append_feedback(file, answers(outcomes))
    command = ("compare", files[0].parent, files[1], "--against", files[1])
    [cells] = printed(cli(*command, "--json"))["paired"].values()
    assert (cells["accuracy"]["diff"], cells["accuracy"]["n"]) == (0.4, 5)
    code, out, err = cli(*command)
    assert (code, err) == (0, "") and "80.0 [" in out and "40.0 [" in out and "0.8" not in out
    assert out.splitlines()[3].startswith("a   ") and f"r.jsonl   {files[1]}" in out


def test_an_interval_needs_five_questions(tmp_path: Path, cli: Cli) -> None:
    for name, outcomes in (("four", "ccci"), ("five", "cccci")):
        append_feedback(tmp_path / name / ROLLOUTS, answers(outcomes))
    _, few, _ = cli("compare", tmp_path / "four")
    _, enough, _ = cli("compare", tmp_path / "five")
    assert "75.0" in few and "75.0 [" not in few and "80.0 [" in enough


def test_printed_names_have_the_settings_that_distinguish_rows() -> None:
    """Without b, the rows still have different names; without a, they do not."""
    assert short_names(["m a=1 b=x/y z c=1", "m a=2 b=w c=1", "n"]) == ["m a=1", "m a=2", "n"]
    assert short_names(["x/a/r.jsonl", "x/b/r.jsonl"]) == ["a/r.jsonl", "b/r.jsonl"]
    assert short_names(["m reward=a", "x/y z=1/r.jsonl"]) == ["m", "y z=1/r.jsonl"]


@pytest.mark.parametrize("field", ["seconds", "method", "after"])
def test_a_damaged_summary_is_named(tmp_path: Path, field: str) -> None:
    write_run(tmp_path / "run", "cccc")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    summary[field] = {"split": "test"}
    if field != "after":
        del summary[field]
    write_json(tmp_path / "run" / "summary.json", summary)
    with raises_error("summary.json' is damaged"):
        compare(tmp_path / "run")


@pytest.mark.parametrize(("runs", "against", "message"), examples("incomparable"))
def test_incomparable_runs_are_refused(
    tmp_path: Path, runs: list[str], against: str | None, message: str
) -> None:
    sweep(tmp_path)
    with raises_error(message):
        compare(*(tmp_path / run for run in runs), against=against)


def test_equal_runs_are_not_two_seeds(tmp_path: Path) -> None:
    first, again = (write_run(tmp_path / name, "cccc") for name in "ab")
    with raises_error("a' and '.*b' have the same settings and seed"):
        compare(first, again)
    (tmp_path / "link").symlink_to(first)
    assert len(compare(first, tmp_path / "link")["rows"][0]["seeds"]) == 1
    with raises_error("'.*a' is in the only row: name a run"):
        compare(first, against=str(first))


def test_runs_that_differ_in_their_retrieved_passages_say_so(tmp_path: Path) -> None:
    """The default of this setting, 0, is not stored."""
    write_run(tmp_path / "a", "cccc")
    write_run(tmp_path / "b", "cccc", prompts={"retrieved": 2})
    names = {row["name"]: row for row in compare(tmp_path)["rows"]}
    assert list(names) == ["truthrl prompts.retrieved=0", "truthrl prompts.retrieved=2"]
    assert compare(tmp_path)["differences"] == {
        "prompts.retrieved": dict(zip(names, (0, 2), strict=True))
    }
