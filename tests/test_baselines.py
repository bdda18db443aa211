"""TruthRL's baselines: the paper's settings, and two steps of each on the shipped tiny policy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import read_json
from tests.helpers.errors import raises_error
from tests.helpers.short_runs import short_bench, weights_moved
from workbench.experiments.experiment import configured, run_experiment, stages_of
from workbench.methods import BASELINES, METHODS, TRAINED, method, trained
from workbench.methods.bench import bench
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.store import iter_feedback
from workbench.training.pairs import phrase
from workbench.training.settings import Sampling
from workbench.training.stage import Job
from workbench.types import Feedback, Question, WorkbenchError
from workbench.util.config import scaled

SAMPLED = ["drawn.questions=48", "drawn.samples=8"]
STEPS = ["batch=4", "steps=2", "lora_r=4"]
FEW = {
    "sft_gold": [f"sft.{one}" for one in STEPS],
    "r_tuning": [*SAMPLED, *(f"sft.{one}" for one in STEPS)],
    "rft": [*SAMPLED, *(f"sft.{one}" for one in STEPS)],
    "dpo": [*SAMPLED, *(f"dpo.{one}" for one in STEPS)],
    "iterative_dpo": [
        "rounds=2",
        *SAMPLED,
        *(f"dpo.{one}" for one in STEPS),
    ],
    "fact_tune": ["drawn.questions=16", "drawn.samples=4", *(f"dpo.{one}" for one in STEPS)],
}
RULES = {"sft_gold": "gold", "iterative_dpo": "truthrl_pairs", "dpo": "truthrl_pairs"}
RULES["fact_tune"] = "best_worst"


def test_defaults_are_the_papers() -> None:
    """Appendix of arXiv 2509.25760: SFT 5e-6 and batch 16, DPO 3e-6 and 32, RFT of 64 samples, 4
    rounds.
    """
    rft, dpo, rounds = (BASELINES[name].configure() for name in ("rft", "dpo", "iterative_dpo"))
    assert (rft.sft.optim.learning_rate, rft.sft.passes.batch) == (5e-6, 16)
    assert (rft.drawn.samples, rft.drawn.sampling) == (64, Sampling(0.6, 0.9, 2048))
    assert dpo.dpo == rounds.dpo and (dpo.rounds, rounds.rounds) == (1, 5)
    assert (dpo.dpo.optim.learning_rate, dpo.dpo.passes.batch) == (3e-6, 32)


def test_gold_answers_are_phrased_as_the_prompt_requires() -> None:
    assert phrase(Question("q", "Where?"), "Oslo") == "Oslo."
    formed = "<think>By the sea.</think><answer>Oslo</answer>"
    assert phrase(Question("q", "Where?"), formed) == formed
    assert phrase(Question("q", "Where?", system=r"Answer in \boxed{}."), "Oslo") == r"\boxed{Oslo}"


def test_baselines_can_be_trained_but_are_not_reward_methods() -> None:
    assert not set(BASELINES) & set(METHODS) and list(TRAINED) == [*METHODS, *BASELINES]
    # no policy has the name of a trained method
    assert not set(TRAINED) & set(bench("tiny").checkpoints)
    assert trained("rft") is BASELINES["rft"] and trained("rlfh") is METHODS["rlfh"]
    for name in BASELINES:
        with raises_error(f"no method '{name}'"):
            method(name)
    with raises_error(r"choose one of rlfh, .*iterative_dpo"):
        trained("nope")


def test_every_round_of_every_run_samples_with_another_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []

    def noted(feedbacks: Sequence[Feedback], seed: int) -> Any:
        assert len(feedbacks) == 2 * 2
        seeds.append(seed)
        raise WorkbenchError("no pairs")  # stop before training

    monkeypatch.setattr("workbench.methods.baselines.method.truthrl_pairs", noted)
    place = short_bench(2)
    for name, rounds in (("dpo", 1), ("iterative_dpo", 2)):
        config = scaled(BASELINES[name].configure("tiny"), drawn={"samples": 2}, rounds=rounds)
        for seed in (3, 4):
            for stage in stages_of(BASELINES[name], config, place, seed):
                (folder := tmp_path / name / str(seed) / stage.name).mkdir(parents=True)
                with raises_error("no pairs"):
                    stage.run(Job(place.path("sft"), folder, seed))
    assert seeds[:2] == [3, 4] and len(set(seeds[2:])) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.nightly if one == "r_tuning" else ()) for one in FEW],
)
def test_each_baseline_trains_for_two_steps(name: str, tmp_path: Path) -> None:
    place, out = short_bench(each=40), tmp_path / "runs" / name
    settings = [f"{name}.{one}" for one in (*FEW[name], "eval_samples=0")]
    config = configured(BASELINES[name], place, overrides=settings)
    summary = run_experiment(BASELINES[name], config, place, out, seed=1, threads=2)
    assert (summary["method"], summary["status"]) == (name, "done")
    # a refusal has no claims, so its FActScore is undefined
    assert summary["failed"] == 0 or name == "fact_tune"
    assert len(metrics_rows(out)) == 2
    card = read_json(out / "card.json")
    assert card["rule"] == RULES.get(name, name) and sum(card["rows"].values()) >= 4
    if name == "iterative_dpo":  # a round starts from the previous round's policy
        first = out / "stages" / "dpo-1"
        base = read_json(out / "policy" / "adapter_config.json")
        assert base["base_model_name_or_path"] == str(first / "policy")
        drawn = [list(iter_feedback(folder / "samples")) for folder in (first, out)]
        assert [f.response.text for f in drawn[0]] != [f.response.text for f in drawn[1]]
    assert weights_moved(out)
    assert run_experiment(BASELINES[name], config, place, out, seed=1, threads=2) == summary
