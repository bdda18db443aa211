"""Parse gold answers, and find them in the words of an answer.

A parsed gold answer is a sequence of words, called a form.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from workbench.text.names import DEMONYM, TITLES, lines, person_end
from workbench.text.normal_form import MONTHS, Token, tokenise, words_of
from workbench.util.patterns import regex

Form = tuple[str, ...]  # the words of a gold answer
SURE, STATED, NAMED, SHARED, APART = 0.99, 0.97, 0.3, 0.15, 0.03  # see `matching.probability`
YES_NO = ("yes", "no")
MENTION = "\0"  # first character of a token that replaces a gold form; removed from answers

# Classes of words by name, and the class of each word (the first that lists it).
WORDS = {
    name: frozenset(words.split())
    for name, words in (line.split(": ") for line in lines("grammar.txt"))
}
CLASS = {word: name for name, words in reversed(WORDS.items()) if name != "kind" for word in words}
# words that are no answer by themselves
GRAMMAR = frozenset({",", ":"}).union(
    *map(
        WORDS.__getitem__,
        "or and be auxiliary near preposition determiner pronoun relative hedge filler".split(),
    )
)
_PREPOSITIONS = WORDS["preposition"] | WORDS["near"]
_LEAD_IN = regex(
    r"(?:(?:so|well|my|final|correct|answers?|i|think|believe|guess|would|say|it|that|this|he|she"
    r"|they|is|was|are|were|could|might|may|must|be|probably|maybe|perhaps|possibly|likely|in|on"
    r"|at|by|from|year|called|named|about|approximately|roughly|around|exactly|是|答 案) )+"
)
VERB = regex(
    r"\w+(?:ed|ing|[a-z]s|ung|own|wn|ought)|won|made|took|gave|led|held|ran|met|taught|built|found"
    r"|sang|wrote|bore|went|left|began|written|born|natel|beat|beaten|given|taken|chosen|fell|rose"
    r"|came|got|grew|knew|saw|stood|spent|paid|kept|lost|put|set|cut|said|meant|hit|shot|rode"
)
_PAST = {"win": "won", "lose": "lost", "begin": "began", "write": "wrote", "sing": "sang"}
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
    """The parsed gold answers to a question, and properties of the question.

    The properties decide how an answer is compared with the gold answers. One property is, for
    example, that the question asks for a person.
    """

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

    def named_in(self, text: str) -> bool:
        """Whether a text contains a gold answer."""
        return any(map(is_mention, self.mask(tokenise(text))))

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
    read = [tokenise(form) for form in gold]
    forms = {tuple(words_of(tokens)) for tokens in read} - {()}
    named = any(token.name and not token.text[0].isdigit() for tokens in read for token in tokens)
    person = not question or bool(re.search(r"(?i)\bwho(?:m|se)?\b", question))
    counted = not question or bool(re.search(r"(?i)\bhow (?!do|did|was|is)\w+", question))
    year = bool(re.search(r"\byear\b", question)) and not re.search(r"\bdays?\b", question)
    others = {other for form in forms for other in _other_forms(form, named, person, counted, year)}
    tokens = tokenise(question)
    words = words_of(tokens)
    kinds = re.search(
        rf"\b(?:which|what|name)\b.*?\b({'|'.join(WORDS['kind'])})\b", " ".join(words)
    )
    offers = not WORDS["or"].isdisjoint(words) or any(
        _mention_end(tokens, i, form) for i in range(len(tokens)) for form in forms
    )
    free = {token.text for token in tokens if not (offers and token.name)}
    free |= {_PAST[text] for text in free & {*_PAST}}
    return Gold(
        _longest_first(forms),
        _longest_first(others - forms - {()}),
        frozenset(words),
        frozenset(free | {text + end for text in free for end in ("s", "d", "ed")}) - {"s"},
        named,
        bool(forms)
        and all(is_number(" ".join(form)) for form in forms)
        and (not named or all({*MONTHS} & {*form} for form in forms if not form[0][0].isdigit())),
        counted,
        person,
        any("," in form for form in gold),
        any(DEMONYM.fullmatch(form[0]) for form in forms),
        kinds[1] if kinds else "",
    )


def _longest_first(forms: Iterable[Form]) -> tuple[Form, ...]:
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _other_forms(
    form: Form, named: bool, person: bool, counted: bool, year: bool
) -> Iterator[Form]:
    """Yield other word sequences that count as the gold answer `form`.

    These are the form without its title or preposition, the acronym, the year of a date, the
    number without its unit, and the plural.

    Args:
        named: whether a gold answer has a capital letter.
        person: whether the question asks who.
        counted: whether the question asks how many, how far, …
        year: whether the question asks for a year.
    """
    rest = form[form[0] in _PREPOSITIONS :]
    while rest and rest[0] in TITLES:
        rest = rest[1:]
    if len(rest) > 1 or person or form[0] in _PREPOSITIONS:
        yield rest
    if year and re.fullmatch(r"\d{4}(-\d\d)+", form[0]):
        yield (form[0][:4],)
    numbers = [word for word in form if word[0].isdigit()]
    if counted and len(numbers) == 1 and len(form) < 5 and "bc" not in form:
        yield (numbers[0],)
    initials = "".join(word[0] for word in form if word not in _PREPOSITIONS | WORDS["and"])
    if named and len(initials) > 2 and initials.isalpha() and not person:
        yield (initials,)
    if not named and len(form[-1]) > 3 and form[-1].isalpha():
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
    """Whether a word of an answer matches the word `form` of a gold answer.

    They match if they are equal, name the same unit, or are a year and a date in this year.
    """
    if (
        form == word
        or {form, word} <= WORDS["and"]
        or UNITS.get(form, form) == UNITS.get(word, word)
    ):
        return True
    return bool(re.fullmatch(r"\d{4}(-\d\d)?", form)) and word.startswith(form + "-")


def equal(form: Form, words: Sequence[str]) -> bool:
    """Return whether `words` are the gold answer `form`.

    Units may be spelled differently, and a year matches every date in this year. Spaces may differ
    if the gold answer has more than five letters ("Di Caprio").
    """
    joined = "".join(form)
    apart = len(joined) > 5 and joined.isalpha() and joined == "".join(words)  # "Di Caprio"
    return apart or (len(form) == len(words) and all(map(_same, form, words)))


def is_mention(token: Token) -> bool:
    """Whether a token is one that `Gold.mask` puts in place of a gold answer."""
    return token.text.startswith(MENTION)


def is_number(text: str) -> bool:
    """Return whether a text contains a word that starts with a digit or with "-" and a digit.

    The text is a word, several words, or the text of a token that replaces a gold answer.
    """
    return bool(re.search(r"(?:^|\0| )-?\d", text))


def short(tokens: Sequence[Token]) -> list[str]:
    """Return the words of an answer without a lead-in such as "The answer is" or "in the year"."""
    text = " ".join(words_of(tokens))
    rest = text[match.end() :] if (match := _LEAD_IN.match(text)) else text
    bound = rest[:1].isdigit() and text[: -len(rest)].endswith("by ")  # "1921 or before"
    return (text if bound else rest).split()


def split(tokens: Iterable[Token], *separators: str) -> list[list[Token]]:
    """Split tokens at the words `separators`; drop empty parts."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text in separators and not is_letter(token):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def is_letter(token: Token) -> bool:
    """Return whether a token is a single letter in a name, such as "E" in "Vitamin E".

    The words "a" and "I" are not such letters.
    """
    return token.name and len(token.text) == 1 and token.text not in "ai"


def infer_kind(answers: Sequence[str]) -> str:
    """Return the kind of a question: "yes_no" if each gold answer is yes or no, else "single"."""
    yes_no = answers and all(answer.strip(" .!").lower() in YES_NO for answer in answers)
    return "yes_no" if yes_no else "single"
