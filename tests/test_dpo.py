"""DPO: loss and margins by hand, refused pairs, and sampling that resumes after a kill."""

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tests.helpers.offline_run as run
from tests.helpers.errors import raises_error
from tests.helpers.grpo_run import QUESTIONS, grade
from tests.helpers.tiny_model import make_policy
from tests.test_formats import names
from workbench.policies import hf
from workbench.policies.generate import Sampling
from workbench.policies.load import load_policy
from workbench.runs.checkpoints import metrics_rows
from workbench.training.collect import collect
from workbench.training.offline import train_offline
from workbench.training.rows import Pair, encode_example
from workbench.types import Question
from workbench.util.config import scaled

ALL = scaled(run.PREFERRED, batch=10, micro_batch=5, schedule="constant", warmup=0.0)


def log_ratios(policy: str, out: Path) -> tuple[list[tuple[float, int]], list[tuple[float, int]]]:
    """log π/π_ref and token count of each chosen and each rejected answer, computed by the
    generation engine.
    """
    start, end = load_policy(policy), load_policy(out, base=policy)
    sides = []
    for texts in ([pair.chosen for pair in run.PAIRS], [pair.rejected for pair in run.PAIRS]):
        laid = [
            encode_example(start.tokenizer, pair.question, text)
            for pair, text in zip(run.PAIRS, texts, strict=True)
        ]
        own, reference = (
            hf.token_logprobs(one.model, one.tokenizer.pad_token_id, laid) for one in (end, start)
        )
        sides.append([(sum(a) - sum(b), len(a)) for a, b in zip(own, reference, strict=True)])
    return sides[0], sides[1]


def sigmoid_loss(chosen: tuple[float, int], rejected: tuple[float, int], beta: float) -> float:
    return math.log1p(math.exp(-beta * (chosen[0] - rejected[0])))


def ipo_loss(chosen: tuple[float, int], rejected: tuple[float, int], beta: float) -> float:
    return (chosen[0] / chosen[1] - rejected[0] / rejected[1] - 1 / (2 * beta)) ** 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "by_hand"),
    [("sigmoid", sigmoid_loss), pytest.param("ipo", ipo_loss, marks=pytest.mark.slow)],
)
def test_the_loss_by_hand_and_a_growing_margin(
    policy: str, tmp_path: Path, kind: Any, by_hand: Any
) -> None:
    """The second step's loss is computed per pair with the weights after the first step."""
    config = scaled(ALL, loss_type=kind, beta=0.5)
    assert (
        train_offline(scaled(config, steps=1), run.PAIRS, policy, tmp_path / "one", seed=1)
        == "done"
    )
    assert (
        train_offline(scaled(config, steps=2), run.PAIRS, policy, tmp_path / "two", seed=1)
        == "done"
    )
    first, second = metrics_rows(tmp_path / "two")
    assert first.keys() == names("metrics of dpo")
    assert first["loss"] == pytest.approx(by_hand((0.0, 1), (0.0, 1), 0.5))
    assert first["rewards/margins"] == 0.0
    chosen, rejected = log_ratios(policy, tmp_path / "one")
    losses = [by_hand(*both, 0.5) for both in zip(chosen, rejected, strict=True)]
    assert second["loss"] == pytest.approx(sum(losses) / 10, rel=1e-3)
    margins = [0.5 * (a - b) for (a, _), (b, _) in zip(chosen, rejected, strict=True)]
    assert second["rewards/margins"] == pytest.approx(sum(margins) / 10, rel=1e-2)
    assert sum(margins) > 0
    assert second["rewards/accuracies"] == pytest.approx(sum(margin > 0 for margin in margins) / 10)
    assert second["tokens"] == sum(count for _, count in (*chosen, *rejected))
    assert second["loss"] < first["loss"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "no rows to train on"),
        (
            [replace(run.PAIRS[0], rejected=run.PAIRS[0].chosen)],
            "question 'q0' has the same text as chosen and rejected",
        ),
        ([replace(run.PAIRS[0], chosen=" ")], "question 'q0' has an empty text"),
    ],
)
def test_missing_equal_and_empty_pairs_are_refused(
    tmp_path: Path, bad: list[Pair], message: str
) -> None:
    with raises_error(message):
        train_offline(ALL, bad, "./missing", tmp_path / "run", seed=1)
    assert not (tmp_path / "run").exists()


def test_a_pair_is_as_long_as_its_longer_answer(policy: str, tmp_path: Path) -> None:
    long = Pair(Question("long", " Where is Ada"), " Rome", " Rome" * 100)
    with raises_error(r"1 of 1 rows are longer than max_length 64: 'long' \("):
        train_offline(ALL, [long], policy, tmp_path / "run", seed=1)


def test_after_a_kill_unfinished_steps_are_sampled_again_and_finished_steps_kept(
    policy: str, tmp_path: Path
) -> None:
    whole, broken, asked = tmp_path / "whole", tmp_path / "broken", list[int]()

    def counted(responses: Any) -> Any:
        asked.append(len(responses))
        return grade(responses)

    def collected(out: Path, policy: str = policy, questions: Any = QUESTIONS) -> Any:
        how = Sampling(4, samples=3, seed=5)
        return collect(policy, questions, counted, out, how, method="m", chunk=4, max_failed=1.0)

    expected = collected(whole)
    assert [f.response.step for f in expected] == [1] * 12 + [2] * 12 + [3] * 6
    shutil.copytree(whole, broken)
    lines = (broken / "rollouts.jsonl").read_bytes().splitlines(keepends=True)
    (broken / "rollouts.jsonl").write_bytes(b"".join(lines[:17]) + lines[17][:40])
    with pytest.warns(UserWarning, match="unfinished last line"):
        collected(broken)
    assert (broken / "rollouts.jsonl").read_bytes() == (whole / "rollouts.jsonl").read_bytes()
    # the policy may have moved to another folder
    again = collected(broken, str(shutil.copytree(policy, tmp_path / "policy")))
    assert [f.response.text for f in again] == [f.response.text for f in expected]
    assert asked == [12, 12, 6, 12, 6]
    with raises_error("samples of another policy"):
        collected(broken, str(make_policy(tmp_path / "new", seed=7)))
    with raises_error(f"2 questions have the id '{QUESTIONS[0].id}'"):
        collected(tmp_path / "other", questions=[QUESTIONS[0]] * 2)
