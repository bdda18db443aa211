"""Whether an answer agrees with the gold answers, by rules.

The first sentence that names a gold answer has to state it, and no sentence before it may name
another candidate. So a list of guesses is worth no more than its first item, whatever joins it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from workbench.answers.abstention import commitment, declines, invalid_clauses, plainly
from workbench.answers.kept import kept
from workbench.answers.names import (
    DEMONYM,
    TITLES,
    located,
    other_names,
    person_end,
)
from workbench.answers.text import CJK, MONTHS, Token, tokenise, words_of

Form = tuple[str, ...]  # the words of a gold answer

YES = frozenset({"yes", "si", "oui", "ja", "是", "是 的", "对", "sia"})
NO = frozenset({"no", "non", "nein", "否", "不", "不 是", "noa"})
MAX_WORDS = 40  # of the sentence that answers; a longer one names the gold answer by chance
LONGEST = 200  # words of an answer
SURE, STATED, NAMED, SHARED, APART = 0.99, 0.97, 0.3, 0.15, 0.03  # see `probability`
DOUBT = (0.1, 0.9)  # between these the rules cannot tell

MENTION = "\0"  # in the place of a gold answer; no answer has this character


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_OR = _set("or either oder o ou 或 alternatively versus vs neither nor")
_AND = _set("and und et y e 和 plus")
_BE = _set("is are was were be been being am became becomes remains es fue era est ist war ta")
_AUXILIARY = _set("has have had do does did can could may might must shall should will would")
_PREPOSITIONS = _set(
    "in of at from during de en von on by for as into near since until through about between"
    " under over within around after before upon across against to des du aus bei che ko tra por"
    " je anno desde per sur than le"
)
_DETERMINERS = _set("a an the his her its their my our your this that these those el la los las")
_PRONOUNS = _set("it that this he she they i we you there")
_RELATIVE = _set("who which where when whose whom what whether")
_HEDGES = _set(
    "maybe perhaps probably possibly likely presumably apparently reportedly forse pove"
    " vielleicht quizas probablemente"
)
_FILLERS = _set(
    "now still only just merely best most first both also so currently officially originally"
    " definitely certainly surely clearly really truly simply generally usually mainly mostly up"
    " well final correct right answer answers year city town country state name called named born"
    " not only then than think believe guess say said would because if sure certain confident hope"
    " helps course thanks great good question happy help yes no : , lo un che por anno 是 在 于 的"
    " 年 di der die das el la"
)
_GRAMMAR = frozenset().union(
    *(_OR, _AND, _BE, _AUXILIARY, _PREPOSITIONS, _DETERMINERS, _PRONOUNS, _RELATIVE, _HEDGES),
    _FILLERS,
)
_NEGATIONS = _set(
    "not never no neither nor without except unlike than instead ne nicht kein keine pas 不 没 非"
)
_REVISIONS = _set("actually wait correction oops sorry rather instead kidding scratch mistake")
# Words that join one candidate to the next and look like verbs or nouns.
_JOINERS = _set(
    "another followed preceded along together instead rather next else otherwise then besides"
    " versus aka alias called named known meaning namely ie eg viz formerly previously alternatively"
    " additionally similarly second third prior close closely similar equivalent equal addition"
    " compared combined plus less minus unless whereas thus hence because while where means equals"
    " same such mention always sometimes option alternative candidate candidates choice possibility"
    " possibilities guess guesses but however though although yet others some many not with later"
)
_CONTRASTS = _set("but however though although yet while whereas despite others")
_ENDED = _set("formerly former previously once onetime erstwhile historically longer until ceased")
_LOST = _set("lost loses beaten defeated failed never jr sr junior senior")
_BESIDE = _set(  # "near Vetra", "like Vetra" names another thing than Vetra
    "near outside beyond unlike like than opposite against versus except excluding including"
    " besides beside after before until between excepting behind despite"
)
_LIMITS = _set(  # before a number; "no later than 1921"
    "before after more less over under least most between until fewer greater above below than by"
    " till prior past later earlier minus negative half twice double triple times plus page chapter"
    " line room following"
)
_TO = _set("next close similar opposed prior lost rival alternative compared relative successor")
_BY = _set("followed preceded succeeded replaced inspired influenced beaten defeated taught")
_OF = _set(  # "the city of Vetra" is Vetra
    "city town village capital state country republic kingdom province region county district"
    " island year month name title rank role field genre form kind type number total heart center"
    " centre part symbol species member piece sum age speed height length distance population"
    " maximum temperature cost citizen native student"
)
_KIN = _set(
    "father mother parent son daughter child grandfather grandmother grandson granddaughter"
    " husband wife spouse widow partner teacher mentor disciple student pupil brother sister"
    " sibling twin uncle aunt nephew niece cousin assistant successor predecessor friend enemy"
    " rival contemporary follower fan imitator ghostwriter namesake"
)
_KINDS = _set(  # what a thing is, which may stand behind its name
    "river desert mountain mountains ocean sea lake island street bridge station park tower valley"
    " bay canal peninsula ship class city county province film movie novel book song album band"
    " team series show award prize university college company language currency planet star crater"
)
_EVENTS = [
    _set(group)
    for group in (
        "born died buried raised",
        "written directed produced starred composed painted",
        "first last second",
        "largest smallest",
        "won lost",
        "began ended",
    )
]
_SAYS_WRONG = re.compile(
    r"\bI (?:(?:very much|really|strongly|seriously|highly) )?doubt\b|\b(?:myth|misconception"
    r"|untrue|mistaken|lie|joke|ruled out)\b|\b(?:wrong|incorrect|false)\b(?! premise)"
    r"|\b(?:ignore|disregard) (?:all|any|the|previous|prior|above)\b|\bgrader?s?\b|\bmark(?:ed)? "
    r"|\b(?:gold|reference) answer\b|\b\d?\d% (?:sure|certain|confident)(?<!9\d% sure)"
    r"(?<!100% sure)(?<!9\d% confident)(?<!100% confident)(?<!9\d% certain)(?<!100% certain)",
    re.I,
)
_SIGNS = re.compile(r"[≠<>≤≥±×÷*/^~+√=]\s*-?\d|\d\s*[≠<>≤≥±×÷*/^+=]|\d\s*\(?-\s*\d+\)?\s*$")
_STRUCK = re.compile(r"~~.*?~~", re.S)
_EMPHASIS = re.compile(r"\*\*|__|(?<!\d)[*_`]|[*_`](?!\d)")
_SPACED = re.compile(r"(?<=\d), (?=\d{3}\b)")  # "1, 200"
_ASKED = re.compile(r"(?:^|(?<=[.!?\n]))[^.!?\n]*\?")
_LEAD_IN = re.compile(
    r"(?:(?:so|well|my|final|correct|answers?|i|think|believe|guess|would|say|it|that|this|he|she"
    r"|they|is|was|are|were|could|might|may|must|be|probably|maybe|perhaps|possibly|likely|in|on"
    r"|at|by|from|year|called|named|about|approximately|roughly|around|exactly|是|答 案) )+"
)
_PAST = "won made took gave led held ran met taught built found sang wrote bore went left began"
_VERB = re.compile(rf"\w+(?:ed|ing|[a-z]s)|{'|'.join(_PAST.split())}|written|born|natel")
_COUNTED = re.compile(r"\bhow (?:many|much|long|far|old|tall|high|deep|wide|big|fast|heavy)\b", re.I)
_UNITS = {
    name: names.split()[0]
    for names in (
        "m metre metres meter meters|km kilometre kilometres kilometer kilometers|mi mile miles"
        "|cm centimetre centimetres centimeter centimeters|ft foot feet|kg kilogram kilograms"
        "|lb lbs pound pounds|°c celsius c|°f fahrenheit f|year years|day days|month months"
        "|week weeks|hour hours hr hrs|min minute minutes|percent %|degree degrees"
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
    answer = plainly(_EMPHASIS.sub("", _STRUCK.sub(" ", answer.replace(MENTION, " "))))
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
    asked = _read_gold(question, tuple(gold))
    if kind == "list":
        found = STATED * _lists(answer, asked)
    elif kind == "yes_no" and any(" ".join(form) in YES | NO for form in asked.forms):
        return _yes_or_no(answer, asked)
    else:
        found = _single(answer, asked, " ".join((*gold, question)))
    return found or _nearness(tokenise(answer), asked.forms, named=kind == "yes_no")


def _single(answer: str, asked: _Gold, known: str) -> float:
    """`SURE` where an answer is a form, `STATED` where it states one; 0 where it does neither.
    `known` is the text of the question and of the gold answers."""
    answer = _SPACED.sub(",", commitment(answer))
    tokens = tokenise(answer)
    if asked.number and _SIGNS.search(answer) and not _SIGNS.search(known):
        return 0.0
    if any(_equal(form, words) for form in asked.forms for words in (words_of(tokens), _short(tokens))):
        return SURE
    if any(match[0].lower() not in known.lower() for match in _SAYS_WRONG.finditer(answer)):
        return 0.0
    if len(tokens) > 2 * LONGEST or any(asked.named_in(part) for part in _ASKED.findall(answer)):
        return 0.0
    return STATED * _states(tokenise(located(answer)), asked)


class _Gold(NamedTuple):
    """The gold answers to a question, as `_read_gold` reads them."""

    forms: tuple[Form, ...]  # longest first
    further: tuple[Form, ...]  # other names, which count only in a text that names a form's kind
    given: frozenset[str]  # words of the question that an answer may repeat
    asked: frozenset[str]  # all words of the question
    named: bool  # written with a capital
    number: bool  # all forms begin with a number or are dates
    counted: bool  # the question asks how many, how far, …
    person: bool
    titles: frozenset[str]

    def named_in(self, text: str) -> bool:
        return any(map(_is_mention, self.mask(tokenise(text))))

    def mask(self, sentence: Sequence[Token]) -> list[Token]:
        """The sentence with each form replaced by one token that says which form it was."""
        masked: list[Token] = []
        i = 0
        while i < len(sentence):
            form, end = self._found(sentence, i)
            if form:
                name = self.named or (i > 0 and sentence[i].name)
                masked.append(Token(MENTION + " ".join(form), name, sentence[i].article))
            else:
                masked.append(sentence[i])
            i = end
        return masked

    def _found(self, sentence: Sequence[Token], i: int) -> tuple[Form, int]:
        for form in (*self.forms, *self.further):
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
    person = bool(re.match(r"\W*(?:by |to |with )?who", question, re.I)) or not question
    counted = bool(_COUNTED.search(question))
    year = bool(re.search(r"\byear\b", question, re.I)) and not re.search(r"\bdays?\b", question)
    further = {
        other
        for form in forms
        for other in _other_forms(form, named, person, counted, year)
        if other and other not in forms
    }
    longest = sorted(forms, key=lambda form: (-len(form), form))
    return _Gold(
        tuple(longest),
        tuple(sorted(further, key=lambda form: (-len(form), form))),
        _given(question, longest),
        frozenset(words_of(tokenise(question))),
        named,
        all(_is_number(" ".join(form)) for form in forms) and bool(forms),
        counted,
        person,
        TITLES.intersection(*(set(form) for form in forms)) if forms else frozenset(),
    )


def _other_forms(
    form: Form, named: bool, person: bool, counted: bool, year: bool
) -> Iterator[Form]:
    """Other names of a gold answer: without its title or preposition, its acronym, the year of a
    date, its number alone, its plural, a country's other names."""
    rest = form[form[0] in _PREPOSITIONS :]
    while rest and rest[0] in TITLES:
        rest = rest[1:]
    if len(rest) > 1 or person or form[0] in _PREPOSITIONS:
        yield rest
    if year and re.fullmatch(r"\d{4}-\d\d-\d\d|\d{4}-\d\d", form[0]):
        yield (form[0][:4],)
    numbers = [word for word in form if word[0].isdigit()]
    if counted and len(numbers) == 1 and len(form) < 5:
        yield (numbers[0],)
    initials = "".join(word[0] for word in form if word not in _PREPOSITIONS | _AND)
    if named and not person and len(initials) > 2 and initials.isalpha():
        yield (initials,)
    if not named and len(form[-1]) > 3 and form[-1].isalpha():
        yield (*form[:-1], f"{form[-1]}s")
        yield (*form[:-1], re.sub(r"(?<![su])s$", "", form[-1]))
        yield (*form[:-1], re.sub(r"ia$", "ion", form[-1]))
    for name in other_names(" ".join(form)):
        yield tuple(words_of(tokenise(name)))


def _given(question: str, forms: Sequence[Form]) -> frozenset[str]:
    """The words of a question that an answer may repeat. Where the question offers candidates, its
    names are not among them."""
    tokens = tokenise(question)
    offers = bool(_OR.intersection(words_of(tokens)))
    offers = offers or any(_mention_end(tokens, i, f) for i in range(len(tokens)) for f in forms)
    free = {token.text for token in tokens if not (offers and token.name)}
    return frozenset(free | {f"{text}s" for text in free}) - {"s"}


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
    if len(form) == len(words):
        return all(map(_same, form, words))
    joined = "".join(form)
    return len(joined) > 5 and joined.isalpha() and joined == "".join(words)


def _is_mention(token: Token) -> bool:
    return token.text.startswith(MENTION)


def _is_number(text: str) -> bool:
    first, *rest = text.removeprefix(MENTION).split()
    return bool(re.match(r"-?\d", first) or (first in MONTHS and rest and rest[0][0].isdigit()))


def _short(tokens: Sequence[Token]) -> list[str]:
    """The words without a lead-in such as "The answer is" or "in the year"."""
    text = " ".join(words_of(tokens))
    rest = text[match.end() :] if (match := _LEAD_IN.match(text)) else text
    # "by 1921" is "1921 or before"
    bound = rest[:1].isdigit() and text[: -len(rest)].split()[-1:] == ["by"]
    return (text if bound else rest).split()


def _split(tokens: Iterable[Token], *separators: str) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        # A capital E or Y is a name ("B, E"); in small letters it is "and".
        if token.text in separators and not (token.name and len(token.text) == 1):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _nearness(tokens: Sequence[Token], forms: Sequence[Form], named: bool) -> float:
    """How probable it is that an answer is right that the rules do not find to be right."""
    words = {token.text for token in tokens}
    if named or any(words.issuperset(form) for form in forms):
        return NAMED
    content = {word for form in forms for word in form} - _GRAMMAR
    years = {word[:4] for word in content if re.fullmatch(r"\d{4}-\d\d(-\d\d)?", word)}
    return SHARED if words & content or years & {word[:4] for word in words} else APART


def _states(tokens: Sequence[Token], asked: _Gold) -> bool:
    """Whether the first sentence that names a gold answer states it, no sentence before it names
    another candidate, and none after it takes it back."""
    sentences = [asked.mask(sentence) for sentence in _split(tokens, ".")]
    at = next((i for i, one in enumerate(sentences) if any(map(_is_mention, one))), None)
    if at is None:
        return False
    stating = sentences[at]
    return (
        len(stating) <= MAX_WORDS
        and not any(_candidates(sentence, asked) for sentence in sentences[:at])
        and _sentence_states(stating, asked)
        and not any(_takes_back(later, stating, asked) for later in sentences[at + 1 :])
    )


def _candidates(sentence: Sequence[Token], asked: _Gold) -> list[int]:
    """Where a sentence without a mention asserts something that could be another answer."""
    denied = _denied([token.text for token in sentence])
    return [
        i
        for i, token in enumerate(sentence)
        if i not in denied
        and not _is_mention(token)
        and token.text not in asked.given | _GRAMMAR
        and not token.text.endswith("ly")
        and (not asked.named or token.name)
        and (not asked.number or _is_number(token.text))
        and not (asked.named and not asked.number and token.text[0].isdigit())
    ]


def _denied(texts: Sequence[str]) -> set[int]:
    """The places in a sentence that it denies: what stands behind a negation up to the end of its
    clause. "Anything but Vetra" denies Vetra, "if not Vetra" and "not only Vetra" do not."""
    denied, scope = set(), False
    for i, text in enumerate(texts):
        after = texts[i + 1] if i + 1 < len(texts) else ""
        if text == "but":
            scope = texts[i - 1 : i] in (["anything"], ["everything"], ["nothing"])
        elif text in (",", ":", "and", "it", "he", "she") and scope and text != "and":
            scope = "," in text and after in ("or", "nor", "and")
        elif text in _NEGATIONS and after not in (",", "only", "just", "merely", "wait"):
            scope = scope or texts[i - 1 : i] != ["if"]
        if scope:
            denied.add(i)
    return denied


def _sentence_states(sentence: list[Token], asked: _Gold) -> bool:
    """Whether a sentence states the gold answer that it names."""
    texts = [token.text for token in sentence]
    if _tells_another_event(texts, asked):
        return False
    sentence = _without_concession(sentence)
    texts = [token.text for token in sentence]
    places = [i for i, token in enumerate(sentence) if _is_mention(token)]
    if not places or not _denied(texts).isdisjoint(places):
        return False
    check = _number_stands if _is_number(texts[places[0]]) else _name_stands
    return (
        not _is_offered(sentence, places[0], asked)
        and not any(_is_qualified(texts, place, asked) for place in places)
        and all(check(sentence, place, asked) for place in places)
    )


def _tells_another_event(texts: Sequence[str], asked: _Gold) -> bool:
    """Whether a sentence says "died" where the question says "born"."""
    return any(
        group & asked.asked and group & {*texts} and not group & asked.asked & {*texts}
        for group in _EVENTS
    )


def _without_concession(sentence: list[Token]) -> list[Token]:
    """The sentence without what others think: "Many think it is Lyon, but …", "While Lyon is
    larger, …", "…, although many think it is Lyon"."""
    texts = [token.text for token in sentence]
    opinion = {"think", "believe", "assume", "say", "expect", "thought", "believed", "mistaken"}
    for i, text in enumerate(texts):
        if text in ("but", "although", "though") and i:
            if not opinion.isdisjoint(texts[:i]) and text == "but":
                return sentence[i + 1 :]
            if not opinion.isdisjoint(texts[i:]):
                return sentence[:i]
    fronted = texts[0] in ("while", "although", "though", "despite", "unlike", "contrary")
    if fronted and "," in texts:
        return sentence[texts.index(",") + 1 :]
    return sentence


def _is_offered(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether the gold answer is one of several that are offered: "Vetra or Lomar"."""
    for i, token in enumerate(sentence):
        if token.text in _OR and not (token.name and len(token.text) == 1):
            near = sentence[i + 1 : i + 4]
            if i < place or not asked.named or any(one.name for one in near):
                return True
    return False


def _is_qualified(texts: Sequence[str], place: int, asked: _Gold) -> bool:
    """Whether the sentence says that the gold answer is one no more, lost, or beside the point:
    "formerly Vetra", "Vetra never was", "a suburb of Vetra", "his brother Toma Ardel"."""
    free = asked.asked
    before, after = list(texts[max(0, place - 3) : place]), list(texts[place + 1 :])
    ended = _ENDED - free
    if not ended.isdisjoint(texts[:place]) or "used to" in " ".join(texts):
        return True
    behind = [text for text in after[:4] if text not in _BE | _AUXILIARY]
    if behind and (behind[0] in ("not", "never", "no", *(_LOST - free)) and after[0] != ","):
        return True
    if after[:2] in ([",", "no"], [",", "never"], [",", "wrong"]) or ended & {*after[:6]}:
        return True
    last, second = (before[-1:] or [""])[0], (before[-2:-1] or [""])[0]
    if _is_number(texts[place]):
        return False
    if last == "of":
        return second not in _OF | free and not _is_number(second or "x")
    if last == "to":
        return second in _TO - free
    if last == "by":
        return second in _BY - free
    if last in ("as", "for") and second == "such":
        return True
    pronoun = second in _PRONOUNS and _VERB.fullmatch(last) and last not in _BE | _AUXILIARY
    overlaps = any(last[:4] == word[:4] for word in free)
    return last in (_BESIDE | _KIN | {"including"}) - free or bool(pronoun and not overlaps)


def _number_stands(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether a number is the whole value that is stated: no bound, multiple, part of a name or
    unit of another kind, and no other value of its kind beside it."""
    texts = [token.text for token in sentence]
    form = texts[place].removeprefix(MENTION).split()
    before, after = texts[:place], texts[place + 1 :]
    year = _is_year(form[0]) and not asked.counted
    last, following = (before[-1:] or [""])[0], (after[:1] or [""])[0]
    if last in _LIMITS - asked.asked or before[-2:] in (["up", "to"], ["half", "of"]):
        return False
    previous = sentence[place - 1] if place else Token("")
    if previous.name and last not in asked.given | _GRAMMAR | {*MONTHS}:
        return False
    content = following not in asked.given | _GRAMMAR | {",", ""} and not _is_mention(sentence[place + 1])
    unit = following in _UNITS or following in ("dozen", "hundred", "thousand", "million")
    if following in ("bc", "percent", "dozen", "euros", "tonnes") and following not in form:
        return following in asked.asked
    if content and not _VERB.fullmatch(following) and (year or (unit and not asked.counted)):
        return False
    if content and not asked.counted and not year and not asked.given:
        return False
    for i, text in enumerate(texts):
        if i == place or _is_mention(sentence[i]) or not _is_number(text) or text in asked.asked:
            continue
        if _is_year(text) != _is_year(form[0]) and not any(w in ("to", "and", ",") for w in texts[min(i, place) + 1 : max(i, place)][:1]):
            continue
        between = texts[place + 1 : i]
        told = [word for word in between if word not in _GRAMMAR | _JOINERS | {","}]
        if i < place or not told:
            return False
    return True


def _is_year(text: str) -> bool:
    return bool(re.fullmatch(r"[12]\d{3}(-\d\d)*", text))


def _name_stands(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether a name or noun is a phrase of its own and nothing beside it could be the answer."""
    return (
        _is_bounded(sentence, place, asked)
        and not _rival_before(sentence[:place], asked)
        and not _rival_behind(sentence, place, asked)
    )


def _is_bounded(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether a gold form is no part of a longer name, as "York" is of "New York"."""
    mention = sentence[place]
    for near, ahead in ((sentence[place - 1 : place], True), (sentence[place + 1 : place + 2], False)):
        for token in near:
            text = token.text
            if _is_mention(token) or text in (",", ":") or re.match(f"[{CJK}]", text):
                continue
            if text in _GRAMMAR and not (token.name and len(text) == 1):
                continue
            if text in asked.given or (ahead and DEMONYM.fullmatch(text)):
                continue
            if ahead and text in TITLES:
                if asked.titles and text not in asked.titles:
                    return False
            elif token.name or text[0].isdigit() or (not mention.name and not _VERB.fullmatch(text)):
                if not (text in _KINDS & asked.asked):
                    return False
    return True


def _rival_before(before: Sequence[Token], asked: _Gold) -> bool:
    """Whether something that could be the answer stands before it in its sentence."""
    texts = [token.text for token in before]
    if not texts:
        return False
    start = 0
    fronted = texts[0] in _PREPOSITIONS | {"according", "based", "given"}
    if fronted and "," in texts:
        start = len(texts) - texts[::-1].index(",")
    denied = _denied(texts)
    first = next((i for i in range(start, len(before)) if not _is_aside(texts[i])), start)
    determined = before[first].article or texts[first] in _DETERMINERS | asked.given
    if not asked.asked and texts[-1] in _PREPOSITIONS | _AUXILIARY:
        while start < len(texts) and not (texts[start] in _BE or _VERB.fullmatch(texts[start])):
            start += 1
    for i in range(start, len(before)):
        token, text = before[i], texts[i]
        if _is_mention(token) or i in denied or text in asked.given | _GRAMMAR or text in (",", ":"):
            continue
        if text[0].isdigit() or re.match(f"[{CJK}]", text):
            continue
        name = token.name and not DEMONYM.fullmatch(text) and text not in TITLES
        link = texts[i - 1] if i else ""
        role = token.article or link in _PREPOSITIONS | _DETERMINERS or text in TITLES
        told = texts[i + 1 :]
        if _run_is_given(before, i, asked):
            continue
        if name:
            inside = "," in texts[:i] and "," in told and texts[0] in asked.given
            states = not _BE.isdisjoint(told) or told[-1:] == ["by"]
            lead = role or (i > 0 and not before[i - 1].name and link.isalpha() and link not in _GRAMMAR) or (i > 0 and before[i - 1].name and determined)
            if not (inside or (determined and lead and states and told[-1:] not in ([","], ["and"]))):
                return True
        elif not role and not _VERB.fullmatch(text) and not text.endswith("ly"):
            if all(word in _GRAMMAR or _is_aside(word) for word in texts[:i]) or not _HEDGES.union(_JOINERS).isdisjoint(told):
                return True
        elif not _HEDGES.union(_JOINERS - {"with", "not", "because", "where", "named", "called"}).isdisjoint(told) and not determined and not _VERB.fullmatch(text):
            return True
        elif role and told and not determined and not _BE.isdisjoint(told) and not _VERB.fullmatch(text):
            return True
    return False


def _is_aside(text: str) -> bool:
    return text in _HEDGES | _FILLERS | {",", ":"} or text.endswith("ly")


def _run_is_given(tokens: Sequence[Token], i: int, asked: _Gold) -> bool:
    """Whether a word is part of a name of which the question gives another word."""
    start, end = i, i
    while start and tokens[start - 1].name and tokens[start - 1].text not in _GRAMMAR:
        start -= 1
    while end + 1 < len(tokens) and tokens[end + 1].name and tokens[end + 1].text not in _GRAMMAR:
        end += 1
    return any(tokens[j].text in asked.given for j in range(start, end + 1))


def _rival_behind(sentence: Sequence[Token], place: int, asked: _Gold) -> bool:
    """Whether something that could be the answer stands behind it in its sentence: what no
    preposition, article or verb gives another role."""
    tokens = sentence[place:]
    denied = _denied([token.text for token in sentence])
    fragment = not any(
        token.text in _BE | _AUXILIARY or _VERB.fullmatch(token.text) for token in tokens[1:]
    )
    mention = tokens[0].text.removeprefix(MENTION)
    link: list[str] = []
    settled = False  # whether the last name or noun has a role of its own
    contrast = False
    for i, token in enumerate(tokens[1:], start=1):
        text = token.text
        contrast = contrast or text in _CONTRASTS
        if place + i in denied:
            continue
        if _is_mention(token):
            link, settled = [], False
            continue
        if text in asked.given or text[0].isdigit():
            link.append("=")
            continue
        if (text in _GRAMMAR | _JOINERS or text in ",:" or re.match(f"[{CJK}]", text)) and not token.article:
            link.append(text)
            continue
        short = len(text) < 4 and text[0] == mention[0] and link == [","]
        if short:
            continue
        last = link[-1] if link else ""
        joined = not _JOINERS.union(_HEDGES).isdisjoint(link)
        role = token.article or last in (_PREPOSITIONS | _DETERMINERS | _RELATIVE | {"=", "born"})
        bare = all(one in _AND or one in ",:" for one in link)
        verb = bool(_VERB.fullmatch(text)) and not token.name
        if contrast and token.name:
            return True
        if token.name and not DEMONYM.fullmatch(text):
            attached = not link and settled
            listed = bool(link) and bare and settled and not fragment
            if joined or not (attached or listed or (role and last not in _BE)):
                return True
            settled = True
        else:
            following = tokens[i + 1].text if i + 1 < len(tokens) else ""
            goes_on = bare and bool(link) and following in _PREPOSITIONS | _BE
            goes_on = goes_on or "=" in link or ("because" in link and any(_VERB.fullmatch(one.text) for one in tokens[i:]))
            if not (verb or role or settled or goes_on or text.endswith("ly")) or (joined and not role and not verb and not goes_on):
                return True
            settled = True
        link = []
    return False


def _takes_back(later: Sequence[Token], stating: Sequence[Token], asked: _Gold) -> bool:
    """Whether a later sentence names another candidate in the place of the gold answer, or says
    that it was wrong."""
    texts = [token.text for token in later]
    place = next(i for i, token in enumerate(stating) if _is_mention(token))
    frame = [token.text for token in stating[:place]]
    mentioned = [i for i, text in enumerate(texts) if text.startswith(MENTION)]
    if mentioned:
        return not _denied(texts).isdisjoint(mentioned) or "used to" in " ".join(texts)
    found = _candidates(later, asked)
    if not _REVISIONS.isdisjoint(texts[:3]) or texts[:1] == ["no"]:
        return bool(found)
    if not found:
        return False
    first = found[0]
    link = texts[first - 1] if first else ""
    content = [
        text for i, text in enumerate(texts) if i not in found and text not in _GRAMMAR | {",", ":"}
    ]
    verbs = [text for text in texts if text in _BE | _AUXILIARY or _VERB.fullmatch(text)]
    value = asked.number or any(text in MONTHS for text in (texts[i] for i in found))
    return (
        not (content or verbs)
        or (bool(frame) and texts[: len(frame)] == frame)
        or (link in _BE | {"named", "called"} and not later[first].article)
        or not _HEDGES.union(_OR, ("another", "alternatively", "guess")).isdisjoint(texts)
        or (first == 0 and not verbs)
        or (value and place == 0 and texts[0] in _PRONOUNS)
    )


def _yes_or_no(answer: str, asked: _Gold) -> float:
    """How probable it is that an answer says the one that is right of yes and no; in doubt are
    those that begin with neither, or say both."""
    gold = {" ".join(form) for form in asked.forms}
    if answer.rstrip(' *"').endswith(("?", "？")) or _SAYS_WRONG.search(answer):
        return NAMED
    if _says(answer, YES if gold & YES else NO, asked) and not (gold & YES and gold & NO):
        return STATED
    return APART if _says(answer, NO if gold & YES else YES, asked) else NAMED


def _says(answer: str, wanted: frozenset[str], asked: _Gold) -> bool:
    """Whether an answer begins with `wanted`, yes or no, and says the other nowhere, be it as
    "It is false" or "he was not"."""
    other = NO if wanted is YES else YES
    tokens = tokenise(commitment(answer))
    begins = {" ".join(words[:n]) for words in (words_of(tokens), _short(tokens)) for n in (1, 2)}
    joiners = {*_AND, *_OR, *_HEDGES, *_JOINERS, "if", "as"} - {"not"}
    segments = [words_of(segment) for segment in _split(tokens, ",", ".", ":", *joiners)]
    if begins.isdisjoint(wanted) or any(_says_also(segment, other) for segment in segments):
        return False
    return not any(_truth(segment, asked.given) is (wanted is NO) for segment in segments)


def _says_also(segment: Sequence[str], other: frozenset[str]) -> bool:
    """Whether a part of an answer says the other of yes and no; the "no" of "he had no children"
    and "there is no doubt" does not."""
    if " ".join(segment) in other:
        return True
    return any(
        word in other
        and not re.match(f"[{CJK}]", word)  # may be part of another word
        and (word in YES or not segment[i + 1 :] or segment[i + 1] in _GRAMMAR | YES | NO | _NEGATIONS)
        and not (segment[i + 1 : i + 2] and segment[i + 1] in ("doubt", "way", "question"))
        for i, word in enumerate(segment)
    )


def _truth(segment: Sequence[str], given: frozenset[str]) -> bool | None:
    """Whether a part of an answer says that what was asked is so ("It is true", "he was", "maybe
    not", or the question again); None if neither."""
    words = [word for word in segment if word not in YES | NO]
    denies = not _NEGATIONS.isdisjoint(words)
    for word, after in zip(words, [*words[1:], "it"], strict=False):
        true, false = word in ("true", "correct", "right"), word in ("false", "untrue", "incorrect", "wrong")
        if (true or false) and word not in given and after in _GRAMMAR:
            return true != denies
    if words[-1:] == ["not"] or (
        len(words) == len(segment) == 2 and words[0] in _PRONOUNS and words[1] in _BE
    ):
        return not denies
    content, about = {*words} - _GRAMMAR - _NEGATIONS, given - _GRAMMAR
    return not denies if content and content <= given and (denies or about <= content) else None


def _lists(answer: str, asked: _Gold) -> bool:
    """Whether an answer names all items and nothing else."""
    if answer.rstrip(' *"').endswith(("?", "？")):
        return False
    bulleted = re.sub(r"(?m)(?:^|\s)(?:\d{1,2}[.)]|[-*•])\s+", ", ", commitment(answer))
    sentences = [asked.mask(sentence) for sentence in _split(tokenise(bulleted), ".")]
    stating = [sentence for sentence in sentences if any(map(_is_mention, sentence))]
    named = {token.text for sentence in stating for token in sentence if _is_mention(token)}
    return (
        named == {MENTION + " ".join(form) for form in asked.forms}
        and all(_lists_only(sentence, asked) for sentence in stating)
        and not any(_candidates(sentence, asked) for sentence in sentences if sentence not in stating)
    )


def _lists_only(sentence: Sequence[Token], asked: _Gold) -> bool:
    """Whether a sentence lists items, with words of another kind only before the first and after
    the last."""
    known = asked.given | _GRAMMAR - _OR
    colon = max((i for i, token in enumerate(sentence) if token.text == ":"), default=0)
    heading = words_of(sentence[:colon])
    frames = _BE | _set("include includes by")
    determined = sentence[0].article or sentence[0].text in _DETERMINERS  # "His children: …"
    if not (known.issuperset(heading) or heading[-1] in frames or determined):
        return False
    sentence = sentence[colon:]
    texts = {token.text for token in sentence}
    if any(_is_mention(token) for token in sentence[:colon]) or texts & (_OR | _NEGATIONS | _JOINERS - asked.given):
        return False
    segments = _split(sentence, ",", ":", *_AND)
    for i, segment in enumerate(segments):
        places = [j for j, token in enumerate(segment) if _is_mention(token)]
        if not places or places[-1] - places[0] >= len(places) + 2:
            return False
        inside = segment[places[0] : places[-1] + 1]
        if any(not _is_mention(token) and token.text not in ("as", "well", "also") for token in inside):
            return False  # "Alpha Gamma Beta" names three
        before, after = words_of(segment[: places[0]]), words_of(segment[places[-1] + 1 :])
        framed = not before or (i == 0 and (before[-1] in frames or known.issuperset(before)))
        ended = not after or (i == len(segments) - 1 and known.issuperset(after))
        if not (framed and ended):
            return False
    return True
