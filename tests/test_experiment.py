"""Experiments: from start to summary, killed and resumed, and refused before any write."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import examples, modified, read_json, write_json
from tests.helpers.errors import raises_error
from tests.helpers.small_bench import NAMES, SETTINGS, SMALL, all_questions, make_bench
from tests.helpers.tiny_model import make_policy
from workbench.experiments.evaluate import evaluate_policy
from workbench.experiments.experiment import max_failed, run_experiment, totals
from workbench.experiments.run import Entry, plan_run
from workbench.methods import METHODS, TRAINED, trained
from workbench.methods.bench import Bench
from workbench.methods.method import scaled
from workbench.metrics import rates
from workbench.metrics.rows import file_of
from workbench.policies.generate import generate
from workbench.policies.load import load_policy
from workbench.runs.folder import lock
from workbench.runs.store import append_feedback, iter_feedback
from workbench.training.stage import Job, Stage, Status
from workbench.types import (
    Checked,
    Checks,
    Cost,
    Failure,
    Feedback,
    JsonObject,
    Question,
    Response,
    Reward,
    Verdict,
)
from workbench.util.failures import TooManyFailures
from workbench.verdicts.checks import rule_checks

TRUTHRL = METHODS["truthrl"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path / "policy")


def run(
    bench: Bench, out: Path, config: Any = SMALL, *, seed: int = 3, threads: int | None = 1
) -> JsonObject:
    return run_experiment(TRUTHRL, config, bench, out, seed=seed, threads=threads)


@pytest.mark.slow
def test_run_from_start_to_summary_and_again(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    summary = run(bench, out)
    assert summary == read_json(out / "summary.json")
    assert list(summary)[:4] == ["method", "config", "seed", "threads"]
    assert {*"versions world_hash policy_hash before after seconds cost status".split()} < set(
        summary
    )
    # also for a method whose default differs: a config without `retrieved` has 0
    other = replace(SMALL, prompts=replace(SMALL.prompts, retrieved=1))
    method = replace(TRUTHRL, scales={bench.name: other})
    assert run_experiment(method, SMALL, bench, out, seed=3, threads=1) == summary
    assert (summary["method"], summary["seed"], summary["threads"], summary["status"]) == (
        "truthrl",
        3,
        1,
        "done",
    )
    assert summary["before"]["split"] == summary["after"]["split"] == "validation"
    assert summary["before"]["n"] == len(NAMES)  # without the question that has no gold answer
    for when in ("before", "after"):  # the greedy answers, for paired comparisons
        stored = rates(list(iter_feedback(out / "evaluation" / f"{when}.jsonl")))
        assert stored["accuracy"] == summary[when]["greedy"]["accuracy"]["value"]
    assert file_of(out) == out / "evaluation" / "after.jsonl"
    assert summary["cost"]["calls"] == 0 and summary["failed"] == 0
    assert read_json(out / "config.json")["versions"] == summary["versions"]
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 2
    assert not capsys.readouterr().out  # only the command line writes to stdout

    before = modified(out)
    assert run(bench, out) == summary
    assert "is finished" in capsys.readouterr().err
    assert modified(out) == before
    with raises_error(r"another run \(seed is 3, not 4\)"):
        run(bench, out, seed=4)


def test_a_negative_seed_is_refused(bench: Bench, tmp_path: Path) -> None:
    with raises_error("the seed is -1"):
        run(bench, tmp_path / "run", seed=-1)
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use_is_refused(bench: Bench, tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with lock(tmp_path / "run"), raises_error("another process is using"):
        run(bench, tmp_path / "run", threads=None)
    assert not (tmp_path / "run" / "config.json").exists()


def test_rollouts_without_reward_are_counted(tmp_path: Path) -> None:
    asked, failure = Question("q", "?"), Failure("judge", "unreadable", "garbled")
    rewards = [{"m": Reward(1.0)}, {"m": Reward(None, error=failure)}, {"other": Reward(1.0)}]
    rows = [
        Feedback(Response(str(n), asked, ""), rewards=reward, cost=Cost(calls=2))
        for n, reward in enumerate(rewards)
    ]
    rows.append(Feedback(Response("3", asked, ""), rewards={"m": Reward(1.0)}, error=failure))
    append_feedback(tmp_path, rows)
    found = totals([tmp_path / "rollouts.jsonl"], "m")
    assert found["failed"] == 3 and found["cost"]["calls"] == 6


@pytest.mark.slow
def test_interrupted_evaluation_is_an_interrupted_run(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("workbench.experiments.experiment.evaluate_policy", interrupt)
        assert run(bench, tmp_path / "run")["status"] == "interrupted"
    assert run(bench, tmp_path / "run", threads=None)["status"] == "done"


@pytest.mark.slow
def test_a_run_with_an_older_config_format_resumes(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(bench, out)
    summary = read_json(out / "summary.json")
    stored = read_json(out / "config.json")
    flat = {**asdict(SMALL), **asdict(SMALL)["grpo"], **asdict(SMALL)["prompts"]}
    old = {name: flat[name] for name in flat if name not in ("grpo", "prompts", "eval_kinds")}
    write_json(out / "config.json", {**stored, "config": old})
    assert run(bench, out) == summary
    (out / "summary.json").unlink()
    assert run(bench, out)["status"] == "done"
    write_json(out / "config.json", {**stored, "config": {**old, "learning_rate": 0.5}})
    with raises_error(r"config\.grpo\.optim\.learning_rate is 0\.5, not 0\.01"):
        run(bench, out)


@pytest.mark.slow
def test_a_failed_evaluation_is_repeated_and_not_stored(bench: Bench, tmp_path: Path) -> None:
    def fail(batch: Any) -> list[Checked]:
        return [
            Checked((Verdict("outcome", "answer", error=Failure("judge", "server", "it is away")),))
            for _ in batch
        ]

    away, out = (
        replace(bench, judge=lambda: Checks(rule_checks().extract, {"outcome": fail})),
        tmp_path / "run",
    )
    summary = run(away, out)
    assert (summary["status"], summary["before"]) == ("too_many_failures", None) and not (
        out / "before.json"
    ).exists()
    allowed = run(away, tmp_path / "allowed", scaled(SMALL, grpo={"max_failed": 1.0}))
    assert allowed["before"]["greedy"]["failed"] == len(NAMES)
    assert run(bench, out)["before"]["greedy"]["failed"] == 0


@pytest.mark.parametrize(("method", "settings", "share"), examples("failure_limits"))
def test_the_failure_limit_is_that_of_the_used_trainer(
    method: str, settings: list[str], share: float
) -> None:
    chosen = trained(method)
    assert (
        max_failed(chosen, chosen.configure("tiny", [f"{method}.{one}" for one in settings]))
        == share
    )


def test_an_evaluation_fails_if_its_facts_fail(bench: Bench) -> None:
    """Failed fact verdicts count as failures even with outcomes; missing inputs do not."""
    output = rule_checks().extract([Response("r", Question("q", "?"), "Ada was born in Rome.")])[0]

    def facts(kind: str) -> Any:
        error = Failure("verify", kind, "the search is away")
        return lambda batch: [
            Checked((Verdict("claim:0", "fact", None, error=error),)) for _ in batch
        ]

    def place(kind: str) -> Bench:
        read = Checks(
            lambda responses: [output for _ in responses],
            {**rule_checks().verify, "fact": facts(kind)},
        )
        return replace(bench, judge=lambda: read)

    with pytest.raises(
        TooManyFailures,
        match=r"10 of 10 answers .* could not be graded \(validation-Ada/0: the search is away\)",
    ):
        evaluate_policy("sft", "validation", place("timeout"), samples=0, threads=1, max_failed=0.9)
    assert evaluate_policy(
        "sft", "validation", place("no_gold"), samples=0, threads=1, max_failed=0.0
    )["n"] == len(NAMES)


@pytest.mark.slow
def test_methods_and_benches_are_named_on_the_command_line(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(entry: Entry, out: Path) -> JsonObject:
        return plan_run(entry, tmp_path, lambda name, questions: bench).train(out)

    summary = train(Entry("truthrl", 3, "test", SETTINGS, 1, threads=1), tmp_path / "run")
    assert summary["config"]["grpo"]["steps"] == 2  # the setting overrides the argument
    monkeypatch.setitem(TRAINED, "klcf", replace(TRAINED["klcf"], stages=None))
    with raises_error("'klcf' computes rewards but has no training"):
        train(Entry("klcf"), tmp_path / "other")
    with raises_error("no method 'nope'"):
        train(Entry("nope"), tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_a_stage_starts_from_the_policy_of_the_stage_before(bench: Bench, tmp_path: Path) -> None:
    """A first stage with another policy: the last stage's adapter is trained on it, evaluated with
    it and loaded with it."""

    def cold_start(job: Job) -> Status:
        make_policy(job.out / "policy", seed=7)
        return "done"

    def stages(config: Any, bench: Bench) -> list[Stage]:
        assert TRUTHRL.stages is not None
        return [Stage("cold_start", cold_start), *TRUTHRL.stages(config, bench)]

    out = tmp_path / "run"
    summary = run_experiment(replace(TRUTHRL, stages=stages), SMALL, bench, out, seed=3, threads=1)
    made = out / "stages" / "cold_start" / "policy"
    assert read_json(out / "policy" / "adapter_config.json")["base_model_name_or_path"] == str(made)
    moved = out.rename(tmp_path / "moved")
    again = evaluate_policy(str(moved), "validation", bench, samples=1, seed=3, threads=1)
    assert {**again, "policy": ""} == {**summary["after"], "policy": ""}
    over_it, over_the_bench = bench.load(str(moved)), load_policy(moved, base=bench.path("sft"))
    drawn = [
        [
            r.logprobs
            for r in generate(
                policy, all_questions("test")[:2], max_new_tokens=3, greedy=True, logprobs=True
            )
        ]
        for policy in (over_it, over_the_bench)
    ]
    assert drawn[0] != drawn[1]
