"""Claims by rules, on sentences of our own and on biographies that people took apart."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.answers import sentences
from workbench.extract import rules
from workbench.extract.clauses import LONGEST, clauses
from workbench.extract.pronouns import resolve
from workbench.extract.shorter import spread
from workbench.types import Claim, Claims, Question, Response

TOPIC = "Toma Ardel"

DIVIDED = [
    ("He was born in Vetra in 1921.", ["Toma Ardel was born in Vetra.", "Toma Ardel was born in 1921."]),
    ("She studied law and won the Lomar Prize.", ["Toma Ardel studied law.", "Toma Ardel won the Lomar Prize."]),
    ("Toma Ardel was a painter, writer, and poet.",
     ["Toma Ardel was a painter.", "Toma Ardel was a writer.", "Toma Ardel was a poet."]),
    ("Toma Ardel is a painter and actor from Vetra.",
     ["Toma Ardel is a painter.", "Toma Ardel is an actor.", "Toma Ardel is from Vetra."]),
    ("Toma Ardel, a painter, lives in Vetra.", ["Toma Ardel is a painter.", "Toma Ardel lives in Vetra."]),
    ("He is a painter who won the Lomar Prize.", ["Toma Ardel is a painter.", "Toma Ardel won the Lomar Prize."]),
    ("In 1950, he left Vetra.", ["Toma Ardel left Vetra in 1950."]),
    ("However, he left.", ["Toma Ardel left."]),
    ("Yes, the Tarven bridge was opened in 1934.", ["The Tarven bridge was opened in 1934."]),
    ("No, he was born in Lomar.", ["Toma Ardel was born in Lomar."]),
    ("No bridge was opened.", ["No bridge was opened."]),
    ("He wrote several books, including The Door, The Hill and The Sea.",
     ["Toma Ardel wrote several books.", "Toma Ardel wrote The Door.", "Toma Ardel wrote The Hill.",
      "Toma Ardel wrote The Sea.", "The Door is a book.", "The Hill is a book.", "The Sea is a book."]),
    ("He worked as an actor and singer.", ["Toma Ardel worked as an actor.", "Toma Ardel worked as a singer."]),
    ("Toma Ardel (1920–1999) was an actor.",
     ["Toma Ardel was an actor.", "Toma Ardel was born in 1920.", "Toma Ardel died in 1999."]),
    ("He joined Lomar Labs, becoming its head.", ["Toma Ardel joined Lomar Labs.", "Toma Ardel became its head."]),
    ("His father was Bo Ardel, a baker.", ["Toma Ardel's father was Bo Ardel.", "Bo Ardel was a baker."]),
    ("He left Vetra and his wife stayed in Lomar.", ["Toma Ardel left Vetra.", "Toma Ardel's wife stayed in Lomar."]),
    ("He left Vetra, and his wife stayed in Lomar.", ["Toma Ardel left Vetra.", "Toma Ardel's wife stayed in Lomar."]),
    ("He had a long and happy life.", ["Toma Ardel had a long and happy life."]),
    ("He wrote \"Rain and Snow\" in 1950.", ["Toma Ardel wrote \"Rain and Snow\" in 1950."]),
    ("I think he was born in Vetra.", ["Toma Ardel was born in Vetra."]),
    ("Perhaps he may be a baker.", ["Toma Ardel may be a baker."]),
    ("He won.[1]", ["Toma Ardel won."]),
    ("It was built between 1887 and 1889.", ["Toma Ardel was built between 1887 and 1889."]),
    ("He wrote Pride and Prejudice.", ["Toma Ardel wrote Pride and Prejudice."]),
    ("He met Anna and Bob.", ["Toma Ardel met Anna.", "Toma Ardel met Bob."]),
    ("他是画家。", ["他是画家。"]),
    ("He is a Brazilian footballer from Lima, Peru.",
     ["Toma Ardel is Brazilian.", "Toma Ardel is a footballer.", "Toma Ardel is from Lima, Peru.", "Lima is in Peru."]),
    ("He appeared in films such as \"Rain\" (1950) and \"Snow\".",
     ["Toma Ardel appeared in films.", "Toma Ardel appeared in \"Rain\".", "Toma Ardel appeared in \"Snow\".",
      "\"Rain\" is a film.", "\"Snow\" is a film.", "\"Rain\" was released in 1950."]),
    ("Born in Osk in 1920, he moved to Vetra.",
     ["Toma Ardel moved to Vetra.", "Toma Ardel was born in Osk.", "Toma Ardel was born in 1920."]),
    ("In 1950, he won a prize in Osk.",
     ["Toma Ardel won a prize.", "Toma Ardel won a prize in Osk.", "Toma Ardel won a prize in 1950."]),
    ("He is the founder and director of the Lomar Bank.",
     ["Toma Ardel is the founder of the Lomar Bank.", "Toma Ardel is the director of the Lomar Bank."]),
    ("He won gold at the 1980 Games and, in 1984, he won silver.",
     ["Toma Ardel won gold at the 1980 Games.", "Toma Ardel won silver in 1984."]),
    ("He worked for papers, painting his house and eventually becoming a judge.",
     ["Toma Ardel worked for papers.", "Toma Ardel painted his house.", "Toma Ardel eventually became a judge."]),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "expected"), DIVIDED)
def test_clauses(sentence: str, expected: list[str]) -> None:
    response = Response("r", Question("q", "?", title=TOPIC), sentence)
    claims = [Claim(n, claim, sentence=0) for n, claim in enumerate(clauses(sentence))]
    assert [claim.text for claim in resolve(claims, response)] == expected


@pytest.mark.slow
def test_many_sentences_take_time_in_proportion() -> None:
    """Ten times the sentences take about ten times as long, not a hundred times."""
    sentence = (
        'Toma Ardel, a painter from Lima, Peru, wrote books such as "A" and "B", and in 1950 he'
        " left Osk, where he died. "
    )
    seconds = []
    for many in (300, 3_000):
        begun = time.process_time()
        assert len(extract(sentence * many).claims) > 4 * many
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 30 * seconds[0]


def test_whom_a_relative_clause_is_about_is_soon_found() -> None:
    """What may be a name behind "by" is looked for in the last words alone, and not from every
    "by" to every word.
    """
    seconds = []
    for many in (1, 4):
        begun = time.process_time()
        sentence = f"Ana met Bo {'by ' * 75 * many}{'A ' * 120 * many}a, who sang."
        assert len(sentence) < LONGEST and clauses(sentence)
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 30 * max(seconds[0], 0.01)


@pytest.mark.parametrize("piece", [" and wrote a book in Osk", " and won the prize"])
@pytest.mark.parametrize("begun", ["He met those who sang in Osk", "She met people who left Osk"])
def test_claims_do_not_grow_with_the_square_of_their_sentence(begun: str, piece: str) -> None:
    sentence = begun + 60 * piece
    claims = clauses(sentence)
    assert claims[-1] == f"{sentence}." and len("".join(claims)) < 2 * len(sentence)
    assert clauses(begun + piece)[-1] == f"{begun}{piece}."


def extract(text: str, title: str = TOPIC) -> Claims:
    return rules()([Response("r", Question("q", "?", title=title), text)])[0]


def test_claims_carry_section_sentence_and_place() -> None:
    text = (
        "<think>He was born in Vetra in 1921.</think><answer>I don't know. Who is he? He"
        " won.</answer>"
    )
    found = extract(text)
    assert [
        (c.id, c.text, c.section, c.sentence, text[slice(*c.span)] if c.span else "")
        for c in found.claims
    ] == [
        (0, "Toma Ardel was born in Vetra.", "think", 0, "He was born in Vetra"),
        (1, "Toma Ardel was born in 1921.", "think", 0, "He was born in Vetra in 1921"),
        (2, "Toma Ardel won.", "answer", 3, "He won"),
    ]
    assert found.verdicts == () and found.error is None and found.cost.calls == 0


def test_the_topic_comes_from_the_title_the_question_or_the_response() -> None:
    for question in (
        Question("q", "?", title="Toma Ardel (painter)"),
        Question("q", "Tell me a bio of Toma Ardel."),
    ):
        assert rules()([Response("r", question, "He won.")])[0].claims[0].text == "Toma Ardel won."
    assert [c.text for c in extract("Toma Ardel is a baker. He won.", "").claims] == [
        "Toma Ardel is a baker.",
        "Toma Ardel won.",
    ]
    assert [c.text for c in extract("nobody knows him. He won.", "").claims][-1] == "He won."


PRONOUNS = [  # question, response, its last claim
    (
        "Is the Tarven bridge older than Osk?",
        "The Tarven bridge was painted green. It is long.",
        "The Tarven bridge is long.",
    ),
    ("Is it long?", "The bridge was opened in 1934. It is long.", "The bridge is long."),
    ("What is Tavor?", "Tavor is a drug. It was released in 1899.", "Tavor was released in 1899."),
    ("Where is Osk?", "Yes. It is long.", "Osk is long."),
    ("How long is Osk?", "Lomar lies on the Osk. It is 9 km long.", "Osk is 9 km long."),
    (
        "What is Cerva?",
        "Cerva is a lab. The Large Ring is its machine. It was founded in 1954.",
        "It was founded in 1954.",
    ),
    (
        "How high is the Osk Tower?",
        "Critics disliked the tower. It is 330 metres tall.",
        "Osk Tower is 330 metres tall.",
    ),
    (
        "What is Osk like?",
        "Osk is a town. It is known that bears lived there.",
        "It is known that bears lived there.",
    ),
    (
        "Who wrote Rain?",
        "Mira Bolt wrote Rain. She was born in Vetra.",
        "Mira Bolt was born in Vetra.",
    ),
    ("Who is it?", "Mira Bolt was born in Vetra. Vetra is a city. She won.", "Mira Bolt won."),
    (
        "Who is it?",
        "Mira Bolt lives in Vetra. Her father is Bo Bolt, a baker. She won.",
        "Mira Bolt won.",
    ),
    (
        "Who is Mira Bolt?",
        "Mira Bolt was born in Vetra. Bo Bolt taught physics. She won.",
        "She won.",
    ),
    ("Who is Mira Bolt?", "Bolt was born in Vetra. She won.", "Mira Bolt won."),
    ("When was Bolt born?", "He was born in 1879.", "Bolt was born in 1879."),
    ("Who?", "The book was a success. He wrote it.", "He wrote it."),
    (
        "Where is Cerva in Lomar?",
        "Cerva is a lab. It was founded in 1954.",
        "Cerva was founded in 1954.",
    ),
    ("Add a line about her.", "She left Osk.", "She left Osk."),
    (
        "Whom did he marry? Did Ana know?",
        "He was told of Ana's prize.",
        "He was told of Ana's prize.",
    ),
    ("What is Tavor?", "Cerva has a lab. It was founded in 1954.", "It was founded in 1954."),
    ("What fell?", "The result was a war. It was long.", "It was long."),
    ("What is Tavor?", "Tavor is a drug. It's new.", "It's new."),
    ("Who?", "Toma Ardel married Mira Bolt. She was a baker.", "She was a baker."),
    ("Who?", "Toma Ardel was a baker. He married Mira Bolt. He won.", "Toma Ardel won."),
    ("Who?", "Mira Bolt was a baker. She won. Her husband was Bo Ardel. He lost.", "He lost."),
]


@pytest.mark.parametrize(("question", "text", "expected"), PRONOUNS)
def test_without_a_title_a_pronoun_is_what_the_words_show_it_to_be(
    question: str, text: str, expected: str
) -> None:
    claims = rules()([Response("r", Question("q", question), text)])[0].claims
    assert claims[-1].text == expected and claims[0].text != "Yes."


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Rain", "Mira Bolt wrote Rain. She was born in Vetra.", "Mira Bolt was born in Vetra."),
        (
            "Rain",
            "Rain is a film. Mira Bolt directed it. She was born in Vetra.",
            "She was born in Vetra.",
        ),
        ("Mira Bolt", "Mira Bolt is a painter. Bo Bolt taught physics. She won.", "Mira Bolt won."),
        ("Mira Bolt", "Her father is Bo Bolt, a baker. She won.", "Mira Bolt won."),
        ("Mira Bolt", "Mira Bolt was a baker. Bo Ardel was her husband. He won.", "He won."),
        (
            "Bo Bolt",
            "Bo Bolt Osk is a cook. Bo Bolt Ardel was a Lomarian painter. He won.",
            "He won.",
        ),
        (
            "Bo Bolt",
            "Bo Bolt is a cook. Toma Ardel was a painter. Bo Bolt was born in Osk. He won.",
            "Bo Bolt won.",
        ),
        (
            "Rain",
            "Rain is a film. It is up to the reader to judge it.",
            "It is up to the reader to judge it.",
        ),
    ],
)
def test_with_a_title_a_pronoun_is_the_title_unless_it_can_only_be_another(
    title: str, text: str, expected: str
) -> None:
    assert extract(text, title).claims[-1].text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rainy Days! (Lomarian: Mest! Osk: Duv!) is a novel.", [(2, "Rainy Days! is a novel.")]),
        (
            'He sang on "Run... Now!", and he left Osk.',
            [(0, 'Toma Ardel sang on "Run... Now!".'), (1, "Toma Ardel left Osk.")],
        ),
        ('Ana said: "I won. It was late."', [(0, 'Ana said: "I won. It was late".')]),
        # sentences within brackets and a sign that is not closed hide nothing
        (
            "Toma Ardel won (in Osk. He left in 1950).",
            [(0, "Toma Ardel won (in Osk."), (1, "Toma Ardel left in 1950).")],
        ),
        (
            'He sang "Rain. He won. He left. He ran. He fell.',
            [
                (0, 'Toma Ardel sang "Rain.'),
                (1, "Toma Ardel won."),
                (2, "Toma Ardel left."),
                (3, "Toma Ardel ran."),
                (4, "Toma Ardel fell."),
            ],
        ),
        (
            'It is 5" wide. It is 7" long.',
            [(0, 'Toma Ardel is 5" wide.'), (1, 'Toma Ardel is 7" long.')],
        ),
        ('"He won. He left."', [(0, '"He won.'), (1, 'Toma Ardel left".')]),
        (
            'He won "the cup.\n\nHe left" Osk.',
            [(0, 'Toma Ardel won "the cup.'), (1, 'Toma Ardel left" Osk.')],
        ),
    ],
)
def test_a_sign_within_a_title_ends_no_sentence(text: str, expected: list[tuple[int, str]]) -> None:
    found = extract(text)
    assert [(claim.sentence, claim.text) for claim in found.claims] == expected
    assert found.sentences == sentences(text)


def test_code_headings_and_plans_are_not_taken_apart() -> None:
    text = (
        "[Outline] He won. [Answer]\n```\nHe ran. He won.\n```\n## Career\n| year | prize |\nHe"
        " lost."
    )
    assert [c.text for c in extract(text).claims] == ["Toma Ardel lost."]


@settings(max_examples=100)
@given(
    st.lists(
        st.sampled_from(
            'He was born in Vetra , and who won a the "prize" (1920–1999) ; including Lomar , known'
            " for 12 . is".split()
        )
    )
)
def test_any_words_give_claims_within_their_sentences(words: list[str]) -> None:
    text = " ".join(words)
    found = extract(text)
    for claim in found.claims:
        assert claim.text and claim.sentence is not None
        begin, end = found.sentences[claim.sentence]
        assert claim.span is None or begin <= claim.span[0] < claim.span[1] <= end


PHRASES = st.sampled_from(
    [
        "in 1950",
        "on May 2, 1920",
        "in Osk",
        "as a nurse",
        "with Bo",
        "by Ana Osk",
        "until 1960",
        "until his death in 1939",
    ]
)


@given(
    st.sampled_from(["born", "served", "won", "wrote", "moved"]),
    st.sampled_from(["", "a prize", "three prizes", "his career"]),
    st.lists(PHRASES, max_size=4),
    st.sampled_from(["", "in 1999"]),
)
def test_what_says_less_keeps_the_words_in_order(
    verb: str, core: str, behind: list[str], lead: str
) -> None:
    """Every piece is made of the core and of whole phrases, in the order in which they stand;
    but for a date and what somebody serves as, none has a phrase without all before it."""
    rest = " ".join([core, *behind]).strip()
    units = [one for one in (core, *behind, lead) if one]
    pieces = spread(verb, rest, core, behind, lead)
    assert pieces or not units
    for piece in pieces:
        left, used = piece, list[int]()
        for number, unit in enumerate(units):
            if left == unit or left.startswith(f"{unit} "):
                left, used = left[len(unit) :].strip(), [*used, number]
        assert left == "" and (used or not piece)
        gaps = [
            unit
            for number, unit in enumerate(units[: used[-1] if used else 0])
            if number not in used
        ]
        told = units[used[-1]] if used else ""
        assert (
            not gaps
            or verb == "born"
            or re.search(r"\d{4}$|^as a", told)
            or all(re.search(r"\d{4}$", gap) for gap in gaps)
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["and he was ", "Aa", "A, ", "(", "in 1920 ", ", who was", '" and "', "in a "]
)
def test_long_degenerate_sentences_come_back(piece: str) -> None:
    assert extract(piece * (20_000 // len(piece)) + " x").claims
    assert clauses(piece * (1900 // len(piece)) + " x")


def test_claims_of_people(slices: Path) -> None:
    """Every sentence that people found claims in gives some here too; most of theirs share most
    words with one of ours.
    """
    sentences, found = 0, 0
    for line in (
        (slices / "factscore_human" / "InstructGPT.jsonl").read_text(encoding="utf-8").splitlines()
    ):
        for one in json.loads(line)["annotations"] or ():
            theirs = [
                set(fact["text"].casefold().rstrip(".").split())
                for fact in one.get("human-atomic-facts") or ()
            ]
            ours = [set(claim.casefold().rstrip(".").split()) for claim in clauses(one["text"])]
            sentences += len(theirs)
            found += sum(
                any(2 * len(a & b) >= 1.5 * max(len(a), len(b)) for b in ours) for a in theirs
            )
    assert sentences > 500 and found / sentences > 0.4


def test_a_thing_is_named_and_a_place_kept_with_its_time() -> None:
    text = (
        "The Osk bridge was opened in 1934, and it carries two lanes. It has been in the valley"
        " since 1934. I find it ugly."
    )
    [found] = rules()(
        [Response("r", Question("q", "What is the Osk bridge?", title="Osk bridge"), text)]
    )
    assert [claim.text for claim in found.claims] == [
        "The Osk bridge was opened in 1934.",
        "Osk bridge carries two lanes.",
        "Osk bridge has been in the valley since 1934.",
    ]
    [of_a_person] = rules()(
        [
            Response(
                "r", Question("q", "Who is Ana?", title="Ana Bo"), "He wrote Dusk. It won a prize."
            )
        ]
    )
    assert [claim.text for claim in of_a_person.claims] == ["Ana Bo wrote Dusk.", "It won a prize."]
