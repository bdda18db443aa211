"""`workbench.trl_reward`: the methods' rewards as a function for training scripts of TRL."""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import workbench
from tests.helpers import examples
from tests.helpers.errors import raises_error
from tests.helpers.tiny_model import byte_tokenizer
from workbench.judge import endpoint
from workbench.methods.bench import Bench, bench
from workbench.methods.knowrl.config import KnowRL
from workbench.runs.store import iter_feedback
from workbench.scoring.imports import import_completions
from workbench.types import Batch, Checked, Checks, JsonObject, Question, Verify
from workbench.util.threads import use_threads
from workbench.verdicts.checks import (
    judge_checks,
    local_checks,
    local_first_checks,
    real_checks,
    world_checks,
)
from workbench.world import load_world


@pytest.fixture(scope="module")
def checks() -> Checks:
    return world_checks(load_world())


def conversation(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def test_plain_and_conversational_completions_earn_the_same(
    checks: Checks, country: Question
) -> None:
    reward = workbench.trl_reward("truthrl", checks)
    said = [f"{country.answers[0]}.", "I don't know.", "Nowhere."]
    columns = {"answers": [list(country.answers)] * 3, "id": [7, 7, 7]}
    assert reward(prompts=[country.text] * 3, completions=said, **columns) == [1.0, 0.0, -1.0]
    asked = [
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": country.text}]
    ] * 3
    assert reward(prompts=asked, completions=[conversation(text) for text in said], **columns) == [
        1.0,
        0.0,
        -1.0,
    ]
    assert reward.__name__ == "workbench_truthrl"


def test_the_judge_completes_missing_columns(checks: Checks, country: Question) -> None:
    """The world finds questions by their text. Without gold answers, the outcome of another
    question is a failure.
    """
    reward = workbench.trl_reward("truthrl", checks)
    assert reward([country.text], [country.answers[0]]) == [1.0]
    assert reward(["What now?"] * 10, ["Rome"] * 10, answer=["Rome"] * 9 + [None]) == [1.0] * 9 + [
        None
    ]
    with raises_error(r"1 of 1 completions could not be scored .*\(verify: .*no gold answers"):
        reward(["What now?"], ["Rome"])
    assert workbench.trl_reward("truthrl", checks, max_failed=1.0)(["What now?"], ["Rome"]) == [
        None
    ]


@pytest.mark.parametrize(
    ("recipe", "settings", "value"),
    [
        # 1·g(4) and ln(1 + g(4)): a country is of importance 4
        ("rlfh", [], 1.2 + 0.7884573603642703),
        (KnowRL(form=0.5), ["knowrl.correct=3"], -0.5 + 3),
    ],
)
def test_every_method_computes_a_reward(
    recipe: Any, settings: list[str], value: float, checks: Checks, country: Question
) -> None:
    reward = workbench.trl_reward(recipe, checks, settings=settings)
    assert reward([country.text], [f"{country.answers[0]}."]) == [pytest.approx(value)]


TOKENS = [("binary_rar", "binary_rar.truncated=true"), ("klcf", "klcf.l_max=none")]


@pytest.mark.parametrize(("recipe", "without"), TOKENS)
def test_a_reward_of_tokens_requires_a_tokenizer_and_the_sampled_ids(
    recipe: str, without: str, checks: Checks, country: Question
) -> None:
    """A text does not show that it was cut off, and its words are not the policy's tokens."""
    tokenizer, said = byte_tokenizer(), f"{country.answers[0]}."
    settings = ["klcf.form=false", "klcf.w_check=0"] if recipe == "klcf" else []
    with raises_error(rf"tokenizer=TOKENIZER\), or set {without}"):
        workbench.trl_reward(recipe, checks, settings=settings)
    reward = workbench.trl_reward(recipe, checks, settings=settings, tokenizer=tokenizer)
    with raises_error(f"completion_ids, such as GRPOTrainer, or set {without}"):
        reward([country.text], [said])
    plain = workbench.trl_reward(recipe, checks, settings=[*settings, without])
    assert plain([country.text], [said]) == [1.0]


def test_a_cut_off_completion_earns_nothing_by_binary_rar(
    checks: Checks, country: Question
) -> None:
    tokenizer, said = byte_tokenizer(), f"{country.answers[0]}."
    ids = tokenizer.encode(said)
    reward = workbench.trl_reward("binary_rar", checks, tokenizer=tokenizer)
    sampled = [[*ids, tokenizer.eos_token_id], ids]
    assert reward([country.text] * 2, [said] * 2, completion_ids=sampled) == [1.0, 0.0]


def test_feedback_is_logged_and_stored(tmp_path: Path, checks: Checks, country: Question) -> None:
    metrics: dict[str, float] = {}
    extra: dict[str, list] = {}
    reward = workbench.trl_reward("rlfh", checks, out=tmp_path)
    said = [f"{country.answers[0]}.", "I don't know."]
    reward(
        [country.text] * 2,
        said,
        log_metric=metrics.__setitem__,
        log_extra=extra.__setitem__,
        trainer_state=SimpleNamespace(global_step=4),
        unknown_column=[1, 2],
        passages=[["One.", {"title": "T", "text": "Two."}]] * 2,
    )
    assert metrics == {
        "rlfh/failed": 0.0,
        "rlfh/lacking": 0.0,
        "rlfh/claims": 0.5,
        "rlfh/unplaced": 0.0,
    }
    assert [set(json.loads(parts)) for parts in extra["rlfh_parts"]] == [{"truth", "info"}] * 2
    assert extra["rlfh_error"] == ["", ""]
    kept = list(iter_feedback(tmp_path))
    assert [row.response.text for row in kept] == said
    assert [(row.response.step, row.response.sample) for row in kept] == [(5, 0), (5, 1)]
    assert [sum(row.rewards["rlfh"].tokens) for row in kept] == pytest.approx(
        [row.rewards["rlfh"].value for row in kept]
    )


def test_every_call_stores_rows_with_new_ids(tmp_path: Path, checks: Checks) -> None:
    """Twice at one step, at the next one, and by a script that repeats the step."""
    for steps in ([4, 4, 5], [5]):
        reward = workbench.trl_reward("truthrl", checks, out=tmp_path)
        for step in steps:
            state = SimpleNamespace(global_step=step)
            reward(["Q?"] * 2, ["A", "B"], answers=[["A"]] * 2, trainer_state=state)
    rows = [row.response for row in iter_feedback(tmp_path)]
    assert len({row.id for row in rows}) == 8 and len({row.group for row in rows}) == 4
    assert [row.step for row in rows] == [5, 5, 5, 5, 6, 6, 6, 6]


@pytest.mark.parametrize("empty", [None, [], "", [None], [""]])
@pytest.mark.parametrize("column", ["answers", "answer"])
def test_a_row_without_gold_answers_is_not_a_failure(
    checks: Checks, column: str, empty: object
) -> None:
    metrics: dict[str, float] = {}
    reward = workbench.trl_reward("truthrl", checks)
    for gold in ([["A"], empty, empty, empty], [empty] * 4):
        columns: JsonObject = {column: gold, "log_metric": metrics.__setitem__}
        assert reward(["Q?"] * 4, ["A"] * 4, **columns)[1:] == [None] * 3
    assert (metrics["truthrl/failed"], metrics["truthrl/lacking"]) == (0.0, 1.0)


@pytest.mark.parametrize("judge", [local_checks, real_checks, lambda: bench("small")])
def test_a_reward_by_the_local_verifier_warns(judge: Callable[[], Checks | Bench]) -> None:
    """Also if a table of facts decides about some claims."""
    given = judge()
    with pytest.warns(UserWarning, match="does not see relations.*docs/trust.md"):
        workbench.trl_reward("rlfh", given)
    with warnings.catch_warnings(action="error"):  # no claim is verified
        workbench.trl_reward("truthrl", given)


def test_a_reward_by_another_judge_does_not_warn(checks: Checks) -> None:
    model = endpoint("http://127.0.0.1:9/v1", "m")
    with warnings.catch_warnings(action="error"):
        for judge in (checks, judge_checks(model), local_first_checks(model)):
            workbench.trl_reward("rlfh", judge)


def test_a_check_may_be_an_object_without_a_hash(checks: Checks) -> None:
    @dataclass
    class Check:
        verify: Verify

        def __call__(self, batch: Batch) -> list[Checked]:
            return self.verify(batch)

    own = replace(checks, verify={**checks.verify, "fact": Check(checks.verify["fact"])})
    with warnings.catch_warnings(action="error"):  # it is not the local verifier
        workbench.trl_reward("rlfh", own)


def test_there_is_no_default_judge() -> None:
    for judge in ((), (None,), ("http://127.0.0.1:1/v1",)):
        with raises_error(r"needs a judge.*local_checks\(\)"):
            workbench.trl_reward("rlfh", *judge)


def test_mistakes_are_reported_before_training(checks: Checks) -> None:
    for recipe, settings, message in examples("refused_recipes"):
        with raises_error(message):
            workbench.trl_reward(recipe, checks, settings=settings)


@pytest.mark.slow
def test_plain_grpo_trainer(policy: str, tmp_path: Path, checks: Checks) -> None:
    """In two steps of TRL's own trainer, weights change and rewards are logged."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    tokenizer = AutoTokenizer.from_pretrained(policy)
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    asked = bench("tiny").questions("rl")[:4]
    rows = [
        {"prompt": q.messages(), "id": q.id, "answers": list(q.answers), "kind": q.kind}
        for q in asked
    ]
    reward = workbench.trl_reward("knowrl", checks, tokenizer=tokenizer, out=tmp_path / "kept")
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=[
            reward,
            lambda completion_ids, **_: [float(ids[0] % 5) for ids in completion_ids],
        ],
        args=GRPOConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=2,
            per_device_train_batch_size=8,
            num_generations=4,
            max_completion_length=6,
            learning_rate=1e-2,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            seed=1,
            log_completions=True,
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    )
    with use_threads(1):
        trainer.train()
    steps = [log for log in trainer.state.log_history if "loss" in log]
    assert len(steps) == 2 and all(
        "rewards/workbench_knowrl/mean" in log and log["knowrl/failed"] == 0 for log in steps
    )
    assert any(not torch.equal(before[name], value) for name, value in model.state_dict().items())
    kept = list(iter_feedback(tmp_path / "kept"))
    assert len(kept) == 16 and len({row.response.id for row in kept}) == 16
    assert all(len(row.rewards["knowrl"].tokens) == len(row.response.token_ids) > 0 for row in kept)
    values = [row.rewards["knowrl"].value for row in kept]
    logged = [log["rewards/workbench_knowrl/mean"] for log in steps]
    assert [sum(values[:8]) / 8, sum(values[8:]) / 8] == pytest.approx(logged)  # type: ignore[arg-type]
    # TRL's own log has the same completions.
    summary = import_completions("trl", tmp_path / "out" / "completions", tmp_path / "logged.jsonl")
    assert (summary["rows"], summary["malformed"]) == (16, 0)
    read = list(iter_feedback(tmp_path / "logged.jsonl"))
    assert [row.rewards["trl:workbench_knowrl"].value for row in read] == pytest.approx(values)
    assert [row.response.step for row in read] == [1] * 8 + [2] * 8


def test_a_tag_that_the_prompt_opens_is_part_of_the_response(checks: Checks) -> None:
    """KnowRL: 1 for the format and 1 for the refusal, with the tag in prompt or completion."""
    reward = workbench.trl_reward("knowrl", checks)
    rest = "Who knows?</think><answer>I don't know</answer>"
    columns = {"question": ["Where?"], "answers": [["Rome"]]}
    assert (
        reward(["Q?\n<think>\n"], [rest], **columns)
        == reward(["Q?"], [f"<think>{rest}"], **columns)
        == [2.0]
    )
    assert reward(["Q?"], [rest], **columns) == [0.0]  # no open tag


def test_the_error_of_a_failed_batch_names_missing_and_present_columns() -> None:
    reward, gold = workbench.trl_reward("truthrl", "rules"), ["Paris", "Paris"]
    with raises_error(r"no column answers or answer; the data set has solution"):
        reward(["Where?"] * 2, ["Paris.", "Rome."], solution=gold, completion_ids=None)
