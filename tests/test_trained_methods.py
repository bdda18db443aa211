"""Short trainings of the methods on the closed world: stages, rewards and stored rows."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT, examples, read_json, run_python
from tests.helpers.errors import raises_error
from tests.helpers.short_runs import short_bench, stages, weights_moved
from workbench.experiments.evaluate import as_in_training
from workbench.experiments.experiment import configured, run_experiment, stages_of
from workbench.experiments.queue import read_entries, shortened
from workbench.experiments.run import Entry, plan_run
from workbench.methods import METHODS, TRAINED
from workbench.methods.bench import Bench, bench
from workbench.methods.method import scaled
from workbench.methods.rlfh.method import loaded_at_first_batch
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.store import iter_feedback
from workbench.types import (
    REFUTED,
    Checked,
    Claims,
    Feedback,
    JsonObject,
    Question,
    Response,
    Verify,
)
from workbench.verdicts.checks import rule_checks
from workbench.verdicts.llm_judge import named_judge

RUNS = ROOT / "benchmarks" / "findings"
FEW = {
    "steps": 2,
    "prompts_per_step": 3,
    "group_size": 4,
    "max_new_tokens": 32,
    "lora_r": 4,
    "save_every": 1,
}


def trained(
    name: str, settings: Sequence[str], out: Path, /, **parts: Any
) -> tuple[JsonObject, list[Feedback]]:
    place = short_bench(24)
    config = scaled(
        configured(METHODS[name], place, overrides=settings), prompts={"eval_samples": 0}, **parts
    )
    summary = run_experiment(METHODS[name], config, place, out, seed=1, threads=2)
    return summary, list(iter_feedback(out))


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["ppo", "grpo"])
def test_rlfh_trains_on_rewards_at_the_claims_tokens(trainer: str, tmp_path: Path) -> None:
    """With GRPO, all labels are flipped, but only in training."""
    settings = [f"rlfh.trainer={trainer}", *(["rlfh.flips=1"] if trainer == "grpo" else [])]
    summary, rows = trained("rlfh", settings, tmp_path, **{trainer: FEW})
    judged = [
        verdict
        for row in rows
        for verdict in row.verdicts
        if verdict.aspect == "fact" and verdict.label != "vague"
        if not any("unparsed" in item for item in verdict.evidence)
    ]
    by = "world, flipped" if trainer == "grpo" else "world"
    assert judged and {verdict.by for verdict in judged} == {by}
    assert summary["status"] == "done"
    assert summary["after"]["greedy"]["factscore"]["value"] is not None
    assert weights_moved(tmp_path) and len(rows) == 24
    claimed = [row for row in rows if row.claims]
    assert claimed and all(row.response.question.kind == "biography" for row in rows)
    for row in claimed:
        paid = [token for token, value in enumerate(row.rewards["rlfh"].tokens) if value]
        # more than one value per response
        assert len(paid) > 1 and len(set(row.response.advantages)) > 1
    columns = metrics_rows(tmp_path)[-1]
    assert columns["claims"] > 0 and {"reward/truth", "reward/info"} <= set(columns)


@pytest.mark.slow
def test_binary_rar_trains_on_one_value_per_response(tmp_path: Path) -> None:
    summary, rows = trained(
        "binary_rar", ["binary_rar.kinds=numeric,biography"], tmp_path, grpo=FEW
    )
    values = {row.rewards["binary_rar"].value for row in rows}
    assert summary["status"] == "done" and values == {0.0, 1.0} and weights_moved(tmp_path)
    for row in rows:
        contradicted = any(v.label in REFUTED for v in row.verdicts if v.aspect == "fact")
        cut_off = row.response.finish == "length"
        assert row.rewards["binary_rar"].value == float(not (contradicted or cut_off))
        assert len(set(row.response.advantages)) == 1
    # the outcomes of these questions are not checked, and no reward needs them
    assert not any(row["failed"] for row in metrics_rows(tmp_path))


THINKING = ["truthrl.prompts.system=Think first, then answer.", "truthrl.reasoning=additive"]


@pytest.mark.slow
def test_truthrl_rewards_the_reasoning_of_a_policy_that_thinks(tmp_path: Path) -> None:
    """TruthRL, section 4.6: r + λρ with λ = .5, also for an abstention."""
    summary, rows = trained("truthrl", THINKING, tmp_path, grpo={**FEW, "max_new_tokens": 40})
    assert summary["status"] == "done" and weights_moved(tmp_path) and len(rows) == 24
    outcomes = {"correct": 1.0, "uncertain": 0.0, "incorrect": -1.0}
    rho = {"good": 1.0, "poor": 0.0}
    for row in rows:
        found = {verdict.aspect: verdict.label or "" for verdict in row.verdicts}
        expected = outcomes[found["answer"]] + 0.5 * rho[found["reasoning"]]
        assert row.rewards["truthrl"].value == pytest.approx(expected)
    assert {v.label for row in rows for v in row.verdicts if v.aspect == "reasoning"} == {*rho}
    assert all(row.response.text.startswith("<think>") for row in rows)


TINY = [
    file
    for file in sorted(RUNS.glob("*_runs.toml"))
    if any(run.bench == "tiny" for run in read_entries(file))
]


@pytest.mark.filterwarnings("ignore")  # some arms have settings that the methods warn of
@pytest.mark.parametrize("file", TINY, ids=lambda file: file.stem)
def test_the_runs_of_the_findings_can_be_trained(file: Path) -> None:
    """In full, and shortened for a trial. A setting without effect would be refused."""
    for run in read_entries(file):
        for entry in (run, shortened(run)) if run.seed == 1 else ():
            method, place = TRAINED[entry.method], short_bench(12)
            config = configured(method, place, overrides=entry.settings)
            assert stages_of(method, config, place, entry.seed)


def test_the_weightings_of_klcfs_table_2() -> None:
    """Shares of (checklist, truth, general). All but the base, which has weights 0, are runs."""
    shares = {}
    for run in read_entries(RUNS / "klcf_weights_runs.toml"):
        config = configured(TRAINED["klcf"], short_bench(12), overrides=run.settings)
        weights = (config.w_check, config.w_truth, config.w_general)
        shares[run.name] = [round(weight / sum(weights), 3) for weight in weights]
    assert shares == {
        "no_truth": [0.5, 0, 0.5],
        "less_truth": [0.5, 0.25, 0.25],
        "equal": [0.333, 0.333, 0.333],
        "less_general": [0.4, 0.4, 0.2],
        "no_check": [0, 0.5, 0.5],
        "truth": [0, 1, 0],
    }


@pytest.mark.slow
def test_planning_a_run_does_not_import_torch() -> None:
    """Torch would also fix its number of threads before it is set."""
    code = (
        "import sys; from pathlib import Path; from workbench.experiments.queue import *;"
        " plan_run(Entry('rlfh', settings=(sys.argv[1],)), Path());"
        " print('torch' in sys.modules)"
    )
    planned = run_python("-c", code, "rlfh.annotator=self")
    assert planned.stdout.split() == ["False"], planned.stderr


def test_an_annotators_requirements_are_checked_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.verifier.verifier.SHIPPED", tmp_path / "nowhere")
    with raises_error("nowhere: no verifier there"):
        plan_run(Entry("rlfh", settings=("rlfh.annotator=local",)), tmp_path)
    with raises_error(r"--judge URL --judge-model NAME"):
        stages_of(
            METHODS["rlfh"],
            METHODS["rlfh"].configure("tiny", ["rlfh.annotator=self"]),
            replace(short_bench(9), hash="x"),
            1,
        )


def test_a_check_is_loaded_once_and_keeps_the_random_state() -> None:
    import torch

    made: list[float] = []

    def make() -> Verify:
        made.append(torch.rand(1).item())
        return lambda batch: [Checked(()) for _ in batch]

    verify, row = (
        loaded_at_first_batch(make),
        (Response("r", Question("q", "?"), ""), Claims((), ())),
    )
    torch.manual_seed(5)
    expected = torch.rand(1).item()
    torch.manual_seed(5)
    assert made == []
    assert [len(verify([row] * count)) for count in (2, 1)] == [2, 1]
    assert len(made) == 1
    assert torch.rand(1).item() == expected


@pytest.mark.slow
@pytest.mark.parametrize("annotator", ["self", pytest.param("recall", marks=pytest.mark.nightly)])
def test_annotators_judge_only_in_training(annotator: str, tmp_path: Path) -> None:
    settings, how = [f"rlfh.annotator={annotator}"], {**FEW, "micro_batch": None}
    summary, rows = trained("rlfh", settings, tmp_path, ppo=how)
    assert summary["status"] == "done" and weights_moved(tmp_path)
    facts = [verdict for row in rows for verdict in row.verdicts if verdict.aspect == "fact"]
    failed = [verdict.error.kind for verdict in facts if verdict.error]
    # an unreadable reply gives no verdict
    assert set(failed) <= {"unparsed"} and len(failed) <= 0.02 * len(facts)
    judged = [
        verdict for verdict in facts if not any("unparsed" in item for item in verdict.evidence)
    ]
    assert judged and all(verdict.by == annotator for verdict in judged)
    evaluated = summary["after"]["greedy"]
    # the world judges the evaluation, with subject verdicts
    assert evaluated["factscore_on_subject"]["value"] is not None


@pytest.mark.slow
def test_knowrl_trains_after_a_cold_start_on_its_own_samples(tmp_path: Path) -> None:
    cold = {"cold_samples": 2, "cold_questions": 16}
    summary, rows = trained(
        "knowrl", [], tmp_path, grpo=FEW, cold=cold, sft={"steps": 2, "batch": 2, "lora_r": 4}
    )
    assert summary["status"] == "done" and weights_moved(tmp_path)
    stage = tmp_path / "stages" / "cold_start"
    card = read_json(stage / "card.json")
    assert card["rule"] == "cold_start_knowrl"
    assert card["questions"] == 16
    assert sum(card["rows"].values()) > 0
    assert (stage / "policy" / "model.safetensors").exists()
    system = METHODS["knowrl"].scales["tiny"].prompts.system
    for policy in (stage / "policy", tmp_path / "policy"):
        [first, *_] = as_in_training(bench("tiny"), str(policy)).questions("test")
        assert first.system == system
    assert all(row.response.question.system == system for row in rows)
    parts = {part for row in rows for part in row.rewards["knowrl"].parts}
    assert parts == {"format", "correct", "fact"}
    assert any(claim.section == "think" for row in rows for claim in row.claims)


@pytest.mark.parametrize(("settings", "message"), examples("refused_settings"))
def test_invalid_settings_are_refused_before_any_work(
    settings: str, message: str, tmp_path: Path
) -> None:
    refuse(settings.split(), short_bench(12), message, tmp_path / "run")


def test_flips_require_a_fact_check(tmp_path: Path) -> None:
    place = replace(short_bench(4), judge=rule_checks)
    refuse(["rlfh.flips=0.3"], place, "no check fact", tmp_path / "run")


@pytest.mark.parametrize("judge", [None, "local", "http://127.0.0.1:9", "local+http://127.0.0.1:9"])
@pytest.mark.parametrize("mode", ["pipeline", "single_pass"])
def test_rewards_for_off_subject_claims_require_the_judge_of_the_closed_world(
    judge: str | None, mode: str, tmp_path: Path
) -> None:
    """No other judge says which claims are about another subject, so no reward would be known."""
    model = "m" if judge and "http" in judge else None
    place = bench("small").with_judge(named_judge(judge, model))
    wanted = "leave rlfh.off_subject out, or train with --bench tiny"
    refuse(["rlfh.off_subject=wrong", f"rlfh.mode={mode}"], place, wanted, tmp_path / "run")
    assert stages(METHODS["rlfh"], short_bench(4), ["rlfh.off_subject=wrong"])


def refuse(settings: Sequence[str], place: Bench, message: str, out: Path) -> None:
    method = TRAINED[settings[0].partition(".")[0]]
    with raises_error(re.escape(message)):
        run_experiment(method, configured(method, place, overrides=settings), place, out, seed=1)
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "setting", "meant"),
    [
        ("knowrl", "steps=3", "knowrl.grpo.steps=3 or knowrl.sft.steps=3"),
        (
            "forag",
            "lora_r=8",
            "forag.ppo.lora_r=8 or forag.reward_model.lora_r=8 or forag.sft.lora_r=8",
        ),
    ],
)
def test_a_setting_shared_by_two_trainings_must_be_qualified(
    name: str, setting: str, meant: str
) -> None:
    """Otherwise a longer training would also lengthen its cold start."""
    with raises_error(f"{name}.{setting}: .* write {meant}$"):
        METHODS[name].configure("tiny", [f"{name}.{setting}"])
    usual = METHODS[name].configure("tiny")
    changed = METHODS[name].configure("tiny", [meant.partition(" ")[0]])
    assert changed != usual and changed.sft == usual.sft


def test_the_number_of_steps_applies_to_the_last_stage() -> None:
    place = short_bench(4)
    assert configured(METHODS["rlfh"], place, 7).ppo.steps == 7
    assert configured(METHODS["rlfh"], place, 7, ["rlfh.trainer=grpo"]).grpo.steps == 7
    config = configured(METHODS["knowrl"], place, 7)
    assert (config.grpo.steps, config.sft.passes.steps) == (7, None)
