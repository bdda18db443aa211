"""What stands around the words that answer, and is no other answer.

An answer is simplified before it is compared a second time: "Many think it is Lyon, but the
capital is Paris, located on the Seine. It is the largest city of France." to "the capital is
Paris." What is taken away comes *behind* the name that answers, or is what the answer itself
denies. A name that comes before it and may be an answer always stays, so that a list of guesses
is worth no more than its first item; and words that join guesses keep a part where it is, so
that it is not worth that either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from workbench.answers.names import asks_for_person
from workbench.answers.places import place, regions, wholes
from workbench.answers.rivals import COPULAS, HEDGES, JOINERS
from workbench.answers.sentences import sentences
from workbench.answers.text import MONTHS, Token, normalise, tokenise, words_of

LONGEST = 200  # words of an answer that is simplified

_HEADING = re.compile(
    r"\s*(?:#+\s*)?(?:(?:final |short |the )?answer|response|solution)\s*:?\s*\n+", re.I
)
_DENIED = re.compile(  # what others think, up to what the answer says
    r"(?:(?:many|most|some|a lot of)(?: people)?(?: \w+)?"
    r" (?:think|believe|assume|say|guess|expect)\b[^.;:?!\n()]{1,80}?,? but "
    r"|[^.;:,?!\n()]{1,60}\b(?:often|commonly|sometimes|frequently|widely|mistakenly)(?:"
    r" mistakenly)? (?:thought|believed"
    r"|assumed|considered|mistaken|said|taken)\b[^.;:?!\n()]{1,80}?,? but |(?:unlike|contrary to)"
    r" [^.;:,?!\n()]{1,60}, )",
    re.I,
)
_FRAME = re.compile(  # where it was read, in small letters; how sure one is
    r"(?:(?i:as of|according to|based on|given|from) [^.;:,?!\nA-ZÀ-Þ()]{1,80}, "
    r"|I(?:'m| am)(?: (?:very|fairly|quite|pretty|reasonably|absolutely|(?:9\d|100)%))?"
    r" (?:confident|sure|certain|positive)"
    r"(?: that)? (?:it's )?)"
)
_BRACKETS = re.compile(r"\s*[(（]([^()（）]{1,60})[)）]")
_LOOSE = r"[\d\s–—,./-]*"
_YEARS = re.compile(
    rf"(?:born |b\. |c\. |from |in |released in |published in )?{_LOOSE}(?:[A-Z][a-z]+"
    rf" )?{_LOOSE}\d{_LOOSE}(?:BCE?|CE|AD)?"
)
_SOURCE = re.compile(
    r"from (?:the )?(?:Latin|Greek|Old English|French|German|Arabic|Italian|Spanish)\b[^,;:/|]*"
)
_REVISED = (JOINERS | HEDGES) - {"known", "named", "called"} | frozenset(
    "or nor not but however actually either formerly previously originally another others while"
    " than if guess answer wrong false incorrect mistaken untrue doubt".split()
)
_LETTERS = re.compile(r"[^\W\d_]+")
_TROUBLE = re.compile(
    r"[/|;:?=~]|\b(?:or|nor|not|no|but|however|actually|rather|instead|formerly|previously|originally|also|another|others?|some|said"
    r"|maybe|perhaps|possibly|probably|likely|might|may|could|alternatively|aka|alias|known|called|named|now|today|unless"
    r"|followed|preceded|succeeded|replaced|either|while|whereas|than|versus|vs|if|second|guess|option|answer|sometimes|ou|oder"
    r"|o|y|e|und|et|forse)\b",
    re.I,
)
_TAIL = re.compile(  # a participle that tells more of what has been said
    r",\s+(?:(?:which|who) (?:is|was)"
    r" )?(?:(?:located|situated|based|found|published|released|written|directed|produced|founded"
    r"|established|opened|built|completed|constructed|designed|composed|recorded|painted|created|invented|discovered|ruling"
    r"|serving|reigning|becoming|born)"
    r" (?:in|on|at|by|from|during|between|to|as|the|a|an|around|near)\b"
    r"|(?:beating|defeating|earning|featuring|starring|(?:thanks|due) to(?= [a-z])|because of(?="
    r" [a-z])|with(?= [a-z0-9])"
    r"|from the (?:Latin|Greek|Arabic|Old English|French|Italian))\b)(?:[^\n.!?,;]|[.,](?=\d))*"
)
_MADE_BY = re.compile(
    r"\bby (?:[a-z]+ ){0,4}[A-ZÀ-Þ]|,\s+from the (?:Old )?\w+ (?:\S+ )*?(?:[A-ZÀ-Þ])"
)
_SITED = re.compile(r",?\s+(?:(?:which|who) (?:is|was) )?(?:located|situated|based|found|in)\b")
_SMALL = r"(?:[^\W\dA-ZÀ-Þ_][\w'’-]*|\d+)"
_WHOSE = re.compile(rf",\s+(?:which|who|whose|where)\s+{_SMALL}(?:\s+{_SMALL}){{2,}}(?=[.!?\s]*$)")
_PLACED = re.compile(
    r"(?<=[\w\"*”’]) (?:in|at|on|during|for) (?:the |his |her |its |their )?(?:[a-z]+ ){0,2}"
    r"[A-ZÀ-Þ][\w'’.-]*(?: (?:(?:of|the|de|da|del) )*[A-ZÀ-Þ][\w'’.-]*)*(?=[.!?\s]*$)"
)
_BECAUSE = re.compile(
    r",? because (?:it|he|she|they|the|of|its|his|her|their)\b[^\n.!?A-ZÀ-Þ]*(?=[.!?\s]*$)"
)
_WHERE = re.compile(
    r"\bwhere\b|\b(?:what|which)"
    r" (?:city|town|country|state|place|region|county|village|continent|part|location|province)\b"
    r"|\bbirthplace\b"
)
_SUBJECTS = frozenset("it he she they this its his her their".split())
_BEFORE_NAMES = frozenset(
    "in on of at for to near during since until the his her its their".split()
)
_LINKS = COPULAS | frozenset("seem seems seemed look looks looked appear appears appeared".split())
_LIGHT = frozenset(
    "in on at from by of to now still only just both also most so currently officially".split()
)
_REPLACING = 4  # words behind "it is" that are few enough to stand for the answer
_DESCRIBED = re.compile(  # "a German physicist", "the largest city of the country"
    r"\w+ (?:is|was) (?:an?|the) (?:[A-Z][\w'’]*(?:-born)? (?=[a-z]))?[a-z][\w'’-]*(?:"
    r" [a-z][\w'’-]*)*\W*"
)
_DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_JOINED = re.compile(r"[,;:/]|\b(?:and|or|und|et|y|e|o)\b", re.I)
DEMONYM = re.compile(
    r"[a-z]+(?:ish|ese|ian|ean|ican|can)|german|french|dutch|greek|swiss|scots|scottish|welsh|czech|thai|iraqi|israeli|american"
)
_KNOWN = re.compile(r" known(?: to (?:man|science|us))?(?=[.!\s]*$)")
_ACRONYM = re.compile(
    r"((?:[A-ZÀ-Þ][\w’'-]*(?: (?:and|of|the|for|to|in|on))* ){1,8})\(([A-Z]{2,7})\)"
)
_CALLED = re.compile(
    r" (is|are|was|were) (?:also |commonly |often |simply )?(?:known as|called|referred to"
    r" as|named) "
)


def simply(answer: str, question: str, mentions: Callable[[str], bool], gold: Sequence[str]) -> str:
    """The answer without its asides; `mentions` says whether a text names the gold answer."""
    if len(answer.split()) > LONGEST:
        return answer
    text = re.sub(r"\*+|(?<!\w)_|_(?!\w)", "", _HEADING.sub("", answer, count=1)).strip()
    for lead in (_DENIED, _FRAME):
        if (match := lead.match(text)) and not _says_or(match[0]):
            text = text[match.end() :]
    text = _ACRONYM.sub(lambda match: _either(match, mentions), text)
    text = place(
        _BRACKETS.sub(lambda match: "" if _is_aside(match, text, question) else match[0], text)
    )
    text = _CALLED.sub(lambda match: _plain_is(match, question), text)
    spans = sentences(text)
    first = next((i for i, (start, end) in enumerate(spans) if mentions(text[start:end])), None)
    if first is None:
        return text
    kept = [
        _cut(text[start:end], question, mentions, gold) if i == first else text[start:end]
        for i, (start, end) in enumerate(spans)
    ]
    known = _known(kept[: first + 1], question, gold)
    kept = [
        said
        for i, said in enumerate(kept)
        if i <= first or not _elaborates(said, known, question, gold)
    ]
    return "\n".join(kept)


def _either(match: re.Match[str], mentions: Callable[[str], bool]) -> str:
    """Of a name and its acronym in brackets the one that is the gold answer."""
    initials = "".join(word[0] for word in match[1].split() if word[0].isupper())
    if match[2] not in initials or (len(match[2]) < 3 and not initials.endswith(match[2])):
        return match[0]
    return match[2] if mentions(match[2]) and not mentions(match[1]) else match[1].strip()


def _says_or(text: str) -> bool:
    return bool(re.search(r"\b(?:or|maybe|perhaps)\b", text, re.I))


def _is_aside(match: re.Match[str], text: str, question: str) -> bool:
    """Whether brackets hold years, a source, or short letters of what stands before them."""
    inner, before = match[1].strip(), text[: match.start()]
    if _SOURCE.fullmatch(inner) and not _TROUBLE.search(inner):
        return True
    if _YEARS.fullmatch(inner):
        return not re.search(r"\d\W*$", before) and not re.search(
            r"\b(?:when|year|date|how)\b", question, re.I
        )
    letters = "".join(_LETTERS.findall(inner)).lower()
    name = re.findall(r"[^\W\d_]+", before)[-6:]
    initials = "".join(word[0] for word in name if word[0].isupper()).lower()
    if re.fullmatch("[A-Z]{3}", inner) and re.search(r"\bcurrency\b", question, re.I):
        return True
    if " " in inner or not 0 < len(letters) <= 6:
        return False
    return (len(letters) > 1 and initials.endswith(letters)) or (
        len(letters) <= 2 and bool(name) and _shortens(letters, name)
    )


def _shortens(letters: str, name: Sequence[str]) -> bool:
    """Whether a chemical symbol may be short for a name: "CO" for "carbon dioxide", "He" for
    "helium".
    """
    last = " ".join(name[-2:]).lower(), name[-1].lower()
    return any(word[0] == letters[0] and all(letter in word for letter in letters) for word in last)


def _cut(sentence: str, question: str, mentions: Callable[[str], bool], gold: Sequence[str]) -> str:
    """The sentence that answers without what hangs on its end, as long as that names the answer
    nowhere.
    """
    sentence = _KNOWN.sub("", sentence)
    for tail in (_WHOSE, _TAIL, _BECAUSE, *[_PLACED] * (3 * bool(question))):
        match = tail.search(sentence)
        if match and tail is _PLACED and not _leads(sentence[: match.start()], question, mentions):
            continue
        if match and _competes(match[0], question, gold):
            continue
        if (
            match
            and mentions(sentence[: match.start()])
            and not (mentions(match[0]) or _TROUBLE.search(match[0]))
        ):
            sentence = sentence[: match.start()] + sentence[match.end() :]
    return sentence


def _competes(tail: str, question: str, gold: Sequence[str]) -> bool:
    """Whether a tail names what may answer too: "in addition to Rome", a number beside a number,
    who made it beside a name, another region."""
    wanted = [token for form in gold for token in tokenise(form)]
    asked = words_of(tokenise(question))
    number = any(
        re.search(r"\d", form) or token.text in MONTHS for form in gold for token in tokenise(form)
    )
    if (number and re.search(r"\d", tail)) or not JOINERS.isdisjoint(words_of(tokenise(tail))):
        return True
    if any(token.name for token in wanted) and _MADE_BY.search(tail):
        return True
    lies = [where for form in gold if (where := wholes(form)) is not None]
    if not _SITED.match(tail) or not (
        lies or _WHERE.search(question.lower()) or "capital" in asked
    ):
        return False
    held = {normalise(name) for where in lies for name in where}
    return any(
        name not in held and not set(name.split()).issubset(asked) for name in _regions_in(tail)
    )


def _regions_in(text: str) -> list[str]:
    said = f" {normalise(text)} "
    return [name for name in map(normalise, regions()) if f" {name} " in said]


def _plain_is(match: re.Match[str], question: str) -> str:
    """ "The mitochondrion is the powerhouse" for "… is known as the powerhouse", where the
    question gives one side.
    """
    given = set(words_of(tokenise(question))) | {
        "it",
        "this",
        "that",
        "these",
        "they",
        "he",
        "she",
        "commonly",
    }
    sides = match.string[: match.start()], match.string[match.end() :]
    return (
        f" {match[1]} "
        if any(given.issuperset(words_of(tokenise(side))) for side in sides)
        else match[0]
    )


def _leads(sentence: str, question: str, mentions: Callable[[str], bool]) -> bool:
    """Whether a sentence names nothing that the question does not but the gold answer, and joins
    nothing to it.
    """
    given = set(words_of(tokenise(question)))
    words = sentence.split()
    if _WHERE.search(question.lower()) and not (
        mentions(words[0]) and given.issuperset(words_of(tokenise(" ".join(words[1:2]))))
    ):
        return False
    own = [
        word
        for word in words
        if word[:1].isupper() and not given.issuperset(words_of(tokenise(word)))
    ]
    first = own and (words[0] in own) and not mentions(words[0])
    return not _JOINED.search(sentence) and (
        len(own) <= 1 + bool(first) or mentions(" ".join(own[bool(first) :]))
    )


def _known(said: Sequence[str], question: str, gold: Sequence[str]) -> set[str]:
    """The words that a later sentence may use freely: those of the question and of what came
    before, months and regions that the answer is not one of."""
    wanted = {word for form in gold for word in words_of(tokenise(form))}
    named = {word for name in regions() for word in words_of(tokenise(name))}
    where = _WHERE.search(question.lower()) or not named.isdisjoint(wanted)
    places = named.intersection(*(_around(form, named) for form in gold)) if not where else set()
    dates = set() if any(word in MONTHS or word[0].isdigit() for word in wanted) else set(MONTHS)
    return (
        {word for text in (question, *said) for word in words_of(tokenise(text))} | places | dates
    )


def _around(form: str, otherwise: set[str]) -> set[str]:
    """The words of the regions that a place lies in; others may have to do with any."""
    lies = wholes(form)
    return (
        otherwise if lies is None else {word for name in lies for word in words_of(tokenise(name))}
    )


def _elaborates(sentence: str, known: set[str], question: str, gold: Sequence[str]) -> bool:
    """Whether a later sentence tells more of the answer that was given ("He was a German
    physicist."): it begins with a pronoun, says nothing that could stand in the place of the
    answer, and its names are known, or a preposition or an article makes them none that answers."""
    tokens = tokenise(sentence)
    texts = [token.text for token in tokens]
    wanted = [token for form in gold for token in tokenise(form)]
    if not question or len(texts) < 3 or texts[0] not in _SUBJECTS or _REVISED.intersection(texts):
        return False
    if not any(token.name for token in wanted) or _replaces(sentence, texts, question, gold):
        return False
    number = any(token.text[0].isdigit() or token.text in MONTHS for token in wanted)
    same = (  # names of the kind of the answer could stand in its place
        (lambda text: number and text[0].isdigit()),
        (lambda text: any(token.text in _DAYS for token in wanted) and text in _DAYS),
        (
            lambda text: (
                any(DEMONYM.fullmatch(token.text) for token in wanted)
                and bool(DEMONYM.fullmatch(text))
            )
        ),
        (lambda text: any(wholes(form) is not None for form in gold) and wholes(text) is not None),
    )
    where = bool(_WHERE.search(question.lower()))
    names = [i for i, token in enumerate(tokens) if i and token.name and token.text not in known]
    return all(
        _is_free(tokens, i, known, where) and not any(kind(texts[i]) for kind in same)
        for i in names
    )


def _replaces(sentence: str, texts: Sequence[str], question: str, gold: Sequence[str]) -> bool:
    """Whether what is said of "it" is so short that it could be the answer itself: "It was
    August" does.
    """
    link = next((i for i, text in enumerate(texts[:5]) if text in _LINKS), None)
    if link is None:
        return False
    words = [text for text in texts[link + 1 :] if text.isalnum() or len(text) > 1]
    while words and words[0] in _LINKS | _LIGHT:
        words = words[1:]
    asked = words_of(tokenise(question))
    if len(words) > _REPLACING or ("or" not in asked and set(words).issubset(asked)):
        return False
    lies = [where for form in gold if (where := wholes(form)) is not None]
    if lies and any(
        re.fullmatch(rf"It (?:is|lies) in (?:the )?{re.escape(name)}\W*", sentence)
        for name in frozenset.union(*lies)
    ):
        return False
    described = lies or (asks_for_person(question) and texts[0] in ("he", "she"))
    return not (described and _DESCRIBED.fullmatch(sentence.strip()))


def _is_free(tokens: Sequence[Token], i: int, known: set[str], where: bool) -> bool:
    token, before = tokens[i], tokens[i - 1]
    if token.text in known:
        return True
    linked = (
        before.text in _LINKS
        or before.text == "by"
        or (before.text in _LIGHT and tokens[i - 2].text in _LINKS)
    )
    if linked and not (
        DEMONYM.fullmatch(token.text) and i + 1 < len(tokens) and not tokens[i + 1].name
    ):
        return False
    if DEMONYM.fullmatch(token.text) or token.text[:1].isdigit():
        return True
    if before.name and i > 1:  # a further word of a name
        return _is_free(tokens, i - 1, known, where)
    return not where and (token.article or before.text in _BEFORE_NAMES)
