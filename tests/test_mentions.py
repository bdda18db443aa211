"""Objections to a claim: numbers and names that its evidence does not have, what is only said in
other words, and the work it takes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.entailment.mentions import Mentioned, objections
from workbench.entailment.tokens import read
from workbench.types import OBJECTIONS

SAME_NUMBER = (  # claim, evidence with the same number in another form
    ("There were twelve of them.", "12 of them"),
    ("A hundred and twenty-three thousand came.", "123,000 came"),
    ("It has two dozen rooms.", "It has 24 rooms."),
    ("Half a million came.", "500,000 came"),
    ("It lasted two and a half hours.", "It lasted 2.5 hours"),
    ("It lasts 2½ hours.", "It lasts 2.5 hours"),
    ("It opened in nineteen thirty-one.", "It opened in 1931."),
    ("It has about 3.9 million people.", "a population of 3,856,000"),
    ("It has nearly 5,000 seats.", "4,970 seats"),
    ("It has 1,050 seats.", "1 050 seats"),
    ("It has 1,500,000 seats.", "1.500.000 seats"),
    ("It cost $3.5 million.", "a price of $3.5m"),
    ("It is 42 km long.", "42.195 kilometres long"),
    ("It is 90 minutes long.", "It lasts 1.5 hours"),
    ("It is 328 feet high.", "100 m high"),
    ("More than 300 people came.", "321 people"),
    ("No more than 500 people died.", "345 people died"),
    ("Fewer than 500 people died.", "345 people died"),
    ("Up to 500 people died.", "345 people died"),
    ("Between 10 and 20 people died.", "15 people died"),
    ("It was built after 1930.", "It was built in 1931."),
    ("It was in about 1850.", "in 1852"),
    ("She was born on March 13, 1964.", "born 13 Mar. 1964"),
    ("She was born on 1964-03-13.", "born on March 13, 1964"),
    ("She was born on 13/03/1964.", "born on March 13, 1964"),
    ("She was born on 3 April 1964.", "born on 03.04.1964"),
    ("It was on the 13th of March.", "on March 13"),
    ("It ended on 25 June 1944.", "It lasted June 6–25, 1944"),
    ("The war lasted from 1939 to 1945.", "the war of 1939–45"),
    ("It happened in the sixties.", "in 1964"),
    ("It was made in the 1970 's .", "in the 1970s"),
    ("It was made in the 1980s.", "in the '80s"),
    ("He lived in the 1800s.", "in the 19th century"),
    ("It was built in the nineteenth century.", "built in 1850"),
    ("He died aged 68.", "(1871-1939)"),
    ("He worked for 30 years.", "He worked for three decades"),
    ("It was in World War II.", "in the Second World War"),
    ("She had two sons.", "her sons James and John"),
    ("The 2014 film Boyhood was made by Ann Lee.", "Boyhood was made by Ann Lee."),
    ("It was not finished in 1930.", "finished in 1931"),
    ("He did not win in 1998, 1999 or 2000.", "He won in 2001"),
    ("No king has ruled there for 1,000 years.", "there has been no king since"),
    ("Der Turm wurde 1889 gebaut.", "Das Bauwerk wurde 1888 errichtet"),
    ("De brug is in 1932 geopend.", "The bridge was opened in 1931."),
)
OTHER_NUMBER = (  # claim, evidence without it, the number as the claim writes it
    ("It opened in 1932.", "opened in 1931", "1932"),
    ("It opened in nineteen thirty-two.", "It opened in 1931.", "nineteen thirty two"),
    ("It was in 2010.", "in the 2010s", "2010"),
    ("It was in 1903.", "in March 1964", "1903"),
    ("It was in about 1850.", "in 1862", "1850"),
    ("It opened over there in 1932.", "It opened in 1931, and cost 5,000 dollars.", "1932"),
    ("The 2014 film came out.", "The film came out in 2015.", "2014"),
    ("It was in the 1950s.", "in 1964", "1950s"),
    ("He lived in the 1800s.", "born in 1734, died in 1790", "1800s"),
    ("It was in the 18th century.", "in 1850", "18th"),
    ("It is the 12th largest.", "It is the 11th largest", "12th"),
    ("It was Henry VII.", "Henry VIII", "VII"),
    ("It was on Apollo 12.", "Apollo 11", "12"),
    ("She was born on March 14, 1964.", "born 13 March 1964", "14"),
    ("She was born on March 13, 1964.", "born in 1964", "13"),
    ("It was on 5 July.", "July 4, 1776", "5"),
    ("It ended in 1918.", "1914–19", "1918"),
    ("4,971 seats were sold.", "4,970 seats", "4,971"),
    ("It is 421 metres long.", "420 metres long", "421"),
    ("It is 43 km long.", "42.195 kilometres long", "43"),
    ("It has four tracks.", "two railway tracks", "four"),
    ("He died aged 45.", "(1871-1939)", "45"),
    ("It grew by 1.3 million.", "1,200,000 more", "1.3 million"),
    ("A million people came.", "Half a million people came.", "A million"),
    ("It has 25 rooms.", "It has two dozen rooms.", "25"),
    ("At least 500 people died.", "345 people died", "500"),
    ("Up to 300 people died.", "345 people died", "300"),
    ("It opened in 1932, not in 1931.", "It opened in 1931.", "1932"),
    ("Not until 1932 did it open.", "It opened in 1931.", "1932"),
    ("There is no doubt that it opened in 1932.", "It opened in 1931.", "1932"),
    ("He is not from Rome and won in 1999.", "He won in 1998", "1999"),
    ("It opened in 1932 la.", "It opened in 1931.", "1932"),
    ("Das Boot was made in 1982.", "Das Boot was made in 1981", "1982"),
)
SAME_NAME = (
    ("The poet Sylvia Plath lived in London.", "Plath moved to London."),
    ("It was written by J. K. Rowling.", "Joanne Rowling wrote it."),
    ("He spoke at the UN.", "He spoke at the United Nations."),
    ("He joined the United Nations.", "He joined the UN."),
    ("It is in the United States.", "It is in the U.S."),
    ("He visited NASA.", "the National Aeronautics and Space Administration"),
    ("He is an Italian painter.", "a painter, born in Italy"),
    ("He is an English painter.", "a painter, born in Britain"),
    ("He met Einstein's friend in São Paulo.", "the friends of Albert Einstein in Sao Paulo"),
    ("Jenna Moore was a politician.", "She started a career in politics."),
    ("The book is not by Tom Hale.", "Jill Ames wrote the book."),
    ("It opened on a Monday in May.", "It opened in the spring."),
    ("ALL OF THIS IS WRITTEN IN CAPITALS", "nothing of this"),
)
OTHER_NAME = (
    ("The poet lived in Paris.", "Plath moved to London.", "Paris"),
    ("It was led by John Smith.", "Mary Smith led it. Smith was tall.", "John Smith"),
    ("It was written by John Brown.", "It was written by John Smith.", "John Brown"),
    ("He joined NATO.", "He joined the United Nations.", "NATO"),
)


def found(claim: str, *texts: str) -> list[tuple[str, str]]:
    return objections(claim, Mentioned(texts))


@pytest.mark.parametrize(("claim", "evidence"), [*SAME_NUMBER, *SAME_NAME])
def test_other_words_for_the_same_are_no_objection(claim: str, evidence: str) -> None:
    assert found(claim, evidence) == []


@pytest.mark.parametrize(
    ("kind", "claim", "evidence", "text"),
    [("number", *case) for case in OTHER_NUMBER] + [("name", *case) for case in OTHER_NAME],
)
def test_what_the_evidence_does_not_have_is_an_objection(
    kind: str, claim: str, evidence: str, text: str
) -> None:
    assert found(claim, evidence) == [(kind, text)]
    assert found(claim, evidence, claim) == []  # any passage may have it


def test_values_as_they_are_read() -> None:
    def values(text: str) -> list[float]:
        return [token.value for token in read(text) if token.value]

    assert values("1,2,3,4") == [1, 2, 3, 4]
    assert values("1,234,567 and 1.5 billion") == [1234567, 1.5e9]
    assert values("one hundred and twenty-three thousand and five") == [123_005]
    assert values("from 1914–1918 and 13/03/1964") == [1914, 1918, 13, 3, 1964]
    assert values("the twenty-first of the 60s, and the sixties") == [21, 60, 60]
    assert values("١٢٣ and １２") == [123, 12]
    assert values("IV XIX XXXIX IIII VX I") == [4, 19, 39]


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=120))
def test_any_text_supports_itself(text: str) -> None:
    assert found(text, text) == []


def work(call: Callable[[], object]) -> int:
    """Python's calls during `call`."""
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


LONG: dict[str, Callable[[int], str]] = {
    "numbers": lambda n: " ".join(str(1000 + i) for i in range(n)),
    "counts": lambda n: " ".join(f"{i} tracks" for i in range(n)),
    "digits": lambda n: "1," * n + "7" * n,
    "names": lambda n: " ".join(f"N{i}a Smith" for i in range(n)),
    "scripts": lambda n: "Ünï 桥 12 мост III " * n,
    "dates": lambda n: "13 March 1964, 3/4/1964, 5.6.71 and 1999/3/8 " * n,
    "groups": lambda n: "1 050 1." * n,
    "denials": lambda n: "not in 1998, 1999 or not Tom, " * n,
    "words": lambda n: "one hundred and two thousand half a million " * n,
}


@pytest.mark.parametrize("kind", LONG)
def test_work_grows_with_the_text_and_no_faster(kind: str) -> None:
    counts = []
    for n in (50, 100, 200):
        claim, evidence = LONG[kind](n), LONG[kind](n + 3).replace("8", "9")
        counts.append(work(partial(found, claim, evidence)))
    assert counts[2] <= 2.4 * counts[1] <= 2.4 * 2.4 * counts[0], counts


def test_ten_thousand_numbers_are_named_in_a_few() -> None:
    numbers = [str(100_000 + 7 * i) for i in range(10_000)]
    assert found(" ".join(numbers), "It has 12.") == [("number", text) for text in numbers[:3]]
    assert {kind for kind, _ in found("Tom Hay has 7,000 cats.", "12")} <= set(OBJECTIONS)
