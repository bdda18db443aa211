"""Objections to a claim: numbers and names that its evidence lacks, paraphrases, and cost."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import table
from workbench.types import OBJECTIONS
from workbench.verifier.mentions import Mentions, objections
from workbench.verifier.tokens import tokenize

EXAMPLES = table("objections")


def found(claim: str, *texts: str) -> list[tuple[str, str]]:
    return objections(claim, Mentions(texts))


def test_only_details_absent_from_the_evidence_are_objections() -> None:
    for kind, claim, evidence, text in EXAMPLES:
        assert found(claim, evidence) == ([(kind, text)] if kind else []), claim
        assert found(claim, evidence, claim) == []  # any passage may have it
    assert len(EXAMPLES) > 80


def test_numbers_are_read_as_values() -> None:
    def values(text: str) -> list[float]:
        return [token.value for token in tokenize(text) if token.value]

    assert values("1,2,3,4") == [1, 2, 3, 4]
    assert values("1,234,567 and 1.5 billion") == [1234567, 1.5e9]
    assert values("one hundred and twenty-three thousand and five") == [123_005]
    assert values("from 1914–1918 and 13/03/1964") == [1914, 1918, 13, 3, 1964]
    assert values("the twenty-first of the 60s, and the sixties") == [21, 60, 60]
    assert values("IV XIX XXXIX IIII VX I") == [4, 19, 39]
    assert values("١٢٣ and １２") == [123, 12]


@settings(max_examples=80)
@given(st.text(max_size=120))
def test_any_text_supports_itself(text: str) -> None:
    assert found(text, text) == []


def work(call: Callable[[], object]) -> int:
    """The number of Python's calls during `call`."""
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
def test_work_is_linear_in_the_text(kind: str) -> None:
    counts = []
    for n in (25, 50, 100):
        claim, evidence = LONG[kind](n), LONG[kind](n + 3).replace("8", "9")
        counts.append(work(partial(found, claim, evidence)))
    assert counts[2] <= 2.4 * counts[1] <= 2.4 * 2.4 * counts[0], counts


@pytest.mark.slow
def test_only_the_first_three_objections_are_named() -> None:
    numbers = [str(100_000 + 7 * i) for i in range(10_000)]
    assert found(" ".join(numbers), "It has 12.") == [("number", text) for text in numbers[:3]]
    assert {kind for kind, _ in found("Tom Hay has 7,000 cats.", "12")} <= set(OBJECTIONS)
