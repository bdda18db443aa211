"""`workbench probe`: its files, resuming after a kill, and TruthRL trained on its result."""

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import Cli, modified, printed, read_json
from tests.helpers.score_helpers import read
from tests.helpers.small_bench import NAMES, SMALL, make_bench
from workbench.experiments.experiment import run_experiment
from workbench.experiments.probe import probe_policy
from workbench.methods import METHODS
from workbench.methods.bench import Bench
from workbench.methods.method import scaled
from workbench.policies.generate import generate
from workbench.types import Checked, Checks, Failure, JsonObject, Question, Verdict, Verify
from workbench.util.failures import TooManyFailures
from workbench.verdicts.checks import rule_checks

TRUTHRL = METHODS["truthrl"]
KNOWING = scaled(SMALL, knowledge=True, probe={"probe_samples": 4})


def shown(question: Question) -> int | None:
    """Exposures: 3 for every second name, else 0."""
    return 3 * (NAMES.index(question.id.rpartition("-")[2]) % 2)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return replace(make_bench(tmp_path / "policy"), shown=shown)


def run(bench: Bench, out: Path, **options: Any) -> JsonObject:
    return probe_policy(None, "validation", bench, **{"k": 6, "threads": 1, "out": out, **options})


def rows(out: Path) -> list[JsonObject]:
    return read(out / "probe.jsonl")


def test_a_probes_result_files_and_repetition(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "probe"
    result = run(bench, out)
    assert result == {**read_json(out / "summary.json"), "out": str(out)}
    assert (result["policy"], result["split"], result["k"], result["n"], result["status"]) == (
        "sft",
        "validation",
        6,
        len(NAMES),
        "done",
    )
    assert (list(result["majority"]), list(result["exposure"])) == (
        ["1", "2", "4", "6"],
        ["0", "3"],
    )
    found = rows(out)
    # the question without gold answers is left out
    assert [row["question_id"] for row in found] == [f"validation-{name}" for name in NAMES]
    assert all(row["samples"] == 6 == len(row["drawn"]) and row["failed"] == 0 for row in found)
    assert result["ook"] == sum(row["correct"] == 0 for row in found)
    assert not capsys.readouterr().out

    before = modified(out)
    assert run(bench, out) == result
    assert "is finished: this is its stored result" in capsys.readouterr().err
    assert modified(out) == before


def test_samples_do_not_depend_on_other_questions(bench: Bench, tmp_path: Path) -> None:
    every, policy = rows_of(run(bench, tmp_path / "all")), bench.load("sft")
    few = rows_of(run(bench, tmp_path / "few", limit=3))
    assert len(few) == 3 and all(every[name] == row for name, row in few.items())
    questions = [question for question in bench.questions("validation") if question.answers]
    together = generate(policy, questions[:4], max_new_tokens=4, samples=3, seeds=(5, 6, 7, 8))
    apart = generate(policy, questions[2:3], max_new_tokens=4, samples=3, seed=7)
    assert [response.token_ids for response in together[6:9]] == [
        response.token_ids for response in apart
    ]
    # and they are not all equal
    assert len({tuple(row["drawn"]) + tuple(map(str, row["given"])) for row in every.values()}) > 5


def rows_of(result: JsonObject) -> dict[str, JsonObject]:
    return {row["question_id"]: row for row in rows(Path(result["out"]))}


@pytest.mark.slow
def test_an_unfinished_probe_resumes_at_any_point(bench: Bench, tmp_path: Path) -> None:
    whole, out = run(bench, tmp_path / "whole"), tmp_path / "cut"
    text = (tmp_path / "whole" / "probe.jsonl").read_bytes()
    lines = text.splitlines(keepends=True)
    for cut in (0, len(lines[0]), len(b"".join(lines[:7])) + 20, len(text) - 1, len(text)):
        out.mkdir(exist_ok=True)
        (out / "summary.json").unlink(missing_ok=True)
        (out / "config.json").write_text((tmp_path / "whole" / "config.json").read_text())
        (out / "probe.jsonl").write_bytes(text[:cut])
        with warnings.catch_warnings(action="ignore"):
            assert {**run(bench, out), "out": ""} == {**whole, "out": ""}
        assert (out / "probe.jsonl").read_bytes() == text


def failing(share: int) -> Verify:
    """An outcome check that fails for one response in `share`."""

    def verify(batch: Any) -> list[Checked]:
        lost = Failure("judge", "timeout", "no reply")
        wrong, failed = (
            Verdict("outcome", "answer", "incorrect"),
            Verdict("outcome", "answer", error=lost),
        )
        return [Checked((wrong if n % share else failed,)) for n, _ in enumerate(batch)]

    return verify


def test_a_failed_sample_leaves_its_question_undecided(bench: Bench, tmp_path: Path) -> None:
    judged = replace(bench, judge=lambda: Checks(rule_checks().extract, {"outcome": failing(30)}))
    # of 60 samples, the first of questions 1 and 6 fail
    result = run(judged, tmp_path / "probe")
    assert (result["failed"], result["unsettled"], result["ook"]) == (2, 2, 8)
    assert [row["ook"] for row in rows(tmp_path / "probe")] == [None, *[True] * 4] * 2
    hopeless = replace(bench, judge=lambda: Checks(rule_checks().extract, {"outcome": failing(3)}))
    with pytest.raises(TooManyFailures, match="20 of 60 samples could not be graded"):
        run(hopeless, tmp_path / "hopeless")
    assert not (tmp_path / "hopeless" / "summary.json").exists()


@pytest.mark.slow
def test_truthrls_reward_uses_a_probe_of_its_training_questions(
    bench: Bench, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    summary = run_experiment(TRUTHRL, KNOWING, bench, out, seed=3, threads=1)
    assert (summary["status"], summary["failed"]) == ("done", 0)
    assert read_json(out / "stages" / "probe" / "summary.json")["status"] == "done"
    found = {row["question_id"]: row["ook"] for row in rows(out / "stages" / "probe")}
    report = read_json(out / "stages" / "probe" / "report.json")
    assert (report["k"], report["n"], report["ook"]) == (4, len(found), sum(found.values()))
    stored = read(out / "rollouts.jsonl")
    assert {row["question_id"] for row in stored} == set(found)
    for row in stored:
        labels = {verdict["aspect"]: verdict["label"] for verdict in row["verdicts"]}
        assert labels["out_of_knowledge"] == ("unknown" if found[row["question_id"]] else "known")
        right, abstains = (labels["answer"] == name for name in ("correct", "uncertain"))
        value = (
            (1.0 if abstains else -1.0)
            if found[row["question_id"]]
            else float(right) - (not right and not abstains)
        )
        assert row["rewards"]["truthrl"]["value"] == value


@pytest.mark.slow
def test_the_command_prints_one_object_or_tables(tmp_path: Path, cli: Cli) -> None:
    """On the shipped policy, the label is better than chance and known facts are answered."""
    command = f"probe --k 8 --limit 60 --kind single --out {tmp_path / 'probe'}"
    result = printed(cli(command, "--json"))
    wanted = "k n ook agreement majority confidence_bins risk_coverage aurc exposure".split()
    assert set(wanted) < set(result) and (result["k"], result["n"]) == (8, 60)
    shares = result["exposure"]
    assert sum(row["n"] for row in shares.values()) == 60
    assert shares[max(shares, key=int)]["correct"] > 0.5 > shares["0"]["correct"]
    assert result["agreement"]["precision"] > shares["0"]["n"] / 60
    code, out, err = cli(command)
    assert code == 0 and "out of knowledge" in out and "documents" in out and "is finished" in err
    assert os.listdir(tmp_path) == ["probe"]
