"""TruthRL's baselines: the paper's settings, and two steps of each on the shipped tiny policy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.short_runs import short_bench
from workbench.bench import Bench, bench
from workbench.experiment import configured, run_experiment
from workbench.inspector.opened import open_row
from workbench.inspector.runs import Runs
from workbench.queue import run_of
from workbench.recipes import BASELINES, METHODS, TRAINED, method, trained
from workbench.recipes.baselines import from_samples, phrase
from workbench.runs.checkpoints import metrics_rows
from workbench.train.sft import sft_stage
from workbench.train.stage import Job
from workbench.types import Feedback, Question, WorkbenchError

SAMPLED = ["drawn.questions=48", "drawn.samples=8"]
STEPS = ["batch=4", "steps=2", "lora_r=4"]
FEW = {
    "sft_gold": [f"sft.{one}" for one in STEPS],
    "r_tuning": [*SAMPLED, *(f"sft.{one}" for one in STEPS)],
    "rft": [*SAMPLED, *(f"sft.{one}" for one in STEPS)],
    "dpo": [*SAMPLED, *(f"dpo.{one}" for one in STEPS)],
    "iterative_dpo": [
        "questions=48",
        "rounds.rounds=2",
        "rounds.samples=8",
        *(f"rounds.dpo.{one}" for one in STEPS),
    ],
}
RULES = {"sft_gold": "gold", "iterative_dpo": "truthrl_pairs", "dpo": "truthrl_pairs"}


def few(count: int) -> Bench:
    return short_bench(slice(count))


def test_defaults_are_the_papers() -> None:
    """Appendix of arXiv 2509.25760: SFT 5e-6 and batch 16, DPO 3e-6 and 32, RFT of 64 samples, 4
    rounds.
    """
    rft, dpo, rounds = (BASELINES[name].configure() for name in ("rft", "dpo", "iterative_dpo"))
    assert (rft.sft.learning_rate, rft.sft.batch) == (5e-6, 16)
    assert (rft.drawn.samples, rft.drawn.temperature, rft.drawn.top_p) == (64, 0.6, 0.9)
    assert (
        (dpo.dpo.learning_rate, dpo.dpo.batch)
        == (rounds.rounds.dpo.learning_rate, rounds.rounds.dpo.batch)
        == (3e-6, 32)
    )
    assert rounds.rounds.rounds == 4


def test_gold_answers_are_said_as_the_prompt_asks_for_them() -> None:
    assert phrase(Question("q", "Where?"), "Oslo") == "Oslo."
    assert phrase(Question("q", "Where?", system=r"Answer in \boxed{}."), "Oslo") == r"\boxed{Oslo}"


def test_baselines_are_trained_and_pay_nothing_of_their_own() -> None:
    assert not set(BASELINES) & set(METHODS) and list(TRAINED) == [*METHODS, *BASELINES]
    # a policy's name and a training's are told apart
    assert not set(TRAINED) & set(bench("tiny").checkpoints)
    assert trained("rft") is BASELINES["rft"] and trained("rlfh") is METHODS["rlfh"]
    for name in BASELINES:
        with pytest.raises(WorkbenchError, match=f"no method '{name}'"):
            method(name)
    with pytest.raises(WorkbenchError, match=r"choose one of rlfh, .*iterative_dpo"):
        trained("nope")


def test_a_queue_takes_them_and_their_steps() -> None:
    found = {name: run_of(name, settings=[f"{name}.eval_samples=0"], steps=3) for name in BASELINES}
    assert len({run.hash for run in found.values()}) == len(BASELINES)
    assert found["dpo"].config.dpo.steps == found["iterative_dpo"].config.rounds.dpo.steps == 3
    assert found["sft_gold"].config.sft.steps == 3
    with pytest.raises(WorkbenchError, match="questions is 0: it must be at least 1"):
        run_of("rft", settings=["rft.drawn.questions=0"])
    with pytest.raises(WorkbenchError, match="questions is 0: it must be at least 1"):
        run_of("iterative_dpo", settings=["iterative_dpo.questions=0"])


def test_what_is_drawn_of_the_samples_depends_on_the_runs_seed(tmp_path: Path) -> None:
    place, seeds = few(2), list[int]()

    def noted(feedbacks: Sequence[Feedback], seed: int) -> Any:
        assert len(feedbacks) == 4
        seeds.append(seed)
        raise WorkbenchError("no rows")  # before anything is trained

    config = BASELINES["rft"].configure("tiny", ["rft.drawn.samples=2"])
    for seed in (3, 4):
        [stage] = from_samples("rft", noted, sft_stage, "sft")(config, place)
        (tmp_path / str(seed)).mkdir()
        with pytest.raises(WorkbenchError, match="no rows"):
            stage.run(Job(place.path("sft"), tmp_path / str(seed), seed))
    assert seeds == [3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FEW))
def test_each_trains_for_two_steps(name: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    place, out = few(72), tmp_path / "runs" / name
    settings = [f"{name}.{one}" for one in (*FEW[name], "eval_samples=0")]
    config = configured(BASELINES[name], place, overrides=settings)
    summary = run_experiment(BASELINES[name], config, place, out, seed=1, threads=2)
    assert (summary["method"], summary["status"], summary["failed"]) == (name, "done", 0)
    assert len(metrics_rows(out)) == 2
    card = json.loads((out / "card.json").read_text())
    assert card["rule"] == RULES.get(name, name) and sum(card["rows"].values()) >= 4
    adapter = load_file(out / "policy" / "adapter_model.safetensors")
    assert any(weight.abs().max() > 0 for key, weight in adapter.items() if "lora_B" in key)
    assert run_experiment(BASELINES[name], config, place, out, seed=1, threads=2) == summary
    if name != "sft_gold":
        runs, record = Runs(tmp_path / "runs"), f"{name}/samples"
        shown = open_row(runs, record, runs.index(record).entries[0].id)
        assert shown.feedback.rewards[name].value in (1.0, 0.0, -1.0)
