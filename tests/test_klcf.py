"""KLCF, trained for a few steps on the closed world: its stages, what they leave, and what is
refused.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.test_klcf_prepare import true_of
from workbench.bench import Bench, bench
from workbench.experiment import configured, identity_of, run_experiment, stages_of
from workbench.grade import rescore
from workbench.jsonl import iter_rows
from workbench.prepare import prepare_klcf
from workbench.queue.entries import read_entries
from workbench.recipes import METHODS
from workbench.recipes.klcf_stages import source_of
from workbench.recipes.method import scaled
from workbench.reproduce import load_findings
from workbench.store import iter_feedback
from workbench.train.scorer import load_reward_model
from workbench.types import WorkbenchError

FINDINGS = Path(__file__).resolve().parent.parent / "benchmarks" / "findings"
KLCF = METHODS["klcf"]
PREPARE = {"samples": 2, "questions": 6}
FEW: dict[str, Any] = {
    "prompts": {"eval_samples": 0},
    "prepare": PREPARE,
    "truth_model": {"epochs": None, "steps": 2, "batch": 4, "lora_r": 4},
    "drawn": {"samples": 3},
    "grpo": {"steps": 2, "prompts_per_step": 2, "group_size": 2, "lora_r": 4, "save_every": 1},
    "dpo": {"steps": 2, "batch": 2, "lora_r": 4, "save_every": 1},
}


def few(each: int = 100) -> Bench:
    """The tiny bench with one of so many questions of each split."""
    tiny = bench("tiny")
    return replace(tiny, questions=lambda *args, **kwargs: tiny.questions(*args, **kwargs)[::each])


def config_of(settings: Sequence[str] = ()) -> Any:
    return scaled(configured(KLCF, few(), overrides=settings), **FEW)


def weights_moved(out: Path) -> bool:
    from safetensors.torch import load_file

    adapter = load_file(out / "policy" / "adapter_model.safetensors")
    return any(weight.abs().max() > 0 for name, weight in adapter.items() if "lora_B" in name)


def stage_names(*settings: str) -> list[str]:
    return [
        stage.name
        for stage in stages_of(KLCF, configured(KLCF, few(), overrides=settings), few(), 1)
    ]


@pytest.mark.slow
def test_grpo_is_paid_by_the_checklist_and_by_a_model_of_what_the_base_holds_true(
    tmp_path: Path,
) -> None:
    summary = run_experiment(KLCF, config_of(), few(80), tmp_path, seed=1, threads=1)
    rows = list(iter_feedback(tmp_path))
    assert (
        summary["status"] == "done"
        and summary["failed"] == 0
        and weights_moved(tmp_path)
        and len(rows) == 8
    )
    assert summary["policy"] == "base" and summary["after"]["policy"] == "base+klcf"
    assert summary["before"]["greedy"]["factscore"]["value"] is not None

    stage = tmp_path / "stages" / "prepare"
    lists = {
        row["question_id"]: tuple(row["items"]) for row in iter_rows(stage / "checklists.jsonl")
    }
    asked = {question.id for question in few(80).questions("rl", ["biography"])}
    assert (
        lists and set(lists) <= asked and {row.response.question.id for row in rows} <= set(lists)
    )
    assert all(row.response.question.checklist == lists[row.response.question.id] for row in rows)
    assert {row["question_id"] for row in iter_rows(stage / "truth.jsonl")} <= asked
    held = json.loads((tmp_path / "stages" / "truth" / "held_out.json").read_text())
    assert {"accuracy", "f1", "auc", "ece", "untuned"} <= set(held)
    scorer = load_reward_model(tmp_path / "stages" / "truth" / "model")
    assert scorer.level == "sequence"
    card = json.loads((tmp_path / "stages" / "truth" / "model" / "reward_model.json").read_text())
    assert card["policy"] == source_of(few(), None).base  # tuned from the base, whatever is trained

    for row in rows:
        told = [v.p for v in row.verdicts if v.aspect == "truth"]
        paid = row.rewards["klcf"]
        assert len(told) == len(row.claims) and paid.parts["stood_in"] == 0.0
        assert paid.parts["truth"] == pytest.approx(
            sum(p or 0.0 for p in told) / len(told) if told else 0.0
        )
        assert paid.parts["consistent"] + paid.parts["contradictory"] + paid.parts[
            "missing"
        ] == len(row.response.question.checklist)
        assert paid.value == pytest.approx(
            (paid.parts["check"] + paid.parts["truth"]) / 2 + paid.parts["length"]
        )
        again = rescore(row, {"klcf": KLCF.reward(KLCF.configure("tiny"))})
        assert again.rewards["klcf"] == paid  # from the row alone


@pytest.mark.nightly
def test_the_bases_own_confidence_is_paid_where_that_is_asked_for(tmp_path: Path) -> None:
    summary = run_experiment(
        KLCF,
        config_of(["klcf.rewarded=confidence", "klcf.w_check=0"]),
        few(80),
        tmp_path,
        seed=1,
        threads=1,
    )
    rows, stage = list(iter_feedback(tmp_path)), tmp_path / "stages" / "truth"
    assert summary["status"] == "done" and rows and weights_moved(tmp_path)
    assert (
        not (stage / "model").exists()
        and json.loads((stage / "confidence.json").read_text())["slope"]
    )
    assert {"auc", "ece", "untuned"} <= set(json.loads((stage / "held_out.json").read_text()))
    told = [verdict for row in rows for verdict in row.verdicts if verdict.aspect == "truth"]
    assert told and {verdict.by for verdict in told} == {"the base's confidence"}
    assert all(row.rewards["klcf"].parts["stood_in"] == 0 for row in rows)


@pytest.mark.nightly
def test_good_form_is_paid_by_a_model_of_the_bases_own_answers(tmp_path: Path) -> None:
    place, prepared = few(80), tmp_path / "prepared"
    settings = [f"klcf.prepare.{name}={value}" for name, value in PREPARE.items()]
    prepare_klcf(prepared, place, seed=2, threads=1, overrides=settings)
    config = scaled(
        config_of(["klcf.w_general=2", "klcf.w_truth=0"]),
        prepare={"folder": str(prepared)},
        general_model={"epochs": None, "steps": 2, "batch": 4, "lora_r": 4},
    )
    summary = run_experiment(KLCF, config, place, tmp_path / "run", seed=1, threads=1)
    rows, stage = list(iter_feedback(tmp_path / "run")), tmp_path / "run" / "stages" / "general"
    assert summary["status"] == "done" and rows and weights_moved(tmp_path / "run")
    held = json.loads((stage / "held_out.json").read_text())
    # of people whom it has not learnt from
    assert held["strangers"] == held["rows"] == held["segments"] > 0
    for row in rows:
        paid, [told] = row.rewards["klcf"], [one for one in row.verdicts if one.aspect == "general"]
        assert (
            told.p == paid.parts["general"] and told.by == "the base's own answers, whole or spoilt"
        )
        assert paid.value == pytest.approx(
            (paid.parts["check"] + 2 * paid.parts["general"]) / 3 + paid.parts["length"]
        )
    shutil.rmtree(prepared / "samples")
    with pytest.raises(WorkbenchError, match=r"name one by\s+klcf\.general"):
        run_experiment(KLCF, config, place, tmp_path / "other", seed=1, threads=1)
    assert not (tmp_path / "other").exists()
    again = run_experiment(KLCF, config, place, tmp_path / "run", seed=1, threads=1)
    assert again == summary  # a finished run is shown, whatever has gone since


@pytest.mark.slow
def test_dpo_prefers_the_best_of_some_answers_from_a_folder_that_was_prepared(
    tmp_path: Path,
) -> None:
    place, prepared = few(80), tmp_path / "prepared"
    settings = [f"klcf.prepare.{name}={value}" for name, value in PREPARE.items()]
    card = prepare_klcf(prepared, place, seed=2, threads=1, overrides=settings)
    assert card["status"] == "done" and card["samples"]["all"] == 12 and card["known"]["items"] > 0
    # as it is stored
    assert prepare_klcf(prepared, place, seed=2, threads=1, overrides=settings) == card
    with pytest.raises(WorkbenchError, match="seed is 2, not 3"):
        prepare_klcf(prepared, place, seed=3, threads=1, overrides=settings)
    config = scaled(
        config_of(["klcf.trainer=dpo", "klcf.start=sft", "klcf.rewarded=judge"]),
        prepare={"folder": str(prepared)},
    )
    summary = run_experiment(KLCF, config, place, tmp_path / "run", seed=1, threads=1)
    assert (
        summary["status"] == "done"
        and summary["policy"] == "sft"
        and weights_moved(tmp_path / "run")
    )
    assert json.loads((tmp_path / "run" / "card.json").read_text())["rule"] == "best_worst"
    for name in ("checklists.jsonl", "truth.jsonl", "card.json"):
        assert (tmp_path / "run" / "stages" / "prepare" / name).read_bytes() == (
            prepared / name
        ).read_bytes()
    assert not (tmp_path / "run" / "stages" / "prepare" / "samples").exists()


def test_the_stages_are_those_that_the_settings_need() -> None:
    assert stage_names() == ["prepare", "truth", "grpo"]
    assert (
        stage_names("klcf.w_truth=0")
        == stage_names("klcf.w_check=0", "klcf.rewarded=judge")
        == ["prepare", "grpo"]
    )
    assert stage_names("klcf.rewarded=confidence") == ["prepare", "truth", "grpo"]
    assert stage_names("klcf.trainer=dpo") == ["prepare", "truth", "dpo"]
    assert stage_names("klcf.w_general=1", "klcf.w_truth=0") == ["prepare", "general", "grpo"]
    # Unsloth would change what pays
    for settings, plain in (((), True), (("klcf.w_check=0", "klcf.rewarded=judge"), False)):
        assert (
            stages_of(KLCF, configured(KLCF, few(), overrides=settings), few(), 1)[-1].plain
            is plain
        )
    shared = stages_of(KLCF, configured(KLCF, few()), few(), 1)
    assert [stage.rests_on is not None for stage in shared] == [True, True, False]


def test_a_run_starts_from_the_base_or_from_what_is_asked_for() -> None:
    place = few()

    def start(place: Bench, *settings: str) -> Any:
        return identity_of(KLCF, configured(KLCF, place, overrides=settings), place, seed=1)[
            "policy"
        ]

    named = place.starting_from(place.checkpoints["sft"])
    assert (start(place), start(place, "klcf.start=sft"), start(named)) == (
        "base",
        "sft",
        named.policy,
    )
    assert source_of(place, None).base == place.checkpoints["base"] == source_of(named, "base").base
    assert source_of(named, None).base == named.policy  # nobody says of which base it is: of itself
    truthrl = METHODS["truthrl"]
    assert identity_of(truthrl, truthrl.configure("tiny"), place, seed=1)["policy"] == "sft"


def test_a_run_is_another_one_with_another_base_or_another_preparation(tmp_path: Path) -> None:
    place, prepared = few(), tmp_path / "prepared"

    def of(*settings: str, policy: str | None = None) -> dict[str, Any]:
        there = place.starting_from(policy)
        return identity_of(KLCF, configured(KLCF, there, overrides=settings), there, seed=1)

    base, other = tmp_path / "base", place.checkpoints["sft"]
    shutil.copytree(place.checkpoints["base"], base)
    # it is the start
    assert not {"base_hash", "prepared_hash"} & {
        *of(),
        *of(policy=str(base)),
        *of(f"klcf.base={base}"),
    }
    assert of("klcf.start=sft")["base_hash"] == of(f"klcf.base={base}", policy=other)["base_hash"]
    before = of("klcf.start=sft", f"klcf.base={base}")
    shutil.copyfile(Path(other) / "model.safetensors", base / "model.safetensors")
    (base / "config.json").write_text((base / "config.json").read_text() + " ")
    changed = of("klcf.start=sft", f"klcf.base={base}")
    assert {key for key in before if before[key] != changed[key]} == {"base_hash"}

    setting = f"klcf.prepare.folder={prepared}"
    prepared.mkdir()
    for name in ("checklists.jsonl", "truth.jsonl", "card.json"):
        assert of(setting)["prepared_hash"] is None  # nothing finished lies there
        (prepared / name).write_text("{}\n")
    seen = {of(setting)["prepared_hash"]}
    for name in ("checklists.jsonl", "truth.jsonl", "card.json"):
        (prepared / name).write_text(f'{{"changed": "{name}"}}\n')
        seen.add(of(setting)["prepared_hash"])
    assert len(seen) == 4 and None not in seen


@pytest.mark.nightly
def test_a_run_that_has_copied_its_preparation_goes_on_without_it(tmp_path: Path) -> None:
    place, prepared, out = few(), tmp_path / "prepared", tmp_path / "run"
    prepared.mkdir()
    source, asked = source_of(place, None), place.questions("rl", ["biography"])[0]
    rows = {
        "checklists.jsonl": {"question_id": asked.id, "items": [true_of(asked, "profession")]},
        "card.json": {**source.identity()},
    }
    for name in ("checklists.jsonl", "truth.jsonl", "card.json"):
        (prepared / name).write_text(json.dumps(rows[name]) + "\n" if name in rows else "")
    settings = scaled(
        config_of(["klcf.rewarded=judge"]),
        grpo={"steps": 1, "prompts_per_step": 1, "max_new_tokens": 16},
    )
    config = replace(
        settings, prepare=replace(KLCF.configure("tiny").prepare, folder=str(prepared))
    )
    begun = identity_of(KLCF, config, place, seed=1)
    stage = out / "stages" / "prepare"
    shutil.copytree(prepared, stage)
    (out / "config.json").write_text(json.dumps(begun))
    shutil.rmtree(prepared)
    with pytest.raises(WorkbenchError, match="holds no finished preparation"):
        run_experiment(KLCF, config, place, out, seed=1)  # killed while it was copying
    (stage / "summary.json").write_text('{"status": "done"}')
    summary = run_experiment(KLCF, config, place, out, seed=1)
    assert (
        summary["status"] == "done"
        and [row.response.question.checklist for row in iter_feedback(out)]
        == [(true_of(asked, "profession"),)] * 2
    )
    stored = json.loads((out / "config.json").read_text())
    assert {name: stored[name] for name in begun} == begun and begun["prepared_hash"]
    with pytest.raises(WorkbenchError, match="holds no finished preparation"):
        run_experiment(KLCF, config, place, tmp_path / "other", seed=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["klcf.judged_by=truth"], "training makes its own truthfulness model"),
        (["klcf.w_general=0.2", "klcf.general=no/such/model"], "one output"),
        (["klcf.w_general=0.2", "klcf.general_scale=4"], "does not use general_scale"),
        (["klcf.general=some/model"], "does not use general"),
        (
            ["klcf.w_general=1", "klcf.general_model.max_length=64"],
            "general_model.max_length is 64",
        ),
        (["klcf.truth_model.max_length=96"], "truth_model.max_length is 96"),
        (["klcf.general_model.batch=4"], "does not use general_model"),
        (["klcf.w_check=0", "klcf.w_truth=0"], "one must be above"),
        (["klcf.l_cache=0"], "l_cache is 0"),
        (["klcf.level=token"], "leave level and loss out"),
        (["klcf.held_out=1"], "held_out is 1.0: it must be below 1"),
        (["klcf.held_out=0.3", "klcf.rewarded=judge"], "leave it out"),
        (["klcf.prepare.samples=0"], "samples is 0"),
        (["klcf.drawn.samples=4"], "does not use drawn"),
        (["klcf.dpo.beta=1"], "does not use dpo"),
        (["klcf.trainer=dpo", "klcf.grpo.beta=1"], "does not use grpo"),
        (["klcf.trainer=dpo", "klcf.drawn.samples=1"], "samples is 1"),
        (["klcf.rewarded=judge", "klcf.truth_model.batch=4"], "does not use truth_model"),
        (["klcf.rewarded=confidence", "klcf.truth_model.batch=4"], "does not use truth_model"),
        (["klcf.prepare.folder=nowhere", "klcf.prepare.samples=4"], "does not use prepare"),
        (["klcf.prepare.folder=nowhere"], "holds no finished preparation"),
        (["klcf.base=no/such/base"], "no policy folder"),
        (["klcf.kinds=nonsense"], "nonsense"),
        (["klcf.start=one"], "choose one of zero, sft"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_begun(
    settings: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(WorkbenchError, match=message.replace(".", r"\.")):
        run_experiment(
            KLCF, configured(KLCF, few(), overrides=settings), few(), tmp_path / "run", seed=1
        )
    assert not (tmp_path / "run").exists()


def test_the_runs_of_the_findings_can_be_trained() -> None:
    runs = read_entries(FINDINGS / "klcf_runs.toml")
    compared = {
        arm
        for one in load_findings(FINDINGS / "klcf.toml")
        for c in one.contrasts
        for arm in (c.of, c.minus)
    }
    assert compared - {"start"} <= {run.name for run in runs} and [
        one.id for one in load_findings(FINDINGS / "klcf.toml")
    ]
    for run in runs[::3]:
        assert stages_of(KLCF, configured(KLCF, few(), 2, run.settings), few(), run.seed)
