"""Lists of guesses are rarely accepted, for any joiner of their items."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import examples
from workbench.text import final_answer, is_abstention, matches

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
JOINERS = [f" {word} " for word in LETTERS] + [*SIGNS]
TAGS = [
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
LEADS = [
    "",
    "It is ",
    "The answer is ",
    "I'm not sure, but it is ",
    "either ",
    "Candidates: ",
    "He was born in ",
]


Chain = tuple[str, list[str]]


def chain(names: list[str], rng: random.Random, most: int = 10) -> Chain:
    """Two to ten names joined by one joiner or by several; return the text and the names."""
    picked = rng.sample(names, rng.randint(2, min(most, len(names))))
    joiners = rng.choices(JOINERS, k=len(picked) - 1)
    if rng.random() < 0.5:
        joiners = joiners[:1] * len(joiners)
    return picked[0] + "".join(map("".join, zip(joiners, picked[1:], strict=True))), picked


def accepted(text: str, gold: list[str], kind: str) -> bool:
    answer = final_answer(text)
    return answer is not None and matches(answer, gold, kind, "Which one was it?")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "kind", "small"),
    [
        pytest.param(CITIES, "single", False, id="cities"),
        pytest.param(PEOPLE, "single", False, id="people", marks=pytest.mark.slow),
        pytest.param(CITIES + PEOPLE, "single", True, id="small letters", marks=pytest.mark.slow),
        pytest.param(WORDS, "single", False, id="nouns", marks=pytest.mark.slow),
        pytest.param(YEARS, "single", False, id="years", marks=pytest.mark.slow),
        pytest.param(YEARS, "numeric", False, id="numbers"),
    ],
)
def test_a_list_of_guesses_is_rarely_accepted(names: list[str], kind: str, small: bool) -> None:
    """300 random lists, each name as the gold answer once: at most 2 % are accepted."""
    rng, asked, found = random.Random(1), 0, []
    for _ in range(300):
        text, picked = chain(names, rng)
        said = rng.choice(TAGS).format(rng.choice(LEADS) + (text.lower() if small else text))
        asked += len(picked)
        found += [(said, name) for name in picked if accepted(said, [name], kind)]
    assert len(found) <= 0.02 * asked, found


@given(
    st.lists(st.sampled_from(["yes", "no"]), min_size=2, max_size=6),
    st.sampled_from(JOINERS),
    st.booleans(),
    st.sampled_from(TAGS),
)
@settings(max_examples=200)
def test_an_answer_with_yes_and_no_matches_neither(
    said: list[str], joiner: str, capital: bool, tag: str
) -> None:
    text = joiner.join(word.title() if capital else word for word in said)
    if len(set(said)) > 1:
        assert not any(accepted(tag.format(text), [gold], "yes_no") for gold in ("yes", "no")), text


def test_a_list_with_an_extra_item_is_wrong() -> None:
    rng = random.Random(1)
    for _ in range(200):
        text, names = chain(CITIES, rng, most=6)
        items = rng.sample(names, len(names) - 1)
        for said, wanted in ((text, items), (text.lower(), [item.lower() for item in items])):
            assert not matches(said, wanted, "list"), said


@pytest.mark.parametrize("joiner", [" and ", ", ", " as well as ", "\n- ", "; "])
def test_a_list_of_exactly_the_gold_items_is_right(joiner: str) -> None:
    assert matches(joiner.join(CITIES), CITIES, "list")


@pytest.mark.parametrize(
    "frame",
    examples("two_names"),
)
def test_a_phrase_with_two_names_matches_at_most_one(frame: str) -> None:
    text = frame.format("Vetra")
    assert sum(matches(text, [gold]) for gold in ("Toma", "Vetra", "Lomar")) <= 1


@pytest.mark.parametrize("verb", [" founded ", " was born in ", " lies in ", " is the capital of "])
@pytest.mark.parametrize("joiner", [" maybe ", " and ", ", ", " then ", " is ", " zzz "])
@pytest.mark.parametrize("count", [3, 5, 8])
def test_a_statement_with_a_list_of_names_matches_at_most_one(
    count: int, joiner: str, verb: str
) -> None:
    names = CITIES[:count]
    text = joiner.join(names[1:])
    for said in (f"{names[0]}{verb}{text}", f"{text}{verb}{names[0]}", verb.join(names)):
        assert sum(matches(said, [name]) for name in names) <= 1, said


def test_a_list_of_guesses_is_not_an_abstention() -> None:
    rng = random.Random(1)
    for _ in range(200):
        text, _ = chain(CITIES, rng)
        assert " no " in text or not is_abstention(text), text
