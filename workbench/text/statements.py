"""Decide by rules whether an answer states the gold answer that it names.

The words directly before and after the gold answer have to be ones that a statement has there. No
other candidate may stand beside it or in an earlier sentence, and no later text may retract it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.text.gold import (
    CLASS,
    GRAMMAR,
    UNITS,
    VERB,
    WORDS,
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
# Classes of the words that may stand before and after a gold answer (see `_classify`).
_BEFORE = {"start", "comma", "colon", "question", "be", "auxiliary", "preposition", "pronoun"}
_BEFORE |= {"relative", "and", "or", "hedge", "gold"}
_AFTER = {"end", "comma", "be", "auxiliary", "question", "preposition", "verb", "relative", "and"}
_AFTER |= {"or", "hedge", "pronoun", "joiner", "filler", "determiner", "colon", "near", "gold"}
_RELATED = {"noun", "name", "kin", "joiner", "near"}  # before "of" and the gold answer
_APART = {"of", "to", "for", "from", "about", "with"}  # the thing before these is another one
_SKIPPED = {"filler", "determiner", "title"}  # they do not separate a word from its link
_LISTING = {"start", "comma", "colon", "and", "or", "be", "pronoun", "hedge", "joiner", "gold"}
_CHANGES = re.compile(  # the statement about the gold answer (@) is no longer true, or never was
    r"\b(?:former|formerly|previously|once|historically|no longer|used to|ceased|falsely)\b(?=.*@)"
    r"|(?<=@)(?: \S+){0,6} (?:until|no longer|formerly|previously|used to|once|ceased)\b"
    r"|(?<=@)(?: (?:is|are|was|were|has|have|had|do|does|did|been|who|which|can|could|will|would|,(?= who| which)))*"
    r" (?:not|never|no|wrong|lost|loses|beaten|defeated|failed|jr|sr|junior|senior)\b"
    r"|(?<=@) , (?:no|never|wrong|false|not$)\b"
    r"|\b(?:fled|fle|banish|expel|exil|escap|deport|mov|long|wr[io]te?|dream|car)\w* (?:from|about|for|of)(?= @)"
    r"|\b(?:refus|declin|fail|want|wish|hop|plan|try|tri)\w* to\b(?=.*@)"
    r"|\b(?:followed|preceded|succeeded|replaced|inspired|influenced|beaten|defeated)(?= by @)"
)
_BOUNDS = re.compile(  # the number is a bound or part of a larger value
    r"\b(?:to|by|between|till|prior|later|earlier|plus|up to|at most|at least|at best|not|following"
    r"|preceding|(?:half|third|quarter|\w+th|multiple|fraction|square|root) of)(?= @)|(?<=@) and (?:a )?(?:half|quarter)\b|(?<=@) (?:bc|percent|dozens?"
    r"|pairs?|scores?|gross|squared|cubed|times|fold|hundreds?|thousands?|millions?|halves|thirds?"
    r"|quarters?|\w+ths|euros|tonnes|ago|minus|plus)\b"
)
_EVENTS = [  # a sentence with another word of the group than the question does not answer it
    frozenset(group.split())
    for group in ("born died buried raised", "largest smallest", "won lost", "first last second")
]
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
    stating = sentences[at]
    known = {*texts_of(stating)} | gold.known
    small = not any(token.name for token in stating if is_mention(token))
    return (
        not any(map(_is_phrase, (classify(sentence, gold) for sentence in sentences[:at])))
        and not any(candidates(sentence, gold, small) - known for sentence in sentences[:at])
        and _sentence_states(stating, gold)
        and not any(_retracts(later, stating, gold, small) for later in sentences[at + 1 :])
    )


def _is_phrase(classes: Sequence[str]) -> bool:
    """Whether a sentence is only a phrase, such as another guess."""
    stating = {"be", "auxiliary", "verb", "pronoun", "question", "relative", "gold"}
    return stating.isdisjoint(classes) and not {"name", "noun", "number"}.isdisjoint(classes)


def candidates(sentence: Sequence[Token], gold: Gold, small: bool = False) -> set[str]:
    """The words of a sentence without the gold answer that could be another answer.

    Nouns count if the gold answer, or the answer that names it (`small`), has no capital.
    """
    if gold.number:
        denied = _denied(sentence, gold)
        return {
            token.text
            for i, token in enumerate(sentence)
            if is_number(token.text) and token.text not in gold.known and i not in denied
        }
    classes = classify(sentence, gold)
    nouns = small or not gold.named or not any(token.text in GRAMMAR for token in sentence)
    wanted = {"name", "noun", "kin"} if nouns else {"name"}
    return {token.text for token, found in zip(sentence, classes, strict=True) if found in wanted}


def classify(sentence: Sequence[Token], gold: Gold) -> list[str]:
    """The class of each word: a class of `grammar.txt`, or one of these.

    "gold" and "question" (a word of it), "denied", "comma", "colon", "title" (before a name),
    "number", "verb", "name" and "noun" (every other word).
    """
    denied = _denied(sentence, gold)
    classes = []
    for i, token in enumerate(sentence):
        text, following = token.text, sentence[i + 1] if i + 1 < len(sentence) else Token("")
        if is_mention(token):
            found = "gold"
        elif i in denied:
            found = "denied"
        elif text in (",", ":"):
            found = "comma" if text == "," else "colon"
        elif text in gold.known - GRAMMAR:
            found = "question"
        elif text in CLASS and not is_letter(token) and CLASS[text] != "kind":
            found = CLASS[text]
            if found == "preposition" and classes[-1:] == ["joiner"]:
                found = "joiner"  # "along with"
        elif text in TITLES and (following.name or is_mention(following)):
            found = "title"
        elif re.match(f"[{CJK}]", text) or (text.endswith("ly") and not (token.name and i)):
            found = "filler"
        elif text[0].isdigit():
            found = "number"
        elif _is_verb(sentence, i, gold):
            found = "verb"
        elif DEMONYM.fullmatch(text) and not gold.people:
            found = "filler"
        else:
            found = "name" if token.name else "noun"
        classes.append(found)
    return classes


def _is_verb(sentence: Sequence[Token], i: int, gold: Gold) -> bool:
    """Whether the word at `i` may be a verb, by its form."""
    token = sentence[i]
    if not VERB.fullmatch(token.text) or (token.name and (i or token.article)):
        return False
    gerunds = not gold.named and any(form[-1].endswith("ing") for form in gold.forms)
    before = CLASS.get(sentence[i - 1].text) if i else "hedge"  # "maybe Paris"
    return not (token.text.endswith("s") and before in ("hedge", "or", "revision")) and not (
        gerunds and token.text.endswith("ing")
    )


def _denied(sentence: Sequence[Token], gold: Gold) -> set[int]:
    """The indices of negated words: those after a negation, up to the end of its clause.

    "Anything but Vetra" negates Vetra; "if not Vetra" and "not only Vetra" do not.
    """
    texts = [token.text for token in sentence]
    denied, scope = set(), False
    for i, (text, after) in enumerate(zip(texts, [*texts[1:], ""], strict=True)):
        if text == "but":
            scope = texts[i - 1 : i] in (["anything"], ["everything"], ["nothing"])
        elif scope and text in (",", ":", "it", "he", "she"):
            scope = text == "," and after in ("or", "nor", "and")
        elif text == "instead" and after != "of":
            continue
        elif text in WORDS["negation"] - gold.known and after not in (",", "only", "just", "wait"):
            scope = scope or texts[i - 1 : i] != ["if"]
        if scope:
            denied.add(i)
    return denied


def _sentence_states(sentence: list[Token], gold: Gold) -> bool:
    """Whether a sentence with a gold answer states that answer."""
    classes = classify(sentence, gold)
    places = [i for i, token in enumerate(sentence) if is_mention(token)]
    text = " ".join("@" if is_mention(token) else token.text for token in sentence)
    changed = [*_CHANGES.finditer(text), *(_BOUNDS.finditer(text) if gold.number else ())]
    own = gold.question - WORDS["be"] - WORDS["auxiliary"] - WORDS["relative"]
    if any(own.isdisjoint(match[0].split()) for match in changed):
        return False
    if any(gold.known & one and {*text.split()} & one - gold.known for one in _EVENTS):
        return False
    if not _denied(sentence, gold).isdisjoint(places):
        return False
    verbs = [
        token.text
        for token, found in zip(sentence, classes, strict=True)
        if found in ("be", "verb") and not token.name
    ]
    breaks = {"and", "comma", "colon", "relative", "pronoun", "joiner"}
    if len({*verbs}) < len(verbs) and breaks.isdisjoint(classes):
        return False  # "Lyon lies in Rome lies in Paris"
    if "or" in classes or _CJK_LIST.search("".join(token.text for token in sentence)):
        return False
    rivals = _other_number if gold.number else _other_name
    return all(_stands(sentence, classes, place, gold) for place in places) and not rivals(
        sentence, classes, places[0], gold
    )


def _link(classes: Sequence[str], at: int) -> int:
    """The index of the word that links a word to the sentence; -1 for the start."""
    at -= 1
    while at >= 0 and classes[at] in _SKIPPED:
        at -= 1
    return at


def _has_article(sentence: Sequence[Token], classes: Sequence[str], start: int, end: int) -> bool:
    """Whether an article or another determiner stands among some words."""
    return any(classes[i] == "determiner" or sentence[i].article for i in range(start, end))


def _stands(sentence: Sequence[Token], classes: Sequence[str], place: int, gold: Gold) -> bool:
    """Whether the words next to a gold answer leave it whole and do not change it.

    "New York", "the mayor of Paris", "hated Paris", "page 1889" and "1889 feet" change it.
    """
    following = sentence[place + 1] if place + 1 < len(sentence) else Token(",")
    at = place - 1
    while at >= 0 and (classes[at] in _SKIPPED or (sentence[place].name and classes[at] == "noun")):
        at -= 1
    link = classes[at] if at >= 0 else "start"
    linked = link in ("preposition", "be") or _has_article(sentence, classes, at + 1, place)
    if "noun" in classes[at + 1 : place] and not linked:
        return False  # "rival Heath Ledger"; but "the actor Heath Ledger"
    kin = gold.question & WORDS["kin"]
    titles = {word for form in gold.forms for word in form if word in TITLES}
    given = {token.text for token in sentence[at + 1 : place]} & TITLES
    if titles and not given <= titles and not titles & {*sentence[place].text[1:].split()}:
        return False
    if gold.number and sentence[place].text[1:].split()[0] in WORDS["preposition"]:
        link = "preposition"  # "in 1902" is the gold answer
    if sentence[place].article and following.text == "of" and not gold.number:
        return False  # "the Rome of the north"
    if at > 0 and sentence[at].text in _APART - (gold.question - {"of"}) and not gold.number:
        head = _link(classes, at)
        own = sentence[at - 1].text in WORDS["generic"] or (classes[head] == "kin" and kin)
        if head >= 0 and classes[head] in _RELATED and not own:
            return False  # "the mayor of Paris"; but "the city of Paris"
    passed = _BEFORE | {"verb"} if gold.number else _BEFORE
    if link not in passed and sentence[at].text not in gold.question | {"but", "so"}:
        return False
    after = classes[place + 1] if place + 1 < len(sentence) else "end"
    if gold.number and following.text in UNITS and after != "question":
        return False
    if following.text in WORDS["kind"] and following.name and following.text != gold.kind:
        return False
    return after in _AFTER or (gold.number and gold.counted and after in ("noun", "generic", "kin"))


def _other_name(sentence: Sequence[Token], classes: Sequence[str], place: int, gold: Gold) -> bool:
    """Whether a sentence names another candidate beside the gold answer at `place`.

    If the gold answer has no capital, every noun may be a candidate.
    """
    fragment = "comma" in classes and {"verb", "be", "auxiliary", "question"}.isdisjoint(classes)
    wanted = {"name"}
    if fragment or not sentence[place].name:
        wanted |= {"noun", "kin"}
    letters = "".join(word[0] for word in sentence[place].text[1:].split())
    listed = False  # whether the last candidate stands in one list with the gold answer
    for i, (token, found) in enumerate(zip(sentence, classes, strict=True)):
        if found not in wanted or (i and classes[i - 1] == found == "name"):
            continue
        if i < place and _is_rival_before(sentence, classes, i, place):
            return True
        if i < place or "whose" in texts_of(sentence[place:i]):
            continue
        at = _link(classes, i)
        beside = {*classes[place + 1 : at + 1]} in ({"comma"}, {"and"})
        if beside and classes[at] == "comma" and _abbreviates(token.text, letters):
            continue
        inherits = classes[at] == "and" or (classes[at] == "comma" and not fragment)
        listed = beside or listed if inherits else classes[at] in _LISTING
        described = found != "name" or classes[i + 1 : i + 2] == ["noun"]
        if classes[at] == "relative":
            listed = "verb" not in classes[i + 1 :]
        apposed = described and _has_article(sentence, classes, at + 1, i + 1)
        if listed and not (apposed and classes[at] in ("comma", "be", "relative")):
            return True
    return False


def _abbreviates(text: str, letters: str) -> bool:
    """Whether a word may stand for a name with these initials: "Helium (He)"."""
    return letters.startswith(text) or (len(text) < 4 and text[0] == letters[0])


def texts_of(tokens: Sequence[Token]) -> list[str]:
    return [token.text for token in tokens]


def _is_rival_before(sentence: Sequence[Token], classes: Sequence[str], i: int, place: int) -> bool:
    """Whether the candidate at `i` competes with the gold answer behind it.

    It does not if it is the subject ("Ana Bo was born in Vetra") or belongs to another word ("the
    capital of Karsia is Vetra").
    """
    between, mention = classes[i + 1 : place], sentence[place]
    names = (word.text[0] for word in sentence[:place] if word.name)
    if "".join(names).endswith(mention.text[1:]):
        return False  # "World Health Organization (WHO)"
    if not {"and", "joiner", "relative", "pronoun", "colon"}.isdisjoint(between):
        return True
    clause = (
        between[len(between) - between[::-1].index("comma") :] if "comma" in between else between
    )
    if "comma" in between and not ({"be", "question"} & {*clause} or classes[0] == "preposition"):
        return True
    hedged = (
        between[len(between) - between[::-1].index("hedge") :] if "hedge" in between else clause
    )
    verbs = {"verb", "question", "auxiliary", "noun"} & {*clause}
    if {"verb", "question", "noun"}.isdisjoint(hedged) and "hedge" in between:
        return True
    if classes[_link(classes, i)] not in _LISTING and _link(classes, i) >= 0:
        return False
    if classes[i] == "noun" and _has_article(sentence, classes, max(0, i - 1), i + 1):
        return False
    described = verbs or _has_article(sentence, classes, i + 1, place)
    return not (
        (described and classes[_link(classes, place)] == "preposition")
        or (mention.article and not mention.name and "be" in clause)
    )


def _other_number(
    sentence: Sequence[Token], classes: Sequence[str], place: int, gold: Gold
) -> bool:
    """Whether a sentence has another number of the same kind before the gold number, or next to it.

    The kinds are years, and all other numbers.
    """
    texts = texts_of(sentence)
    year = _is_year(next(word for word in texts[place][1:].split() if is_number(word)))
    for i, text in enumerate(texts):
        if i == place or not is_number(text) or is_mention(sentence[i]) or text in gold.question:
            continue
        if _is_year(text) != year and abs(i - place) > 2:
            continue
        apart = {"noun", "verb", "question", "name"} & {*classes[place + 1 : i]}
        if i < place or not apart or place == 0:
            return True
    return False


def _is_year(text: str) -> bool:
    return bool(re.fullmatch(r"[12]\d{3}(s|(-\d\d)*)", text))


def _retracts(later: Sequence[Token], stating: Sequence[Token], gold: Gold, small: bool) -> bool:
    """Whether a later sentence replaces the gold answer with another candidate or denies it."""
    texts, classes = texts_of(later), classify(later, gold)
    mentioned = {i for i, token in enumerate(later) if is_mention(token)}
    if mentioned:
        return not _denied(later, gold).isdisjoint(mentioned) or "used to" in " ".join(texts)
    known = {*texts_of(stating)} - GRAMMAR
    if _is_phrase(classes):
        return True  # "Lomar."
    rivals = candidates(later, gold, small) - known
    if not rivals:
        return False
    place = next(i for i, token in enumerate(stating) if is_mention(token))
    frame = texts_of(stating[:place])
    if (
        not WORDS["revision"].union(WORDS["hedge"], WORDS["or"], ["another"]).isdisjoint(texts)
        or not ({*texts} - rivals - GRAMMAR or {"be", "auxiliary"} & {*classes})  # "Or Lomar."
        or texts[0] in known  # the same subject again
        or (bool(frame) and texts[: len(frame)] == frame)  # the same words before the candidate
        or not rivals.isdisjoint(gold.question)  # the other alternative of the question
    ):
        return True
    dated = gold.number and place == 0 and classes[0] == "pronoun"
    for i, text in enumerate(texts):
        link = classes[at] if (at := _link(classes, i)) >= 0 else "start"
        if text in rivals and (
            dated
            or link in ("be", "joiner")
            or text in MONTHS
            or text.endswith("day")
            or (link == "start" and (gold.number or {"noun", "verb"}.isdisjoint(classes)))
        ):
            return True
    return False
