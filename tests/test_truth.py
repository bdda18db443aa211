"""The truthfulness model's rows, measures and check, by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.helpers.errors import raises_error
from tests.helpers.reward_rows import row
from tests.helpers.tiny_model import make_policy
from workbench.methods.klcf.checklists import Labelled
from workbench.methods.klcf.confidence import calibrated, confidences, load_confidence, platt
from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.reward import reward
from workbench.methods.klcf.truth import (
    accuracy_and_f1,
    as_read,
    balanced,
    best_threshold,
    truth,
    truth_examples,
    untuned,
)
from workbench.pipeline import rescore
from workbench.policies.generate import Policy
from workbench.policies.hf import token_logprobs
from workbench.policies.load import load_policy
from workbench.training.rows import encode_example
from workbench.training.scorer import Judged, Segment
from workbench.types import Claim, Claims, Passage, Question, Response

ASKED = Question(
    "q",
    "Who is Ada?",
    title="Ada",
    passages=(Passage("p", "Ada", "Ada is a king."),),
    system="Think.",
)


def test_a_training_row_is_a_claim_as_the_answer_to_its_question() -> None:
    [true, false] = truth_examples(
        [Labelled(ASKED, "Ada  is\na king.", "correct"), Labelled(ASKED, "Ada sleeps.", "wrong")]
    )
    assert true == Judged(
        Question("q", "Who is Ada?", title="Ada"), "Ada is a king.", (Segment(0, 14, 1.0),)
    )
    assert false.segments == (Segment(0, 11, 0.0),)


def test_measures_by_hand() -> None:
    """Above .5: .9 (true), .6 (false); true claims: .9, .4. Precision and recall are 1/2."""
    found = [(0.9, 1.0), (0.4, 1.0), (0.6, 0.0), (0.2, 0.0)]
    assert accuracy_and_f1(found) == {"accuracy": 0.5, "f1": 0.5}
    assert accuracy_and_f1(found, 0.3) == {"accuracy": 0.75, "f1": pytest.approx(0.8)}
    assert accuracy_and_f1([]) == {"accuracy": None, "f1": None}
    assert best_threshold(found) == 0.2 and best_threshold([]) == 0.5
    # true above it, false below
    assert best_threshold([(0.1, 0.0), (0.2, 0.0), (0.3, 1.0)]) == 0.2
    # both claims at .5 get the same label: accuracy 2/4 there, 3/4 at .2
    assert best_threshold([(0.2, 0.0), (0.5, 0.0), (0.5, 1.0), (0.9, 1.0)]) == 0.2
    # calling all claims true is best: the threshold is below all values
    assert best_threshold([(0.2, 1.0), (0.9, 1.0)]) == best_threshold([(0.2, 1.0), (0.9, 0.0)]) == 0


def test_evaluation_rows_are_unique_and_balanced() -> None:
    rows = [
        as_read(ASKED, text, target)
        for text, target in (("a", 1), ("b", 1), ("c", 1), ("X.", 0), ("x", 0), ("x", 0), ("y", 0))
    ]
    assert [(row.text, row.segments[0].target) for row in balanced(rows)] == [
        ("a", 1),
        ("b", 1),
        ("X.", 0),
        ("y", 0),
    ]
    assert balanced(rows[:3]) == []


def test_every_claim_of_an_answer_gets_a_probability_and_equal_texts_are_read_once() -> None:
    asked: list[str] = []

    def score(rows: Sequence[Judged]) -> list[float | None]:
        asked.extend(row.text for row in rows)
        return [None if row.text == "long" else 0.25 for row in rows]

    texts = ["Ada is a king.", "Ada is a king.", "long", "  "]
    claims = tuple(Claim(n, text, "answer", 0) for n, text in enumerate(texts))
    read = Claims(((0, 5),), (*claims, Claim(9, "Ada sleeps.", "think", 0)))
    response = Response("r", ASKED, "<think>x</think><answer>y</answer>")
    [checked, empty] = truth(score, "m")([(response, read), (response, Claims())])
    assert asked == ["Ada is a king.", "long"] and empty.verdicts == ()
    assert [(v.target, v.aspect, v.p, v.error and v.error.kind) for v in checked.verdicts] == [
        ("claim:0", "truth", 0.25, None),
        ("claim:1", "truth", 0.25, None),
        ("claim:2", "truth", None, "too_long"),
        ("claim:3", "truth", None, "unparsed"),
    ]


@pytest.fixture
def base(policy: str) -> Policy:
    return load_policy(policy)


def test_a_bases_confidence_is_the_claims_mean_probability(base: Policy) -> None:
    """By hand from the logits of a forward pass over one claim; 10,000 claims are split into small
    batches.
    """
    rows = [
        as_read(ASKED, text, target)
        for text, target in ((" Ada lives in Rome", 1.0), (" Bo", 0.0), (" Cy was born", 1.0))
    ]
    found = confidences(base, rows)
    prompt, said = encode_example(base.tokenizer, rows[0].question, rows[0].text)
    [own] = token_logprobs(base.model, base.tokenizer.pad_token_id, [(prompt, said[:-1])])
    assert found[0] == pytest.approx(float(torch.tensor(own).mean().exp()), rel=1e-4) and all(
        0 < value < 1 for value in found
    )
    output = untuned(base, rows, rows)
    assert output["accuracy"] is not None
    assert 0 <= output["auc"] <= 1
    assert untuned(base, rows, [])["accuracy"] is None


def test_platt_scaling_of_two_values_by_hand() -> None:
    """Two of three at −1 are true, one of three at −3. With three true and three false the targets
    are 4/5 and 1/5, the shares 3/5 and 2/5, their logits ±.405: slope .405, offset .811.
    """
    slope, offset = platt([(-1.0, 1), (-1.0, 1), (-1.0, 0), (-3.0, 1), (-3.0, 0), (-3.0, 0)])
    assert slope == pytest.approx(0.405465, abs=1e-4) and offset == pytest.approx(0.81093, abs=1e-4)
    apart, there = platt([(-1.0, 1.0), (-2.0, 0.0)] * 20)
    # finite, with the threshold in the middle
    assert 0 < apart < 20 and apart * -1.5 + there == pytest.approx(0, abs=1e-3)


def test_a_bases_confidence_is_calibrated_stored_and_used_for_every_claim(
    base: Policy, tmp_path: Path
) -> None:
    texts = [" Ada lives in Rome", " Bo", " Cy was born"]
    found = confidences(base, [as_read(ASKED, text, 0.0) for text in texts])
    rows = [
        as_read(ASKED, text, float(value == max(found)))
        for text, value in zip(texts, found, strict=True)
    ]
    fitted = calibrated(base, rows)
    fitted.save(tmp_path)
    values = fitted.score(rows)
    assert load_confidence(tmp_path, base).score(rows) == values
    order = sorted(range(3), key=found.__getitem__)
    assert order == sorted(range(3), key=lambda n: values[n] or 0.0) and 0 < (values[0] or 0) < 1
    turned = [as_read(ASKED, row.text, 1.0 - row.segments[0].target) for row in rows]
    for labelled, message in (
        (turned, "not higher for true claims"),
        (rows[:1], "all true or all false"),
    ):
        with raises_error(message):
            calibrated(base, labelled)
    endless = Claim(1, " Ada" * 5000, "answer", 0)
    claims = Claims(claims=(Claim(0, rows[0].text, "answer", 0), endless))
    [checked] = truth(fitted.score, "base")([(Response("r", ASKED, "x"), claims)])
    assert [verdict.p for verdict in checked.verdicts] == [pytest.approx(values[0]), None]
    assert checked.verdicts[1].error and checked.verdicts[1].error.kind == "too_long"
    with raises_error("another model"):
        load_confidence(tmp_path, load_policy(make_policy(tmp_path / "other", seed=5)))
    for damaged in ('{"slope": NaN, "offset": 0.5}', '{"slope": -1.5, "offset": 0.5}', "[]", ""):
        (tmp_path / "confidence.json").write_text(damaged)
        with raises_error("missing or damaged"):
            load_confidence(tmp_path, base)
    with torch.no_grad():
        base.model.lm_head.weight.fill_(float("nan"))
    [checked] = truth(fitted.score, "base")(
        [(Response("r", ASKED, "x"), Claims(claims=claims.claims[:1]))]
    )
    feedback = replace(row("correct:5"), verdicts=checked.verdicts)
    pay = {"klcf": reward(KLCF(w_check=0.0, form=False, l_max=None))}
    assert rescore(feedback, pay).rewards["klcf"].value is None  # a failure is not 0
