"""Whether a sentence that names a gold answer states it, by rules.

No other candidate may stand before the gold answer, and nothing behind it may take it back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from workbench.text.gold import (
    AND,
    AUXILIARY,
    BE,
    DETERMINERS,
    FILLERS,
    GRAMMAR,
    HEDGES,
    JOINERS,
    KINDS,
    NEGATIONS,
    OR,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVE,
    REVISIONS,
    UNITS,
    VERB,
    Gold,
    is_letter,
    is_mention,
    is_number,
    split,
)
from workbench.text.names import DEMONYM, TITLES
from workbench.text.normal_form import CJK, MONTHS, Token

MAX_WORDS = 40  # of the sentence that answers; a longer one names the gold answer by chance
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
        r"|centre|part|symbol|species|citizen|native|student|staff|home|seat|member|coast"
        r"|people|works?|creation)\b)[^\W\d]\S*(?= of @)",
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
    for group in (
        "born died buried raised",
        "directed written produced composed painted",
        "first last second third",
        "largest smallest",
        "won lost",
    )
]
_PAST = {"die": "died", "dies": "died", "win": "won", "lose": "lost", "begin": "began"}
_CJK_LIST = re.compile(
    rf"[{CJK}](?<![他她它是在于的年])(?:可能|也许|或许|大概|或者|还是|以及|或|和|与|及)+是?\0"
    rf"|\0[^{CJK}]*(?:可能|也许|或许|大概|或者|还是|以及|或|和|与|及)+是?[{CJK}]"
)


def states(tokens: Sequence[Token], asked: Gold) -> bool:
    """Whether the first sentence that names a gold answer states it, no sentence before it names
    another candidate, and none after it takes it back."""
    sentences = [asked.mask(sentence) for sentence in split(tokens, ".")]
    at = next((i for i, one in enumerate(sentences) if any(map(is_mention, one))), None)
    if at is None or len(sentences[at]) > MAX_WORDS:
        return False
    known = {token.text for token in sentences[at]}
    for sentence in sentences[:at]:
        if any(sentence[word.at].text not in known for word in candidates(sentence, asked)):
            return False
    return _sentence_states(sentences[at], asked) and not any(
        _takes_back(later, sentences[at], asked) for later in sentences[at + 1 :]
    )


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
        elif text in NEGATIONS - given and after not in (",", "only", "just", "merely", "wait"):
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
            one in AND or one in ",:@" for one in self.link
        )

    @property
    def joined(self) -> bool:
        """A word stands before it that joins guesses, in its own clause."""
        breaks = [i for i, one in enumerate(self.link) if one in RELATIVE | {"="}]
        return not JOINERS.union(HEDGES).isdisjoint(self.link[max(breaks, default=0) :])


def _words(sentence: Sequence[Token], asked: Gold) -> list[_Word]:
    """The words of a sentence that neither the question nor the grammar gives, that are not denied
    and not numbers, in their order."""
    denied = _denied([token.text for token in sentence], asked.given)
    found: list[_Word] = []
    link: list[str] = []
    for i, token in enumerate(sentence):
        text = token.text
        if i in denied or text[0].isdigit() or re.match(f"[{CJK}]", text):
            continue
        if is_mention(token):
            link = ["@"]
            continue
        if text in TITLES and i + 1 < len(sentence) and sentence[i + 1].name:
            continue
        if text in asked.given - GRAMMAR or (token.name and _in_given_name(sentence, i, asked)):
            link.append("=")
            continue
        if text in GRAMMAR | JOINERS and not is_letter(token) and not token.article:
            link.append(text)
            continue
        if text.endswith("ly") and not (token.name and i):
            continue
        name = token.name and (asked.people or not DEMONYM.fullmatch(text))
        verb = bool(VERB.fullmatch(text)) and not (token.name and (i or token.article))
        named = PREPOSITIONS | DETERMINERS | RELATIVE | AUXILIARY | {"=", "born"}
        role = token.article or verb or (not name and "=" in link)
        listed = not name and all(one in AND | {","} for one in link)
        role = role or (found[-1].role if found and listed and not found[-1].name else False)
        role = role or (link[-1] in named if link else bool(found) and found[-1].role)
        found.append(_Word(i, name and not verb, tuple(link), role))
        link = []
    return found


def _in_given_name(sentence: Sequence[Token], i: int, asked: Gold) -> bool:
    """Whether a word is part of a name of which the question gives another word."""
    run = [i, i + 1]
    while run[0] and sentence[run[0] - 1].name and not is_mention(sentence[run[0] - 1]):
        run[0] -= 1
    while run[1] < len(sentence) and sentence[run[1]].name and not is_mention(sentence[run[1]]):
        run[1] += 1
    return any(token.text in asked.given - GRAMMAR - KINDS for token in sentence[run[0] : run[1]])


def candidates(sentence: Sequence[Token], asked: Gold) -> list[_Word]:
    """What a sentence without the gold answer asserts that could be another answer."""
    if asked.number:
        denied = _denied([token.text for token in sentence])
        return [
            _Word(i, False, tuple(one.text for one in sentence[max(0, i - 1) : i]), False)
            for i, token in enumerate(sentence)
            if is_number(token.text) and token.text not in asked.given and i not in denied
        ]
    bare = not any(token.text in GRAMMAR for token in sentence)
    return [word for word in _words(sentence, asked) if word.name or bare or not asked.named]


def _sentence_states(sentence: list[Token], asked: Gold) -> bool:
    """Whether a sentence states the gold answer that it names."""
    texts = [token.text for token in sentence]
    places = [i for i, token in enumerate(sentence) if is_mention(token)]
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
    text = " ".join("@" if is_mention(token) else token.text for token in sentence)
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
    breaks = AND | RELATIVE | PRONOUNS | {",", ":", "but"}
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return True
        if text in breaks:
            seen = set()
        elif (text in BE or VERB.fullmatch(text)) and text not in question:
            seen.add(text)
    return False


def _unasked(qualifier: str, question: frozenset[str]) -> bool:
    """Whether the question does not ask for what a qualifier says; one about a relative may be
    answered by another ("the daughter of …" for "Who was her father?")."""
    kin = {*_KIN.split("|")}
    words = {*qualifier.split()} - BE - AUXILIARY - RELATIVE
    return question.isdisjoint(words) and not (qualifier in kin and question & kin)


def _is_offered(sentence: Sequence[Token], place: int, asked: Gold) -> bool:
    """Whether the gold answer is one of several that are offered: "Vetra or Lomar"."""
    return any(
        i < place + 4 or not asked.named or any(one.name for one in sentence[i + 1 : i + 4])
        for i, token in enumerate(sentence)
        if token.text in OR and not is_letter(token)
    )


def _number_stands(sentence: Sequence[Token], place: int, asked: Gold) -> bool:
    """Whether a number is the whole value that is stated: not part of a name, no unit of another
    kind, and no other value of its kind beside it."""
    texts = [token.text for token in sentence]
    value = next(word for word in texts[place][1:].split() if is_number(word))
    year = _is_year(value)
    following = texts[place + 1] if place + 1 < len(texts) else ""
    plain = following in asked.given | GRAMMAR | {""} or (
        bool(VERB.fullmatch(following)) and following not in UNITS
    )
    longer = f"{texts[place][1:]} "
    whole = any(" ".join(form).startswith(longer) for form in asked.forms)
    if not plain and (whole or year or not asked.counted):
        return False
    before = sentence[place - 1] if place else Token("")
    if before.name and before.text not in asked.given | GRAMMAR | {*MONTHS}:
        return False
    for i, text in enumerate(texts):
        other = i != place and is_number(text) and not is_mention(sentence[i])
        if not other or text in asked.question or (_is_year(text) != year and abs(i - place) > 2):
            continue
        told = [word for word in texts[place + 1 : i] if word not in GRAMMAR | JOINERS]
        if i < place or not told or place == 0:
            return False
    return True


def _is_year(text: str) -> bool:
    return bool(re.fullmatch(r"[12]\d{3}(s|(-\d\d)*)", text))


def _is_bounded(sentence: Sequence[Token], place: int, asked: Gold) -> bool:
    """Whether a gold form is no part of a longer name, as "York" is of "New York"."""
    mention = sentence[place]
    for i in (place - 1, place + 1):
        token = sentence[i] if 0 <= i < len(sentence) else Token(",")
        text, ahead = token.text, i < place
        if text in KINDS and token.name and not ahead and text != asked.kind:
            return False
        if text in asked.given or is_mention(token) or re.match(f"[{CJK}]", text):
            continue
        if text in GRAMMAR | JOINERS and not is_letter(token):
            continue
        if ahead and text in TITLES:
            titles = {word for form in asked.forms for word in form if word in TITLES}
            if titles and text not in titles and not titles & {*mention.text[1:].split()}:
                return False
            continue
        if ahead and (DEMONYM.fullmatch(text) or (i == 0 and VERB.fullmatch(text))):
            continue
        if token.name or text[0].isdigit() or not (mention.name or VERB.fullmatch(text)):
            return False
    return True


def _rival_before(sentence: Sequence[Token], place: int, asked: Gold) -> bool:
    """Whether something that could be the answer stands before it in its sentence."""
    texts = [token.text for token in sentence[:place]]
    if texts and texts[0] in PREPOSITIONS | {"according", "based", "given"} and "," in texts:
        start = place - texts[::-1].index(",")  # "In the United States, …"
    else:
        start = 0
    words = [word for word in _words(sentence, asked) if start <= word.at < place]
    subject = next((i for i in range(start, place) if not _is_aside(texts[i])), place)
    determined = subject < place and (
        sentence[subject].article or texts[subject] in DETERMINERS | asked.given - PRONOUNS
    )
    told = texts[subject:]
    if words and words[0].at == subject and told:
        names = (not token.name for token in sentence[subject:place])
        run = next((i for i, other in enumerate(names) if other), len(told)) or 1
        verb = any(text in BE or text not in GRAMMAR for text in told[run:])
        plain = (JOINERS | AND | RELATIVE | {",", ":"}).isdisjoint(told[run:])
        apposed = told[run : run + 1] == [","] and sentence[subject + run + 1].article
        leads = told[-1] in PREPOSITIONS | asked.given and not PREPOSITIONS.isdisjoint(told[run:])
        stated = leads and ((verb and plain) or (apposed and not asked.question))
        if stated or (not asked.question and sentence[place].article and plain):
            words, determined = (
                [word for word in words if word.at >= subject + run and word.name],
                True,
            )
    initials = "".join(texts[word.at][0] for word in words)
    if not words or initials.endswith(sentence[place].text[1:]):
        return False
    link = texts[words[-1].at + 1 :]
    own = sentence[place].article or bool(
        link and link[-1] in PREPOSITIONS | DETERMINERS | asked.given - GRAMMAR
    )
    for word in words:
        behind = texts[word.at + 1 :]
        if not word.role or (word.name and not (determined and (AND | {"but"}).isdisjoint(behind))):
            return True
        if word.name and behind[-1:] == [","]:
            return True
    verb = bool(VERB.fullmatch(texts[words[-1].at]))
    return not (determined or verb or own) or not (
        determined or HEDGES.union(JOINERS).isdisjoint(link)
    )


def _is_aside(text: str) -> bool:
    return text in HEDGES | FILLERS or text.endswith("ly")


def _rival_behind(sentence: Sequence[Token], place: int, asked: Gold) -> bool:
    """Whether something that could be the answer stands behind it in its sentence: what no
    preposition, article or verb gives another role."""
    texts = [token.text for token in sentence]
    letters = "".join(word[0] for word in texts[place][1:].split() if word not in PREPOSITIONS)
    settled = False  # whether the word before has a role of its own
    for word in _words(sentence, asked):
        if word.at < place:
            continue
        text = texts[word.at]
        abbreviates = letters.startswith(text) or (len(text) < 4 and text[0] == letters[0])
        if word.link == ("@", ",") and abbreviates:
            continue  # "Helium (He)"
        rival = _is_rival_name if word.name else _is_rival_noun
        if rival(word, texts, place, settled, asked):
            return True
        settled = True
    return False


def _is_rival_name(
    word: _Word, texts: Sequence[str], place: int, settled: bool, asked: Gold
) -> bool:
    """Whether a name behind the gold answer has no role: "Vetra, Lomar" and "Vetra maybe Lomar",
    but not "Vetra in Lomar"."""
    fragment = not any(text in BE | AUXILIARY or VERB.fullmatch(text) for text in texts)
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
        or word.link[-1] in BE | {"which", "who", "that"}
    )


def _is_rival_noun(
    word: _Word, texts: Sequence[str], place: int, settled: bool, asked: Gold
) -> bool:
    """Whether another word behind the gold answer has no role: "painter, baker", but not "green,
    thanks to …" and "blue because air scatters …"."""
    rest = texts[word.at + 1 :]
    clause = rest[:1] == [","] and rest[1:2] and rest[1] in BE
    goes_on = word.listed and (clause or (rest and rest[0] in PREPOSITIONS | BE))
    if goes_on or ("because" in word.link and any(map(VERB.fullmatch, rest))):
        return False
    if word.listed:
        return not (settled or (word.role and not texts[word.at].endswith("s")))
    if word.link[-1:] and word.link[-1] in BE and texts[word.at].endswith("s"):
        return True
    joiners = JOINERS - {"known", "named", "called", "with", "because", "later", "though"}
    if not joiners.isdisjoint(word.link):
        ends = word.link[-1] in RELATIVE and not rest
        return ends or not word.role or word.link[-1] in ("as", "to", "by", "of")
    if word.joined:
        return not asked.named or word.link[-1] not in PREPOSITIONS | DETERMINERS | {"with"}
    ends = (
        bool(word.link)
        and word.link[-1] in RELATIVE
        and not any(text in GRAMMAR or text.endswith("ed") for text in rest)
    )
    compares = asked.named and texts[word.at].endswith("er")
    return ends or not (word.role or settled or compares)


def _takes_back(later: Sequence[Token], stating: Sequence[Token], asked: Gold) -> bool:
    """Whether a later sentence names another candidate in the place of the gold answer, or says
    that it was wrong."""
    texts = [token.text for token in later]
    place = next(i for i, token in enumerate(stating) if is_mention(token))
    frame = [token.text for token in stating[:place]]
    mentioned = [i for i, token in enumerate(later) if is_mention(token)]
    if mentioned:
        return not _denied(texts).isdisjoint(mentioned) or "used to" in " ".join(texts)
    known = {token.text for token in stating} - GRAMMAR
    found = [word for word in candidates(later, asked) if texts[word.at] not in known]
    if not found:
        return False
    at = {word.at for word in found}
    plain = [text for i, text in enumerate(texts) if i not in at and text not in GRAMMAR | JOINERS]
    verbs = any(
        token.text in BE | AUXILIARY
        or (
            VERB.fullmatch(token.text)
            and not token.name
            and token.text not in JOINERS
            and token is not later[found[0].at]
        )
        for token in later
    )
    links = [[text for text in word.link if not _is_aside(text)] for word in found]
    predicated = any(
        link and link[-1] in BE and not (plain and later[word.at].article)
        for link, word in zip(links, found, strict=True)
    )
    value = asked.number or any(texts[i] in MONTHS or texts[i].endswith("day") for i in at)
    return (
        predicated
        or not (REVISIONS | HEDGES | OR | {"another"}).isdisjoint(texts)
        or any(texts[i] in asked.question for i in at)  # the other one of two that are offered
        or not (plain or verbs)
        or texts[0] in known
        or (found[0].at == 0 and bool(plain) and asked.question.issuperset(plain))
        or (bool(frame) and texts[: len(frame)] == frame)
        or (found[0].at == 0 and (asked.number or not verbs))
        or (value and place == 0 and texts[0] in PRONOUNS)
    )
