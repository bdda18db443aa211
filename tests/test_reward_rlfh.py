"""RLFH's reward, against numbers worked by hand from equations 1 and 2 and table 9."""

import warnings
from dataclasses import replace
from math import log

import pytest

from tests.helpers.reward_rows import failure, payer, row, with_verdicts
from workbench.inspector.examples import worked_example
from workbench.methods.rlfh.config import RLFH, label_values
from workbench.methods.rlfh.reward import reward
from workbench.types import Failure, Feedback, JsonObject, Reward, Verdict

LN_3_5 = 1.2527629684953681  # ln(1 + 1.3 + 1.2)
PAPER = RLFH()
pay = payer(reward, PAPER)


def by_token(feedback: Feedback, config: RLFH = PAPER) -> JsonObject:
    """Map each token's text (with its position, as words repeat) to its reward."""
    tokens = pay(feedback, config).tokens
    text, offsets = feedback.response.text, feedback.response.offsets
    return {
        f"{n}{text[slice(*offsets[n])]}": pytest.approx(value)
        for n, value in enumerate(tokens)
        if value
    }


# truth = Σ f·|g|; info = Σ over sentences of ln(1 + max(-.9, Σ g)). g: 5→1.3, 4→1.2, 3→1.1, 2→1.0,
# 1→-.1
CASES = [
    ("correct:5", 1 * 1.3, log(1 + 1.3)),
    ("hedged_correct:4", 0.5 * 1.2, log(1 + 1.2)),
    ("vague:3", -1 * 1.1, log(1 + 1.1)),
    ("hedged_wrong:2", -1.5 * 1.0, log(1 + 1.0)),
    # useless claims: |g| in the truth term, g < 0 in the other
    ("correct:1", 1 * 0.1, log(1 - 0.1)),
    ("wrong:1", -2 * 0.1, log(1 - 0.1)),
    # one sentence: the logarithm of the sum
    ("correct:5 correct:4", 1.3 + 1.2, LN_3_5),
    # two: the sum of the logarithms
    ("correct:5 | correct:4", 1.3 + 1.2, log(2.3) + log(2.2)),
    ("correct:1 " * 9, 9 * 0.1, log(1 - 0.9)),
    ("correct:1 " * 30, 30 * 0.1, log(0.1)),  # ε = -.9 is the floor: ln .1 = -2.30
    ("correct:5 correct:1", 1.3 + 0.1, log(1 + 1.3 - 0.1)),
    ("", 0.0, 0.0),  # a refusal: no claims
    ("| correct:5 |", 1.3, log(2.3)),  # sentences without claims are dropped
]


@pytest.mark.parametrize(("sentences", "truth", "info"), CASES)
def test_by_hand(sentences: str, truth: float, info: float) -> None:
    paid = pay(row(*sentences.split("|")))
    assert paid.parts == pytest.approx({"truth": truth, "info": info})
    assert paid.value == pytest.approx(truth + info) == pytest.approx(sum(paid.tokens))


def test_worked_example() -> None:
    """A correct crucial claim, a wrong minor one, a hedged one; claims in the thinking earn
    nothing.

    1·1.2 − 2·|1.0| + .5·1.1 = −.25;  ln(1 + 1.2 + 1.0) = 1.1632;  ln(1 + 1.1) = .7419;  together
    1.6551.
    """
    example = worked_example()
    paid = pay(example)
    assert paid.value == pytest.approx(1.6550881545)
    assert paid.parts == pytest.approx({"truth": -0.25, "info": 1.9050881545})
    assert by_token(example) == {
        "25 1934": 1.2,
        "28 green": -2.0,
        "29.": 1.1631508098,
        "38 valley": 0.55,
        "39.": 0.7419373447,
    }
    assert [event.claim for event in paid.events if event.part == "truth"] == [1, 2, 3]
    sentence = replace(PAPER, granularity="sentence")
    assert by_token(example, sentence) == {
        "29.": 1.2 - 2.0 + 1.1631508098,
        "39.": 0.55 + 0.7419373447,
    }
    assert by_token(example, replace(PAPER, granularity="paragraph")) == {
        "40</answer>": 1.6550881545
    }
    # By hand with α = 2, β = .5: 2·(−.25) + .5·1.9051 = .4525; with the launch script's f: 1.2·.3 −
    # 1.2 + 1.1·.1 = −.73
    assert pay(example, replace(PAPER, alpha=2.0, beta=0.5)).value == pytest.approx(0.4525440773)
    assert pay(example, replace(PAPER, reward_map="launch_script")).parts["truth"] == pytest.approx(
        -0.73
    )
    # One label changed: the wrong minor claim made correct, +1 instead of −2.
    changed = with_verdicts(example, Verdict("claim:2", "fact", "correct", 1.0, 2))
    assert pay(changed).value == pytest.approx(1.6550881545 + 3.0)


def test_a_claim_about_another_subject_can_count_as_wrong() -> None:
    """Two true claims about another person: 2·.1 + ln(1 − .2) as in the paper, and 2·(−2)·1.0 +
    ln(1 − .2) with the option. Repetitions and unread claims are unaffected.
    """
    closed, plain = replace(PAPER, off_subject="wrong"), row("correct:1 correct:1")
    other = [Verdict(f"claim:{number}", "subject", "other") for number in range(2)]
    feedback = with_verdicts(plain, *other)
    assert pay(feedback).parts == pytest.approx({"truth": 0.2, "info": log(0.8)})
    assert pay(feedback, closed).parts == pytest.approx({"truth": -4.0, "info": log(0.8)})
    unread = Verdict("claim:0", "fact", "vague", None, 1, ({"unparsed": "form"},))
    for same in (
        with_verdicts(plain, *(replace(verdict, label="asked") for verdict in other)),
        with_verdicts(plain, unread, replace(unread, target="claim:1")),
        row("correct:5"),
    ):
        assert pay(same, closed) == pay(same)
    # a judge without subject verdicts
    assert "no 'subject' verdict" in failure(pay(plain, closed)).message
    late = Failure("verify", "timeout", "late")
    failed = with_verdicts(plain, *(replace(verdict, label=None, error=late) for verdict in other))
    assert failure(pay(failed, closed)) == late


def test_spreading_keeps_the_total() -> None:
    """c0 and c1 share a sentence: a claim is spread over its own token, the sentence's part over
    all three.
    """
    feedback = row("correct:5 correct:4")
    assert by_token(feedback, replace(PAPER, spread=True)) == {
        "0c0": 1.3 + LN_3_5 / 3,
        "1 c1": 1.2 + LN_3_5 / 3,
        "2.": LN_3_5 / 3,
    }
    whole = replace(PAPER, spread=True, granularity="paragraph")
    assert by_token(row("correct:5", ""), whole) == dict.fromkeys(
        ("0c0", "1.", "2 nothing", "3."), pytest.approx((1.3 + log(2.3)) / 4)
    )


def test_an_unplaced_claim_is_listed_and_rewarded_at_its_sentence() -> None:
    feedback = row("correct:5 wrong:2", "vague:3")
    poor, lost, strange = feedback.claims
    claims = (
        replace(poor, coverage=0.4),  # less than half found: its sentence's end
        replace(lost, span=None, end=None, coverage=0.0),  # not found in its sentence
        # no sentence: the response's end
        replace(strange, sentence=None, span=None, end=None, coverage=0.0),
    )
    paid, whole = pay(replace(feedback, claims=claims)), pay(feedback)
    assert paid.unplaced == (0, 1, 2) and whole.unplaced == ()
    assert paid.value == pytest.approx(whole.value)  # c2 is alone in its sentence in both
    assert [(event.part, event.end) for event in paid.events] == [
        ("truth", 6),
        ("truth", 6),
        ("info", 6),
        ("truth", None),
        ("info", None),
    ]


def test_settings() -> None:
    assert label_values(PAPER) == {
        "correct": 1,
        "hedged_correct": 0.5,
        "vague": -1,
        "hedged_wrong": -1.5,
        "wrong": -2,
    }
    script = RLFH(reward_map="launch_script", f_wrong=-3)
    assert label_values(script) == {
        "correct": 0.3,
        "hedged_correct": 0.1,
        "vague": -0.8,
        "hedged_wrong": -0.9,
        "wrong": -3,
    }


# The third map, of the code's README: β 1.2, g 1.25/1/.75/.1/−.2.
README = RLFH(
    f_correct=0.45, f_hedged_correct=0.35, f_vague=-1, f_hedged_wrong=-1.5, f_wrong=-1.7,
    g_5=1.25, g_4=1, g_3=0.75, g_2=0.1, g_1=-0.2, beta=1.2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("config", "says"),
    [
        # −1·.1 + 1.2·ln 1.1 = .0144
        (README, "f_vague=-1 (up to +0.014, at g_2=0.1) with alpha=1 and beta=1.2"),
        # ln 2.3; not at g_1: ln .9
        (RLFH(f_wrong=0), "f_wrong=0 (up to +0.83, at g_5=1.3, g_4=1.2, g_3=1.1, g_2=1)"),
        (RLFH(beta=3), "f_vague=-1 (up to +1.2, at g_5=1.3"),  # 3·ln 2.3 − 1.3 = 1.1988
        (
            RLFH(f_vague=0.1),
            "g_5=1.3, g_4=1.2, g_3=1.1, g_2=1, g_1=-0.1)",
        ),  # .1·.1; joined to a long sentence it costs almost nothing
    ],
)
def test_settings_that_reward_mistakes_give_a_warning(config: RLFH, says: str) -> None:
    with pytest.warns(UserWarning, match="rlfh rewards a vague or wrong claim more") as caught:
        reward(config)
    [warning] = caught
    assert says in str(warning.message) and "\n" not in str(warning.message)


@pytest.mark.parametrize("config", [PAPER, RLFH(reward_map="launch_script"), RLFH(alpha=0, beta=0)])
def test_the_papers_settings_reward_no_single_mistake(config: RLFH) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pay_fn = reward(config)
    for mistake in ("vague", "hedged_wrong", "wrong"):
        for rating in (1, 2, 3, 4, 5):
            for beside in ("", "correct:5 wrong:4", "correct:3 correct:1"):
                without = pay_fn(row(beside)).value
                bad = f"{mistake}:{rating}"
                joined = pay_fn(row(f"{beside} {bad}")).value
                apart = pay_fn(row(beside, bad)).value
                assert without is not None and joined is not None and apart is not None
                assert joined <= without and apart <= without


BAD = Failure("verify", "parse", "no object", "?")


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (Verdict("claim:1", "fact", informativeness=2, error=BAD), "parse"),
        (Verdict("claim:1", "fact", "true", informativeness=2), "undeclared_label"),
        (Verdict("claim:1", "fact", None, 0.5, 2), "undeclared_label"),
        (Verdict("claim:1", "fact", "wrong"), "no_informativeness"),
        (Verdict("claim:1", "fact", "wrong", informativeness=6), "no_informativeness"),
    ],
)
def test_one_bad_verdict_leaves_the_response_unscored(broken: Verdict, kind: str) -> None:
    paid = pay(with_verdicts(row("correct:5 wrong:2"), broken))
    assert failure(paid).kind == kind and not (paid.events or paid.tokens or paid.parts)


def test_missing_verdicts_and_a_failed_extraction() -> None:
    assert failure(pay(replace(row("correct:5"), verdicts=()))).kind == "no_verdict"
    lost = Failure("extract", "parse", "not an object")
    assert pay(replace(row(""), error=lost)) == Reward(None, error=lost)  # not the 0 of a refusal
