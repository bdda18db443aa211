"""FoRAG's `repeats=once`: which sentences count as repetitions, and what they are paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import examples
from tests.helpers.errors import raises_error
from tests.helpers.reward_rows import failure, row, with_verdicts
from tests.test_reward_forag import BASELINE, MIXED, pay
from workbench.judge import LABELS
from workbench.methods.forag.config import FoRAG
from workbench.methods.forag.reward import reward
from workbench.types import SUPPORTED, Claim, Failure, Feedback, Reward, Verdict


def judged(
    *sentences: str, claims: Sequence[Sequence[str]] | None = None, labels: Sequence[str] = ()
) -> Feedback:
    """An answer of these sentences, each with the claims that are given, or with itself as its
    one claim; all of them correct, unless there are labels for them."""
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
    # a repetition neither pays nor costs
    assert pay(compared, ONCE).value == pytest.approx((0.75 - 0.4) * paid)


@pytest.mark.parametrize(("text", "labels", "paid"), examples("false_repeats"))
def test_a_false_sentence_is_skipped_only_as_a_repetition(
    text: str, labels: str, paid: list[float]
) -> None:
    """Only the same words, also false, are a repetition: by claims and by a reward model's p."""
    sentences = text.split(" | ")
    feedback = judged(*sentences, labels=["correct" if one == "1" else "wrong" for one in labels])
    compared = pay(with_verdicts(feedback, BASELINE), ONCE)
    assert [event.value for event in compared.events] == pytest.approx(paid)
    # the model's p is .8 or .4 where its own threshold is .5 without a baseline
    modelled = [
        Verdict(f"segment:{number}", "factuality", p=0.8 if one == "1" else 0.4)
        for number, one in enumerate(labels)
    ]
    for row_ in (replace(feedback, claims=(), verdicts=()), judged(*sentences)):
        found = pay(with_verdicts(row_, *modelled), ONCE)
        expected = [0.8 if value > 0 else 0.4 for value in paid]
        assert [event.value for event in found.events] == pytest.approx(expected)
        # with a baseline of .4, p = .3 is below it
        below = [replace(one, p=0.7 if one.p == 0.8 else 0.3) for one in modelled]
        found = pay(with_verdicts(row_, *below, BASELINE), ONCE)
        expected = [0.3 if value > 0 else -0.1 for value in paid]
        assert [event.value for event in found.events] == pytest.approx(expected)


def test_partly_false_sentences_repeat_only_with_the_same_false_part() -> None:
    text, claims = "Ada sings and paints.", ["Ada sings", "Ada paints"]
    half, other = ["correct", "wrong"], ["wrong", "correct"]
    for second, made, labels, segments in (
        ("Ada paints and sings.", claims[::-1], half + other, 1),
        ("Ada paints and sings.", claims[::-1], half + half, 2),
        (text, claims, half + half, 1),
        (text, claims, half + other, 2),
        (text, claims, [*half, "wrong", "wrong"], 2),
    ):
        feedback = judged(text, second, claims=[claims, made], labels=labels)
        assert pay(feedback, ONCE).parts["segments"] == segments


@given(
    st.lists(
        st.tuples(
            st.permutations(["Ada", "Bo", "knows"]), st.sampled_from([*LABELS["single_pass"]])
        ),
        max_size=8,
    )
)
def test_each_false_sentence_is_a_segment_once_and_each_true_one_in_one_order(
    said: list[tuple[list[str], str]],
) -> None:
    sentences, labels = [f"{' '.join(words)}." for words, _ in said], [label for _, label in said]
    found = pay(judged(*sentences, labels=labels) if said else row(""), ONCE)
    labelled = zip(sentences, labels, strict=True)
    false = {sentence for sentence, label in labelled if label not in SUPPORTED}
    assert found.parts["segments"] == len(false) + any(label in SUPPORTED for label in labels)


def test_a_sentence_repeats_if_all_its_claims_were_made_before() -> None:
    """In whatever sentences; a single new claim makes it a segment."""
    claims = [
        ["Ada paints", "Ada sings"],
        ["Bo paints"],
        ["Bo paints", "ada PAINTS"],
        ["Ada sings", "Ada is tall"],
        [],
    ]
    sentences = [
        "Ada paints and sings.",
        "So does Bo.",
        "Both paint.",
        "A tall singer she is.",
        "Well.",
    ]
    found = pay(judged(*sentences, claims=claims), ONCE)
    assert (found.value, found.parts["repeated"]) == (3.0, 1.0)
    assert [event.end for event in found.events] == [21, 33, 67]
    stray = judged("Ada paints.", claims=[["Ada paints"]])
    placeless = replace(
        stray, claims=(*stray.claims, Claim(1, "Ada paints."), Claim(2, "Ada sings."))
    )
    facts = [Verdict(f"claim:{number}", "fact", "correct") for number in range(3)]
    # the claims without a sentence are one segment, one new
    assert pay(with_verdicts(placeless, *facts), ONCE).value == 2.0
    alone = replace(placeless, claims=placeless.claims[:2])
    parts = pay(with_verdicts(alone, *facts), ONCE).parts
    assert (parts["factuality"], parts["segments"], parts["repeated"]) == (1.0, 1, 1)


def test_a_judge_can_mark_a_paraphrase_as_a_repetition() -> None:
    feedback = judged("Ada is from Oslo.", "Oslo is where Ada was born.", "Bo is from Oslo.")
    assert pay(feedback, ONCE).value == 3.0
    useless = Verdict("claim:1", "subject", "asked", by="world")
    assert pay(with_verdicts(feedback, useless), ONCE).value == 2.0
    for none in (
        replace(useless, label="other"),
        replace(useless, label=None, error=Failure("verify", "x", "y")),
    ):
        assert pay(with_verdicts(feedback, none), ONCE).value == 3.0
    false = with_verdicts(feedback, useless, Verdict("claim:1", "fact", "wrong"), BASELINE)
    # whatever the judge says
    assert [event.value for event in pay(false, ONCE).events] == pytest.approx([0.6, -0.4, 0.6])


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
