"""FoRAG trained for a few steps on the closed world: its stages, their files, its questions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT, read_json
from tests.helpers.short_runs import short_bench, stages, weights_moved
from workbench.experiments.evaluate import as_in_training
from workbench.experiments.experiment import configured, identity_of, run_experiment, stages_of
from workbench.experiments.queue import read_entries, shortened
from workbench.methods import METHODS
from workbench.methods.bench import TINY_POLICY, Bench, bench, questions_hash
from workbench.methods.forag.run import Run
from workbench.methods.method import scaled
from workbench.pipeline import rescore
from workbench.runs.folder import differences
from workbench.runs.store import iter_feedback
from workbench.training.stage import Job, order
from workbench.types import JsonObject, Reward
from workbench.util.config import find, get
from workbench.world import load_world

# a folder, whose world is not checked: answers come from passages, not from memory
POLICY = str(TINY_POLICY / "sft")
FORAG = METHODS["forag"]
RL = {"steps": 2, "max_new_tokens": 64, "lora_r": 4, "save_every": 1}
TUNING = {"epochs": None, "steps": 2, "batch": 4, "lora_r": 4}
FEW: JsonObject = {
    "prompts": {"eval_samples": 0},
    "cold": {"cold_samples": 2, "cold_questions": 8},
    "sft": TUNING,
    "drawn": {"questions": 8, "samples": 2},
    "held_out": 0.25,
    "references": 2,
    "reward_model": TUNING,
    "ppo": {**RL, "prompts_per_step": 4},
    "grpo": {**RL, "prompts_per_step": 2, "group_size": 2},
    "tuned": TUNING,
}


def few(count: int) -> Bench:
    return short_bench(count, POLICY)


def config_of(settings: Sequence[str] = ()) -> Any:
    return scaled(configured(FORAG, few(12), overrides=settings), **FEW)


@pytest.mark.slow
def test_ppo_rewards_are_reward_model_scores_minus_the_reference_baseline(tmp_path: Path) -> None:
    summary = run_experiment(FORAG, config_of(), few(12), tmp_path, seed=1, threads=1)
    rows, made = list(iter_feedback(tmp_path)), tmp_path / "stages"
    assert summary["status"] == "done" and summary["failed"] == 0 and weights_moved(tmp_path)
    assert summary["before"]["greedy"]["factscore"]["value"] is not None and len(rows) == 8

    card = read_json(made / "cold_start" / "card.json")
    assert card["rule"] == "cold_start_forag" and card["samples"] == 16
    # the samples have a system prompt; the trained policy needs none
    cold = as_in_training(bench("tiny"), str(made / "cold_start" / "policy"))
    assert not cold.questions("ood", ("yes_no",))[0].system
    for sample in iter_feedback(made / "cold_start" / "samples"):
        assert sample.response.question.system == config_of().cold.told and not sample.rewards

    held = read_json(made / "reward_model" / "held_out.json")
    assert held["segments"] > 0 and 0 <= held["accuracy"] <= 1 and 0 <= held["ece"] <= 1
    own: dict[str, list[Reward]] = {}
    for sample in iter_feedback(made / "reference" / "samples"):
        own.setdefault(sample.response.question.id, []).append(sample.rewards["forag"])
    assert set(own) == {row.response.question.id for row in rows}  # the questions of RL
    for row in rows:
        segments = [v for v in row.verdicts if v.aspect == "factuality"]
        [baseline] = [v for v in row.verdicts if v.aspect == "baseline"]
        references = own[row.response.question.id]
        if count := sum(one.parts["segments"] for one in references):
            assert baseline.p == pytest.approx(sum(one.value or 0.0 for one in references) / count)
        paid = row.rewards["forag"]
        assert paid.parts["segments"] == len(segments) + paid.parts["unfinished"]
        assert paid.parts["stood_in"] == 0.0 and paid.value == pytest.approx(
            sum(v.p or 0.0 for v in segments) - (baseline.p or 0.0) * paid.parts["segments"]
        )
        alone = {"forag": FORAG.reward(replace(FORAG.configure("tiny"), baseline=True))}
        assert rescore(row, alone).rewards["forag"] == paid  # rescored from the row alone
    assert any(len(set(row.response.advantages)) > 1 for row in rows)

    # With a language model as judge, training sends it no request: rules find the sentences, and
    # the reward model scores them.
    finished = {name: made / name for name in ("reward_model", "reference")}
    run = Run(config_of(), [], few(12).checks, model_alone=True)
    pay = run.training_grade(Job(POLICY, tmp_path, 1, finished), compared=True)
    scored = pay([row.response for row in rows])
    assert {v.aspect for row in scored for v in row.verdicts} == {"factuality", "baseline"}
    assert all(row.rewards["forag"].value is not None for row in scored)


@pytest.mark.nightly
def test_unlikelihood_learns_from_judged_samples(tmp_path: Path) -> None:
    config = scaled(config_of(["forag.trainer=unlikelihood"]), drawn={"questions": 12})
    summary = run_experiment(FORAG, config, few(12), tmp_path, seed=1, threads=1)
    assert summary["status"] == "done" and weights_moved(tmp_path)
    card = read_json(tmp_path / "card.json")
    assert card["rule"] == "unlikely" and card["samples"] == 24 and "not factual" in card["rows"]
    assert not (tmp_path / "stages" / "reward_model").exists()


@pytest.mark.parametrize("name", ["forag", "klcf"])
def test_the_runs_of_the_findings_can_be_trained_in_full_and_for_two_steps(name: str) -> None:
    method, place = METHODS[name], short_bench(12)
    for run in read_entries(ROOT / "benchmarks" / "findings" / f"{name}_runs.toml")[::3]:
        for entry, steps in ((run, None), (run, 2), (shortened(run), None)):
            config = configured(method, place, steps, entry.settings)
            assert stages_of(method, config, place, run.seed)
            last = find(config, f"{method.training(config).trainer}.steps")[0]
            assert steps is None or get(config, last) == 2


def test_cold_start_and_reward_model_share_questions_only_if_there_are_too_few() -> None:
    asked = few(30).questions("rl", ["two_facets"])

    def drawn(count: int | None, seed: int = 1) -> tuple[list[str], list[str]]:
        config = scaled(
            config_of(), cold={"cold_questions": count or 1}, drawn={"questions": count}
        )
        run = Run(config, asked, few(30).checks)
        return [q.id for q in run.cold_questions(seed)], [q.id for q in run.judged_questions(seed)]

    cold, judged = drawn(15)
    assert len(set(cold)) == len(set(judged)) == 15 and set(cold).isdisjoint(judged)
    assert len({*drawn(20)[0], *drawn(20)[1]}) == 30
    assert cold != [asked[number].id for number in order(30, 15, 1)]  # the order of RL
    assert set(drawn(15, seed=2)[0]) != set(cold)


def test_a_runs_identity_includes_its_two_facet_questions() -> None:
    """The world hash does not cover these questions."""
    place, truthrl = few(12), METHODS["truthrl"]
    own = identity_of(FORAG, config_of(), place, seed=1)
    assert own["questions_hash"] == questions_hash(load_world().two_facets)
    default = identity_of(truthrl, truthrl.configure("tiny"), place, seed=1)
    # `retrieved` is a later setting: at its default, it does not change the hash of older runs
    assert "questions_hash" not in default and "retrieved" not in default["config"]["prompts"]
    evaluated = truthrl.configure("tiny", ["truthrl.eval_kinds=two_facets"])
    assert identity_of(truthrl, evaluated, place, seed=1)["questions_hash"] == own["questions_hash"]
    fewer = questions_hash(load_world().two_facets[:-1])
    changed = identity_of(
        FORAG, config_of(), replace(place, questions_hash=lambda kinds: fewer), seed=1
    )
    assert [line.split()[0] for line in differences(own, changed)] == ["questions_hash"]


def test_the_settings_determine_the_stages() -> None:
    def stage_names(settings: Sequence[str]) -> list[str]:
        return [stage.name for stage in stages(FORAG, few(12), settings)]

    assert stage_names([]) == ["cold_start", "reward_model", "reference", "ppo"]
    assert stage_names(["forag.trainer=grpo"]) == ["cold_start", "reward_model", "grpo"]
    assert stages(FORAG, few(12), ["forag.trainer=grpo"])[-1].plain  # the reward is a model's score
    assert stage_names(["forag.cold_samples=0", "forag.baseline=false"]) == ["reward_model", "ppo"]
    assert stage_names(["forag.rewarded=judge"]) == ["cold_start", "reference", "ppo"]
    assert stage_names(["forag.trainer=unlikelihood"]) == ["cold_start", "unlikelihood"]
