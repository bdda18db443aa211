"""Outcomes of answers as chat models give them: what is read around an answer, and what may
never pass for one.
"""

from __future__ import annotations

import pytest

from benchmarks.human.answers import said
from workbench.answers import DOUBT, matches, probability


@pytest.mark.parametrize("half", [0, 1])
def test_answers_in_the_styles_of_chat_models(half: int) -> None:
    """At least .8 of the right ones are accepted, and of those accepted at least .97 are right."""
    judged = [
        (one.right, matches(one.answer, one.gold, one.kind, one.question)) for one in said(half)
    ]
    rights, accepted = (
        [found for right, found in judged if right],
        [right for right, found in judged if found],
    )
    assert len(rights) >= 100 and len(judged) >= 190
    assert sum(rights) / len(rights) >= 0.8 and sum(accepted) / len(accepted) >= 0.97


CAPITAL = "What is the capital of France?"


@pytest.mark.parametrize(
    ("answer", "gold", "question"),
    [
        ("Great question! The answer is Paris. I hope this helps!", "Paris", CAPITAL),
        ("Paris, France", "Paris", CAPITAL),
        ("Many people think it is Lyon, but the capital is Paris.", "Paris", CAPITAL),
        (
            "Paris. It is the largest city in France and the seat of the French government.",
            "Paris",
            CAPITAL,
        ),
        ("The European Union (EU)", "EU", ""),
        ("William Clinton", "Bill Clinton", "Who was president?"),
        ("44 BCE", "44 BC", ""),
        ("1912", "April 15, 1912", "What year was it?"),
        ("91", "91 miles", "How far is it?"),
    ],
)
def test_other_words_for_the_same(answer: str, gold: str, question: str) -> None:
    assert matches(answer, [gold], question=question)


@pytest.mark.parametrize(
    ("answer", "gold", "question"),
    [
        ("Paris, Texas", "Paris", CAPITAL),
        ("Berlin, France", "France", "In which country is it?"),
        ("Paris, Germany", "Paris", CAPITAL),
        ("Many people think it is Paris, but the capital is Lyon.", "Paris", CAPITAL),
        ("Many people think it is Lyon, but it is Paris or Rome.", "Paris", CAPITAL),
        ("Paris. It is Lyon.", "Paris", CAPITAL),
        ("Paris. It was previously Lyon.", "Paris", CAPITAL),
        ("Paris, located in Lyon, Rome, Oslo.", "Paris", CAPITAL),
        ("Paris, with Lyon and Rome.", "Paris", CAPITAL),
        ("Lyon, located near Paris.", "Paris", CAPITAL),
        ("A suburb of Paris.", "Paris", CAPITAL),
        ("Lyon and Paris are the capital of France.", "Paris", ""),
        ("The capital is Lyon, formerly Paris.", "Paris", ""),
        ("The capital is Lyon (some say Paris).", "Paris", ""),
        ("Paris, no wait, Lyon.", "Paris", CAPITAL),
        ("Paris… no wait, Lyon.", "Paris", CAPITAL),
        ("European Union (NATO)", "European Union", ""),
        ("George Bush", "George W. Bush", "Who was president?"),
        ("John Quincy Adams", "John Adams", "Who was president?"),
        ("Hank Williams Jr.", "Hank Williams", "Who sang it?"),
        ("Irelands", "Ireland", ""),
        ("Columbia", "Colombia", ""),
        ("It began before 1921.", "1921", ""),
        ("It lasted from 1920 to 1921.", "1921", ""),
        ("63 AD", "63 BC", ""),
        ("1912", "April 15, 1912", "When was it?"),
        ("91 feet", "91 miles", "How far is it?"),
    ],
)
def test_other_words_for_something_else(answer: str, gold: str, question: str) -> None:
    assert not matches(answer, [gold], question=question)


@pytest.mark.parametrize(
    "answer",
    [
        "Is it Paris?",
        "Paris? No: Lyon.",
        "Paris is not the capital.",
        "Paris never was.",
        "The former capital was Paris.",
        "Could it be Paris?",
        "Paris? Lyon?",
        "The capital was formerly in Paris: it was Paris.",
    ],
)
def test_what_is_asked_denied_or_over_is_no_answer(answer: str) -> None:
    assert not matches(answer, ["Paris"], question=CAPITAL)


def test_what_only_looks_denied_or_over_is_one() -> None:
    assert matches("Paris?", ["Paris"], question=CAPITAL)
    assert matches(
        "The former capital was Paris.", ["Paris"], question="What was the former capital?"
    )
    assert (
        matches("1921", ["1921"])
        and not matches("by 1921", ["1921"])
        and matches("by Dana Imber", ["Dana Imber"])
    )


@pytest.mark.parametrize("gold", [", ,", "(, )", ", Paris", "., 1"])
def test_a_gold_answer_of_hardly_a_word_is_read_to_the_end(gold: str) -> None:
    """A part of it without any word was found everywhere, and reading went on for ever."""
    assert not matches("Lomar, Vetra and so on", [gold])


def test_rules_say_where_they_are_in_doubt() -> None:
    sure = [
        probability(text, ["Paris"], question=CAPITAL)
        for text in ("Paris", "The capital of France is Paris.", "Sure! Paris, France.")
    ]
    assert sure == sorted(sure, reverse=True) and min(sure) > DOUBT[1]
    for text in (
        "Paris or Lyon",
        "The capital, I would say after some thought, is Lyon rather than Paris",
    ):
        assert DOUBT[0] <= probability(text, ["Paris"], question=CAPITAL) <= DOUBT[1]
    for text in ("Lyon", "I don't know", ""):
        assert probability(text, ["Paris"], question=CAPITAL) < DOUBT[0]
    assert (
        probability("No.", ["yes"], "yes_no")
        < DOUBT[0]
        <= probability("Yes and no.", ["yes"], "yes_no")
        <= DOUBT[1]
    )


def in_doubt(answer: str, gold: str, question: str = "") -> bool:
    return DOUBT[0] <= probability(answer, [gold], question=question) <= DOUBT[1]


@pytest.mark.parametrize(
    ("answer", "gold", "question"),
    [
        ("July. It was in August. It was in September.", "July", "In which month was it?"),
        ("July. It has been August.", "July", "In which month was it?"),
        ("1921. It was in 1922.", "1921", "In which year was it?"),
        ("1921. It was completed in 1922.", "1921", "In which year was it?"),
        ("Hamlet. It is the Tempest.", "Hamlet", "Which play did he write first?"),
        ("Brazil. It was Germany.", "Brazil", "Who won the world cup?"),
        ("Brazil. It took place in Germany.", "Brazil", "Who held the world cup?"),
        ("Beatles. It was the Rolling Stones.", "Beatles", "Who sang it?"),
        ("Beatles. It was sung by the Rolling Stones.", "Beatles", "Who sang it?"),
        ("Spanish. It is Portuguese.", "Spanish", "Which language is spoken there?"),
        ("Monday. It was on Tuesday.", "Monday", "On which day was it?"),
        ("Monday. It took place on Tuesday.", "Monday", "On which day was it?"),
        ("Vetra. It is in Lomar.", "Vetra", "What is the capital?"),
        ("red. It is blue.", "red", "What colour is it?"),
        ("German. He was French.", "German", "What nationality was he?"),
        ("Paris. It is in Texas.", "Paris", CAPITAL),
    ],
)
def test_a_later_sentence_that_could_replace_the_answer_is_no_aside(
    answer: str, gold: str, question: str
) -> None:
    assert in_doubt(answer, gold, question)


@pytest.mark.parametrize(
    ("answer", "gold", "question"),
    [
        ("Paris. It is in France.", "Paris", CAPITAL),
        ("Paris. It is the largest city in France.", "Paris", CAPITAL),
        ("Dana Imber. She was a German-born physicist.", "Dana Imber", "Who found it?"),
        ("Dana Imber. She won the Nobel Prize.", "Dana Imber", "Who found it?"),
    ],
)
def test_a_later_sentence_may_tell_more_of_the_answer(
    answer: str, gold: str, question: str
) -> None:
    assert matches(answer, [gold], question=question)


def test_how_sure_one_is_counts_where_it_is_told_in_percent() -> None:
    assert all(
        in_doubt(f"I'm {percent}% {how} Paris", "Paris", CAPITAL)
        for percent in (0, 1, 50)
        for how in ("sure it's", "certain")
    )
    assert in_doubt("I'm 5% confident that Paris", "Paris", CAPITAL)
    assert matches("I'm 95% confident that it's Paris", ["Paris"], question=CAPITAL)
    assert matches("I am 100% sure it's Paris.", ["Paris"], question=CAPITAL)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("Princess Anne", "Queen Anne"),
        ("It was Princess Anne.", "Queen Anne"),
        ("Pope Francis", "King Francis"),
        ("Saint Francis", "Pope Francis"),
        ("Prince William", "King William"),
        ("King Elizabeth", "Queen Elizabeth"),
        ("his brother Toma Ardel", "Toma Ardel"),
        ("his sister Toma Ardel", "Toma Ardel"),
        ("It was his father Toma Ardel.", "Toma Ardel"),
        ("Father Toma Ardel", "Brother Toma Ardel"),
        ("The brother of Toma Ardel", "Toma Ardel"),
        ("The teacher of Toma Ardel wrote it", "Toma Ardel"),
    ],
)
def test_a_rank_is_not_another_nor_are_relatives(answer: str, gold: str) -> None:
    assert in_doubt(answer, gold, "Who wrote it?")


@pytest.mark.parametrize(
    ("answer", "gold", "question"),
    [
        ("Anne", "Queen Anne", "Who ruled?"),
        ("Queen Victoria", "Victoria", "Who ruled?"),
        ("Queen Anne", "Queen Anne", "Who ruled?"),
        ("Prime Minister Sir Toma Ardel", "Sir Toma Ardel", "Who ruled?"),
        ("She was the daughter of Toma Ardel.", "Toma Ardel", "Who was her father?"),
        ("Her father Toma Ardel", "Toma Ardel", "Who was her father?"),
    ],
)
def test_a_rank_may_be_told_on_one_side_alone(answer: str, gold: str, question: str) -> None:
    assert matches(answer, [gold], question=question)


@pytest.mark.parametrize(
    ("answer", "gold", "question"),
    [
        ("Toma Ardel, written by Dana Imber", "Toma Ardel", "Who wrote it?"),
        ("Toma Ardel, directed by Dana Imber.", "Toma Ardel", "Which film was it?"),
        ("John Lennon, from the Latin Paul McCartney", "John Lennon", "Who sang it?"),
        ("1921, published in 1922", "1921", "In which year was it?"),
        ("July, published in 1922", "July", "When was it?"),
        ("Paris, located in Texas", "Paris", CAPITAL),
        ("Paris, situated in Texas.", "Paris", ""),
        ("Vetra, located in Texas.", "Vetra", "What is the capital of Karsia?"),
    ],
)
def test_what_hangs_on_the_answer_and_may_be_one_too_stays(
    answer: str, gold: str, question: str
) -> None:
    assert in_doubt(answer, gold, question)


@pytest.mark.parametrize(
    ("answer", "gold", "question"),
    [
        ("Paris, located in France", "Paris", CAPITAL),
        ("Hamlet, published in 1603", "Hamlet", "Which play was it?"),
        ("Germany, beating Argentina in the final", "Germany", "Who won?"),
    ],
)
def test_what_hangs_on_the_answer_and_can_be_none_goes(
    answer: str, gold: str, question: str
) -> None:
    assert matches(answer, [gold], question=question)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("BBC", "Bill Bob Clinton"),
        ("Jessica Karen Rowling", "J. K. Rowling"),
        ("Jessica K. Rowling", "J. K. Rowling"),
        ("John Stuart Lennon", "John Lennon"),
        ("William Pierce Clinton", "Bill Clinton"),
        ("Franklin Pierce Roosevelt", "Franklin Roosevelt"),
        ("Stephanie Smith", "Stephane Smith"),
        ("Stephane Smith", "Stephanie Smith"),
        ("Alexandria", "Alexandra"),
        ("Alexandra", "Alexandria"),
    ],
)
def test_other_given_names_are_never_the_same(answer: str, gold: str) -> None:
    assert in_doubt(answer, gold, "Who was it?") and in_doubt(answer, gold)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("John Fitzgerald Kennedy", "John F. Kennedy"),
        ("Richard M. Nixon", "Richard Nixon"),
        ("John Ronald Reuel Tolkien", "J. R. R. Tolkien"),
        ("William Shakespear", "William Shakespeare"),
    ],
)
def test_initials_and_slips_in_surnames_are_the_same(answer: str, gold: str) -> None:
    assert matches(answer, [gold], question="Who was it?")


def test_acronyms_are_of_organisations() -> None:
    assert matches("NATO", ["North Atlantic Treaty Organization"]) and matches(
        "FBI", ["Federal Bureau of Investigation"]
    )


@pytest.mark.parametrize(
    "question", ["In which year was she born?", "In which year, and on what day, was she born?"]
)
def test_another_date_in_the_year_is_not_the_date(question: str) -> None:
    assert in_doubt("5 June 1921", "12 March 1921", question) and in_doubt(
        "June 1921", "12 March 1921", question
    )
    assert matches("12 March 1921", ["12 March 1921"], question=question)
    assert matches("1921", ["12 March 1921"], question=question) == ("day" not in question)


@pytest.mark.parametrize(
    ("answer", "gold", "question"),
    [
        ("Ohio River", "Ohio", "Through which state does the river flow?"),
        ("Washington University", "Washington", "In which state is the university?"),
        ("Columbia University", "Columbia", "In which city is the university?"),
        ("Long Island", "Long", "Who owned the island?"),
    ],
)
def test_a_kind_that_is_not_asked_for_belongs_to_the_name(
    answer: str, gold: str, question: str
) -> None:
    assert in_doubt(answer, gold, question)


def test_the_kind_that_is_asked_for_may_stand_behind_the_name() -> None:
    for question in (
        "Which river is it?",
        "What is the longest river?",
        "What is the name of the river?",
        "In which river is it?",
    ):
        assert matches("Volga River", ["Volga"], question=question)


@pytest.mark.parametrize(
    ("answer", "gold", "kind"),
    [
        ("Yes?", ["yes"], "yes_no"),
        ("No?", ["no"], "yes_no"),
        ("Yes, that would be a lie.", ["yes"], "yes_no"),
        ("Alpha and Beta?", ["Alpha", "Beta"], "list"),
        ("I doubt it is Paris", ["Paris"], "single"),
        ("Paris, which is not the capital", ["Paris"], "single"),
        ("Paris is the wrong answer", ["Paris"], "single"),
        ("Paris. It is the wrong city.", ["Paris"], "single"),
        ("Paris is ruled out", ["Paris"], "single"),
        ("5 tonnes", ["5 kg"], "numeric"),
        ("5 euros", ["5 dollars"], "numeric"),
        ("twice 5", ["5"], "numeric"),
        ("5 dozen", ["5"], "numeric"),
        ("5%", ["5"], "numeric"),
        ("Up to 5.", ["5"], "single"),
    ],
)
def test_what_asks_denies_or_multiplies_is_in_doubt(
    answer: str, gold: list[str], kind: str
) -> None:
    assert DOUBT[0] <= probability(answer, gold, kind) <= DOUBT[1]


def test_what_only_looks_like_it_is_not_in_doubt() -> None:
    assert matches("Yes.", ["yes"], "yes_no") and matches(
        "Alpha and Beta.", ["Alpha", "Beta"], "list"
    )
    assert matches("Paris, which is the capital", ["Paris"], question=CAPITAL)
    assert matches("5%", ["5"], "numeric", "What percentage is it?") and matches(
        "5%", ["5%"], "numeric"
    )
    assert matches("5 times", ["5"], "numeric", "How often did she win?") and matches(
        "A Lie", ["A Lie"]
    )
