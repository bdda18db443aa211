"""FoRAG's reward: segment values by hand, the substitute for a reward model, and the baseline."""

from dataclasses import replace

import pytest

from tests.helpers.reward_rows import failure, payer, row, with_verdicts
from workbench.methods.forag.config import FoRAG
from workbench.methods.forag.reward import reward
from workbench.types import Failure, Feedback, Verdict

# One sentence with labels 1, 1, 0 (correct, hedged but true, wrong), one with 0 (vague), one
# without claims.
MIXED = row("correct:5 hedged_correct:3 wrong:2", "vague:3", "")
BASELINE = Verdict("response", "baseline", p=0.4)
pay = payer(reward, FoRAG())


@pytest.mark.parametrize(
    ("config", "paid"),
    [
        (FoRAG(), [2 / 3, 0.0]),  # subclaim, mean: (1 + 1 + 0)/3
        (FoRAG(aggregate="min"), [0.0, 0.0]),
        (FoRAG(aggregate="max"), [1.0, 0.0]),
        # min: the worst claim of a sentence
        (FoRAG(evaluation="sentence", aggregate="max"), [0.0, 0.0]),
        (FoRAG(evaluation="holistic"), [0.0]),  # the worst claim of the answer
    ],
)
def test_claim_labels_replace_a_missing_reward_model(config: FoRAG, paid: list[float]) -> None:
    found = pay(MIXED, config)
    assert MIXED.response.text == "c0 c1 c2. c3. nothing."
    assert [event.end for event in found.events] == ([9, 13] if len(paid) > 1 else [None])
    assert [event.value for event in found.events] == pytest.approx(paid)
    assert found.value == pytest.approx(sum(paid)) == pytest.approx(sum(found.tokens))
    assert found.parts == pytest.approx(
        {
            "factuality": sum(paid),
            "segments": len(paid),
            "baseline": 0.0,
            "stood_in": len(paid),
            "unfinished": 0.0,
        }
    )


def test_labels_and_not_probabilities_are_aggregated() -> None:
    """Figure 1: Agg(1, 0, 1) = .66. A label is 1 for a supported claim and 0 otherwise, not the
    verifier's p.
    """
    sure = row("correct:5 wrong:5 hedged_correct:5")
    doubted = [("correct", 0.55), ("wrong", 0.45), ("hedged_correct", 0.0)]
    judged = with_verdicts(
        sure, *(Verdict(f"claim:{n}", "fact", label, p, 5) for n, (label, p) in enumerate(doubted))
    )
    for feedback in (sure, judged):
        assert pay(feedback).value == pytest.approx(2 / 3)
    for label in ("vague", "hedged_wrong", "wrong"):
        for p in (None, 0.5, 1.0):
            unsupported = with_verdicts(row("vague:5"), Verdict("claim:0", "fact", label, p, 5))
            for evaluation in ("holistic", "sentence", "subclaim"):
                assert pay(unsupported, FoRAG(evaluation=evaluation)).value == 0.0
    unlabelled = pay(with_verdicts(sure, Verdict("claim:0", "fact", p=0.9)))
    assert failure(unlabelled).kind == "undeclared_label"


def test_a_reward_model_takes_precedence_over_claims() -> None:
    modelled = with_verdicts(
        MIXED,
        Verdict("segment:0", "factuality", p=0.9),
        Verdict("segment:2", "factuality", p=0.2),
        Verdict("response", "factuality", p=0.7),
    )
    found = pay(modelled)
    # segment 1 has only claims
    assert [event.value for event in found.events] == pytest.approx([0.9, 0.0, 0.2])
    assert found.parts["stood_in"] == 1
    assert pay(modelled, FoRAG(evaluation="holistic")).parts == pytest.approx(
        {"factuality": 0.7, "segments": 1, "baseline": 0, "stood_in": 0, "unfinished": 0}
    )


def test_the_baseline_is_subtracted_from_every_segment() -> None:
    """(2/3 − .4) + (0 − .4) = −.1333"""
    compared = with_verdicts(MIXED, BASELINE)
    for config in (FoRAG(), FoRAG(baseline=True)):
        assert [event.value for event in pay(compared, config).events] == pytest.approx(
            [2 / 3 - 0.4, -0.4]
        )
    assert pay(compared, FoRAG(baseline=False)).value == pytest.approx(2 / 3)
    assert "'baseline' verdict" in failure(pay(MIXED, FoRAG(baseline=True))).message
    bad = Failure("verify", "x", "no answer")
    assert failure(pay(with_verdicts(MIXED, Verdict("response", "baseline", error=bad)))) == bad


def test_a_response_without_claims_has_no_segments() -> None:
    for evaluation in ("holistic", "sentence", "subclaim"):
        found = pay(row(""), FoRAG(evaluation=evaluation))
        assert (found.value, found.events) == (0.0, ())


def test_only_the_answer_counts() -> None:
    assert pay(row("correct:5", think="wrong:5", tagged=True)).value == 1.0
    for text, counted in (("[Outline] c0. [Answer] c1.", 0.0), ("c0. c1.", 1.0)):
        spans = tuple((text.index(word), text.index(word) + 3) for word in ("c0.", "c1."))
        plain = row("correct:5", "wrong:5")
        sections = ("body", "answer") if "[Answer]" in text else ("body", "body")
        claims = tuple(
            replace(c, section=section) for c, section in zip(plain.claims, sections, strict=True)
        )
        outlined = replace(
            plain,
            response=replace(plain.response, text=text, offsets=()),
            sentences=spans,
            claims=claims,
        )
        assert pay(outlined).value == counted
        modelled = [Verdict(f"segment:{n}", "factuality", p=p) for n, p in ((0, 1.0), (1, 0.0))]
        assert pay(with_verdicts(outlined, *modelled)).value == counted


def test_a_claim_without_a_sentence_is_a_segment_at_the_end() -> None:
    stray = replace(MIXED.claims[3], sentence=None, span=None, end=None)
    found = pay(replace(MIXED, claims=(*MIXED.claims[:3], stray)))
    assert [(event.end, event.value) for event in found.events] == [
        (9, pytest.approx(2 / 3)),
        (None, 0.0),
    ]
    assert found.unplaced == (3,) and pay(MIXED).unplaced == ()


def test_sentences_with_the_same_end_are_separate_segments() -> None:
    start, end = MIXED.sentences[1]
    found = pay(replace(MIXED, sentences=((0, end), (start, end), MIXED.sentences[2])))
    assert sorted((event.end, event.value) for event in found.events) == [
        (end, 0.0),
        (end, pytest.approx(2 / 3)),
    ]
    assert found.parts["segments"] == found.parts["stood_in"] == 2


def test_a_judged_sentence_may_begin_or_end_with_the_tag_of_the_answer() -> None:
    text = "<think>c0.</think><answer>c1.</answer>"
    for span, counted in (((18, 38), 0.5), ((26, 29), 0.5), ((7, 10), 0.0), ((0, 18), 0.0)):
        response = replace(MIXED.response, text=text, offsets=())
        feedback = Feedback(response, (span,), (), (Verdict("segment:0", "factuality", p=0.5),))
        assert pay(feedback).value == counted
