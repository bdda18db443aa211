"""Binary RAR's reward, worked by hand (arXiv 2510.17733, section 3)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.helpers.reward_rows import failure, payer, row
from workbench.methods.binary_rar.config import BinaryRAR
from workbench.methods.binary_rar.reward import reward
from workbench.types import Failure

pay = payer(reward, BinaryRAR())


@pytest.mark.parametrize(
    ("labels", "value"),
    [
        (["correct", "hedged_correct", "vague"], 1.0),  # unsupported is not contradicted
        (["correct"] * 9 + ["wrong"], 0.0),  # one contradiction among correct claims
        (["hedged_wrong"], 0.0),
        ([], 1.0),  # a refusal
    ],
)
def test_by_hand(labels: Sequence[str], value: float) -> None:
    paid = pay(row(" ".join(f"{label}:5" for label in labels)))
    assert (paid.value, paid.parts) == (value, {"consistent": value})
    assert paid.tokens[-1] == value and not any(paid.tokens[:-1])


def test_thinking_is_ignored_and_a_truncated_response_earns_0() -> None:
    assert pay(row("correct:5", think="wrong:5", tagged=True)).value == 1.0
    short = row("correct:5", finish="length")
    assert pay(short).value == 0.0
    assert pay(short, BinaryRAR(truncated=True)).value == 1.0


def test_a_failed_verdict_gives_no_reward_even_with_a_wrong_claim() -> None:
    feedback = row("wrong:5 correct:5")
    error = Failure("judge", "timeout", "no reply")
    broken = replace(feedback.verdicts[1], label=None, error=error)
    assert failure(pay(replace(feedback, verdicts=(feedback.verdicts[0], broken)))) == error
