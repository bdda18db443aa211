"""Data exchanged with verl, tested without verl: questions, rewards, advantages. Numbers are worked
by hand.
"""

import json
import math
from typing import Any

import pytest

from tests.helpers import examples
from tests.helpers.errors import raises_error
from workbench.scoring.verl_rows import (
    estimate,
    grader_of,
    question_of,
    reward_info,
    row_of,
    token_rewards,
)
from workbench.types import (
    Event,
    Failure,
    Feedback,
    JsonObject,
    Passage,
    Question,
    Response,
    Reward,
)
from workbench.util.failures import TooManyFailures

NAN = math.nan
QUESTION = Question(
    "q7",
    "Where was Ada born?",
    ("Paris", "Paris, France"),
    "Ada",
    (Passage("p", "Ada", "Ada was born in Paris."),),
    ("Ada was born in Paris.",),
    "single",
    "Be brief.",
)


def response(count: int) -> Response:
    offsets = tuple((t, t + 1) for t in range(count))
    return Response("r", QUESTION, "x" * count, token_ids=tuple(range(count)), offsets=offsets)


def test_a_question_survives_verls_row_format() -> None:
    """Through JSON, like Parquet: lists stay lists. verl converts them to NumPy arrays."""
    import numpy as np

    row = json.loads(json.dumps(row_of(QUESTION)))
    assert row["prompt"] == QUESTION.messages()
    read = question_of({**row, "raw_prompt": np.array(row["prompt"])})
    names = ("id", "text", "answers", "title", "checklist", "kind")
    assert all(getattr(read, name) == getattr(QUESTION, name) for name in names)
    assert [passage.text for passage in read.passages] == ["Ada was born in Paris."]
    row["extra_info"]["passages"] = np.array(row["extra_info"]["passages"], dtype=object)
    row["extra_info"]["answers"] = np.array(["Paris", "Paris, France"])
    assert question_of(row) == read


@pytest.mark.parametrize(("row", "text", "answers"), examples("verl_questions"))
def test_questions_of_verls_own_data_sets(row: JsonObject, text: str, answers: list[str]) -> None:
    turns = [("user", "Hi"), ("assistant", "Hello."), ("user", "Where?")]
    read = question_of(
        {**row, "raw_prompt": [{"role": role, "content": content} for role, content in turns]}
    )
    assert (read.text, read.answers) == (text, tuple(answers))


def test_a_reward_has_its_token_rewards() -> None:
    """Two events on token 1 cancel: it has an event and is -0.0. Token 2 has none and is 0."""
    events = (Event("fact", 1.0, 2), Event("fact", -1.0, 2), Event("fact", 0.5, 4))
    reward = Reward(0.5, {"fact": 0.5}, events, (0.0, 0.0, 0.0, 0.5))
    value, info = reward_info(Feedback(response(4), rewards={"m": reward}), "m")
    assert value == 0.5 and set(info) == {
        f"workbench_{name}" for name in ("tokens", "parts", "error", "failed")
    }
    tokens = token_rewards(info, 4)
    assert tokens == [0.0, 0.0, 0.0, 0.5] and [math.copysign(1, token) for token in tokens] == [
        1,
        -1,
        1,
        1,
    ]
    assert (
        json.loads(info["workbench_parts"]),
        info["workbench_error"],
        info["workbench_failed"],
    ) == ({"fact": 0.5}, "", 0.0)


@pytest.mark.parametrize(
    "feedback",
    [
        Feedback(
            response(3), rewards={"m": Reward(None, error=Failure("verify", "timeout", "no reply"))}
        ),
        Feedback(
            response(3),
            rewards={"m": Reward(1.0, tokens=(0, 0, 1.0))},
            error=Failure("verify", "timeout", "no reply"),
        ),
    ],
)
def test_a_failure_is_not_a_reward_of_0(feedback: Feedback) -> None:
    value, info = reward_info(feedback, "m")
    assert value is None
    assert info["workbench_error"] == "verify: no reply"
    assert info["workbench_failed"] == 1.0
    tokens = token_rewards(info, 3)
    assert tokens is not None and len(tokens) == 3 and all(map(math.isnan, tokens))
    assert token_rewards({}, 3) is None  # without a reward of ours


def batch(*rows: tuple[list[float], int]) -> tuple[Any, Any]:
    """Token rewards and masks of rows, given as rewards and the number of trained tokens."""
    import torch

    masks = [[float(t < count) for t in range(len(rewards))] for rewards, count in rows]
    return torch.tensor([rewards for rewards, _ in rows]), torch.tensor(masks)


def test_process_advantages_by_hand() -> None:
    """Events of group "a": 1 on token 0 and 0 at the end of its first response, -1 at the end of
    its second. Mean 0, standard deviation 1 (n − 1), so each is divided by 1.0001; a token gets the
    sum of later events. "b" lies in between; its only response equals its mean.
    """
    rewards, masks = batch(([1.0, 0.0, 0.0], 2), ([0.0, 5.0, 0.0], 2), ([0.0, 0.0, -1.0], 3))
    found = estimate("process", rewards, masks, ["a", "b", "a"], {})
    unit = 1 / 1.0001
    assert found.tolist() == [
        pytest.approx([unit, 0, 0], abs=1e-6),
        pytest.approx([0, 0, 0], abs=1e-6),
        pytest.approx([-unit, -unit, -unit], abs=1e-6),
    ]


def test_an_event_of_0_counts() -> None:
    """Marked (-0.0), token 0 counts in the mean: events 0, 3 and -1 (2/3, deviations -2/3, 7/3,
    -5/3, std √(78/9/2) = 2.0817). Unmarked, only 3 and -1 (mean 1, std √8).
    """
    for zero, expected in ((-0.0, [(-2 / 3 + 7 / 3), 7 / 3]), (0.0, [2.0, 2.0])):
        rewards, masks = batch(([zero, 3.0], 2), ([-1.0, 0.0], 1))
        std = math.sqrt(78 / 9 / 2) if math.copysign(1, zero) < 0 else math.sqrt(8)
        found = estimate("process", rewards, masks, ["a", "a"], {})
        assert found[0].tolist() == pytest.approx(
            [value / (std + 1e-4) for value in expected], abs=1e-6
        )


def test_failures_are_in_no_baseline_and_count_only_for_max_failed() -> None:
    """Two scored responses, a failed one with or without a mask, and verl's padding."""
    import torch

    unit = 1 / (math.sqrt(2) + 1e-4)
    for tokens in (0, 3):
        rewards, masks = batch(
            ([0.0, 2.0, 0.0], 2), ([NAN] * 3, tokens), ([0.0] * 3, 3), ([0.0] * 3, 0)
        )
        found = estimate("group", rewards, masks, ["a", "a", "a", "pad1"], {"max_failed": 0.4})
        assert not found.isnan().any()
        assert found.tolist() == [
            pytest.approx([unit, unit, 0]),
            [0] * 3,
            pytest.approx([-unit] * 3),
            [0] * 3,
        ]
        # the padding is not a completion
        with pytest.raises(TooManyFailures, match="1 of 3 completions could not be scored"):
            estimate("group", rewards, masks, ["a", "a", "a", "pad1"], {"max_failed": 0.3})
        with pytest.raises(TooManyFailures):  # default 0.2
            estimate("group", rewards, masks, ["a", "a", "a", "pad1"], None)
    last = torch.tensor([[0.0, NAN], [0.0, 1.0]])  # verl's own form of a NaN reward
    assert estimate("rtg", last, torch.ones(2, 2), ["a", "a"], {"max_failed": 1})[0].tolist() == [
        0,
        0,
    ]


def test_a_penalty_on_every_token_is_refused_with_events() -> None:
    rewards, masks = batch(([0.0, 1.0], 2), ([0.0, 0.0], 2))
    for name in ("process", "rtg"):
        with raises_error("use_kl_loss"):
            estimate(name, rewards, masks, ["a", "a"], {"use_kl_in_reward": True})
    assert estimate("whiten", rewards, masks, ["a", "a"], {"use_kl_in_reward": True}).shape == (
        2,
        2,
    )


def test_a_config_makes_a_grader(country: Question) -> None:
    made = grader_of({"recipe": "truthrl", "judge": "world", "settings": ["truthrl.wrong=-2"]})
    [right, wrong] = made.grade(
        [
            Response(str(n), country, text)
            for n, text in enumerate((f"{country.answers[0]}.", "Nowhere."))
        ]
    )
    assert (right.rewards["truthrl"].value, wrong.rewards["truthrl"].value) == (1.0, -2.0)
    assert (
        grader_of(
            {"recipe": "truthrl", "judge": {"url": "http://127.0.0.1:1/v1", "model": "m"}}
        ).name
        == "truthrl"
    )


@pytest.mark.parametrize(("given", "message"), examples("verl_configs"))
def test_an_invalid_config_is_refused(given: JsonObject, message: str) -> None:
    with raises_error(message):
        grader_of(given)
