"""FoRAG's `repeats=once`: which sentences count as repetitions, and their rewards."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.helpers import examples
from tests.helpers.errors import raises_error
from tests.helpers.reward_rows import failure, with_verdicts
from tests.test_reward_forag import BASELINE, MIXED, pay
from workbench.methods.forag.config import FoRAG
from workbench.methods.forag.reward import reward
from workbench.types import Claim, Failure, Feedback, Reward, Verdict


def judged(
    *sentences: str, claims: Sequence[Sequence[str]] | None = None, labels: Sequence[str] = ()
) -> Feedback:
    """An answer of these sentences. A sentence has the given claims, or itself as its only claim.
    Claims are correct unless `labels` are given.
    """
    text, spans = " ".join(sentences), list[tuple[int, int]]()
    for sentence in sentences:
        spans.append((start := spans[-1][1] + 1 if spans else 0, start + len(sentence)))
    texts = [
        (number, claim)
        for number, own in enumerate(claims or [[one] for one in sentences])
        for claim in own
    ]
    made = tuple(Claim(place, claim, "body", number) for place, (number, claim) in enumerate(texts))
    given = labels or ["correct"] * len(made)
    facts = tuple(
        Verdict(f"claim:{claim.id}", "fact", given[claim.id], by="test") for claim in made
    )
    return Feedback(replace(MIXED.response, text=text, offsets=()), tuple(spans), made, facts)


ONCE = FoRAG(repeats="once")


@pytest.mark.parametrize(("text", "paid"), examples("repeats"))
def test_a_repeated_sentence_is_not_a_segment(text: str, paid: int) -> None:
    sentences = text.split(" | ")
    feedback = judged(*sentences)
    found = pay(feedback, ONCE)
    assert (found.value, found.parts["segments"], found.parts["stood_in"]) == (paid, paid, paid)
    assert found.parts["repeated"] == len(sentences) - paid and pay(feedback).value == len(
        sentences
    )
    modelled = with_verdicts(
        feedback, *(Verdict(f"segment:{n}", "factuality", p=0.75) for n in range(len(sentences)))
    )
    compared = with_verdicts(modelled, BASELINE)
    assert pay(modelled, ONCE).value == pytest.approx(0.75 * paid)
    # repetitions have no effect
    assert pay(compared, ONCE).value == pytest.approx((0.75 - 0.4) * paid)


def test_a_failure_in_a_repetition_is_a_failure() -> None:
    feedback = judged("Ada paints.", "Ada paints.")
    bad = Failure("verify", "timeout", "no reply")
    for verdict in (
        Verdict("claim:1", "fact", error=bad),
        Verdict("segment:1", "factuality", error=bad),
    ):
        assert pay(with_verdicts(feedback, verdict), ONCE) == Reward(None, error=bad)


def test_failures_and_bad_settings() -> None:
    bad = Failure("verify", "timeout", "no reply")
    assert pay(with_verdicts(MIXED, Verdict("claim:3", "fact", error=bad))) == Reward(
        None, error=bad
    )
    for verdict in (Verdict("segment:0", "factuality", p=1.2), Verdict("segment:0", "factuality")):
        assert failure(pay(with_verdicts(MIXED, verdict))).stage == "reward"
    with raises_error("has no effect with evaluation=holistic"):
        reward(FoRAG(evaluation="holistic", repeats="once"))
    with raises_error("choose one of mean, min, max"):
        reward(FoRAG(aggregate="median"))  # type: ignore[arg-type]
