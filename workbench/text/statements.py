"""Decide by rules whether an answer states the gold answer that it names.

No other candidate may come before the gold answer, and no text after it may retract it.
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

# Longest sentence that counts as a statement; a longer one may name the gold answer by chance.
MAX_WORDS = 40
_KIN = (
    "father|mother|parent|son|daughter|child|grandfather|grandmother|husband|wife|spouse|widow"
    "|partner|teacher|mentor|disciple|student|pupil|brother|sister|sibling|twin|uncle|aunt|nephew"
    "|niece|cousin|assistant|successor|predecessor|friend|enemy|rival|contemporary|follower|fan"
    "|imitator|namesake"
)
# Contexts in which a sentence that names the gold answer (@) does not state it. A match is ignored
# if the question has one of its words.
_QUALIFIED = [
    re.compile(pattern)
    for pattern in (
        # the statement is no longer true, was never true, or @ lost
        r"\b(?:former|formerly|previously|once|historically|no longer|used to|ceased)\b(?=.*@)",
        r"(?<=@)(?: \S+){0,6} (?:until|no longer|formerly|previously|used to|once|ceased)\b",
        r"(?<=@)(?: (?:is|are|was|were|has|have|had|do|does|did|been|,(?= who| which)|who|which))*"
        r" (?:not|never|no|lost|loses|beaten|defeated|failed|jr|sr|junior|senior)\b",
        r"(?<=@) , (?:no|never|wrong)\b",
        # the sentence is about something else that is related to @
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
_BOUNDED = [  # contexts in which a number is a bound or part of a larger value
    re.compile(pattern)
    for pattern in (
        r"\b(?:before|after|more|less|over|under|least|most|between|until|fewer|greater|above|below"
        r"|than|by|till|prior|past|later|earlier|minus|negative|half|twice|double|triple|times|plus"
        r"|page|chapter|line|room|following|half of|up to|not)(?= @)",
        r"(?<=@) (?:bc|percent|dozen|hundred|thousand|million|euros|tonnes|times|ago|minus|plus)\b",
    )
]
_EVENTS = [  # a sentence with another word of the group than the question does not answer it
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


def states(tokens: Sequence[Token], gold: Gold) -> bool:
    """Whether the first sentence that names a gold answer states it, and no other contradicts."""
    sentences = [gold.mask(sentence) for sentence in split(tokens, ".")]
    at = next((i for i, sentence in enumerate(sentences) if any(map(is_mention, sentence))), None)
    if at is None or len(sentences[at]) > MAX_WORDS:
        return False
    known = {token.text for token in sentences[at]}
    for sentence in sentences[:at]:
        if any(sentence[word.at].text not in known for word in candidates(sentence, gold)):
            return False
    return _sentence_states(sentences[at], gold) and not any(
        _retracts(later, sentences[at], gold) for later in sentences[at + 1 :]
    )


def _denied(texts: Sequence[str], known: frozenset[str] = frozenset()) -> set[int]:
    """The indices of negated words: those after a negation, up to the end of its clause.

    "Anything but Vetra" negates Vetra; "if not Vetra" and "not only Vetra" do not.
    """
    denied, scope = set(), False
    for i, text in enumerate(texts):
        after = texts[i + 1] if i + 1 < len(texts) else ""
        if text == "but":
            scope = texts[i - 1 : i] in (["anything"], ["everything"], ["nothing"])
        elif scope and text in (",", ":", "it", "he", "she"):
            scope = text == "," and after in ("or", "nor", "and")
        elif text == "instead" and after != "of":
            continue
        elif text in NEGATIONS - known and after not in (",", "only", "just", "merely", "wait"):
            scope = scope or texts[i - 1 : i] != ["if"]
        if scope:
            denied.add(i)
    return denied


class _Word(NamedTuple):
    """A word that could be an answer, with its grammatical context."""

    at: int  # index in the sentence
    name: bool
    # function words since the previous candidate; "=" is a word of the question, "@" a gold answer
    link: tuple[str, ...]
    role: bool  # a preposition, article or verb marks it as something other than the answer

    @property
    def listed(self) -> bool:
        """Whether only commas and "and" come before the word."""
        return self.link not in ((), ("@",)) and all(
            word in AND or word in ",:@" for word in self.link
        )

    @property
    def joined(self) -> bool:
        """Whether a word that joins guesses comes before it in its clause."""
        breaks = [i for i, word in enumerate(self.link) if word in RELATIVE | {"="}]
        return not JOINERS.union(HEDGES).isdisjoint(self.link[max(breaks, default=0) :])


def _words(sentence: Sequence[Token], gold: Gold) -> list[_Word]:
    """The words of a sentence that could be an answer, in order.

    Words of the question, function words, negated words and numbers are excluded.
    """
    denied = _denied([token.text for token in sentence], gold.known)
    words: list[_Word] = []
    link: list[str] = []
    for i, token in enumerate(sentence):
        text = token.text
        if i in denied or text[0].isdigit() or re.match(f"[{CJK}]", text):
            continue
        if is_mention(token):
            link = ["@"]
            continue
        if text in TITLES and i + 1 < len(sentence) and sentence[i + 1].name:
            continue  # "President" in "President Lomar"
        if text in gold.known - GRAMMAR or (token.name and _in_question_name(sentence, i, gold)):
            link.append("=")
            continue
        if text in GRAMMAR | JOINERS and not is_letter(token) and not token.article:
            link.append(text)
            continue
        if text.endswith("ly") and not (token.name and i):
            continue  # an adverb; "Sicily" within a sentence is a name
        name = token.name and (gold.people or not DEMONYM.fullmatch(text))
        verb = bool(VERB.fullmatch(text)) and not (token.name and (i or token.article))
        leads = PREPOSITIONS | DETERMINERS | RELATIVE | AUXILIARY | {"=", "born"}
        role = token.article or verb or (not name and "=" in link)
        listed = not name and all(word in AND | {","} for word in link)
        role = role or (words[-1].role if words and listed and not words[-1].name else False)
        role = role or (link[-1] in leads if link else bool(words) and words[-1].role)
        words.append(_Word(i, name and not verb, tuple(link), role))
        link = []
    return words


def _in_question_name(sentence: Sequence[Token], i: int, gold: Gold) -> bool:
    """Whether the word at `i` is part of a name that shares a word with the question."""
    run = [i, i + 1]
    while run[0] and sentence[run[0] - 1].name and not is_mention(sentence[run[0] - 1]):
        run[0] -= 1
    while run[1] < len(sentence) and sentence[run[1]].name and not is_mention(sentence[run[1]]):
        run[1] += 1
    return any(token.text in gold.known - GRAMMAR - KINDS for token in sentence[run[0] : run[1]])


def candidates(sentence: Sequence[Token], gold: Gold) -> list[_Word]:
    """The words of a sentence without the gold answer that could be another answer."""
    if gold.number:
        denied = _denied([token.text for token in sentence])
        return [
            _Word(i, False, tuple(before.text for before in sentence[max(0, i - 1) : i]), False)
            for i, token in enumerate(sentence)
            if is_number(token.text) and token.text not in gold.known and i not in denied
        ]
    bare = not any(token.text in GRAMMAR for token in sentence)
    return [word for word in _words(sentence, gold) if word.name or bare or not gold.named]


def _sentence_states(sentence: list[Token], gold: Gold) -> bool:
    """Whether a sentence with a gold answer states that answer."""
    texts = [token.text for token in sentence]
    places = [i for i, token in enumerate(sentence) if is_mention(token)]
    words = {_PAST.get(word, word) for word in texts}
    question = {_PAST.get(word, word) for word in gold.question}
    for group in _EVENTS:
        if group & question and group & words and not group & question & words:
            return False
    if _has_two_predicates(texts, gold.question) or not _denied(texts, gold.known).isdisjoint(
        places
    ):
        return False
    if _is_offered(sentence, places[0], gold):
        return False
    text = " ".join("@" if is_mention(token) else token.text for token in sentence)
    patterns = _BOUNDED if gold.number else _QUALIFIED if gold.named else _QUALIFIED[:-2]
    qualified = (match[0] for form in patterns for match in form.finditer(text))
    if any(_changes_meaning(match, gold.question) for match in qualified):
        return False
    if gold.number:
        return all(_number_stands(sentence, place, gold) for place in places)
    if _CJK_LIST.search("".join(texts)):
        return False
    return all(_is_bounded(sentence, place, gold) for place in places) and not (
        _rival_before(sentence, places[0], gold) or _rival_behind(sentence, places[0], gold)
    )


def _has_two_predicates(texts: Sequence[str], question: frozenset[str]) -> bool:
    """Whether a clause repeats a verb: "Lyon lies in Rome lies in Paris"."""
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


def _changes_meaning(qualifier: str, question: frozenset[str]) -> bool:
    """Whether a qualifier changes the meaning: the question shares no word with it."""
    kin = {*_KIN.split("|")}  # "the daughter of …" may answer "Who was her father?"
    words = {*qualifier.split()} - BE - AUXILIARY - RELATIVE
    return question.isdisjoint(words) and not (qualifier in kin and question & kin)


def _is_offered(sentence: Sequence[Token], place: int, gold: Gold) -> bool:
    """Whether the sentence offers alternatives to the gold answer: "Vetra or Lomar"."""
    return any(
        i < place + 4 or not gold.named or any(token.name for token in sentence[i + 1 : i + 4])
        for i, token in enumerate(sentence)
        if token.text in OR and not is_letter(token)
    )


def _number_stands(sentence: Sequence[Token], place: int, gold: Gold) -> bool:
    """Whether the gold number is the only value of its kind, with its own unit, outside names."""
    texts = [token.text for token in sentence]
    value = next(word for word in texts[place][1:].split() if is_number(word))
    year = _is_year(value)
    following = texts[place + 1] if place + 1 < len(texts) else ""
    plain = following in gold.known | GRAMMAR | {""} or (
        bool(VERB.fullmatch(following)) and following not in UNITS
    )
    longer = f"{texts[place][1:]} "
    whole = any(" ".join(form).startswith(longer) for form in gold.forms)
    if not plain and (whole or year or not gold.counted):
        return False
    before = sentence[place - 1] if place else Token("")
    if before.name and before.text not in gold.known | GRAMMAR | {*MONTHS}:
        return False
    for i, text in enumerate(texts):
        other = i != place and is_number(text) and not is_mention(sentence[i])
        if not other or text in gold.question or (_is_year(text) != year and abs(i - place) > 2):
            continue
        between = [word for word in texts[place + 1 : i] if word not in GRAMMAR | JOINERS]
        if i < place or not between or place == 0:
            return False
    return True


def _is_year(text: str) -> bool:
    return bool(re.fullmatch(r"[12]\d{3}(s|(-\d\d)*)", text))


def _is_bounded(sentence: Sequence[Token], place: int, gold: Gold) -> bool:
    """Whether a gold form is a whole name, unlike "York" in "New York"."""
    mention = sentence[place]
    for i in (place - 1, place + 1):
        token = sentence[i] if 0 <= i < len(sentence) else Token(",")
        text, ahead = token.text, i < place
        if text in KINDS and token.name and not ahead and text != gold.kind:
            return False
        if text in gold.known or is_mention(token) or re.match(f"[{CJK}]", text):
            continue
        if text in GRAMMAR | JOINERS and not is_letter(token):
            continue
        if ahead and text in TITLES:
            titles = {word for form in gold.forms for word in form if word in TITLES}
            if titles and text not in titles and not titles & {*mention.text[1:].split()}:
                return False
            continue
        if ahead and (DEMONYM.fullmatch(text) or (i == 0 and VERB.fullmatch(text))):
            continue
        if token.name or text[0].isdigit() or not (mention.name or VERB.fullmatch(text)):
            return False
    return True


def _rival_before(sentence: Sequence[Token], place: int, gold: Gold) -> bool:
    """Whether another candidate comes before the gold answer in its sentence."""
    texts = [token.text for token in sentence[:place]]
    start = 0
    if texts and texts[0] in PREPOSITIONS | {"according", "based", "given"} and "," in texts:
        start = place - texts[::-1].index(",")  # "In the United States, …"
    words = [word for word in _words(sentence, gold) if start <= word.at < place]
    subject = next((i for i in range(start, place) if not _is_aside(texts[i])), place)
    determined = subject < place and (
        sentence[subject].article or texts[subject] in DETERMINERS | gold.known - PRONOUNS
    )
    clause = texts[subject:]
    if words and words[0].at == subject and clause:
        names = (not token.name for token in sentence[subject:place])
        run = next((i for i, other in enumerate(names) if other), len(clause)) or 1
        # a name that is the subject is not a candidate: "Ana Bo was born in" before the gold answer
        tail = clause[run:]
        verb = any(text in BE or text not in GRAMMAR for text in tail)
        plain = (JOINERS | AND | RELATIVE | {",", ":"}).isdisjoint(tail)
        apposed = tail[:1] == [","] and sentence[subject + run + 1].article
        leads = clause[-1] in PREPOSITIONS | gold.known and not PREPOSITIONS.isdisjoint(tail)
        stated = leads and ((verb and plain) or (apposed and not gold.question))
        if stated or (not gold.question and sentence[place].article and plain):
            words = [word for word in words if word.at >= subject + run and word.name]
            determined = True
    initials = "".join(texts[word.at][0] for word in words)
    if not words or initials.endswith(sentence[place].text[1:]):
        return False  # "World Health Organization (WHO)"
    link = texts[words[-1].at + 1 :]
    own = sentence[place].article or bool(
        link and link[-1] in PREPOSITIONS | DETERMINERS | gold.known - GRAMMAR
    )
    for word in words:
        following = texts[word.at + 1 :]
        alone = word.name and not (determined and (AND | {"but"}).isdisjoint(following))
        if not word.role or alone or (word.name and following[-1:] == [","]):
            return True
    verb = bool(VERB.fullmatch(texts[words[-1].at]))
    return not (determined or verb or own) or not (
        determined or HEDGES.union(JOINERS).isdisjoint(link)
    )


def _is_aside(text: str) -> bool:
    return text in HEDGES | FILLERS or text.endswith("ly")


def _rival_behind(sentence: Sequence[Token], place: int, gold: Gold) -> bool:
    """Whether another candidate comes after the gold answer in its sentence.

    A word with a role of its own, from a preposition, article or verb, is not a candidate.
    """
    texts = [token.text for token in sentence]
    letters = "".join(word[0] for word in texts[place][1:].split() if word not in PREPOSITIONS)
    settled = False  # whether an earlier word after the gold answer was accepted
    for word in _words(sentence, gold):
        if word.at < place:
            continue
        text = texts[word.at]
        abbreviates = letters.startswith(text) or (len(text) < 4 and text[0] == letters[0])
        if word.link == ("@", ",") and abbreviates:
            continue  # "Helium (He)"
        rival = _is_rival_name if word.name else _is_rival_noun
        if rival(word, texts, place, settled, gold):
            return True
        settled = True
    return False


def _is_rival_name(
    word: _Word, texts: Sequence[str], place: int, settled: bool, gold: Gold
) -> bool:
    """Whether a name after the gold answer is another candidate.

    "Vetra, Lomar" and "Vetra maybe Lomar" have one; "Vetra in Lomar" does not.
    """
    fragment = not any(text in BE | AUXILIARY or VERB.fullmatch(text) for text in texts)
    between = {*texts[place : word.at]}
    if "whose" in between:
        return False
    if not word.link:
        return not settled
    if word.listed:
        return not settled or fragment
    author = fragment and gold.person and word.link[-1] == "by"
    contrast = between & {"but", "however", "yet", "while", "whereas"}
    return bool(
        word.joined
        or contrast
        or author
        or not word.role
        or word.link[-1] in BE | {"which", "who", "that"}
    )


def _is_rival_noun(
    word: _Word, texts: Sequence[str], place: int, settled: bool, gold: Gold
) -> bool:
    """Whether a word after the gold answer that is not a name is another candidate.

    "painter, baker" has one; "green, thanks to …" and "blue because air scatters …" do not.
    """
    rest = texts[word.at + 1 :]
    clause = rest[:1] == [","] and rest[1:2] and rest[1] in BE
    continues = word.listed and (clause or (rest and rest[0] in PREPOSITIONS | BE))
    if continues or ("because" in word.link and any(map(VERB.fullmatch, rest))):
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
        return not gold.named or word.link[-1] not in PREPOSITIONS | DETERMINERS | {"with"}
    relative = bool(word.link) and word.link[-1] in RELATIVE
    ends = relative and not any(text in GRAMMAR or text.endswith("ed") for text in rest)
    compares = gold.named and texts[word.at].endswith("er")
    return ends or not (word.role or settled or compares)


def _retracts(later: Sequence[Token], stating: Sequence[Token], gold: Gold) -> bool:
    """Whether a later sentence replaces the gold answer with another candidate or denies it."""
    texts = [token.text for token in later]
    place = next(i for i, token in enumerate(stating) if is_mention(token))
    frame = [token.text for token in stating[:place]]
    mentioned = [i for i, token in enumerate(later) if is_mention(token)]
    if mentioned:
        return not _denied(texts).isdisjoint(mentioned) or "used to" in " ".join(texts)
    known = {token.text for token in stating} - GRAMMAR
    rivals = [word for word in candidates(later, gold) if texts[word.at] not in known]
    if not rivals:
        return False
    at = {word.at for word in rivals}
    plain = [text for i, text in enumerate(texts) if i not in at and text not in GRAMMAR | JOINERS]
    verbs = any(
        token.text in BE | AUXILIARY
        or (
            VERB.fullmatch(token.text)
            and not token.name
            and token.text not in JOINERS
            and token is not later[rivals[0].at]
        )
        for token in later
    )
    links = [[text for text in word.link if not _is_aside(text)] for word in rivals]
    predicated = any(
        link and link[-1] in BE and not (plain and later[word.at].article)
        for link, word in zip(links, rivals, strict=True)
    )
    value = gold.number or any(texts[i] in MONTHS or texts[i].endswith("day") for i in at)
    return (
        predicated  # "It is Lomar."
        or not (REVISIONS | HEDGES | OR | {"another"}).isdisjoint(texts)  # "Or Lomar."
        or any(texts[i] in gold.question for i in at)  # the other alternative of the question
        or not (plain or verbs)  # only the candidate: "Lomar."
        or texts[0] in known  # the same subject again
        or (rivals[0].at == 0 and bool(plain) and gold.question.issuperset(plain))
        or (bool(frame) and texts[: len(frame)] == frame)  # the same words before the candidate
        or (rivals[0].at == 0 and (gold.number or not verbs))
        or (value and place == 0 and texts[0] in PRONOUNS)  # another date: "She left in 1934."
    )
