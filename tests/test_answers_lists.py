"""A list of guesses is never right, whatever joins it; generated, of every kind and inside every
tag.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from workbench.answers import final_answer, is_abstention, matches

CITIES = "Lyon Rome Paris Oslo Lima Cairo Quito Accra Tokyo Vetra Lomar Kessin".split()
PEOPLE = [
    "Ana Belu",
    "Toma Ardel",
    "Jane Austen",
    "Leonardo da Vinci",
    "Marie Curie",
    "Dana Imber",
    "J. K. Rowling",
    "Zoë Ru",
]
WORDS = "painter baker teacher singer lawyer doctor farmer sailor".split()
YEARS = "1921 1922 1934 1950 1866 2001 1999 1815".split()
LETTERS = (
    "perhaps|possibly|maybe|probably|likely|aka|alias|else|or else|then|and then|is|was|may"
    " be|might be|could be|as well as|or|or maybe|and|and/or|alternatively|otherwise|if not|or if"
    " not|either|also|plus|vs|versus|nor|but maybe|but possibly|though maybe|followed by|along"
    " with|together with|in addition to|besides|instead|rather|or rather"
    "|unless|namely|i.e.|also known as|similar to|next"
    " to|equals|means|so|thus|hence|because|while|where|which|which is|that is|it is|it was|I"
    " think|I guess|or I guess|my second guess is|another option is|wait|wait"
    " no|no|actually|sorry|hmm|again|not to mention|peut-être|vielleicht|quizás|tal"
    " vez|o|ou|oder|y|e|und|et|forse|可能|或者|还是|zzz|qux baz"
).split("|")
SIGNS = (
    "/#,#;#:#\n#\n\n# - # – #—#•# | # & # + # = # -> # → # ~ #...#…#? #! #. #. Or #. Maybe #\n-"
    ' #\n* #\n1. # 2) #) (# (# [#" "#; or #, maybe #, then #、#。'
).split("#")
JOINERS = st.sampled_from([f" {word} " for word in LETTERS] + SIGNS)
TAGS = st.sampled_from(
    [
        "{}",
        "{}.",
        "<answer>{}</answer>",
        r"\boxed{{{}}}",
        "[Outline] x [Answer] {}",
        "<think>hm</think>{}",
        "({})",
        "- {}",
        "1. {}",
    ]
)
LEADS = st.sampled_from(
    [
        "",
        "It is ",
        "The answer is ",
        "I'm not sure, but it is ",
        "either ",
        "Candidates: ",
        "He was born in ",
    ]
)


def chains(
    names: list[str], most: int = 10, mixed: bool = True
) -> st.SearchStrategy[tuple[str, list[str]]]:
    """Two to ten names with one joiner or, if `mixed`, several; and the names."""
    some = st.lists(st.sampled_from(names), min_size=2, max_size=min(most, len(names)), unique=True)

    def joined(picked: list[str]) -> st.SearchStrategy[tuple[str, list[str]]]:
        several = st.lists(JOINERS, min_size=len(picked) - 1, max_size=len(picked) - 1)
        same = JOINERS.map(lambda joiner: [joiner] * (len(picked) - 1))
        between = several | same if mixed else same
        return between.map(
            lambda found: (
                picked[0] + "".join(a + b for a, b in zip(found, picked[1:], strict=True)),
                picked,
            )
        )

    return some.flatmap(joined)


def accepted(text: str, gold: list[str], kind: str) -> bool:
    answer = final_answer(text)
    return answer is not None and matches(answer, gold, kind, "Which one was it?")


NAMED = st.sampled_from([CITIES, PEOPLE])


@pytest.mark.slow
@given(NAMED.flatmap(chains), LEADS, TAGS)
@settings(max_examples=400, deadline=None)
def test_a_chain_of_names_is_right_for_none_of_them(
    chain: tuple[str, list[str]], lead: str, tag: str
) -> None:
    text, names = chain
    said = tag.format(lead + text)
    assert [name for name in names if accepted(said, [name], "single")] == [], said


@pytest.mark.slow
@given(NAMED.flatmap(lambda names: chains(names, mixed=False)), st.data())
@settings(max_examples=200, deadline=None)
def test_small_letters_make_no_difference(
    chain: tuple[str, list[str]], data: st.DataObject
) -> None:
    text, names = chain
    kept = data.draw(st.sampled_from(names))
    for said in (text.lower(), text.lower().replace(kept.lower(), kept)):
        assert not accepted(said, [kept], "single"), said


@pytest.mark.slow
@given(chains(WORDS), LEADS)
@example(
    ("painter likely baker? teacher", ["painter", "baker", "teacher"]), "I'm not sure, but it is "
)
@settings(max_examples=200, deadline=None)
def test_a_chain_of_nouns_is_right_for_none_of_them(
    chain: tuple[str, list[str]], lead: str
) -> None:
    text, words = chain
    assert [word for word in words if accepted(lead + text, [word], "single")] == [], lead + text


@pytest.mark.slow
@given(chains(YEARS), st.sampled_from(["single", "numeric"]), LEADS, TAGS)
@settings(max_examples=200, deadline=None)
def test_a_chain_of_numbers_is_right_for_none_of_them(
    chain: tuple[str, list[str]], kind: str, lead: str, tag: str
) -> None:
    text, years = chain
    said = tag.format(lead + text)
    assert [year for year in years if accepted(said, [year], kind)] == [], said


@given(
    st.lists(st.sampled_from(["yes", "no"]), min_size=2, max_size=6), JOINERS, st.booleans(), TAGS
)
@settings(max_examples=200, deadline=None)
def test_yes_and_no_together_are_neither(
    said: list[str], joiner: str, capital: bool, tag: str
) -> None:
    text = joiner.join(word.title() if capital else word for word in said)
    if len(set(said)) > 1:
        assert not any(accepted(tag.format(text), [gold], "yes_no") for gold in ("yes", "no")), text


@pytest.mark.slow
@given(chains(CITIES, most=6), st.data())
@settings(max_examples=200, deadline=None)
def test_a_list_of_all_items_and_more_is_wrong(
    chain: tuple[str, list[str]], data: st.DataObject
) -> None:
    text, names = chain
    extra = data.draw(st.sampled_from(names))
    items = [name for name in names if name != extra]
    for said, wanted in ((text, items), (text.lower(), [item.lower() for item in items])):
        assert not matches(said, wanted, "list"), said


@pytest.mark.parametrize("joiner", [" and ", ", ", " as well as ", "\n- ", "; "])
def test_a_list_of_its_items_is_right(joiner: str) -> None:
    assert matches(joiner.join(CITIES), CITIES, "list")


@pytest.mark.parametrize(
    "frame",
    [
        "Toma is {}.",
        "{}, the Toma",
        "{} and Toma",
        "{} followed by Toma",
        "Toma zzz {}",
        "{} zzz Toma",
        "Toma aka {}",
        "{}: Toma",
        "Toma founded {}.",
        "{} and Toma were born in Lomar.",
        "Toma founded {} and Lomar.",
    ],
)
def test_two_names_in_one_phrase_answer_for_one_at_most(frame: str) -> None:
    text = frame.format("Vetra")
    assert sum(matches(text, [gold]) for gold in ("Toma", "Vetra", "Lomar")) <= 1


@pytest.mark.parametrize("verb", [" founded ", " was born in ", " lies in ", " is the capital of "])
@pytest.mark.parametrize("joiner", [" maybe ", " and ", ", ", " then ", " is ", " zzz "])
@pytest.mark.parametrize("count", [3, 5, 8])
def test_a_statement_of_two_names_grows_into_no_list(count: int, joiner: str, verb: str) -> None:
    names = CITIES[:count]
    text = joiner.join(names[1:])
    for said in (f"{names[0]}{verb}{text}", f"{text}{verb}{names[0]}", verb.join(names)):
        assert sum(matches(said, [name]) for name in names) <= 1, said


@given(chains(CITIES))
@settings(deadline=None)
def test_a_chain_is_no_abstention_either(chain: tuple[str, list[str]]) -> None:
    if " no " not in chain[0]:
        assert not is_abstention(chain[0])
