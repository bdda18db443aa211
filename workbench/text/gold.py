"""Parse gold answers, and find them in the words of an answer.

A parsed gold answer is a sequence of words, called a form.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from workbench.text.names import DEMONYM, TITLES, lines, person_end
from workbench.text.normal_form import MONTHS, Token, tokenise, words_of

Form = tuple[str, ...]  # the words of a gold answer
MENTION = "\0"  # first character of a token that replaces a gold form; removed from answers

# Classes of words by name, and the class of each word (the first that lists it).
WORDS = {
    name: frozenset(words.split())
    for name, words in (line.split(": ") for line in lines("grammar.txt"))
}
CLASS = {word: name for name, words in reversed(WORDS.items()) if name != "kind" for word in words}
_FUNCTION = "or and be auxiliary near preposition determiner pronoun relative hedge filler".split()
GRAMMAR = frozenset(",:").union(*map(WORDS.__getitem__, _FUNCTION))  # no answers by themselves
_PREPOSITIONS = WORDS["preposition"] | WORDS["near"]
VERB = re.compile(
    r"\w+(?:ed|ing|[a-z]s|ung|own|wn|ought)|won|made|took|gave|led|held|ran|met|taught|built|found"
    r"|sang|wrote|bore|went|left|began|written|born|natel|beat|beaten|given|taken|chosen|fell|rose"
    r"|came|got|grew|knew|saw|stood|spent|paid|kept|lost|put|set|cut|said|meant|hit|shot|rode"
)
UNITS = {
    name: names.split()[0]
    for names in (
        "m metre metres meter meters|km kilometre kilometres kilometer kilometers|mi mile miles"
        "|cm centimetre centimetres centimeter centimeters|ft foot feet|kg kilogram kilograms"
        "|lb lbs pound pounds|year years|day days|month months|week weeks|hour hours|minute minutes"
    ).split("|")
    for name in names.split()
}


class Gold(NamedTuple):
    """The parsed gold answers to a question, and what the question asks for."""

    forms: tuple[Form, ...]
    others: tuple[Form, ...]  # derived forms, such as acronyms and plurals
    question: frozenset[str]  # the words of the question
    known: frozenset[str]  # words of the question that an answer may repeat
    named: bool  # a form has a capital
    number: bool  # all forms are numbers or dates
    counted: bool  # the question asks how many, how far, …
    person: bool  # the question asks who
    placed: bool  # a form has a comma, as "Paris, Texas"
    people: bool  # a form is a nationality or language
    kind: str  # "river" of "Which river …?"

    def mask(self, sentence: Sequence[Token]) -> list[Token]:
        """Replace each gold answer in a sentence by one token, and return the sentence.

        The text of this token is the character `MENTION` followed by the words of the gold answer.
        """
        masked: list[Token] = []
        i = 0
        while i < len(sentence):
            form, end = self._form_at(sentence, i)
            name = (self.named or i > 0) and any(token.name for token in sentence[i:end])
            mention = Token(MENTION + " ".join(form), name, sentence[i].article)
            masked.append(mention if form else sentence[i])
            i = end
        return masked

    def _form_at(self, sentence: Sequence[Token], i: int) -> tuple[Form, int]:
        for form in (*self.forms, *self.others):
            if end := _mention_end(sentence, i, form):
                return form, end
        words = [token.text for token in sentence[i : i + 7]]
        for form in self.forms if self.named and self.person else ():
            if size := person_end(form, words):
                return form, i + size
        return (), i + 1


@lru_cache(maxsize=1024)
def read_gold(question: str, gold: tuple[str, ...]) -> Gold:
    """Parse the gold answers to a question.

    `question` is the text of the question, or "" if unknown.
    """
    tokens, read = tokenise(question), [tokenise(form) for form in gold]
    words = words_of(tokens)
    forms = sorted({tuple(words_of(form)) for form in read} - {()})
    alternatives = not WORDS["or"].isdisjoint(words) or any(
        _mention_end(tokens, i, form) for i in range(len(tokens)) for form in forms
    )
    free = {token.text for token in tokens if not (alternatives and token.name)}
    names = {one.text for form in read for one in form if one.name and not one.text[0].isdigit()}
    kinds = "|".join(WORDS["kind"])
    kind = re.search(rf"\b(?:which|what|name)\b.*?\b({kinds})\b", " ".join(words))
    parsed = Gold(
        forms=tuple(sorted(forms, key=len, reverse=True)),
        others=(),
        question=frozenset(words),
        known=frozenset({text + end for text in free for end in ("", "s", "d", "ed")} - {"s"}),
        named=bool(names),
        number=bool(forms)
        and names <= {*MONTHS, "bc"}
        and all(is_number(" ".join(form)) for form in forms),
        counted=not question or bool(re.search(r"(?i)\bhow (?!do|did|was|is)\w+", question)),
        person=not question or bool(re.search(r"(?i)\bwho(?:m|se)?\b", question)),
        placed=any("," in form for form in gold),
        people=any(DEMONYM.fullmatch(form[0]) for form in forms),
        kind=kind[1] if kind else "",
    )
    others = {other for form in forms for other in _other_forms(form, parsed)} - {*forms, ()}
    return parsed._replace(others=tuple(sorted(others, key=lambda form: (-len(form), form))))


def _other_forms(form: Form, gold: Gold) -> Iterator[Form]:
    """Yield other word sequences that count as the gold answer `form`.

    These are the form without its title or preposition, the acronym, the year of a date, the
    number without its unit, and the plural.
    """
    rest = form[form[0] in _PREPOSITIONS :]
    while rest and rest[0] in TITLES:
        rest = rest[1:]
    if len(rest) > 1 or gold.person or form[0] in _PREPOSITIONS:
        yield rest
    if "year" in gold.question and re.fullmatch(r"\d{4}(-\d\d)+", form[0]):
        yield (form[0][:4],)
    numbers = [word for word in form if word[0].isdigit()]
    if gold.counted and len(numbers) == 1 and len(form) < 5 and "bc" not in form:
        yield (numbers[0],)
    initials = "".join(word[0] for word in form if word not in _PREPOSITIONS | WORDS["and"])
    if gold.named and len(initials) > 2 and initials.isalpha() and not gold.person:
        yield (initials,)
    if not gold.named and len(form[-1]) > 3 and form[-1].isalpha():
        yield (*form[:-1], f"{form[-1]}s")
        yield (*form[:-1], re.sub(r"(?<![su])s$", "", form[-1]))
        yield (*form[:-1], re.sub(r"ia$", "ion", form[-1]))


def _mention_end(sentence: Sequence[Token], start: int, form: Form) -> int:
    """Return the index after `form` if it begins at word `start` of the sentence, else 0."""
    i = start
    for word in form:
        while start < i < len(sentence) and sentence[i].text == ",":
            i += 1
        if i == len(sentence) or not _same(word, sentence[i].text):
            return 0
        i += 1
    return i


def _same(form: str, word: str) -> bool:
    """Whether a word matches a word of a gold answer: "m" and "metre", "1921" and "1921-03-12"."""
    dated = re.fullmatch(r"\d{4}(-\d\d)?", form) and word.startswith(form + "-")
    same = UNITS.get(form, form) == UNITS.get(word, word) or {form, word} <= WORDS["and"]
    return same or bool(dated)


def is_mention(token: Token) -> bool:
    """Whether a token replaces a gold answer (see `Gold.mask`)."""
    return token.text.startswith(MENTION)


def is_number(text: str) -> bool:
    """Whether a text contains a number; the text is a word, or words as `Gold.mask` writes them."""
    return bool(re.search(r"(?:^|\0| )-?\d", text))


def split(tokens: Iterable[Token], *separators: str) -> list[list[Token]]:
    """Split tokens at the words `separators`; drop empty parts."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text in separators:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def infer_kind(answers: Sequence[str]) -> str:
    """Return the kind of a question: "yes_no" if each gold answer is yes or no, else "single"."""
    yes_no = answers and {"yes", "no"}.issuperset(one.strip(" .!").lower() for one in answers)
    return "yes_no" if yes_no else "single"
