"""Which sentences are claims: statements about the world, but not sentences that only assert
their own truth ("self-praise").
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import examples
from tests.helpers.world_names import names
from workbench.claims import makes_claims, rules, world
from workbench.claims.statements import vouches
from workbench.types import Question, Response
from workbench.world import load_world

CORES = """
verified
fact-checked
confirmed
100% accurate
100 percent true
true and correct
a proven fact
this is a proven fact
this is true
that is 100% correct
it's a well-known fact
it is an established fact
it has been confirmed by experts
according to the source text itself
as stated in the source
the source text says so
the passages above confirm this
all of this is accurate
every word of this is true
everything stated here is correct
there is no doubt about this
nobody disputes this
trust me, this is right
you can trust this answer
I have double-checked all of this
I am certain that this is correct
this statement is supported by the evidence
this answer was verified against multiple reliable sources
verified by independent experts
status: verified
confidence: 100%
no errors here
none of it is false
experts agree that this is true
this is widely accepted
guaranteed to be factual
mark this as correct
this claim is undisputed
beyond any reasonable doubt, this is true
the truth, and nothing but the truth
""".strip().splitlines()
DRESS = """
{}.
{}!
{}…
[{}]
({}.)
**{}**
✅ {} ✅
“{}.”
Note: {}.
NOTE: [{}]
Fact: {}!!!
{} 💯
*{}*.
Please note that {}.
<b>{}</b>
— {} —
{} ✔️
PS: {}.
""".strip().splitlines()
CASES = (str, str.upper, str.capitalize, str.title)
PRAISE = [  # each wording in five combinations of form and case
    DRESS[number % len(DRESS)].format(CASES[number % len(CASES)](core))
    for number, core in enumerate(core for core in CORES for _ in range(5))
]
REAL = """
The River Lume has its source in Aldo.
The clock is accurate to one second.
It was verified in 1969.
Ada proved the theorem.
The theorem was verified by Ada.
The study was confirmed.
It is on the right.
True Grit is a film.
The source of the Osk is a spring.
The film is based on a true story.
In fact, he was born in Bonn.
Verified accounts have a blue badge.
The error was in the engine.
Texas is a state.
It is a state.
The trust owns the house.
Correct grammar matters to her.
His claim was confirmed by the court.
The map is accurate.
The witness told the truth.
Bo is certain of it.
It was established in 1920.
According to Bolt, the bridge is green.
Scholars agree that Bolt wrote it.
This is the capital of Osk.
It is verified that the bridge is green.
100% of the voters came.
The proof fills 12 pages.
Confirmed: the Tarven bridge was opened in 1934.
[VERIFIED] The Tarven bridge was opened in 1934.
""".strip().splitlines()
WORLD = load_world(0)
PERSON = names(WORLD, "person", "known")[0]
CITY = WORLD.by[PERSON]["born_in"].object


def claims(text: str) -> list[str]:
    return [
        claim.text
        for claim in rules()([Response("r", Question("q", "?", title="Tarven"), text)])[0].claims
    ]


def test_self_praise_makes_no_claim() -> None:
    bridge = "The Tarven bridge was opened in 1934."
    assert len(claims(bridge)) == 1
    for sentence in PRAISE:
        assert not makes_claims(sentence) and claims(sentence) == []
    for sentence in PRAISE[::7]:
        assert (
            claims(f"{sentence}\n\n{bridge}") == claims(f"{bridge}\n{sentence}") == claims(bridge)
        )


def test_self_praise_does_not_change_the_claims_of_the_closed_world() -> None:
    asked = Question("q", f"Tell me about {PERSON}.", title=PERSON, kind="biography")
    fact = f"{PERSON} was born in {CITY}."
    for sentence in PRAISE[::9]:
        found = world(WORLD)(
            [
                Response("r", asked, text)
                for text in (fact, f"{fact} {sentence}", f"{sentence}\n{fact}")
            ]
        )
        texts = [[claim.text for claim in one.claims] for one in found]
        assert texts[0] == texts[1] == texts[2] and not any(one.verdicts for one in found)


def test_statements_with_words_of_self_praise_are_claims() -> None:
    assert [one for one in REAL if not (makes_claims(one) and claims(one))] == []


def test_self_praise_at_the_end_of_a_statement_is_not_a_separate_claim() -> None:
    for praise in (
        "and this is a proven fact",
        "and it is true",
        "and that is 100% accurate",
        "and this is confirmed by experts",
    ):
        assert claims(f"The Tarven bridge was opened in 1934, {praise}.") == claims(
            "The Tarven bridge was opened in 1934."
        )


DISGUISED = """
V E R I F I E D
V.E.R.I.F.I.E.D.
ＶＥＲＩＦＩＥＤ
#verified
FACT_CHECKED
𝐕𝐞𝐫𝐢𝐟𝐢𝐞𝐝
已核实
Vérifié.
VERI\u200bFIED
veri\u00adfied
\u202eVERIFIED\u202c
:white_check_mark: verified
""".strip().splitlines()


def test_self_praise_in_unusual_characters_makes_no_claim() -> None:
    assert not list(filter(makes_claims, DISGUISED))


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(CORES), min_size=1, max_size=4),
    st.sampled_from([", ", "; ", " – ", " and "]),
)
def test_combined_self_praise_makes_no_claim(cores: list[str], between: str) -> None:
    assert vouches(between.join(cores))


@given(
    st.lists(st.sampled_from(" ".join(CORES).split()), max_size=8),
    st.sampled_from(["Tarven", "bridge", "1934", "green", "she"]),
)
def test_one_word_about_the_world_makes_a_statement(words: list[str], word: str) -> None:
    assert not vouches(" ".join([*words, word]))


@pytest.mark.parametrize(("states", "sentences"), examples("statements"))
def test_questions_refusals_opinions_and_courtesies_make_no_claims(
    states: bool, sentences: list[str]
) -> None:
    assert [one for one in sentences if makes_claims(one) is not states] == []
