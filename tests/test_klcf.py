"""Short KLCF trainings on the closed world: stages, output files, rewards and refused settings."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import read_json
from tests.helpers.errors import raises_error
from tests.helpers.short_runs import short_bench, stages, weights_moved
from workbench.experiments.experiment import configured, identity_of, run_experiment
from workbench.experiments.prepare import prepare_klcf
from workbench.methods import METHODS
from workbench.methods.bench import Bench
from workbench.methods.klcf.prepared import source_of
from workbench.methods.method import scaled
from workbench.pipeline import rescore
from workbench.runs.store import iter_feedback
from workbench.text import well_formed
from workbench.types import JsonObject
from workbench.util.jsonl import iter_rows

KLCF = METHODS["klcf"]
PREPARE = {"samples": 2, "questions": 6}
FEW: JsonObject = {
    "prompts": {"eval_samples": 0},
    "prepare": PREPARE,
    "truth_model": {"epochs": None, "steps": 2, "batch": 4, "lora_r": 4},
    "drawn": {"samples": 3},
    "grpo": {"steps": 2, "prompts_per_step": 2, "group_size": 2, "lora_r": 4, "save_every": 1},
    "dpo": {"steps": 2, "batch": 2, "lora_r": 4, "save_every": 1},
}


def few(each: int = 100) -> Bench:
    return short_bench(each=each)


def config_of(settings: Sequence[str] = ()) -> Any:
    return scaled(configured(KLCF, few(), overrides=settings), **FEW)


def run(config: Any, out: Path) -> JsonObject:
    return run_experiment(KLCF, config, few(80), out, seed=1, threads=1)


@pytest.mark.slow
def test_grpo_uses_rewards_of_the_checklist_and_the_truthfulness_model(tmp_path: Path) -> None:
    summary = run(config_of(), tmp_path)
    rows, made = list(iter_feedback(tmp_path)), tmp_path / "stages"
    assert summary["status"] == "done" and summary["failed"] == 0 and weights_moved(tmp_path)
    assert summary["policy"] == "base" and summary["after"]["policy"] == "base+klcf"
    assert summary["before"]["greedy"]["factscore"]["value"] is not None

    lists = {
        row["question_id"]: tuple(row["items"])
        for row in iter_rows(made / "prepare" / "checklists.jsonl")
    }
    asked = {question.id for question in few(80).questions("rl", ["biography"])}
    assert set(lists) <= asked and len(rows) == 8
    assert {row["question_id"] for row in iter_rows(made / "prepare" / "truth.jsonl")} <= asked
    held = read_json(made / "truth" / "held_out.json")
    assert {"accuracy", "f1", "auc", "ece", "untuned"} <= set(held)
    card = read_json(made / "truth" / "model" / "reward_model.json")
    assert card["policy"] == source_of(few(), None).base  # always tuned from the base
    for row in rows:
        assert row.response.question.checklist == lists[row.response.question.id]
        truths = [v.p or 0.0 for v in row.verdicts if v.aspect == "truth"]
        paid = row.rewards["klcf"]
        assert len(truths) == len(row.claims) and paid.parts["stood_in"] == 0.0
        assert paid.parts["truth"] == pytest.approx(sum(truths) / max(len(truths), 1))
        terms = (paid.parts["check"] + paid.parts["truth"]) / 2
        assert paid.value == pytest.approx(terms + paid.parts["length"])
        assert (
            rescore(row, {"klcf": KLCF.reward(KLCF.configure("tiny"))}).rewards["klcf"] == paid
        )  # recomputed from the row


@pytest.mark.slow
def test_the_format_of_thinking_is_rewarded(tmp_path: Path) -> None:
    """Equations 8 and 10: the format part is 0 for a response with both pairs of tags. Any other
    response has format −1 and no reward for its content.
    """
    settings = ["klcf.start=sft", "klcf.form=true", "klcf.rewarded=judge"]
    thinking = [*settings, "klcf.prompts.system=Think first, then answer."]
    # 24 tokens end some responses before their tags are closed
    config = scaled(config_of(thinking), grpo={"max_new_tokens": 24, "group_size": 4})
    summary = run(config, tmp_path)
    rows = list(iter_feedback(tmp_path))
    assert summary["status"] == "done" and len(rows) == 16
    formed = [well_formed(row.response.text, row.response.prefill) for row in rows]
    assert {*formed} == {True, False}
    for row, whole in zip(rows, formed, strict=True):
        parts = row.rewards["klcf"].parts
        assert parts["format"] == (0 if whole else -1) and ("check" in parts) == whole
        assert whole or row.rewards["klcf"].value == parts["format"] + parts["length"]


@pytest.mark.nightly
def test_rewards_use_a_general_model_and_the_bases_confidence(tmp_path: Path) -> None:
    config = scaled(
        config_of(["klcf.rewarded=confidence", "klcf.w_general=2"]),
        general_model=FEW["truth_model"],
    )
    summary = run(config, tmp_path)
    rows, made = list(iter_feedback(tmp_path)), tmp_path / "stages"
    assert summary["status"] == "done" and rows and weights_moved(tmp_path)
    assert not (made / "truth" / "model").exists()
    assert read_json(made / "truth" / "confidence.json")["slope"]
    held = read_json(made / "general" / "held_out.json")
    assert held["strangers"] == held["rows"] == held["segments"] > 0  # people outside its rows
    for row in rows:
        paid = row.rewards["klcf"]
        [general] = [verdict for verdict in row.verdicts if verdict.aspect == "general"]
        assert general.p == paid.parts["general"] and paid.parts["stood_in"] == 0
        terms = paid.parts["check"] + paid.parts["truth"] + 2 * paid.parts["general"]
        assert paid.value == pytest.approx(terms / 4 + paid.parts["length"])


@pytest.mark.nightly
def test_dpo_from_a_prepared_folder_prefers_the_best_answers(
    tmp_path: Path,
) -> None:
    place, prepared = few(80), tmp_path / "prepared"
    settings = [f"klcf.prepare.{name}={value}" for name, value in PREPARE.items()]
    card = prepare_klcf(prepared, place, seed=2, threads=1, overrides=settings)
    assert card["status"] == "done" and card["samples"]["all"] == 12 and card["known"]["items"] > 0
    # the stored card
    assert prepare_klcf(prepared, place, seed=2, threads=1, overrides=settings) == card
    with raises_error("seed is 2, not 3"):
        prepare_klcf(prepared, place, seed=3, threads=1, overrides=settings)
    config = scaled(
        config_of(["klcf.trainer=dpo", "klcf.start=sft", "klcf.rewarded=judge"]),
        prepare={"folder": str(prepared)},
    )
    summary = run(config, tmp_path / "run")
    assert summary["status"] == "done"
    assert summary["policy"] == "sft"
    assert weights_moved(tmp_path / "run")
    assert read_json(tmp_path / "run" / "card.json")["rule"] == "best_worst"
    for name in ("checklists.jsonl", "truth.jsonl", "card.json"):
        assert (tmp_path / "run" / "stages" / "prepare" / name).read_bytes() == (
            prepared / name
        ).read_bytes()
    shutil.rmtree(prepared)
    # a finished run does not need its prepared folder
    assert run(config, tmp_path / "run") == summary


def test_the_settings_determine_the_stages() -> None:
    def stage_names(*settings: str) -> list[str]:
        return [stage.name for stage in stages(KLCF, few(), settings)]

    assert stage_names() == ["prepare", "truth", "grpo"]
    for without_truth in (["klcf.w_truth=0"], ["klcf.w_check=0", "klcf.rewarded=judge"]):
        assert stage_names(*without_truth) == ["prepare", "grpo"]
    assert stage_names("klcf.rewarded=confidence") == ["prepare", "truth", "grpo"]
    assert stage_names("klcf.trainer=dpo") == ["prepare", "truth", "dpo"]
    assert stage_names("klcf.w_general=1", "klcf.w_truth=0") == ["prepare", "general", "grpo"]
    # no Unsloth if grading runs a model
    for settings, plain in (((), True), (("klcf.w_check=0", "klcf.rewarded=judge"), False)):
        assert stages(KLCF, few(), settings)[-1].plain is plain
    assert [stage.cache_key is not None for stage in stages(KLCF, few())] == [True, True, False]


def test_a_run_starts_from_the_base_or_the_requested_policy() -> None:
    place = few()

    def start(place: Bench, *settings: str) -> Any:
        return identity_of(KLCF, configured(KLCF, place, overrides=settings), place, seed=1)[
            "policy"
        ]

    named = place.with_policy(place.checkpoints["sft"])
    assert (start(place), start(place, "klcf.start=sft"), start(named)) == (
        "base",
        "sft",
        named.policy,
    )
    assert source_of(place, None).base == place.checkpoints["base"] == source_of(named, "base").base
    assert source_of(named, None).base == named.policy  # without a known base: its own base
    truthrl = METHODS["truthrl"]
    assert identity_of(truthrl, truthrl.configure("tiny"), place, seed=1)["policy"] == "sft"


def test_the_identity_of_a_run_has_its_base_and_preparation(tmp_path: Path) -> None:
    place, prepared = few(), tmp_path / "prepared"

    def of(*settings: str, policy: str | None = None) -> JsonObject:
        there = place.with_policy(policy)
        return identity_of(KLCF, configured(KLCF, there, overrides=settings), there, seed=1)

    base, other = tmp_path / "base", place.checkpoints["sft"]
    shutil.copytree(place.checkpoints["base"], base)
    # the base is the initial policy
    for same in (of(), of(policy=str(base)), of(f"klcf.base={base}")):
        assert not {"base_hash", "prepared_hash"} & same.keys()
    assert of("klcf.start=sft")["base_hash"] == of(f"klcf.base={base}", policy=other)["base_hash"]
    before = of("klcf.start=sft", f"klcf.base={base}")
    shutil.copyfile(Path(other) / "model.safetensors", base / "model.safetensors")
    (base / "config.json").write_text((base / "config.json").read_text() + " ")
    changed = of("klcf.start=sft", f"klcf.base={base}")
    assert {key for key in before if before[key] != changed[key]} == {"base_hash"}

    setting = f"klcf.prepare.folder={prepared}"
    prepared.mkdir()
    for name in ("checklists.jsonl", "truth.jsonl", "card.json"):
        assert of(setting)["prepared_hash"] is None  # no finished preparation
        (prepared / name).write_text("{}\n")
    before = of(setting)["prepared_hash"]
    (prepared / "truth.jsonl").write_text('{"changed": true}\n')
    assert before and None is not of(setting)["prepared_hash"] != before
