"""Properties of final answers, abstention and matching, on generated names and texts."""

from __future__ import annotations

import string
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from workbench.answers import ABSTENTIONS, final_answer, is_abstention, matches, normalise
from workbench.answers.phrases import forms

NAMES = st.text(string.ascii_lowercase, min_size=4, max_size=9).map(lambda name: f"Z{name}")


@given(
    NAMES,
    st.sampled_from([str.upper, str.lower, str.title]),
    st.sampled_from(["{}.", '"{}"', " {} !", "**{}**", "({})"]),
)
def test_case_and_punctuation_change_nothing(
    name: str, change: Callable[[str], str], form: str
) -> None:
    assert normalise(form.format(change(name))) == normalise(name)
    assert matches(form.format(change(name)), [name])
    assert not is_abstention(form.format(change(name)))


@given(
    st.sampled_from(
        [
            p.replace("…", "")
            for ps in ABSTENTIONS.values()
            for phrase in ps
            if phrase[0] != "…"
            for p in forms(phrase)
        ]
    ),
    st.sampled_from([str.upper, str.lower, str.capitalize]),
    st.sampled_from(["{}", "{}.", "{}!!", ' "{}" ', r"\boxed{{{}}}", "<think>x</think>{}"]),
)
def test_every_phrase_abstains_in_any_case_and_box(
    phrase: str, change: Callable[[str], str], form: str
) -> None:
    assert is_abstention(form.format(change(phrase)))


@given(
    st.lists(
        st.sampled_from([*"I do not know Vetra or Lomar it is but unknown yes no . , ? :".split()]),
        max_size=8,
    )
)
def test_an_abstention_is_never_right(words: list[str]) -> None:
    text = " ".join(words)
    golds = (["Vetra"], ["unknown"], ["I do not know"], ["yes"], [text])
    assert not (
        is_abstention(text)
        and any(matches(text, gold, kind) for gold in golds for kind in ("single", "yes_no"))
    )


@given(
    st.text(), st.text(), st.sampled_from(["single", "numeric", "yes_no", "list", "false_premise"])
)
def test_any_text_is_decided(answer: str, gold: str, kind: str) -> None:
    assert matches(answer, [gold], kind) in (True, False)
    assert not (is_abstention(answer) and matches(final_answer(answer) or "", [gold], kind))


@given(
    NAMES,
    NAMES,
    st.sampled_from(["{} or {}", "{}, {}", "{} / {}", "I think {}. Or {}.", "It is {}. It is {}."]),
)
def test_two_guesses_are_never_right(first: str, second: str, form: str) -> None:
    if first != second:
        assert not matches(form.format(first, second), [first])
        assert not matches(form.format(second, first), [first])
