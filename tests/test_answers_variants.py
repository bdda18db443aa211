"""The same answer in other words, by class, and beside each what only looks like it: never another thing.

Written from how people write answers, before any of it was measured.
"""

from __future__ import annotations

import re

import pytest

from workbench.answers import matches, normalise

NUMBER = re.compile(
    "When|How (?:many|much)|Into how many|In (?:what|which) (?:year|season|episode)|On what day|At "
    "what|What is the (?:total|final)"
)
WHO, WHERE, WHEN = "Who was it?", "Where was it held?", "When did it happen?"

SAME = [  # answer, gold answer, question
    # dates with parts left out that the question does not ask for
    ("1912", "April 15, 1912", "In which year did it happen?"),
    ("October 9", "October 9, 2018", "When does the new series come out?"),
    ("April 15", "April 15, 1912", "On what day did it sink?"),
    ("Nov", "November", "In which month is it?"),
    ("1862 to 1911", "1862–1911", "When was it used?"),
    ("from 1862 to 1911", "1862–1911", "When was it used?"),
    ("between 1939 and 1945", "1939–45", "When was the war?"),
    ("the 80s", "the 1980s", WHEN),
    ("the eighties", "1980s", WHEN),
    ("the 1800s", "19th century", WHEN),
    ("8 pm", "8:00 p.m.", "At what time does it begin?"),
    ("15 March", "15 March every year", "When is it celebrated?"),
    # places
    ("Yorktown, Virginia", "Virginia", WHERE),
    ("yorktown, virginia", "Virginia", WHERE),
    ("Houston, TX", "Houston, Texas", WHERE),
    ("Houston", "Houston, TX", WHERE),
    ("Fort Benning", "Fort Benning in Georgia", WHERE),
    ("Saint Louis", "St. Louis", WHERE),
    ("Mt. Rainier", "Mount Rainier", "Which mountain is it?"),
    ("Tripura", "State of Tripura", "Which state is it?"),
    ("Washington", "the U.S. state of Washington", "What state does it take place in?"),
    ("Burma", "Myanmar", "Which country is it?"),
    ("the Soviet Union", "USSR", "Which country is it?"),
    ("Ural Mountains", "the Urals", "What divides Europe from Asia?"),
    ("the Rockies", "Rocky Mountains", "Which range is it?"),
    ("the Caribbean", "the 18th century Caribbean", WHERE),
    # people
    ("Martha Ann Chase", "Martha Chase", WHO),
    ("patricia ann maloney", "Patty Maloney", WHO),
    ("Tom Robinson", 'Thomas "Tom" Robinson', WHO),
    ("Shula, Don", "Don Shula", "Which coach has the most wins?"),
    ("Greg Abbott", "Incumbent Republican Governor Greg Abbott", WHO),
    ("Toby Hemingway", "British actor Toby Hemingway", WHO),
    ("B. Traven", "bilingual German author B. Traven", WHO),
    ("Cake", "American alternative rock band Cake", "Who sings it?"),
    ("cake", "American alternative rock band Cake", "Who sings it?"),
    ("Prochlorococcus", "The tiny marine cyanobacterium Prochlorococcus", "Which organism is it?"),
    ("Ranil Wickremasinghe", "Ranil Wickramasinghe", WHO),
    ("Stephen Spielberg", "Steven Spielberg", WHO),
    ("Jason Kincaid", "Jason Kincaid (1984)", WHO),
    ("Robin", "Robin, a youth", WHO),
    ("Erwin Schroedinger", "Erwin Schrödinger", WHO),
    # more and fewer words, which the question gives
    ("Chernobyl", "Chernobyl Nuclear Power Plant", "Which nuclear power plant blew up?"),
    ("24", "24 judges", "What is the total number of judges?"),
    ("over 74", "over 74 languages", "Into how many languages is it translated?"),
    ("the sixth series", "the sixth", "What is the final season of it?"),
    ("the sixth", "the sixth series", "What is the final series of it?"),
    ("Emsley A. Laney", "Emsley A. Laney High School", "Where did he go to high school?"),
    ("counterclockwise direction", "counterclockwise", "In which direction does it turn?"),
    ("subdural hematoma", "subdural hematoma (SDH)", "Which hematoma is it?"),
    # one and many
    ("pigs", "Pig", "Which animal carries it?"),
    ("the employer", "Employers", "Which party pays the tax?"),
    ("leaf", "leaves", "What do they eat?"),
    ("nucleus", "nuclei", "What does it divide?"),
    ("pulmonary vein", "pulmonary veins", "Which vessels are they?"),
    ("women", "woman", "What does the sign stand for?"),
    ("churches", "church", "What did they build?"),
    # joined
    ("Kid Creole and the Coconuts", "Kid Creole & The Coconuts", "Which band sang it?"),
    ("Kid Creole & the Coconuts", "Kid Creole and the Coconuts", "Which band sang it?"),
    ("demand and supply", "supply and demand", "What determines it?"),
    # writing
    ("gray matter", "grey matter", "What is it made of?"),
    ("color", "colour", "What is it?"),
    ("Defence Organization", "Defense Organisation", "Which organisation is it?"),
    ("anemia", "anaemia", "What is it called?"),
    ("roller coaster", "rollercoaster", "What is it?"),
    ("hydrologic cycle", "the hydrological cycle", "What is another name for it?"),
    ("Hydrogen", "Hydro\u00adgen", "What is the first element?"),
    ("Beyonc\\u00e9", "Beyoncé", WHO),
    # numerals
    ("Rocky 2", "Rocky II", "Which film is it?"),
    ("World War 2", "World War II", "Which war was it?"),
    ("Second World War", "World War II", "Which war was it?"),
    ("WWII", "World War II", "Which war was it?"),
    ("Louis the Fourteenth", "Louis XIV", "Which king was it?"),
    ("season 3", "the third season", "In what season does he die?"),
    ("the third season", "season three", "In what season does he die?"),
    ("Season three, episode two", "Season 3, Episode 2", "In which episode does he die?"),
    ("twice", "two", "How many times did she win?"),
    ("zero", "none", "How many are there?"),
    # money
    ("12.6 billion dollars", "$12.6 billion", "How much does it cost?"),
    ("US$14 billion", "14 billion dollars", "How much does it cost?"),
    # teams and organisations
    ("the Saints", "New Orleans Saints", "Which team won?"),
    ("Red Sox", "Boston Red Sox", "Who won the first game?"),
    ("The Saints won the Super Bowl.", "New Orleans Saints", "Who won the Super Bowl?"),
    ("Arsenal FC", "Arsenal", "Which team won?"),
    ("Barcelona", "FC Barcelona", "Which club won?"),
    ("National Aeronautics and Space Administration", "NASA", "Which agency is it?"),
]  # fmt: skip

OTHER = [
    # dates
    ("1912", "April 15, 1912", WHEN),
    ("in the spring of 1912", "15 April 1912", WHEN),
    ("1913", "April 15, 1912", "In which year did it happen?"),
    ("October 10", "October 9, 2018", "When does the new series come out?"),
    ("April 1912", "15 April 1912", WHEN),
    ("May 1912", "15 April 1912", WHEN),
    ("1912", "April 15, 1912", "On what day did it happen?"),
    ("2019", "April 15, 2019", "When does the new season begin?"),
    ("April 16", "April 15, 1912", "On what day did it sink?"),
    ("April", "April 15, 1912", WHEN),
    ("the 1990s", "the 1980s", WHEN),
    ("the 80s", "the 1880s", WHEN),
    ("1800", "19th century", WHEN),
    ("the 1900s", "19th century", WHEN),
    ("1862 to 1912", "1862–1911", "When was it used?"),
    ("1862", "1862–1911", "When was it used?"),
    ("8 am", "8:00 p.m.", "At what time does it begin?"),
    ("Dec", "November", "In which month is it?"),
    # places
    ("Berlin, France", "France", "In which country is it?"),
    ("Yorktown or Virginia", "Virginia", WHERE),
    ("Richmond, Virginia, or Yorktown", "Virginia", WHERE),
    ("West Virginia", "Virginia", WHERE),
    ("Virginia Beach", "Virginia", WHERE),
    ("Houston, TN", "Houston, Texas", WHERE),
    ("Georgia", "Fort Benning in Georgia", WHERE),
    ("Wonderland", "Alice in Wonderland", "Which book is it?"),
    ("City of London", "London", WHERE),
    ("Republic of China", "China", "Which country is it?"),
    ("North Korea", "South Korea", "Which country is it?"),
    ("Northern Ireland", "Ireland", "Which country is it?"),
    ("State of Mizoram", "State of Tripura", "Which state is it?"),
    ("Ural River", "the Urals", "What divides Europe from Asia?"),
    ("the 18th century", "the 18th century Caribbean", WHERE),
    ("Pier", "Southend Pier", "What is the longest pier?"),
    # people
    ("John Quincy Adams", "John Adams", "Who was president?"),
    ("James Earl Jones", "James Jones", WHO),
    ("Michael B. Jordan", "Michael Jordan", WHO),
    ("Martha Ann Chase", "Mary Chase", WHO),
    ("Johann Sebastian Bach", "Johann Bach", WHO),
    ("Jessica Karen Rowling", "J. K. Rowling", WHO),
    ("Hank Williams Jr.", "Hank Williams", WHO),
    ("Robinson", 'Thomas "Tom" Robinson', WHO),
    ("Governor Greg", "Incumbent Republican Governor Greg Abbott", WHO),
    ("British actor", "British actor Toby Hemingway", WHO),
    ("Roosevelt", "Franklin D. Roosevelt", "Who was president?"),
    ("July", "mid-July", WHEN),
    ("Ireland", "northern Ireland", WHERE),
    ("Egypt", "upper Egypt", WHERE),
    ("Stephanie Smith", "Stephane Smith", WHO),
    ("sodium chlorate", "Sodium chlorite", "Which compound is it?"),
    ("Louis XV", "Louis XIV", "Which king was it?"),
    ("Louis the Fifteenth", "Louis XIV", "Which king was it?"),
    # words that the question gives
    ("Nuclear Power Plant", "Chernobyl Nuclear Power Plant", "Which nuclear power plant blew up?"),
    ("3 km", "3 miles", "How many miles are 5 km?"),
    ("24 courts", "24 judges", "What is the total number of judges?"),
    ("Columbia University", "Columbia", "In which city is the university?"),
    ("freedom of speech", "freedom of the press", "Which rights are protected?"),
    ("Royal blue", "Navy blue", "Which blue is it?"),
    ("the fifth series", "the sixth", "What is the final season of it?"),
    ("John Adams", "John Quincy Adams", "Who was the son of John Adams?"),
    # one and many
    ("Irelands", "Ireland", "Which country is it?"),
    ("Rolling Stone", "Rolling Stones", "Which band is it?"),
    ("new", "news", "What do they read?"),
    ("menu", "men", "Who were they?"),
    # joined
    ("Kid Creole", "Kid Creole & The Coconuts", "Which band sang it?"),
    ("supply", "supply and demand", "What determines it?"),
    ("supply or demand", "supply and demand", "What determines it?"),
    ("Mike Stoller and Toma Ardel", "Jerry Leiber and Mike Stoller", "Who wrote it?"),
    # writing
    ("tired", "tyre", "What is it?"),
    ("colours", "cloture", "What is it?"),
    ("calcite", "calcium", "What is it?"),
    # numerals
    ("Rocky 3", "Rocky II", "Which film is it?"),
    ("Rocky", "Rocky II", "Which film is it?"),
    ("First World War", "World War II", "Which war was it?"),
    ("season 4", "the third season", "In what season does he die?"),
    ("episode 3", "season 3", "In what season does he die?"),
    ("Season 3, Episode 2", "Season 2, Episode 3", "In which episode does he die?"),
    ("once", "two", "How many times did she win?"),
    ("none", "one", "How many are there?"),
    # money
    ("12.6 billion euros", "$12.6 billion", "How much does it cost?"),
    ("$12.6 million", "$12.6 billion", "How much does it cost?"),
    # teams and organisations
    ("New Orleans", "New Orleans Saints", "Which team won?"),
    ("Los Angeles Lakers", "Los Angeles Clippers", "Which team won?"),
    ("Los Angeles", "Los Angeles Lakers", "Which team won?"),
    ("the Jets", "New York Giants", "Which team won?"),
    ("New York Jets", "New York Giants", "Which team won?"),
    ("National Security Agency", "NASA", "Which agency is it?"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "gold", "question"), SAME)
def test_the_same_in_other_words(answer: str, gold: str, question: str) -> None:
    assert matches(answer, [gold], question=question)


@pytest.mark.parametrize(("answer", "gold", "question"), OTHER)
def test_what_only_looks_like_it(answer: str, gold: str, question: str) -> None:
    assert not matches(answer, [gold], question=question)


@pytest.mark.parametrize(("answer", "gold", "question"), SAME)
def test_other_words_beside_another_guess_are_never_right(answer: str, gold: str, question: str) -> None:
    """However an answer is written: one more guess beside it makes it a list. Beside a number it is another number."""
    guess = "77" if NUMBER.match(question) else "Zumbria"
    for form in ("{0} or {1}", "{1} or {0}", "{0}. No, {1}.", "{0}, {1}"):
        assert not matches(form.format(answer, guess), [gold], question=question), form


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Colour and organisation", "color and organization"),
        ("otherwise likewise rise", "otherwise likewise rise"),
        ("St. Louis on Wall St.", "saint louis on wall st"),
        ("Hydro\u00adgen\u200b", "hydrogen"),
        ("7:00 P.M.", "7 pm"),
        ("the fourteenth", "14th"),
    ],
)
def test_one_writing(text: str, normal: str) -> None:
    assert normalise(text) == normalise(normal) == normal
