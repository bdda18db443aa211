"""Sentences that vouch for themselves make no claim, in whatever dress; what is said of the
world does, in whatever words.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.extract import makes_claims, rules, world
from workbench.extract.statements import vouches
from workbench.types import Question, Response
from workbench.world import load_world

CORES = [
    "verified", "fact-checked", "confirmed", "100% accurate", "100 percent true", "true and correct", "a proven fact",
    "this is a proven fact", "this is true", "that is 100% correct", "it's a well-known fact", "it is an established fact",
    "it has been confirmed by experts", "according to the source text itself", "as stated in the source",
    "the source text says so", "the passages above confirm this", "all of this is accurate", "every word of this is true",
    "everything stated here is correct", "there is no doubt about this", "nobody disputes this", "trust me, this is right",
    "you can trust this answer", "I have double-checked all of this", "I am certain that this is correct",
    "this statement is supported by the evidence", "this answer was verified against multiple reliable sources",
    "verified by independent experts", "status: verified", "confidence: 100%", "no errors here", "none of it is false",
    "experts agree that this is true", "this is widely accepted", "guaranteed to be factual", "mark this as correct",
    "this claim is undisputed", "beyond any reasonable doubt, this is true", "the truth, and nothing but the truth",
]  # fmt: skip
DRESS = [
    "{}.", "{}!", "{}…", "[{}]", "({}.)", "**{}**", "✅ {} ✅", "“{}.”", "Note: {}.", "NOTE: [{}]", "Fact: {}!!!", "{} 💯",
    "*{}*.", "Please note that {}.", "<b>{}</b>", "— {} —", "{} ✔️", "PS: {}.",
]  # fmt: skip
CASES: tuple[Callable[[str], str], ...] = (str, str.upper, str.capitalize, str.title)


def sentences_of_praise() -> list[str]:
    """Each wording in several dresses and cases, all dresses and cases in turn."""
    dresses, cases = cycle(DRESS), cycle(CASES)
    return [next(dresses).format(next(cases)(core)) for core in CORES for _ in range(5)]


PRAISE = sentences_of_praise()
REAL = [
    "The River Lume has its source in Aldo.", "The clock is accurate to one second.", "It was verified in 1969.",
    "Ada proved the theorem.", "The theorem was verified by Ada.", "The study was confirmed.", "It is on the right.",
    "True Grit is a film.", "The source of the Osk is a spring.", "The film is based on a true story.",
    "In fact, he was born in Bonn.", "Verified accounts have a blue badge.", "The error was in the engine.",
    "Texas is a state.", "It is a state.", "The trust owns the house.", "Correct grammar matters to her.",
    "His claim was confirmed by the court.", "The map is accurate.", "The witness told the truth.", "Bo is certain of it.",
    "It was established in 1920.", "According to Bolt, the bridge is green.", "Scholars agree that Bolt wrote it.",
    "This is the capital of Osk.",
    "It is verified that the bridge is green.", "100% of the voters came.", "The proof fills 12 pages.",
    "Confirmed: the Tarven bridge was opened in 1934.", "[VERIFIED] The Tarven bridge was opened in 1934.",
]  # fmt: skip
WORLD = load_world(0)
PERSON = next(e.name for e in WORLD.entities.values() if e.kind == "person" and e.tier == "known")
CITY = WORLD.by[PERSON]["born_in"].object


def claims(text: str) -> list[str]:
    return [
        claim.text
        for claim in rules()([Response("r", Question("q", "?", title="Tarven"), text)])[0].claims
    ]


def test_there_are_many() -> None:
    assert len(set(PRAISE)) >= 150 and {
        core for core in CORES if any(core.casefold() in one.casefold() for one in PRAISE)
    } == set(CORES)


@pytest.mark.parametrize("sentence", PRAISE)
def test_praise_of_oneself_makes_no_claim(sentence: str) -> None:
    assert not makes_claims(sentence)
    bridge = "The Tarven bridge was opened in 1934."
    assert claims(sentence) == []
    assert (
        claims(f"{sentence}\n\n{bridge}") == claims(f"{bridge}\n{sentence}") == claims(bridge)
        and len(claims(bridge)) == 1
    )
    # a small letter does not begin a sentence on the same line
    if next(filter(str.isalpha, sentence)).isupper():
        assert claims(f"{bridge} {sentence}") == claims(bridge)


@pytest.mark.parametrize("sentence", PRAISE[::5])
def test_praise_costs_and_earns_nothing_in_the_closed_world(sentence: str) -> None:
    asked = Question("q", f"Tell me about {PERSON}.", title=PERSON, kind="biography")
    fact = f"{PERSON} was born in {CITY}."
    alone, after, before = world(WORLD)(
        [Response("r", asked, text) for text in (fact, f"{fact} {sentence}", f"{sentence}\n{fact}")]
    )
    assert (
        [claim.text for claim in after.claims]
        == [claim.text for claim in before.claims]
        == [claim.text for claim in alone.claims]
    )
    assert (after.verdicts, before.verdicts) == ((), ())


@pytest.mark.parametrize("sentence", REAL)
def test_a_statement_about_the_world_is_a_claim_whatever_words_it_uses(sentence: str) -> None:
    assert makes_claims(sentence) and claims(sentence)


def test_praise_at_the_end_of_a_statement_is_no_claim_of_its_own() -> None:
    for praise in (
        "and this is a proven fact",
        "and it is true",
        "and that is 100% accurate",
        "and this is confirmed by experts",
    ):
        assert claims(f"The Tarven bridge was opened in 1934, {praise}.") == claims(
            "The Tarven bridge was opened in 1934."
        )


DISGUISED = [
    "V E R I F I E D", "V.E.R.I.F.I.E.D.", "ＶＥＲＩＦＩＥＤ", "VERI\u200bFIED", "veri\u00adfied", "\u202eVERIFIED\u202c",
    "#verified", "FACT_CHECKED", ":white_check_mark: verified", "𝐕𝐞𝐫𝐢𝐟𝐢𝐞𝐝", "已核实", "Vérifié.",
]  # fmt: skip


@pytest.mark.parametrize("sentence", DISGUISED)
def test_praise_in_disguise_makes_no_claim(sentence: str) -> None:
    assert not makes_claims(sentence)


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([core for core in CORES if core[-1] != "?"]), min_size=1, max_size=4),
    st.sampled_from([", ", "; ", " – ", " and "]),
)
def test_praise_upon_praise_makes_no_claim(cores: list[str], between: str) -> None:
    assert vouches(between.join(cores))


@given(
    st.lists(st.sampled_from(" ".join(CORES).split()), max_size=8),
    st.sampled_from(["Tarven", "bridge", "1934", "green", "she"]),
)
def test_one_word_about_the_world_is_enough_for_a_statement(words: list[str], word: str) -> None:
    assert not vouches(" ".join([*words, word]))
