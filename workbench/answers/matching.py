"""Whether an answer agrees with the gold answers, by rules.

The first sentence that names a gold answer has to state it, and no sentence before it may name
another candidate. So a list of guesses is worth no more than its first item, whatever joins it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from workbench.answers.abstention import commitment, declines, invalid_clauses, plainly
from workbench.answers.kept import kept
from workbench.answers.names import DEMONYM, TITLES, lines, located, person_end
from workbench.answers.text import CJK, MONTHS, Token, tokenise, words_of

Form = tuple[str, ...]  # the words of a gold answer

YES = frozenset({"yes", "si", "oui", "ja", "是", "是 的", "对", "sia"})
NO = frozenset({"no", "non", "nein", "否", "不", "不 是", "noa"})
MAX_WORDS = 40  # of the sentence that answers; a longer one names the gold answer by chance
LONGEST = 1500  # characters of an answer
SURE, STATED, NAMED, SHARED, APART = 0.99, 0.97, 0.3, 0.15, 0.03  # see `probability`
DOUBT = (0.1, 0.9)  # between these the rules cannot tell
_MENTION = "\0"  # stands for a gold answer; no answer has this character

(
    _OR, _AND, _BE, _AUXILIARY, _PREPOSITIONS, _DETERMINERS, _PRONOUNS, _RELATIVE, _HEDGES, _FILLERS,
    _NEGATIONS, _JOINERS, _REVISIONS, _KINDS,
) = (frozenset(line.split()) for line in lines("grammar.txt"))  # fmt: skip
_GRAMMAR = _OR.union(
    *(_AND, _BE, _AUXILIARY, _PREPOSITIONS, _DETERMINERS, _PRONOUNS, _RELATIVE, _HEDGES, _FILLERS)
)
_KIN = (
    "father|mother|parent|son|daughter|child|grandfather|grandmother|husband|wife|spouse|widow"
    "|partner|teacher|mentor|disciple|student|pupil|brother|sister|sibling|twin|uncle|aunt|nephew"
    "|niece|cousin|assistant|successor|predecessor|friend|enemy|rival|contemporary|follower|fan"
    "|imitator|namesake"
)
# What makes a sentence with the gold answer (@) say something else. A match is excused if the
# question has one of its words.
_QUALIFIED = [
    re.compile(pattern)
    for pattern in (
        # one that is so no more, was never so, or lost
        r"\b(?:former|formerly|previously|once|historically|no longer|used to|ceased)\b(?=.*@)",
        r"(?<=@)(?: \S+){0,6} (?:until|no longer|formerly|previously|used to|once|ceased)\b",
        r"(?<=@)(?: (?:is|are|was|were|has|have|had|do|does|did|been|,(?= who| which)|who|which))*"
        r" (?:not|never|no|lost|loses|beaten|defeated|failed|jr|sr|junior|senior)\b",
        r"(?<=@) , (?:no|never|wrong)\b",
        # another thing than the gold answer, which is named beside it
        r"\b(?:near|outside|beyond|unlike|like|than|opposite|against|versus|except|excluding"
        r"|including|besides?|after|before|until|between|despite|such as|such for)(?= @)",
        r"\b(?:next|close|similar|opposed|prior|lost|rival|alternative|compared|relative"
        r"|sequel|prequel|tribute|heir|answer|response)(?= to @)",
        r"\b(?:followed|preceded|succeeded|replaced|inspired|influenced|beaten|defeated)(?= by @)",
        rf"\b(?:{_KIN})(?= @| of @| to @)",
        r"\b(?!(?:city|town|village|state|country|republic|kingdom|province|region|county|district"
        r"|island|year|month|name|title|rank|role|genre|form|kind|type|number|total|heart|center"
        r"|centre|part|symbol|species|citizen|native|student|staff|home|seat|member|coast|people|works?|creation)\b)[^\W\d]\S*(?= of @)",
        r"(?:(?<=\bhe )|(?<=\bshe )|(?<=\bthey ))(?!is|was|has|does)[a-z]+(?:ed|s)(?= @)",
    )
]
_BOUNDED = [  # the same for a number
    re.compile(pattern)
    for pattern in (
        r"\b(?:before|after|more|less|over|under|least|most|between|until|fewer|greater|above|below"
        r"|than|by|till|prior|past|later|earlier|minus|negative|half|twice|double|triple|times|plus"
        r"|page|chapter|line|room|following|half of|up to|not)(?= @)",
        r"(?<=@) (?:bc|percent|dozen|hundred|thousand|million|euros|tonnes|times|ago|minus|plus)\b",
    )
]
_EVENTS = [  # a sentence may not speak of another one than the question does
    frozenset(group.split())
    for group in ("born died buried raised", "directed written produced composed painted",
                  "first last second third", "largest smallest", "won lost")
]  # fmt: skip
_PAST = {"die": "died", "dies": "died", "win": "won", "lose": "lost", "begin": "began"}
_OFFERS = re.compile(  # several answers
    r"\b(?:second|third|another|other|next|alternative|first) (?:guess|answer|option|choice"
    r"|possibility|candidate)|\bif not\b|\balternatively\b|\b(?:any|one|either) of\b.*[,:]"
    r"|\b(?:options|candidates|possibilities|guesses|answers)\b.*(?: are|include|:)"
    r"|\bpossible\b|(maybe|perhaps|possibly|probably|might|could)\b.*\b\1\b|[=-]>"
    r"|(?:\bA\)|\b1[.):]).*(?:\bB\)|\b2[.):])",
    re.I | re.S,
)
_SAYS_WRONG = re.compile(
    r"\bI (?:\w+ (?:much )?)?doubt\b|\b(?:myth|misconception|untrue|mistaken|a lie|joke|ruled out)\b"
    r"|\b(?:wrong|incorrect|false)\b|\b(?:ignore|disregard) (?:all|any|the|previous|prior|above)\b"
    r"|\bgraders?\b|\bmarked? |\b(?:gold|reference) answer\b"
    r"|\b(?!9\d|100)\d+% (?:sure|certain|confident)\b",
    re.I,
)
_CONCEDED = re.compile(  # what others think, or what is granted before the answer
    r"(?:^|(?<=[.!?] ))(?:while|although|though|despite|unlike|contrary to)\b[^,.;:\n]+, "
    r"|[^.;:,?!\n]*\b(?:many|most|some|people|everyone|you|often|commonly|sometimes|widely|mistakenly)"
    r"\b[^.;:?!\n]*\b(?:think|believe|assume|say|expect|thought|believed|assumed)\b[^.;:?!\n]*?,? but "
    r"(?!maybe|perhaps|possibly)"
    r"|,? (?:although|though|but) (?:many|most|some|people|it is (?:often|commonly))\b[^.;:\n]*",
    re.I,
)
_SIGNS = re.compile(r"[≠<>≤≥±×÷*/^~+√=]\s*-?\d|\d\s*[≠<>≤≥±×÷*/^+=]")
_STRUCK = re.compile(r"~~.*?~~", re.S)
_EMPHASIS = re.compile(r"\*\*|__|(?<!\d)[*_`]|[*_`](?!\d)")
_DEGREES = re.compile(r"(?:°|\bdegrees?) *([CF])(?:elsius|ahrenheit)?\b", re.I)
_SPACED = re.compile(r"(?<=\d), (?=\d{3}\b)")  # "1, 200"
_ASKED = re.compile(r"(?:^|(?<=[.!?\n]))[^.!?\n]*\?")
_LEAD_IN = re.compile(
    r"(?:(?:so|well|my|final|correct|answers?|i|think|believe|guess|would|say|it|that|this|he|she"
    r"|they|is|was|are|were|could|might|may|must|be|probably|maybe|perhaps|possibly|likely|in|on"
    r"|at|by|from|year|called|named|about|approximately|roughly|around|exactly|是|答 案) )+"
)
_VERB = re.compile(
    r"\w+(?:ed|ing|[a-z]s|ung|own|wn|ought)|won|made|took|gave|led|held|ran|met|taught|built|found"
    r"|sang|wrote|bore|went|left|began|written|born|natel|beat|beaten|given|taken|chosen|fell|rose"
)
_CJK_LIST = re.compile(
    rf"[{CJK}](?<![他她它是在于的年])(?:可能|也许|或许|大概|或者|还是|以及|或|和|与|及)+是?\0"
    rf"|\0[^{CJK}]*(?:可能|也许|或许|大概|或者|还是|以及|或|和|与|及)+是?[{CJK}]"
)
_UNITS = {
    name: names.split()[0]
    for names in (
        "m metre metres meter meters|km kilometre kilometres kilometer kilometers|mi mile miles"
        "|cm centimetre centimetres centimeter centimeters|ft foot feet|kg kilogram kilograms"
        "|lb lbs pound pounds|year years|day days|month months|week weeks|hour hours|minute minutes"
    ).split("|")
    for name in names.split()
}


def matches(answer: str, gold: Sequence[str], kind: str = "single", question: str = "") -> bool:
    """Whether a final answer is right, by rules: whether `probability` is above `DOUBT`."""
    return probability(answer, gold, kind, question) > DOUBT[1]


def probability(
    answer: str, gold: Sequence[str], kind: str = "single", question: str = ""
) -> float:
    """How probable it is that people would call a final answer right, as far as rules can tell.

    `gold` holds the accepted forms, or the items of a `kind="list"`.

    * any kind: an abstention is never right; "invalid question" is right if that is the gold
      answer, and only then.
    * `single`, `numeric` (and every kind not named here): equal to a form after `normalise` and
      without a lead-in ("It is"), or stated by the first sentence that names one.
    * `yes_no`: begins with yes or no, and does not say both.
    * `list`: every item named, and nothing else that `question` does not give.

    The values are few, and each stands for a finding (`docs/numbers.md` says how often answers
    with it are right): `SURE` for an answer that is a form, `STATED` for one that states it,
    `NAMED` for one that names a form and may not state it, `SHARED` for one that shares a word
    with a form, `APART` for one that shares none, declines or says the opposite.
    """
    answer = _plain(answer.replace(_MENTION, " "))
    if not gold or declines(answer):
        return APART
    invalid = invalid_clauses(answer)
    if any(found for found, _ in invalid):
        wanted = kind == "false_premise" or any(
            found for form in gold for found, _ in invalid_clauses(form)
        )
        reasons = [{*words_of(tokenise(clause))} for found, clause in invalid if not found]
        denies = all(not words.isdisjoint(_NEGATIONS) for words in reasons)
        return (SURE if denies else NAMED) if wanted else APART
    asked = _read_gold(question, tuple(map(_plain, gold)))
    if len(answer) > LONGEST:
        return _nearness(tokenise(answer), asked.forms, named=False)
    if kind == "list":
        found = STATED * _lists(answer, asked)
    elif kind == "yes_no" and any(" ".join(form) in YES | NO for form in asked.forms):
        return _yes_or_no(answer, asked)
    else:
        found = _single(answer, asked, " ".join((*gold, question)).lower())
    return found or _nearness(tokenise(answer), asked.forms, named=kind == "yes_no")


def _plain(text: str) -> str:
    """A text without emphasis, struck words and courtesies, in one writing of "&" and "°C"."""
    text = _EMPHASIS.sub("", _STRUCK.sub(" ", text)).replace("\u00ad", "").replace(" & ", " and ")
    return plainly(_DEGREES.sub(r"°\1", text))


def _single(answer: str, asked: _Gold, known: str) -> float:
    """`SURE` where an answer is a form, `STATED` where it states one; 0 where it does neither.
    `known` is the text of the question and of the gold answers."""
    answer = _SPACED.sub(",", commitment(answer))
    tokens = tokenise(answer)
    if asked.number and _SIGNS.search(answer) and not _SIGNS.search(known):
        return 0.0
    asks = any(map(asked.named_in, _ASKED.findall(answer)))
    said = [words_of(tokens)] if asks else [words_of(tokens), _short(tokens)]
    if any(_equal(form, words) for form in asked.forms for words in said):
        return SURE
    says_wrong = any(match[0].lower() not in known for match in _SAYS_WRONG.finditer(answer))
    offers = _OFFERS.search(answer) and not _OFFERS.search(known)
    if says_wrong or offers or asks:
        return 0.0
    answer = _CONCEDED.sub("", answer)
    tokens = tokenise(answer if asked.placed else located(answer))
    return STATED * (not _is_list(tokens, asked) and _states(tokens, asked))


class _Gold(NamedTuple):
    """The gold answers to a question, as `_read_gold` reads them."""

    forms: tuple[Form, ...]
    others: tuple[Form, ...]  # other names of the same
    question: frozenset[str]  # its words
    given: frozenset[str]  # those that an answer may repeat
    named: bool  # some form has a capital
    number: bool  # all forms are numbers or dates
    counted: bool  # the question asks how many, how far, …
    person: bool
    placed: bool  # a form has a comma, as "Paris, Texas"
    people: bool  # a form is a people or language
    kind: str  # "river" of "Which river …?"

    def named_in(self, text: str) -> bool:
        return any(map(_is_mention, self.mask(tokenise(text))))

    def mask(self, sentence: Sequence[Token]) -> list[Token]:
        """The sentence with each form replaced by one token that says which form it was."""
        masked: list[Token] = []
        i = 0
        while i < len(sentence):
            form, end = self._found(sentence, i)
            name = (self.named or i > 0) and any(token.name for token in sentence[i:end])
            mention = Token(_MENTION + " ".join(form), name, sentence[i].article)
            masked.append(mention if form else sentence[i])
            i = end
        return masked

    def _found(self, sentence: Sequence[Token], i: int) -> tuple[Form, int]:
        for form in (*self.forms, *self.others):
            if end := _mention_end(sentence, i, form):
                return form, end
        words = [token.text for token in sentence[i : i + 7]]
        for form in self.forms if self.named and self.person else ():
            if size := person_end(form, words):
                return form, i + size
        return (), i + 1


@kept
def _read_gold(question: str, gold: tuple[str, ...]) -> _Gold:
    read = [tokenise(form) for form in gold]
    forms = {tuple(words_of(tokens)) for tokens in read} - {()}
    named = any(token.name and not token.text[0].isdigit() for tokens in read for token in tokens)
    person = not question or bool(re.search(r"\bwho(?:m|se)?\b", question, re.I))
    counted = not question or bool(re.search(r"\bhow (?!do|did|was|is)\w+", question, re.I))
    year = bool(re.search(r"\byear\b", question)) and not re.search(r"\bdays?\b", question)
    others = {other for form in forms for other in _other_forms(form, named, person, counted, year)}
    tokens = tokenise(question)
    words = words_of(tokens)
    kinds = re.search(rf"\b(?:which|what|name)\b.*?\b({'|'.join(_KINDS)})\b", " ".join(words))
    offers = not _OR.isdisjoint(words) or any(
        _mention_end(tokens, i, form) for i in range(len(tokens)) for form in forms
    )
    free = {token.text for token in tokens if not (offers and token.name)}
    return _Gold(
        tuple(sorted(forms, key=lambda form: (-len(form), form))),
        tuple(sorted(others - forms - {()}, key=lambda form: (-len(form), form))),
        frozenset(words),
        frozenset(free | {f"{text}s" for text in free}) - {"s"},
        named,
        bool(forms)
        and all(_is_number(" ".join(form)) for form in forms)
        and (not named or all({*MONTHS} & {*form} for form in forms if not form[0][0].isdigit())),
        counted,
        person,
        any("," in form for form in gold),
        any(DEMONYM.fullmatch(form[0]) for form in forms),
        kinds[1] if kinds else "",
    )


def _other_forms(
    form: Form, named: bool, person: bool, counted: bool, year: bool
) -> Iterator[Form]:
    """Other names of a gold answer: without its title or preposition, its acronym, the year of a
    date, its number alone, its plural."""
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
    initials = "".join(word[0] for word in form if word not in _PREPOSITIONS | _AND)
    if named and len(initials) > 2 and initials.isalpha() and not person:
        yield (initials,)
    if not named and len(form[-1]) > 3 and form[-1].isalpha():
        yield (*form[:-1], f"{form[-1]}s")
        yield (*form[:-1], re.sub(r"(?<![su])s$", "", form[-1]))
        yield (*form[:-1], re.sub(r"ia$", "ion", form[-1]))


def _mention_end(sentence: Sequence[Token], start: int, form: Form) -> int:
    """Where a form ends that begins at `start`; 0 if there is none."""
    i = start
    for word in form:
        while start < i < len(sentence) and sentence[i].text == ",":
            i += 1
        if i == len(sentence) or not _same(word, sentence[i].text):
            return 0
        i += 1
    return i


def _same(form: str, word: str) -> bool:
    """Whether two words are the same, two names of a unit, or a year and a date in it."""
    if form == word or _UNITS.get(form, form) == _UNITS.get(word, word):
        return True
    return bool(re.fullmatch(r"\d{4}(-\d\d)?", form)) and word.startswith(form + "-")


def _equal(form: Form, words: Sequence[str]) -> bool:
    joined = "".join(form)
    apart = len(joined) > 5 and joined.isalpha() and joined == "".join(words)  # "Di Caprio"
    return apart or (len(form) == len(words) and all(map(_same, form, words)))


def _is_mention(token: Token) -> bool:
    return token.text.startswith(_MENTION)


def _is_number(text: str) -> bool:
    return bool(re.search(r"(?:^|\0| )-?\d", text))


def _short(tokens: Sequence[Token]) -> list[str]:
    """The words without a lead-in such as "The answer is" or "in the year"."""
    text = " ".join(words_of(tokens))
    rest = text[match.end() :] if (match := _LEAD_IN.match(text)) else text
    bound = rest[:1].isdigit() and text[: -len(rest)].endswith("by ")  # "1921 or before"
    return (text if bound else rest).split()


def _split(tokens: Iterable[Token], *separators: str) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text in separators and not _is_letter(token):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _is_letter(token: Token) -> bool:
    """Whether a word of one letter is a name ("Vitamin E"), not a word of grammar."""
    return token.name and len(token.text) == 1 and token.text not in "ai"


def _nearness(tokens: Sequence[Token], forms: Sequence[Form], named: bool) -> float:
    """How probable it is that an answer is right that the rules do not find to be right."""
    words = {token.text for token in tokens}
    if named or any(words.issuperset(form) for form in forms):
        return NAMED
    content = {word for form in forms for word in form} - _GRAMMAR
    years = {word[:4] for word in content if re.fullmatch(r"\d{4}(-\d\d)+", word)}
    return SHARED if words & content or years & {word[:4] for word in words} else APART


def _states(tokens: Sequence[Token], asked: _Gold) -> bool:
    """Whether the first sentence that names a gold answer states it, no sentence before it names
    another candidate, and none after it takes it back."""
    sentences = [asked.mask(sentence) for sentence in _split(tokens, ".")]
    at = next((i for i, one in enumerate(sentences) if any(map(_is_mention, one))), None)
    if at is None or len(sentences[at]) > MAX_WORDS:
        return False
    known = {token.text for token in sentences[at]}
    for sentence in sentences[:at]:
        if any(sentence[word.at].text not in known for word in _candidates(sentence, asked)):
            return False
    return _sentence_states(sentences[at], asked) and not any(
        _takes_back(later, sentences[at], asked) for later in sentences[at + 1 :]
    )


def _is_list(tokens: Sequence[Token], asked: _Gold) -> bool:
    """Whether a bare gold answer stands among two or more other bare phrases, whatever parts them:
    "1985… Vetra… Lomar"."""
    said = _GRAMMAR - _PREPOSITIONS
    parts = [
        [token for token in asked.mask(part) if token.text not in said]
        for part in _split(tokens, ".", ",", *_AND, *_OR, *_HEDGES, "then", "but")
    ]
    run: list[list[Token]] = []
    for part in [*parts, [Token("is")]]:
        texts = {token.text for token in part}
        verbs = any(_VERB.fullmatch(token.text) and not token.name for token in part)
        if texts.isdisjoint(asked.given | {"is"}) and not verbs and len(part) < 6:
            run += [part] if part else []
        elif len(run) > 2 and any(len(one) == 1 and _is_mention(one[0]) for one in run):
            initials = "".join(token.text[0] for one in run for token in one)
            return not any(token.text[1:] in initials for one in run for token in one)
        else:
            run = []
    return False


def _denied(texts: Sequence[str], given: frozenset[str] = frozenset()) -> set[int]:
    """The places in a sentence that it denies: what stands behind a negation up to the end of its
    clause. "Anything but Vetra" denies Vetra; "if not Vetra" and "not only Vetra" do not."""
    denied, scope = set(), False
    for i, text in enumerate(texts):
        after = texts[i + 1] if i + 1 < len(texts) else ""
        if text == "but":
            scope = texts[i - 1 : i] in (["anything"], ["everything"], ["nothing"])
        elif scope and text in (",", ":", "it", "he", "she"):
            scope = text == "," and after in ("or", "nor", "and")
        elif text == "instead" and after != "of":
            continue
        elif text in _NEGATIONS - given and after not in (",", "only", "just", "merely", "wait"):
            scope = scope or texts[i - 1 : i] != ["if"]
        if scope:
            denied.add(i)
    return denied


class _Word(NamedTuple):
    """A word that could be an answer, and what the grammar of its sentence says of it."""

    at: int
    name: bool
    link: tuple[str, ...]  # the words of grammar before it; "=" for a word of the question
    role: bool  # a preposition, article or verb gives it a role beside the answer

    @property
    def listed(self) -> bool:
        """Only commas and "and" stand before it."""
        return self.link not in ((), ("@",)) and all(
            one in _AND or one in ",:@" for one in self.link
        )

    @property
    def joined(self) -> bool:
        """A word stands before it that joins guesses, in its own clause."""
        breaks = [i for i, one in enumerate(self.link) if one in _RELATIVE | {"="}]
        return not _JOINERS.union(_HEDGES).isdisjoint(self.link[max(breaks, default=0) :])


def _words(sentence: Sequence[Token], asked: _Gold) -> list[_Word]:
    """The words of a sentence that neither the question nor the grammar gives, that are not denied
    and not numbers, in their order."""
    denied = _denied([token.text for token in sentence], asked.given)
    found: list[_Word] = []
    link: list[str] = []
    for i, token in enumerate(sentence):
        text = token.text
        if i in denied or text[0].isdigit() or re.match(f"[{CJK}]", text):
            continue
        if _is_mention(token):
            link = ["@"]
            continue
        if text in TITLES and i + 1 < len(sentence) and sentence[i + 1].name:
            continue
        if text in asked.given - _GRAMMAR or (token.name and _in_given_name(sentence, i, asked)):
            link.append("=")
            continue
        if text in _GRAMMAR | _JOINERS and not _is_letter(token) and not token.article:
            link.append(text)
            continue
        if text.endswith("ly") and not (token.name and i):
            continue
        name = token.name and (asked.people or not DEMONYM.fullmatch(text))
        verb = bool(_VERB.fullmatch(text)) and not (token.name and (i or token.article))
        named = _PREPOSITIONS | _DETERMINERS | _RELATIVE | _AUXILIARY | {"=", "born"}
        role = token.article or verb or (not name and "=" in link)
        listed = not name and all(one in _AND | {","} for one in link)
        role = role or (found[-1].role if found and listed and not found[-1].name else False)
        role = role or (link[-1] in named if link else bool(found) and found[-1].role)
        found.append(_Word(i, name and not verb, tuple(link), role))
        link = []
    return found


def _in_given_name(sentence: Sequence[Token], i: int, asked: _Gold) -> bool:
    """Whether a word is part of a name of which the question gives another word."""
    run = [i, i + 1]
    while run[0] and sentence[run[0] - 1].name and not _is_mention(sentence[run[0] - 1]):
        run[0] -= 1
    while run[1] < len(sentence) and sentence[run[1]].name and not _is_mention(sentence[run[1]]):
        run[1] += 1
    return any(token.text in asked.given - _GRAMMAR - _KINDS for token in sentence[run[0] : run[1]])


def _candidates(sentence: Sequence[Token], asked: _Gold) -> list[_Word]:
    """What a sentence without the gold answer asserts that could be another answer."""
    if asked.number:
        denied = _denied([token.text for token in sentence])
        return [
            _Word(i, False, tuple(one.text for one in sentence[max(0, i - 1) : i]), False)
            for i, token in enumerate(sentence)
            if _is_number(token.text) and token.text not in asked.given and i not in denied
        ]
    bare = not any(token.text in _GRAMMAR for token in sentence)
    return [word for word in _words(sentence, asked) if word.name or bare or not asked.named]


def _sentence_states(sentence: list[Token], asked: _Gold) -> bool:
    """Whether a sentence states the gold answer that it names."""
    texts = [token.text for token in sentence]
    places = [i for i, token in enumerate(sentence) if _is_mention(token)]
    said, question = ({_PAST.get(word, word) for word in one} for one in (texts, asked.question))
    for group in _EVENTS:
        if group & question and group & said and not group & question & said:
            return False
    if _has_two_predicates(texts, asked.question) or not _denied(texts, asked.given).isdisjoint(
        places
    ):
        return False
    if _is_offered(sentence, places[0], asked):
        return False
    text = " ".join("@" if _is_mention(token) else token.text for token in sentence)
    patterns = _BOUNDED if asked.number else _QUALIFIED if asked.named else _QUALIFIED[:-2]
    qualified = (match[0] for form in patterns for match in form.finditer(text))
    if any(_unasked(match, asked.question) for match in qualified):
        return False
    if asked.number:
        return all(_number_stands(sentence, place, asked) for place in places)
    if _CJK_LIST.search("".join(texts)):
        return False
    return all(_is_bounded(sentence, place, asked) for place in places) and not (
        _rival_before(sentence, places[0], asked) or _rival_behind(sentence, places[0], asked)
    )


def _has_two_predicates(texts: Sequence[str], question: frozenset[str]) -> bool:
    """Whether a verb comes twice in one clause: "Lyon lies in Rome lies in Paris"."""
    breaks = _AND | _RELATIVE | _PRONOUNS | {",", ":", "but"}
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return True
        if text in breaks:
            seen = set()
        elif (text in _BE or _VERB.fullmatch(text)) and text not in question:
            seen.add(text)
    return False


def _unasked(qualifier: str, question: frozenset[str]) -> bool:
    """Whether the question does not ask for what a qualifier says; one about a relative may be
    answered by another ("the daughter of …" for "Who was her father?")."""
    kin = {*_KIN.split("|")}
    words = {*qualifier.split()} - _BE - _AUXILIARY - _RELATIVE
    return question.isdisjoint(words) and not (qualifier in kin and question & kin)


def _is_offered(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether the gold answer is one of several that are offered: "Vetra or Lomar"."""
    return any(
        i < place + 4 or not asked.named or any(one.name for one in sentence[i + 1 : i + 4])
        for i, token in enumerate(sentence)
        if token.text in _OR and not _is_letter(token)
    )


def _number_stands(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether a number is the whole value that is stated: not part of a name, no unit of another
    kind, and no other value of its kind beside it."""
    texts = [token.text for token in sentence]
    value = next(word for word in texts[place][1:].split() if _is_number(word))
    year = _is_year(value)
    following = texts[place + 1] if place + 1 < len(texts) else ""
    plain = following in asked.given | _GRAMMAR | {""} or (
        bool(_VERB.fullmatch(following)) and following not in _UNITS
    )
    longer = f"{texts[place][1:]} "
    whole = any(" ".join(form).startswith(longer) for form in asked.forms)
    if not plain and (whole or year or not asked.counted):
        return False
    before = sentence[place - 1] if place else Token("")
    if before.name and before.text not in asked.given | _GRAMMAR | {*MONTHS}:
        return False
    for i, text in enumerate(texts):
        other = i != place and _is_number(text) and not _is_mention(sentence[i])
        if not other or text in asked.question or (_is_year(text) != year and abs(i - place) > 2):
            continue
        told = [word for word in texts[place + 1 : i] if word not in _GRAMMAR | _JOINERS]
        if i < place or not told or place == 0:
            return False
    return True


def _is_year(text: str) -> bool:
    return bool(re.fullmatch(r"[12]\d{3}(s|(-\d\d)*)", text))


def _is_bounded(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether a gold form is no part of a longer name, as "York" is of "New York"."""
    mention = sentence[place]
    for i in (place - 1, place + 1):
        token = sentence[i] if 0 <= i < len(sentence) else Token(",")
        text, ahead = token.text, i < place
        if text in _KINDS and token.name and not ahead and text != asked.kind:
            return False
        if text in asked.given or _is_mention(token) or re.match(f"[{CJK}]", text):
            continue
        if text in _GRAMMAR | _JOINERS and not _is_letter(token):
            continue
        if ahead and text in TITLES:
            titles = {word for form in asked.forms for word in form if word in TITLES}
            if titles and text not in titles and not titles & {*mention.text[1:].split()}:
                return False
            continue
        if ahead and (DEMONYM.fullmatch(text) or (i == 0 and _VERB.fullmatch(text))):
            continue
        if token.name or text[0].isdigit() or not (mention.name or _VERB.fullmatch(text)):
            return False
    return True


def _rival_before(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether something that could be the answer stands before it in its sentence."""
    texts = [token.text for token in sentence[:place]]
    if texts and texts[0] in _PREPOSITIONS | {"according", "based", "given"} and "," in texts:
        start = place - texts[::-1].index(",")  # "In the United States, …"
    else:
        start = 0
    words = [word for word in _words(sentence, asked) if start <= word.at < place]
    subject = next((i for i in range(start, place) if not _is_aside(texts[i])), place)
    determined = subject < place and (
        sentence[subject].article or texts[subject] in _DETERMINERS | asked.given - _PRONOUNS
    )
    told = texts[subject:]
    if words and words[0].at == subject and told:
        names = (not token.name for token in sentence[subject:place])
        run = next((i for i, other in enumerate(names) if other), len(told)) or 1
        verb = any(text in _BE or text not in _GRAMMAR for text in told[run:])
        plain = (_JOINERS | _AND | _RELATIVE | {",", ":"}).isdisjoint(told[run:])
        apposed = told[run : run + 1] == [","] and sentence[subject + run + 1].article
        leads = told[-1] in _PREPOSITIONS | asked.given and not _PREPOSITIONS.isdisjoint(told[run:])
        states = leads and ((verb and plain) or (apposed and not asked.question))
        if states or (not asked.question and sentence[place].article and plain):
            words, determined = (
                [word for word in words if word.at >= subject + run and word.name],
                True,
            )
    initials = "".join(texts[word.at][0] for word in words)
    if not words or initials.endswith(sentence[place].text[1:]):
        return False
    link = texts[words[-1].at + 1 :]
    own = sentence[place].article or bool(
        link and link[-1] in _PREPOSITIONS | _DETERMINERS | asked.given - _GRAMMAR
    )
    for word in words:
        behind = texts[word.at + 1 :]
        if not word.role or (
            word.name and not (determined and (_AND | {"but"}).isdisjoint(behind))
        ):
            return True
        if word.name and behind[-1:] == [","]:
            return True
    verb = bool(_VERB.fullmatch(texts[words[-1].at]))
    return not (determined or verb or own) or not (
        determined or _HEDGES.union(_JOINERS).isdisjoint(link)
    )


def _is_aside(text: str) -> bool:
    return text in _HEDGES | _FILLERS or text.endswith("ly")


def _rival_behind(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether something that could be the answer stands behind it in its sentence: what no
    preposition, article or verb gives another role."""
    texts = [token.text for token in sentence]
    letters = "".join(word[0] for word in texts[place][1:].split() if word not in _PREPOSITIONS)
    settled = False  # whether the word before has a role of its own
    for word in _words(sentence, asked):
        if word.at < place:
            continue
        text = texts[word.at]
        short = letters.startswith(text) or (len(text) < 4 and text[0] == letters[0])
        if word.link == ("@", ",") and short:
            continue  # "Helium (He)"
        rival = _is_rival_name if word.name else _is_rival_noun
        if rival(word, texts, place, settled, asked):
            return True
        settled = True
    return False


def _is_rival_name(
    word: _Word, texts: Sequence[str], place: int, settled: bool, asked: _Gold
) -> bool:
    """Whether a name behind the gold answer has no role: "Vetra, Lomar" and "Vetra maybe Lomar",
    but not "Vetra in Lomar"."""
    fragment = not any(text in _BE | _AUXILIARY or _VERB.fullmatch(text) for text in texts)
    between = {*texts[place : word.at]}
    if "whose" in between:
        return False
    if not word.link:
        return not settled
    if word.listed:
        return not settled or fragment
    author = fragment and asked.person and word.link[-1] == "by"
    contrast = between & {"but", "however", "yet", "while", "whereas"}
    return bool(
        word.joined
        or contrast
        or author
        or not word.role
        or word.link[-1] in _BE | {"which", "who", "that"}
    )


def _is_rival_noun(
    word: _Word, texts: Sequence[str], place: int, settled: bool, asked: _Gold
) -> bool:
    """Whether another word behind the gold answer has no role: "painter, baker", but not "green,
    thanks to …" and "blue because air scatters …"."""
    rest = texts[word.at + 1 :]
    clause = rest[:1] == [","] and rest[1:2] and rest[1] in _BE
    goes_on = word.listed and (clause or (rest and rest[0] in _PREPOSITIONS | _BE))
    if goes_on or ("because" in word.link and any(map(_VERB.fullmatch, rest))):
        return False
    if word.listed:
        return not (settled or (word.role and not texts[word.at].endswith("s")))
    if word.link[-1:] and word.link[-1] in _BE and texts[word.at].endswith("s"):
        return True
    joiners = _JOINERS - {"known", "named", "called", "with", "because", "later", "though"}
    if not joiners.isdisjoint(word.link):
        ends = word.link[-1] in _RELATIVE and not rest
        return ends or not word.role or word.link[-1] in ("as", "to", "by", "of")
    if word.joined:
        return not asked.named or word.link[-1] not in _PREPOSITIONS | _DETERMINERS | {"with"}
    ends = (
        word.link[-1:]
        and word.link[-1] in _RELATIVE
        and not any(text in _GRAMMAR or text.endswith("ed") for text in rest)
    )
    compares = asked.named and texts[word.at].endswith("er")
    return ends or not (word.role or settled or compares)


def _takes_back(later: Sequence[Token], stating: Sequence[Token], asked: _Gold) -> bool:
    """Whether a later sentence names another candidate in the place of the gold answer, or says
    that it was wrong."""
    texts = [token.text for token in later]
    place = next(i for i, token in enumerate(stating) if _is_mention(token))
    frame = [token.text for token in stating[:place]]
    mentioned = [i for i, token in enumerate(later) if _is_mention(token)]
    if mentioned:
        return not _denied(texts).isdisjoint(mentioned) or "used to" in " ".join(texts)
    known = {token.text for token in stating} - _GRAMMAR
    found = [word for word in _candidates(later, asked) if texts[word.at] not in known]
    if not found:
        return False
    at = {word.at for word in found}
    plain = [
        text for i, text in enumerate(texts) if i not in at and text not in _GRAMMAR | _JOINERS
    ]
    verbs = any(
        token.text in _BE | _AUXILIARY
        or (
            _VERB.fullmatch(token.text)
            and not token.name
            and token.text not in _JOINERS
            and token is not later[found[0].at]
        )
        for token in later
    )
    links = [[text for text in word.link if not _is_aside(text)] for word in found]
    predicated = any(
        link and link[-1] in _BE and not (plain and later[word.at].article)
        for link, word in zip(links, found, strict=True)
    )
    value = asked.number or any(texts[i] in MONTHS or texts[i].endswith("day") for i in at)
    return (
        predicated
        or not (_REVISIONS | _HEDGES | _OR | {"another"}).isdisjoint(texts)
        or any(texts[i] in asked.question for i in at)  # the other one of two that are offered
        or not (plain or verbs)
        or texts[0] in known
        or (found[0].at == 0 and bool(plain) and asked.question.issuperset(plain))
        or (bool(frame) and texts[: len(frame)] == frame)
        or (found[0].at == 0 and (asked.number or not verbs))
        or (value and place == 0 and texts[0] in _PRONOUNS)
    )


def _yes_or_no(answer: str, asked: _Gold) -> float:
    """How probable it is that an answer says the one that is right of yes and no; in doubt are
    those that begin with neither, or say both."""
    gold = {" ".join(form) for form in asked.forms}
    wanted, other = (YES, NO) if gold & YES else (NO, YES)
    doubtful = wanted is YES and _SAYS_WRONG.search(answer)
    if _is_question(answer) or doubtful or (gold & YES and gold & NO):
        return NAMED
    if _says(answer, wanted, other, asked.given):
        return STATED
    return APART if _says(answer, other, wanted, asked.given) else NAMED


def _is_question(answer: str) -> bool:
    return answer.rstrip(' *")”').endswith(("?", "？"))


def _says(
    answer: str, wanted: frozenset[str], other: frozenset[str], given: frozenset[str]
) -> bool:
    """Whether an answer begins with `wanted`, yes or no, and says the other nowhere, be it as
    "It is false" or "he was not"."""
    tokens = tokenise(commitment(answer))
    begins = {" ".join(words[:n]) for words in (words_of(tokens), _short(tokens)) for n in (1, 2)}
    joiners = {*_AND, *_OR, *_HEDGES, *_JOINERS, "if", "as"} - {"not"}
    segments = [words_of(segment) for segment in _split(tokens, ",", ".", ":", *joiners)]
    return not begins.isdisjoint(wanted) and not any(
        _says_also(segment, other) or _truth(segment, given) is (wanted is NO)
        for segment in segments
    )


def _says_also(segment: Sequence[str], other: frozenset[str]) -> bool:
    """Whether a part of an answer says the other of yes and no; the "no" of "he had no children"
    and "there is no doubt" does not."""
    for i, word in enumerate(segment):
        noun = word in NO and i + 1 < len(segment) and segment[i + 1] not in _GRAMMAR | YES | NO
        noun = noun and i > 0 and segment[i - 1] in _BE | _AUXILIARY | {"with"}
        if word in other and not noun and not re.match(f"[{CJK}]", word):
            return True
    return " ".join(segment) in other


def _truth(segment: Sequence[str], given: frozenset[str]) -> bool | None:
    """Whether a part of an answer says that what was asked is so ("It is true", "he was", "maybe
    not", or the question again); None if neither."""
    words = [word for word in segment if word not in YES | NO]
    denies = not _NEGATIONS.isdisjoint(words)
    for word, after in zip(words, [*words[1:], "it"], strict=False):
        true = word in ("true", "correct", "right")
        judges = true or word in ("false", "untrue", "incorrect", "wrong")
        if judges and word not in given and after in _GRAMMAR:
            return true != denies
    if words[-1:] == ["not"] or (len(words) == len(segment) == 2 and words[1] in _BE):
        return not denies
    content, about = {*words} - _GRAMMAR - _NEGATIONS, given - _GRAMMAR
    return not denies if content and content <= given and (denies or about <= content) else None


def _lists(answer: str, asked: _Gold) -> bool:
    """Whether an answer names all items of a list and nothing else."""
    bulleted = re.sub(r"(?m)(?:^|\s)(?:\d{1,2}[.)]|[-*•])\s+", ", ", commitment(answer))
    sentences = [asked.mask(sentence) for sentence in _split(tokenise(bulleted), ".")]
    stating = [sentence for sentence in sentences if any(map(_is_mention, sentence))]
    named = {token.text for sentence in stating for token in sentence if _is_mention(token)}
    return (
        not _is_question(answer)
        and named == {_MENTION + " ".join(form) for form in asked.forms}
        and all(_lists_only(sentence, asked) for sentence in stating)
        and not any(_candidates(one, asked) for one in sentences if one not in stating)
    )


def _lists_only(sentence: Sequence[Token], asked: _Gold) -> bool:
    """Whether a sentence lists items, with words of another kind only before the first and after
    the last: "His children are Ana and Belu.", but not "Alpha Gamma Beta"."""
    texts = [token.text for token in sentence]
    places = [i for i, token in enumerate(sentence) if _is_mention(token)]
    before, inside, after = (
        texts[: places[0]],
        texts[places[0] : places[-1]],
        texts[places[-1] + 1 :],
    )
    known = asked.given | _GRAMMAR - _OR
    determined = sentence[0].article or texts[0] in _DETERMINERS
    framed = known.issuperset(before) or (determined and before[-1] in _BE | {":", "by"})
    joined = all(
        text[0] == _MENTION or text in _AND | {",", ":", "as", "well", "also"} for text in inside
    )
    apart = all(b - a > 1 for a, b in itertools.pairwise(places))
    denies = not (_OR | _NEGATIONS).isdisjoint(texts)
    return framed and joined and apart and known.issuperset(after) and not denies
