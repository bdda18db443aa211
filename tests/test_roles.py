"""Claims that turn round when something happened or who did it, and true ones in words that look
like it.
"""

from __future__ import annotations

import pytest

from workbench.entailment.mentions import Mentioned, objections

TURNED_DATES = (  # evidence, what it says, the same with a date of the other event
    (
        "Ivo Lang. Born: 1871, Pula. Died: 1939, Graz.",
        "Ivo Lang died in 1939.",
        "Ivo Lang died in 1871.",
    ),
    (
        "Ivo Lang died on Tuesday, 4 May 1939. He was born on 3 June 1871.",
        "Ivo Lang was born on 3 June 1871.",
        "Ivo Lang was born on 4 May 1939.",
    ),
    (
        "The Meridian Club opened its doors in 1899. Debts forced it to close in 1926.",
        "The Meridian Club closed in 1926.",
        "The Meridian Club closed in 1899.",
    ),
    (
        "The Meridian Club opened its doors in 1899. Debts forced it to close in 1926.",
        "The Meridian Club opened in 1899.",
        "The Meridian Club opened in 1926.",
    ),
    (
        "The guild, which had been founded in 1412, was dissolved by royal order in 1571.",
        "The guild was dissolved in 1571.",
        "The guild was dissolved in 1412.",
    ),
    (
        "The guild, which had been founded in 1412, was dissolved by royal order in 1571.",
        "The guild was founded in 1412.",
        "The guild was founded in 1571.",
    ),
    (
        (
            "Rowan Pike and Lena Faber were married in Basel in 1961; their divorce in 1974 made"
            " headlines."
        ),
        "Rowan Pike and Lena Faber divorced in 1974.",
        "Rowan Pike and Lena Faber divorced in 1961.",
    ),
    (
        (
            "Rowan Pike and Lena Faber were married in Basel in 1961; their divorce in 1974 made"
            " headlines."
        ),
        "Rowan Pike and Lena Faber married in 1961.",
        "Rowan Pike and Lena Faber married in 1974.",
    ),
    (
        "Filming began in March 2003 and ended in January 2004.",
        "Filming ended in 2004.",
        "Filming ended in 2003.",
    ),
    (
        "The strike broke out in 1902 and ended in 1904.",
        "The strike began in 1902.",
        "The strike ended in 1902.",
    ),
    (
        "The strike broke out in 1902 and ended in 1904.",
        "The strike ended in 1904.",
        "The strike began in 1904.",
    ),
    (
        "Uma Lenz took office in 2001 and stepped down in 2007.",
        "Uma Lenz took office in 2001.",
        "Uma Lenz took office in 2007.",
    ),
    (
        "Uma Lenz took office in 2001 and stepped down in 2007.",
        "Uma Lenz stepped down in 2007.",
        "Uma Lenz resigned in 2001.",
    ),
    (
        "He was elected bishop in 1233, and he resigned in 1240.",
        "He resigned in 1240.",
        "He resigned in 1233.",
    ),
    (
        "The novel, written in 1914, was not published until 1921.",
        "The novel was published in 1921.",
        "The novel was published in 1914.",
    ),
    (
        "The symphony was composed in 1880 and first performed in 1883.",
        "The symphony was first performed in 1883.",
        "The symphony was first performed in 1880.",
    ),
    (
        "The symphony was composed in 1880 and first performed in 1883.",
        "The symphony was composed in 1880.",
        "The symphony was composed in 1883.",
    ),
    (
        "The film was shot in 1999 and released in 2001.",
        "The film was released in 2001.",
        "The film was released in 1999.",
    ),
    (
        "Recorded in 1971, the album was released in 1973.",
        "The album was released in 1973.",
        "The album was released in 1971.",
    ),
    (
        "Recorded in 1971, the album was released in 1973.",
        "The album was recorded in 1971.",
        "The album was recorded in 1973.",
    ),
    (
        "Vito Carne (born 1901, Bari; died 1966, Turin) was a sculptor.",
        "Vito Carne died in 1966.",
        "Vito Carne died in 1901.",
    ),
    (
        "Vito Carne (born 1901, Bari; died 1966, Turin) was a sculptor.",
        "Vito Carne was born in 1901.",
        "Vito Carne was born in 1966.",
    ),
    (
        "In the winter of 1783 the poet Ruta Salm died at Riga, where she had been born in 1720.",
        "Ruta Salm was born in 1720.",
        "Ruta Salm was born in 1783.",
    ),
    (
        "In the winter of 1783 the poet Ruta Salm died at Riga, where she had been born in 1720.",
        "Ruta Salm died in 1783.",
        "Ruta Salm died in 1720.",
    ),
    (
        "Ilo Brent's birth in 1844 is on record; so is his death, on 2 May 1899.",
        "Ilo Brent died on 2 May 1899.",
        "Ilo Brent was born on 2 May 1899.",
    ),
    (
        "The baths, opened in 1907, were closed in 1988.",
        "The baths were closed in 1988.",
        "The baths were closed in 1907.",
    ),
    (
        "The baths shut in 1988, eighty-one years after they had opened in 1907.",
        "The baths opened in 1907.",
        "The baths opened in 1988.",
    ),
    (
        "Work on the canal was started in 1817. It was completed in 1825.",
        "The canal was completed in 1825.",
        "The canal was completed in 1817.",
    ),
    (
        "The newspaper was launched in 1888; it folded in 1932.",
        "The newspaper folded in 1932.",
        "The newspaper folded in 1888.",
    ),
    (
        "The newspaper was launched in 1888; it folded in 1932.",
        "The newspaper was launched in 1888.",
        "The newspaper was launched in 1932.",
    ),
    (
        "The duo formed in 1981 and split up in 1986.",
        "The duo split up in 1986.",
        "The duo split up in 1981.",
    ),
    (
        "The reign of the emperor began in 1067 and ended with his abdication in 1081.",
        "The reign ended in 1081.",
        "The reign ended in 1067.",
    ),
)
TURNED_DEEDS = (  # evidence, what it says, the same with names exchanged
    (
        "Nella Orr was killed in Turin near the Po by Count Vasto.",
        "Count Vasto killed Nella Orr.",
        "Nella Orr killed Count Vasto.",
    ),
    (
        "Tarn Air, home of the Otters, has been acquired by Zeta Rail.",
        "Zeta Rail acquired Tarn Air.",
        "Tarn Air acquired Zeta Rail.",
    ),
    (
        "Tarn Air, home of Ulla Berg, was founded by Ivo Lang.",
        "Ivo Lang founded Tarn Air.",
        "Ulla Berg founded Tarn Air.",
    ),
    (
        "Directed by Ivo Lang and starring Ulla Berg, Dusk won.",
        "Ivo Lang directed Dusk.",
        "Ulla Berg directed Dusk.",
    ),
    (
        "The Salt Road was written by Ines Karr and translated by Paul Dietz.",
        "Ines Karr wrote The Salt Road.",
        "Paul Dietz wrote The Salt Road.",
    ),
    (
        "Ines Karr wrote The Salt Road, which Paul Dietz translated.",
        "Ines Karr wrote The Salt Road.",
        "Paul Dietz wrote The Salt Road.",
    ),
    (
        "Founded by the engineer Karl Bosk, Arvex was sold to Tom Lurie in 1999.",
        "Karl Bosk founded Arvex.",
        "Tom Lurie founded Arvex.",
    ),
    (
        "Arvex, which had been founded by Karl Bosk, was sold to Tom Lurie.",
        "Karl Bosk founded Arvex.",
        "Tom Lurie founded Arvex.",
    ),
    (
        "The bank Cordia, itself bought by Melk AG in 1990, acquired Sorrin Trust a year later.",
        "Melk AG bought Cordia.",
        "Cordia bought Melk AG.",
    ),
    (
        (
            "Pope Urban was succeeded by Pope Celestine, who was preceded in office by no other"
            " German."
        ),
        "Celestine succeeded Urban.",
        "Urban succeeded Celestine.",
    ),
    (
        "Abel Ruiz, preceded by his brother Marco, ruled until 1410.",
        "Marco preceded Abel Ruiz.",
        "Abel Ruiz preceded Marco.",
    ),
    (
        "The archer Wend killed King Aldo with an arrow.",
        "Wend killed King Aldo.",
        "King Aldo killed Wend.",
    ),
    (
        "King Aldo, killed by the archer Wend, was buried in Trier.",
        "Wend killed King Aldo.",
        "King Aldo killed Wend.",
    ),
    (
        "Among the pupils whom Otto Grell taught was Anna Sorge.",
        "Otto Grell taught Anna Sorge.",
        "Anna Sorge taught Otto Grell.",
    ),
    (
        "Anna Sorge had been taught by Otto Grell since 1901.",
        "Otto Grell taught Anna Sorge.",
        "Anna Sorge taught Otto Grell.",
    ),
    (
        "Spain's Team Duro were beaten 3-0 by Team Lark of Peru.",
        "Team Lark beat Team Duro.",
        "Team Duro beat Team Lark.",
    ),
    (
        "In the final, champions Torv easily defeated the outsiders Belm.",
        "Torv defeated Belm.",
        "Belm defeated Torv.",
    ),
    (
        "The defeat of Belm by Torv in the final surprised no one.",
        "Torv defeated Belm.",
        "Belm defeated Torv.",
    ),
    (
        "General Zorn's army, which defeated that of Marshal Pell at Uz, marched on.",
        "General Zorn defeated Marshal Pell.",
        "Marshal Pell defeated General Zorn.",
    ),
    (
        "Mina Ware replaced Joel Tarn as chair.",
        "Mina Ware replaced Joel Tarn.",
        "Joel Tarn replaced Mina Ware.",
    ),
    (
        "Mina Ware was the successor of Joel Tarn.",
        "Mina Ware succeeded Joel Tarn.",
        "Joel Tarn succeeded Mina Ware.",
    ),
    (
        "Dr. Ellis hired Peter Vance, whom she had met in Rome.",
        "Dr. Ellis hired Peter Vance.",
        "Peter Vance hired Dr. Ellis.",
    ),
    (
        "Zeta Air, a low-cost carrier, has agreed to be acquired by Polar Wings for $2 billion.",
        "Polar Wings acquired Zeta Air.",
        "Zeta Air acquired Polar Wings.",
    ),
    (
        "Polar Wings completed the acquisition of Zeta Air in May.",
        "Polar Wings acquired Zeta Air.",
        "Zeta Air acquired Polar Wings.",
    ),
    (
        "The murder of Lord Penn by Jack Sloe shocked the county.",
        "Jack Sloe murdered Lord Penn.",
        "Lord Penn murdered Jack Sloe.",
    ),
)
TRUE_DATES = (  # claim, evidence that speaks of opposite events as well
    (
        "The museum opened in 1950.",
        "The museum was completed in 1950. The new wing opened in 1970.",
    ),
    ("The museum was opened in 1950.", "The museum was inaugurated in 1950, and closed in 1990."),
    ("The film came out in 2001.", "The film was shot in 1999 and released in 2001."),
    ("The film was made in 1999.", "The film was shot in 1999 and released in 2001."),
    (
        "The book was published in 1914.",
        (
            "The book was written in 1913 and published in 1914; the second edition was published"
            " in 1921."
        ),
    ),
    (
        "The album was released in 1971.",
        "The album was recorded in 1971 and released the same year. It was released again in 1990.",
    ),
    ("The new hall opened in 1931.", "The old hall closed in 1931, when the new one opened."),
    ("He was elected in 1999.", "He resigned in 1999, and was elected again in 1999."),
    (
        "The company was founded in 1985.",
        "The company was founded in 1985 when its predecessor, founded in 1950, was dissolved.",
    ),
    (
        "She took office in 1990.",
        "She was elected in 1989 and took office in 1990, when Kern resigned.",
    ),
    ("She became mayor in 1990.", "Kern, elected in 1985, resigned in 1990, and she became mayor."),
    ("The bridge was built in 1825.", "The bridge was started in 1817 and completed in 1825."),
    ("The bridge was built in 1817.", "Construction started in 1817; it was completed in 1825."),
    (
        "The war began in 1902.",
        "The strike broke out in 1902 and ended in 1904, but the war began in 1902.",
    ),
    (
        "He died in 1962.",
        "He was born in 1890. His wife, who was born in 1900, died in 1962, the same year as he.",
    ),
    (
        "The play premiered in 1956.",
        "The play was written in 1931. It premiered in 1956 and was filmed in 1960.",
    ),
    (
        "The play was filmed in 1960.",
        "The play was written in 1931. It premiered in 1956 and was filmed in 1960.",
    ),
    (
        "The song was recorded in 1971.",
        "The song, written in 1970, was recorded in 1971 and released in 1972.",
    ),
    (
        "The shop was closed in 1990.",
        "The shop opened in 1990 and was closed later that year; another closed in 1995.",
    ),
    ("Torv defeated Belm in 1991.", "Belm defeated Torv in 1990, but Torv took revenge in 1991."),
    ("The war ended in 1945.", "The war began in 1939 and ended in 1945. Another ended in 1953."),
    ("The bridge opened in 1950.", "The bridge was completed in 1949 and opened in 1950."),
    ("The bridge was completed in 1949.", "The bridge was completed in 1949 and opened in 1950."),
    (
        "The bridge was built in 1950.",
        "The bridge was built between 1948 and 1950 and opened in 1951.",
    ),
    (
        "The book was published in 1921.",
        "The book was written in 1914 and was published in 1921 in London.",
    ),
    (
        "The book was published in 1914.",
        "The book, written and published in 1914, was filmed in 1921.",
    ),
    (
        "The film was released in 1921.",
        "The book, written and published in 1914, was filmed and released in 1921.",
    ),
    (
        "The book was written in 1921.",
        "The book was written in 1920 and 1921, and published in 1923.",
    ),
    (
        "The band broke up in 1990.",
        "The band was formed in 1980, broke up in 1990 and was formed again in 1999.",
    ),
    (
        "The band was formed in 1999.",
        "The band was formed in 1980, broke up in 1990 and was formed again in 1999.",
    ),
    (
        "She married in 1970.",
        "She divorced Tom in 1970 and married Ben the same year; she divorced Ben in 1975.",
    ),
    (
        "She divorced Ben in 1975.",
        "She divorced Tom in 1970 and married Ben the same year; she divorced Ben in 1975.",
    ),
    ("He was born in Leeds.", "He was born in Leeds, where he died, in 1950."),
    ("He died in Leeds.", "He moved to Leeds, where he died, in 1950."),
    ("He served until 1973.", "He served as mayor from 1966 until 1973."),
    ("He resigned in 1973.", "He served as mayor from 1966 until 1973."),
    ("He was elected in 1966.", "He served as mayor from 1966 until 1973."),
    ("It did not open until 1921.", "Built in 1914, it did not open until 1921."),
    ("It opened in 1921.", "Built in 1914, it did not open until 1921."),
    ("It opened in 1914.", "Built and opened in 1914, it did not close until 1921."),
    ("The school opened in 1914.", "The school opened in 1914 in a house that was built in 1850."),
    (
        "The school was built in 1850.",
        "The school opened in 1914 in a house that was built in 1850.",
    ),
    (
        "The album was recorded in 1973.",
        "Recorded in 1971 and 1973, the album was released in 1974.",
    ),
    (
        "The album was released in 1974.",
        "Recorded in 1971 and 1973, the album was released in 1974.",
    ),
    (
        "The album was recorded in 1973.",
        "Recorded from 1971 to 1973, the album was released in 1974.",
    ),
)
TRUE_DEEDS = (  # claim, evidence that names others beside
    ("Brown defeated Nixon.", "Nixon was defeated in California by Brown."),
    (
        "Nixon defeated Brown.",
        "Nixon, who had been defeated in California by Brown, defeated Brown later.",
    ),
    (
        "Ulla Berg founded Tarn Air.",
        "Tarn Air, the airline of Ulla Berg, its founder, was founded by Ivo Lang and her.",
    ),
    (
        "Ulla Berg directed Dusk.",
        "Directed by Ivo Lang and Ulla Berg and starring Jo Marsh, Dusk won.",
    ),
    ("Jo Marsh played in Dusk.", "Directed by Ivo Lang and starring Jo Marsh, Dusk won."),
    (
        "Rain was written by Ann Lee and Tom Hay.",
        "Rain was written by Ann Lee, together with Tom Hay.",
    ),
    ("Tom Hay wrote Rain.", "Rain was written by Ann Lee with Tom Hay."),
    ("Tom Hay wrote Rain.", "Rain was written by Ann Lee and by Tom Hay."),
    ("Tom Hay wrote Rain.", "Ann Lee wrote Rain with Tom Hay."),
    (
        "Tom Hay wrote Rain.",
        "Rain was written by Ann Lee and directed by Tom Hay, who wrote the script of Rain too.",
    ),
    ("Tom Hay directed Rain.", "Rain was written by Ann Lee and directed by Tom Hay."),
    (
        "Tom Hay founded Arvex.",
        "Arvex was founded by Karl Bosk and his partner. The partner was Tom Hay.",
    ),
    ("Torv defeated Belm.", "Belm, who had defeated Torv in 1990, lost to Torv in 1991."),
    (
        "Cordia acquired Sorrin.",
        "Sorrin acquired Cordia's shares in 1990; in 1995 Cordia acquired Sorrin.",
    ),
    ("Ware succeeded Tarn.", "Tarn succeeded Ware in 1990, and Ware succeeded Tarn in 1995."),
    ("Sloe killed Penn.", "Penn's men killed Sloe's brother, and Sloe killed Penn."),
    (
        "Torv acquired Belm.",
        "Belm, the maker of pumps, was the target; its acquisition by Torv was announced.",
    ),
    ("Ann Lee wrote Rain.", "Written by Tom Hay, Ann Lee and Jo Marsh, Rain opened in May."),
    ("Ann Lee wrote Rain.", "Written by Tom Hay and Ann Lee, Rain opened in May."),
    ("Ann Lee wrote Rain.", "Rain was written by Tom Hay. It was Ann Lee who wrote Rain."),
    (
        "Ann Lee wrote Rain.",
        "Rain is a song by Ann Lee. A cover of Rain was written up by Tom Hay.",
    ),
    ("Ann Lee founded Arvex.", "Tom Hay founded Arvex Labs. Ann Lee founded Arvex."),
    ("Ann Lee founded Arvex.", "Tom Hay, co-founder of Arvex with Ann Lee, left."),
    ("Ann Lee founded Arvex.", "Tom Hay founded Arvex. Its co-founder was Ann Lee."),
    (
        "Lee Harvey Oswald killed Kennedy.",
        "Jack Ruby killed Oswald. Kennedy was killed by Lee Harvey Oswald.",
    ),
    ("Ann Lee wrote The Sun Also Rises.", "The Sun Also Rises was written by Lee in 1926."),
    ("Hemingway wrote The Sun Also Rises.", "Ernest Hemingway wrote The Sun Also Rises in Paris."),
    (
        "Paul McCartney wrote Yesterday.",
        "Yesterday was written by McCartney and credited to Lennon–McCartney.",
    ),
    ("John Lennon wrote Help!", "Help! was written by Lennon-McCartney. John Lennon sang it."),
    ("Nolan directed Inception.", "Inception was written and directed by Christopher Nolan."),
    (
        "Christopher Nolan wrote Inception.",
        "Inception was produced by Emma Thomas and written and directed by Christopher Nolan.",
    ),
    (
        "Steven Spielberg directed Jaws.",
        "Jaws is a film directed by Steven Spielberg, based on a novel by Peter Benchley.",
    ),
    (
        "Peter Benchley wrote Jaws.",
        "Jaws is a film directed by Steven Spielberg, based on a novel by Peter Benchley.",
    ),
    (
        "Peter Benchley wrote Jaws.",
        (
            "The screenplay of Jaws was written by Carl Gottlieb. Jaws is based on Peter Benchley's"
            " novel."
        ),
    ),
    (
        "Peter Benchley wrote Jaws.",
        (
            "Jaws was written by Carl Gottlieb for the screen. It is based on a novel of the same"
            " name by Peter Benchley."
        ),
    ),
    (
        "Kubrick directed The Shining.",
        "The Shining was written by Stephen King. Kubrick directed the film.",
    ),
    (
        "Stanley Kubrick wrote The Shining.",
        (
            "The Shining was written by Stephen King. Stanley Kubrick and Diane Johnson wrote the"
            " script of The Shining."
        ),
    ),
    ("Henry VIII succeeded Henry VII.", "Henry VII was succeeded by Henry VIII."),
    ("Truman succeeded Roosevelt.", "Roosevelt, preceded by Hoover, was succeeded by Truman."),
    ("Hoover preceded Roosevelt.", "Roosevelt, preceded by Hoover, was succeeded by Truman."),
    ("Plato taught Aristotle.", "Aristotle, a student of Plato, taught Alexander."),
    ("Aristotle taught Alexander.", "Aristotle, a student of Plato, taught Alexander."),
    ("Socrates taught Plato.", "Plato was a pupil of Socrates and the teacher of Aristotle."),
    ("Brazil beat Germany.", "Germany suffered a defeat by Brazil."),
    ("Brazil beat Germany.", "The defeat of Germany by Brazil in 2002 came in Yokohama."),
    (
        "Disney acquired Pixar.",
        (
            "Disney completed its acquisition of Pixar; the acquisition of Pixar by Disney took"
            " months."
        ),
    ),
    ("Disney acquired Pixar.", "Pixar's acquisition by Disney was completed in 2006."),
    ("Booth assassinated Lincoln.", "The assassination of Lincoln by Booth shocked the nation."),
    ("Booth assassinated Lincoln.", "Lincoln's assassin was Booth."),
    ("Brutus killed Caesar.", "Caesar was killed by Cassius, Brutus and others."),
    ("Brutus killed Caesar.", "Caesar was killed by a group led by Cassius and Brutus."),
    ("Brutus killed Caesar.", "Cassius killed Caesar. Brutus, too, stabbed Caesar."),
    (
        "Watson discovered DNA's structure.",
        "The structure of DNA was discovered by Crick and by Watson.",
    ),
    ("The Beatles replaced Pete Best.", "Pete Best was replaced by the Beatles with Ringo Starr."),
)


def kinds(claim: str, evidence: str) -> set[str]:
    return {kind for kind, _ in objections(claim, Mentioned([evidence]))}


@pytest.mark.parametrize(("evidence", "claim", "turned"), [*TURNED_DATES, *TURNED_DEEDS])
def test_the_turned_claim_is_objected_to_and_the_true_one_is_not(
    evidence: str, claim: str, turned: str
) -> None:
    assert kinds(claim, evidence) == set() and kinds(turned, evidence) == {"role"}


@pytest.mark.parametrize(("claim", "evidence"), [*TRUE_DATES, *TRUE_DEEDS])
def test_what_may_be_true_is_left_alone(claim: str, evidence: str) -> None:
    assert kinds(claim, evidence) == set()


def test_an_event_in_other_words_or_of_another_thing_is_not_told_apart() -> None:
    """Neither does the sentence say of one thing when it was completed and when it opened, nor
    do two sentences.
    """
    one = "The museum was completed in 1950, and a new wing opened in 1970."
    assert kinds("The museum opened in 1950.", one) == set()
    assert (
        kinds(
            "The museum opened in 1950.",
            "The museum was completed in 1950. A new wing opened in 1970.",
        )
        == set()
    )
    assert kinds(
        "The museum opened in 1950.", "The museum was completed in 1950 and opened in 1951."
    ) == {"role"}
