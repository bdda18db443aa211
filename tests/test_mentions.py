"""What of a claim its evidence cannot have meant: numbers, names, roles; what is merely said
otherwise; the work it takes.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.entailment.mentions import Mentioned, objections
from workbench.entailment.reading import read, roman_value
from workbench.types import OBJECTIONS

LIFE = (
    "Anna Smith (12 March 1871 – 4 May 1939) was a painter. She married Tom Brown in 1895 and in"
    " 1901 moved to Rome."
)
REPHRASED = (  # claim, evidence that says the same number otherwise
    ("There were twelve of them.", "12 of them"),
    ("A hundred and twenty-three thousand came.", "123,000 came"),
    ("It has about 3.9 million people.", "a population of 3,856,000"),
    ("It has 3.9 million people.", "a population of 3,856,000"),
    ("It has nearly 5,000 seats.", "4,970 seats"),
    ("More than 300 people came.", "321 people"),
    ("It cost $3.5 million.", "a price of $3.5m"),
    ("It grew by 1.2 million.", "1,200,000 more"),
    ("It is 12 percent.", "12% of it"),
    ("It was fifty percent.", "half of them"),
    ("She was born on March 13, 1964.", "born 13 March 1964"),
    ("She was born on 1964-03-13.", "born on March 13, 1964"),
    ("She was born on 13/03/1964.", "born on March 13, 1964"),
    ("She was born in 1964.", "born on 13 March 1964"),
    ("She was born in March 1964.", "born on 13 March 1964"),
    ("It was on 4 July.", "July 4, 1776"),
    ("It happened in the 1960s.", "in 1964"),
    ("It was made in the 1970 's .", "in the 1970s"),
    ("It happened in the sixties.", "in 1964"),
    ("It was built in the 19th century.", "built in 1850"),
    ("It was built in the nineteenth century.", "of the 19th century"),
    ("It was the first year of the twenty-first century.", "in 2001"),
    ("It fell in 44 BC.", "in 44 B.C."),
    ("He died aged 68.", "(1871-1939)"),
    ("He lived there for 10 years.", "from 1950 to 1960"),
    ("He played 15 seasons.", "from 1902 through 1917"),
    ("It is 90 minutes long.", "It lasts 1.5 hours"),
    ("It is 328 feet high.", "100 m high"),
    ("It was in World War II.", "in the Second World War"),
    ("The war lasted from 1939 to 1945.", "the war of 1939–45"),
    ("It ranks as No. 5.", "number five"),
    ("She had two sons.", "her sons James and John"),
    ("It was in about 1850.", "in 1852"),
    ("The season of 2011 was the last.", "in 2010-11"),
    ("It was on the 13th of March.", "on March 13"),
    ("It was not finished in 1930.", "finished in 1931"),
    ("No king has ruled there for 1,000 years.", "there has been no king since"),
)
LACKING = (  # claim, evidence, what of the claim it lacks
    ("It opened in 1932.", "opened in 1931", "1932"),
    ("She was born on March 14, 1964.", "born 13 March 1964", "1964-03-14"),
    ("She was born on March 13, 1964.", "born in 1964", "1964-03-13"),
    ("It was in 1964.", "in the 1960s", "1964"),
    ("It was in 2010.", "in the 2010s", "2010"),
    ("It was in the 1950s.", "in 1964", "1950s"),
    ("It was in the 18th century.", "in 1850", "18th"),
    ("4,971 seats were sold.", "4,970 seats", "4971"),
    ("It is 421 metres long.", "420 metres long", "421"),
    ("It has four tracks.", "two railway tracks", "four"),
    ("She has seven children.", "five children", "seven"),
    ("He died aged 45.", "(1871-1939)", "45"),
    ("It rose by 12 percent.", "by 13 percent", "12"),
    ("It grew by 1.3 million.", "1,200,000 more", "1.3 million"),
    ("About 5 million live there.", "3.9 million", "5 million"),
    ("Fifteen people came.", "50 people", "Fifteen"),
    ("It was Henry VII.", "Henry VIII", "VII"),
    ("It was on Apollo 12.", "Apollo 11", "12"),
    ("It was on 5 July.", "July 4, 1776", "5"),
    ("It ended in 1918.", "1914–19", "1918"),
    ("It was in about 1850.", "in 1862", "1850"),
    ("It was in 1903.", "in March 1964", "1903"),
    ("It was in 2005.", "on 5 May 2004", "2005"),
    ("Call me at 555-1235.", "Call me at 555-1234.", "1235"),
)


# claim, evidence with a part, dozens or a foreign word beside; what of the claim it lacks
PARTED = (
    ("It opened in 1932.", "A third of the hall opened in 1931.", "1932"),
    ("The hall has 421 seats.", "A third of the hall burnt in 1931; it has 420 seats.", "421"),
    ("There were 43 women.", "Half of the 84 members were women.", "43"),
    ("A million people came.", "Half a million people came.", "million"),
    ("A quarter of the houses burned.", "A third of the houses burned.", "A quarter"),
    ("It rose by 40 percent.", "It rose by a third, and half of it stayed.", "40"),
    ("It rose by 33.3 percent.", "It rose by half.", "33.3"),
    ("It ran for three and a half hours.", "It ran for two and a half hours.", "three and a half"),
    ("It lasted from 1931 to 1934.", "It lasted 1931–1933, half of it in winter.", "1934"),
    ("It was in the 18th century.", "in 1850; a quarter of it burned", "18th"),
    ("It is the 12th largest.", "It is the 11th largest; half of it is wood.", "12th"),
    ("Henry VII built half of it.", "Henry VIII built half of it.", "VII"),
    ("It has two dozen rooms.", "It has 36 rooms.", "two dozen"),
    ("It has 25 rooms.", "It has two dozen rooms.", "25"),
    ("It has 34 rooms.", "It has three dozen rooms, half of them empty.", "34"),
    ("300 people died.", "Dozens were hurt and 15 died.", "300"),
    ("It opened in nineteen thirty-two.", "It opened in 1931.", "nineteen thirty two"),
    ("It opened in the year before 1933.", "It opened in 1931.", "1933"),
    ("It opened some time in 1932.", "It opened in 1931, and cost 5,000 dollars.", "1932"),
    ("It opened over there in 1932.", "It opened there in 1931, and cost 5,000 dollars.", "1932"),
    ("It opened in 1932 la.", "It opened in 1931.", "1932"),
    ("Opened in 1932 la.", "It opened in 1931.", "1932"),
    ("The tower opened der in 1932.", "The tower opened in 1931.", "1932"),
    ("The tower was opened in 1932 und it stands.", "The tower was opened in 1931.", "1932"),
    ("It is avec joy and has 421 seats.", "It has 420 seats.", "421"),
)
TOLD_IN_PARTS = (  # what the passages say so, or may be counted from them
    ("It opened in nineteen thirty-one.", "It opened in 1931."),
    ("Nineteen thirty-one was the year.", "It opened in 1931."),
    ("It has two dozen rooms.", "It has 24 rooms."),
    ("It has half a dozen rooms.", "It has six rooms."),
    ("There were 42 women.", "Half of the 84 members were women."),
    ("There were 28 men.", "Two thirds of the 84 members were women."),
    ("It was 66.7 percent of them.", "two thirds of them"),
    ("Two thirds of them left.", "67% of them left"),
    ("A quarter of them left.", "21 of the 84 left; half of the rest slept"),
    ("A fifth of them were women.", "20 percent were women"),
    ("A fifth of them were women.", "Of the 50, ten were women"),
    ("Nearly half of them left.", "A third of them left"),
    ("60 percent of them stayed.", "Two in five of them left."),
    ("He stayed for eighteen months.", "He stayed for a year and a half."),
    ("It lasts 150 minutes.", "It lasts two and a half hours."),
    ("It lasts 2½ hours.", "It lasts 150 minutes."),
    ("It takes 45 minutes.", "It takes three quarters of an hour."),
    ("It is 25 years old.", "It is a quarter of a century old."),
    ("Some 250,000 came.", "A quarter of a million came."),
    ("2.5 million people came.", "Two and a half million people came."),
    ("60 people came.", "Dozens of people came."),
    ("36 people came.", "A few dozen people came."),
    ("She scored in the second half.", "She scored after the break; a third of them slept"),
    ("It opened before 1932.", "It opened in 1931."),
    ("It was built after 1930.", "It was built in 1931."),
    ("It opened in the year before 1932.", "It opened in 1931."),
    ("It was built c. 1930.", "It was built in 1931."),
    ("More than 300 people came.", "321 people came, a third of them late"),
    ("It has nearly 5,000 seats.", "4,970 seats, half of them free"),
    ("It happened in the 1960s.", "in 1964; half of it"),
    ("He spoke avec joy in Paris in 1931.", "He spoke in Paris with joy in 1931."),
    ("Il Postino was released in 1994.", "Postino came out in 1994."),
    ("De brug is in 1932 geopend.", "The bridge was opened in 1931."),
)


DENIED = (  # what denies nothing is no way round the rules
    "It is not disputed that it opened in 1932.",
    "Not until 1932 did it open.",
    "There is no doubt that it opened in 1932.",
    "It opened in 1932, not in 1931.",
)


def found(claim: str, *texts: str) -> list[tuple[str, str]]:
    return objections(claim, Mentioned(texts))


@pytest.mark.parametrize(("claim", "evidence"), REPHRASED)
def test_a_number_said_otherwise_is_no_other_number(claim: str, evidence: str) -> None:
    assert found(claim, evidence) == []


@pytest.mark.parametrize(("claim", "evidence", "text"), LACKING)
def test_a_number_that_the_evidence_lacks_is_found(claim: str, evidence: str, text: str) -> None:
    assert found(claim, evidence) == [("number", text)]
    assert found(claim, evidence, claim) == []  # any passage may have it


@pytest.mark.parametrize(("claim", "evidence", "text"), PARTED)
def test_no_part_and_no_foreign_word_is_a_way_round(claim: str, evidence: str, text: str) -> None:
    assert found(claim, evidence) == [("number", text)]


@pytest.mark.parametrize(("claim", "evidence"), TOLD_IN_PARTS)
def test_what_a_part_may_mean_is_left_alone(claim: str, evidence: str) -> None:
    assert found(claim, evidence) == []


@pytest.mark.parametrize("claim", DENIED)
def test_a_word_of_denial_is_no_way_round(claim: str) -> None:
    assert found(claim, "It opened in 1931.") == [("number", "1932")]


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("The poet Sylvia Plath lived in London.", "Plath moved to London."),
        ("It was written by J. K. Rowling.", "Joanne Rowling wrote it."),
        ("It was led by Bill Clinton.", "William Clinton led it."),
        ("It was led by Ted Kennedy.", "Edward Moore Kennedy led it."),
        ("He spoke at the UN.", "He spoke at the United Nations."),
        ("He joined the United Nations.", "He joined the UN."),
        ("He visited NASA.", "the National Aeronautics and Space Administration"),
        ("He is an Italian painter.", "a painter, born in Italy"),
        ("He met Einstein's friend in São Paulo.", "the friends of Albert Einstein in Sao Paulo"),
        ("It was first published in England.", "It was published in London by Chapman & Hall."),
        ("Jenna Moore was a politician.", "She started a career in politics."),
        (
            "Reign Over Me was released in 2007.",
            "Distributed by Columbia, the film was released in 2007.",
        ),
        ("The book is not by Tom Hale.", "Jill Ames wrote the book."),
        ("ALL OF THIS IS WRITTEN IN CAPITALS", "nothing of this"),
    ],
)
def test_a_name_said_otherwise_is_no_other_name(claim: str, evidence: str) -> None:
    assert found(claim, evidence) == []


@pytest.mark.parametrize(
    ("claim", "evidence", "text"),
    [
        ("The poet lived in Paris.", "Plath moved to London.", "Paris"),
        ("It was led by John Smith.", "Jane Smith led it. Smith was tall.", "John Smith"),
        ("It was written by John Brown.", "It was written by John Smith.", "John Brown"),
        ("The film stars Tom Hanks.", "The film stars Brad Pitt.", "Tom Hanks"),
        ("He joined NATO.", "He joined the United Nations.", "NATO"),
    ],
)
def test_a_name_that_the_evidence_lacks_is_found(claim: str, evidence: str, text: str) -> None:
    assert found(claim, evidence) == [("name", text)]


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Anna Smith was born in 1939.", LIFE),
        ("She died on 12 March 1871.", LIFE),
        ("He was born in Paris.", "He was born in London and died in Paris."),
        ("He was born in 1955.", "He died in 1955."),
        ("They divorced in 1925.", "In 1925 he married and in 1930 they divorced."),
        ("YouTube acquired Google.", "In 2006 YouTube was acquired by Google."),
        ("YouTube acquired Google.", "Google is a company. In 2006, it acquired YouTube."),
        ("Germany beat Brazil.", "Germany lost to Brazil in the final."),
        ("Germany won the final.", "Brazil won the final against Germany."),
        ("Roosevelt succeeded Truman.", "Roosevelt was succeeded by Truman."),
        ("Chile is larger than Peru.", "Peru is larger than Chile."),
        (
            "Frans Lind wrote The Salt Road.",
            "The Salt Road was written by Ines Karr. Frans Lind translated it.",
        ),
    ],
)
def test_what_is_turned_round_is_found(claim: str, evidence: str) -> None:
    assert {kind for kind, _ in found(claim, evidence)} == {"role"}


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Anna Smith was born in 1871.", LIFE),
        ("She died on 4 May 1939.", LIFE),
        ("She married in 1895.", LIFE),
        ("Born in Ulm in 1879, he died in 1955.", "He was born in Ulm in 1879 and died in 1955."),
        ("The war began in 1914.", "The war (1914-1918) was long."),
        (
            "Arsenal won the cup in 2002.",
            "They have won the cup twice, in 2002 and 2003, and lost it in 2002 once.",
        ),
        ("Google acquired YouTube.", "In 2006 YouTube was acquired by Google."),
        ("YouTube was bought by Google.", "Google acquired YouTube."),
        ("Brazil beat Germany.", "Germany lost to Brazil in the final."),
        ("Brazil beat Germany.", "Brazil beat Germany by two goals."),
        ("Google acquired YouTube.", "Google acquired YouTube by paying in shares."),
        ("Federer beat Nadal.", "Federer overpowered Nadal. Nadal won the title in 2010."),
        ("Germany beat Brazil.", "Germany lost two players to injury, and still beat Brazil."),
        ("Roosevelt preceded Truman.", "Truman succeeded Roosevelt."),
        ("Serena beat Venus.", "Serena lost to Venus in 1998 and beat Venus in 1999."),
        ("Ann Oder wrote Hill.", "Hill was written by Per Lund, Ann Oder and Max Bell."),
    ],
)
def test_what_is_said_the_same_way_round_is_left_alone(claim: str, evidence: str) -> None:
    assert found(claim, evidence) == []


TRUE_NUMBERS = (  # claim, evidence that says the same in yet another way
    ("She was born on 3 April 1964.", "born on 03/04/1964"),
    ("She was born on 3 April 1964.", "born on 03.04.1964"),
    ("She was born on 3 April 1964.", "born on 1964/04/03"),
    ("She was born on 3 April 1964.", "born on 3-4-1964"),
    ("She was born on 3 April 1964.", "born on 3/4/64"),
    ("She was born on 4 March 1964.", "born on 03/04/1964"),
    ("She was born on 03/04/1964.", "born on 3 April 1964"),
    ("She was born on 13 March 1964.", "born on the 13th day of March 1964"),
    ("She was born on 3 April 1964.", "Ann Lee (* 3. April 1964 in Graz) is a painter"),
    ("She was born on 3 April 1964.", "born 3.IV.1964"),
    ("At least 100 people died.", "345 people died"),
    ("More than 10 people died.", "134 people died"),
    ("Up to 500 people died.", "345 people died"),
    ("No more than 500 people died.", "345 people died"),
    ("Between 10 and 20 people died.", "15 people died"),
    ("It ended on 25 June 1944.", "It lasted June 6–25, 1944"),
    ("It lasted from 3 to 5 May 1964.", "May 3–5, 1964"),
    ("It lasted from May 3 to 5, 1964.", "3–5 May 1964"),
    ("He stayed until 2010.", "He was there 2005-10"),
    ("It was in October 2005.", "2005-10"),
    ("The 1990-91 season was the last.", "the 1990–1991 season"),
    ("It was made in the 1980s.", "in the 80s"),
    ("It was made in the 1980s.", "in the '80s"),
    ("He lived in the 1800s.", "in the 19th century"),
    ("He lived in the 1800s.", "born in 1834, died in 1890"),
    ("It is of the 20th century.", "from the fifties"),
    ("It was 67 percent of them.", "two thirds of them"),
    ("It was 33 percent of them.", "a third of them"),
    ("It was 40 percent of them.", "two in five of them"),
    ("It was 30 percent of them.", "the ½ of 60"),
    ("It has 24 rooms.", "two dozen rooms"),
    ("It opens at 5 pm.", "It opens at 17:00"),
    ("It has 12 square miles.", "31 km2 per side"),
    ("He is 188 cm tall.", "He is 6 ft 2 in tall"),
    ("He is 188 cm tall.", "He is 6'2\" tall"),
    ("He weighs 83 kg.", "He weighs 13 stone"),
    ("It is 42 km long.", "42.195 kilometres long"),
    ("It has 1,050 seats.", "1 050 seats"),
    ("It has 1 050 seats.", "1,050 seats"),
    ("It has 1,500,000 seats.", "1.500.000 seats"),
    ("It has 1,500 seats.", "1.500 seats"),
    ("In March 12 people died.", "12 people died in March"),
    ("It ended on 12 March 2018.", "In 2018 it began in January and ended on March 12."),
    ("He had three children.", "two children from his first marriage and one from his second"),
    (
        "The film won five Oscars.",
        "It won for sound, sets and script. Two Oscars were for acting, one for music",
    ),
    ("There were 30 people.", "10 men and 20 women"),
    ("He did not win in 1998, 1999 or 2000.", "He won in 2001"),
    ("He never met Mr. Tolland.", "He met nobody"),
    ("Der Turm wurde 1889 gebaut.", "Das Bauwerk wurde 1888 errichtet"),
    ("Le pont a été construit en 1889.", "in 1888"),
    ("Il ponte fu costruito nel 1889.", "in 1888"),
)
LACKING_STILL = (  # what must be found, beside what is left alone above
    ("She was born on 5 April 1964.", "born on 03/04/1964", "1964-04-05"),
    ("She was born on 3 April 1965.", "born on 03/04/1964", "1965-04-03"),
    (
        "It signed him on 23 January 2018.",
        "January 23, 2019: a member of the team of 2018 has signed",
        "2018-01-23",
    ),
    (
        "It signed him in January 2018.",
        "January 23, 2019: a member of the team of 2018 has signed",
        "2018-01",
    ),
    ("She was born on 05/04/1964.", "born on 3 April 1964", "1964~1964-04-05~1964-05-04"),
    ("At least 500 people died.", "345 people died", "500"),
    ("Up to 300 people died.", "345 people died", "300"),
    ("Between 20 and 30 people died.", "15 people died", "20"),
    ("He stayed until 2011.", "He was there 2005-10", "2011"),
    ("It was made in the 1980s.", "in 1884", "1980s"),
    ("It was made in the 1980s.", "in the 70s", "1980s"),
    ("He lived in the 1800s.", "born in 1734, died in 1790", "1800s"),
    ("It opened in 1932.", "Half of it opened in 1931 at 17:00", "1932"),
    ("It is 43 km long.", "42.195 kilometres long", "43"),
    ("It has 1 051 seats.", "1,050 seats", "1"),
    ("Das Boot was made in 1982.", "Das Boot was made in 1981", "1982"),
    ("His No. 1 single came out in 1999.", "His No. 1 single came out in 1998", "1999"),
    ("No. 5 was sold in 1999.", "No. 5 was sold in 1970", "1999"),
    ("He is not from Rome; he won in 1999.", "He won in 1998", "1999"),
    ("He is not from Rome, he won in 1999.", "He won in 1998", "1999"),
    ("He is not from Rome and won in 1999.", "He won in 1998", "1999"),
    ("He is not tall, but won in 1999.", "He won in 1998", "1999"),
    ("It is no secret that he was born in 1999.", "He was born in 1970", "1999"),
    ("It can not be denied that he was born in 1999.", "He was born in 1970", "1999"),
)
TRUE_ROLES = (
    ("Larry Page founded Google.", "Larry Page and Sergey Brin founded Google."),
    (
        "Steve Jobs founded Apple.",
        "Steve Jobs, Steve Wozniak, and Ronald Wayne founded Apple in 1976.",
    ),
    ("Lennon wrote Yesterday.", "Lennon and McCartney wrote Yesterday."),
    ("Ann Lee wrote Gale.", "Ann Lee and her husband Tom Hay wrote Gale."),
    (
        "Ann Lee wrote Gale.",
        "Ann Lee published Gale in 1990. The critic Tom Hay wrote that Gale is dull.",
    ),
    ("Lennon wrote Imagine.", "Imagine is by Lennon. McCartney wrote nothing of Imagine."),
    (
        "Ann Lee wrote Gale.",
        "Gale is a novel by Ann Lee. The review of Gale was written by Tom Hay.",
    ),
    ("Brin founded Google.", "Google was founded by Page. He and Brin founded Google as students."),
    ("He was elected in 1972.", "He took office in 1972. He was elected again in 1976."),
    (
        "He graduated in 1950.",
        "He received his degree in 1950. He graduated again, from Yale, in 1955.",
    ),
    (
        "The museum opened in 1950.",
        "The museum was inaugurated in 1950. The new wing opened in 1970.",
    ),
    ("He won the prize in 1950.", "He was awarded it in 1950. He won another in 1955."),
    (
        "Ali beat Frazier in 1974.",
        "Frazier beat Ali in 1971. In 1974, Ali won on points against him.",
    ),
    (
        "Djokovic defeated Nadal in 2011.",
        "Nadal defeated Djokovic in 2010. Djokovic won the 2011 final.",
    ),
    ("Oswald killed Kennedy.", "Ruby killed Oswald, who had shot Kennedy."),
    ("Brazil won in 1994.", "Italy lost to Brazil in 1994. Brazil won in 2002 as well."),
    (
        "The museum opened in 1950.",
        "The museum was completed in 1950. The new wing opened in 1970.",
    ),
    ("Mr. May joined Barca in 2001.", "Mr. May left Real for Barca in 2001."),
)


@pytest.mark.parametrize(("claim", "evidence"), [*TRUE_NUMBERS, *TRUE_ROLES])
def test_in_doubt_the_rules_are_silent(claim: str, evidence: str) -> None:
    assert found(claim, evidence) == []


@pytest.mark.parametrize(("claim", "evidence", "text"), LACKING_STILL)
def test_what_is_certain_is_still_found(claim: str, evidence: str, text: str) -> None:
    assert ("number", text) in found(claim, evidence)


def test_turned_claims_of_our_own() -> None:
    """No claim that is right is objected to; of those turned round, most are (the verifier's
    benchmark counts them). The new ones are left to the benchmark."""
    path = Path(__file__).parents[1] / "benchmarks" / "human" / "turned.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        every = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        rows = [row for row in every if row["half"] not in ("new", "held")]
    assert [row["claim"] for row in rows if found(row["claim"], row["evidence"])] == []
    assert sum(bool(found(row["turned"], row["evidence"])) for row in rows) >= 0.7 * len(rows) > 40


def test_numbers_as_they_are_read() -> None:
    def values(text: str) -> list[Any]:
        return [
            token.date if token.kind == "date" else token.values[0]
            for token in read(text)
            if token.kind not in ("word", "mark")
        ]

    assert values("1,2,3,4") == [Decimal(n) for n in (1, 2, 3, 4)]
    assert values("1,234,567 and 1.5 billion") == [Decimal(1234567), Decimal(1500000000)]
    assert values("from 1914–1918, 13/03/1964 and 03/04/1964") == [
        1914,
        1918,
        (1964, 3, 13),
        (1964, 0, 0),
    ]
    assert values("the twenty-first of the 60s") == [21, 60]
    assert values("١٢٣ and １２") == [123, 12]
    assert values("9" * 5000) == []  # a code
    assert [roman_value(one) for one in ("IV", "XIX", "XXXIX", "IIII", "VX", "I")] == [
        4,
        19,
        39,
        0,
        0,
        1,
    ]


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=120))
def test_any_text_supports_itself(text: str) -> None:
    """Whatever a text says, in whatever script, it has its own numbers and names."""
    assert [kind for kind, _ in found(text, text) if kind != "role"] == []


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
    "years": lambda n: "He was born in " + ", ".join(str(1000 + i % 1000) for i in range(n)),
    "years in one part": lambda n: " ".join(str(1000 + i % 1000) for i in range(n)) + " years",
    "counts": lambda n: " ".join(f"{i} tracks" for i in range(n)),
    "digits": lambda n: "1," * n + "7" * n,
    "names": lambda n: " ".join(f"N{i}a Smith" for i in range(n)),
    "deeds": lambda n: " ".join(f"N{i}a beat Smith." for i in range(n)),
    "deeds in one sentence": lambda n: "Ann beat Bob and " * n,
    "parentheses": lambda n: "(" * n + "1900 - 1950" + ")" * n,
    "scripts": lambda n: "Ünï 桥 12 мост III " * n,
    "dates": lambda n: "13 March 1964, " * n,
    "slashed dates": lambda n: "3/4/1964, 5.6.71 and 1999/3/8 " * n,
    "groups": lambda n: "1 050 " * n,
    "denials": lambda n: "not in 1998, 1999 or " * n,
    "denied names": lambda n: "not Tom, " * n,
    "digits and points": lambda n: "1." * n + "3-4-" * n,
    "parts": lambda n: "half of 84 and two thirds of 3 in 8 " * n,
    "parts that are mixed": lambda n: "two and a half dozen and a quarter of a million " * n,
    "two events of one thing": lambda n: "It was written in 1931 and published in 1956, " * n,
    "light words": lambda n: (
        "It was " + "not finally " * n + "written in 1931 and published in 1956"
    ),
    "nouns": lambda n: "the acquisition of Ann by Bob and " * n,
    "words": lambda n: "one hundred and two thousand " * n,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG)
def test_work_grows_with_the_text_and_no_faster(kind: str) -> None:
    make = LONG[kind]
    counts = []
    for n in (200, 400, 800):
        claim, evidence = make(n), make(n + 3).replace("8", "9")
        counts.append(work(partial(found, claim, evidence)))
    assert counts[2] <= 2.4 * counts[1] <= 2.4 * 2.4 * counts[0], counts


@pytest.mark.slow
def test_ten_thousand_numbers_are_named_in_a_few() -> None:
    claim = " ".join(str(100_000 + 7 * i) for i in range(10_000))
    assert found(claim, "There are 12 of them.") == [
        ("number", str(100_000 + 7 * i)) for i in range(3)
    ]
    assert {kind for kind, _ in found(claim, "12")} <= set(OBJECTIONS)
