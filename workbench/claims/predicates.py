"""Split one predicate into claims: at lists, examples, appositions and adjuncts."""

import re
from collections.abc import Iterator

from workbench.claims.adjuncts import TEMPORAL, adjuncts, all_led, is_free, led, spread
from workbench.claims.english import (
    ADVERBS,
    AGENTS,
    AUXILIARIES,
    CONJOINING,
    COPULAS,
    DETERMINERS,
    JUDGED,
    MONTH,
    NOUNS,
    NUMBERS,
    PREPOSITION,
    PREPOSITIONS,
    article,
    blank,
    is_verb,
    tokens_of,
    word_at,
)
from workbench.claims.examples import examples
from workbench.claims.lists import alternatives, items, listed
from workbench.claims.parts import speaks
from workbench.claims.places import people_of
from workbench.util.patterns import regex


def predicate(subject: str, text: str, lead: str = "") -> Iterator[str]:
    """Yield the claims that a predicate makes about its subject.

    "Ana", "is a painter and poet" → "Ana is a painter", "Ana is a poet". A predicate with a denial
    or restriction ("never won A and B", "only in films") is not split.

    Args:
        subject: the subject, such as "Ana".
        text: the predicate.
        lead: the introduction of the sentence, which is the phrase before the subject ("In 1998"),
            or "". It is added to claims that may be false without it.
    """
    text = text.strip(" ,")
    tokens = tokens_of(text)
    words = [token[0] for token in tokens]
    reported = any(speaks(words, i) for i in range(min(len(words), 6))) or (
        _REPORTING.match(text) and " that " in text
    )
    quantified = _QUANTIFIED.match(subject) and not text.startswith("include")
    head = _verb_group(words)  # words of the verb and its adverbs
    if (
        quantified
        or reported
        or _DENIED.search(blank(text))
        or "; " in text
        or _other_verb(words[head:])
    ):
        yield led(f"{subject} {text}", subject, lead)
        return
    group = text[: tokens[head - 1].end()]
    rest, apposition = _apposed_name(
        text[len(group) :].strip(),
        "is" if re.match(r"(?:is|are|has|have|(?!was)\w+s)\b", text) else "was",
    )
    clausal = re.search(
        r",(?! [A-Z])|\b(?:that|which|who|to [a-z]+|because|when|while|earlier|later)\b", rest
    )
    date = ""  # a date in the introduction that can follow the verb
    if TEMPORAL.fullmatch(lead) and is_free(lead) and not clausal:
        date = f"{lead[0].lower()}{lead[1:]}"
    be = {"be", "been"}
    copular = words[0] in COPULAS or be.intersection(words[:head])
    if copular and words[head - 1] in COPULAS | ADVERBS | be:
        claims, date = [*_complements(subject, group, rest), *apposition], ""
    else:
        objects = _objects(group, words[head - 1 : head], rest, date)
        claims = [*(f"{subject} {group} {piece}" for piece in objects), *apposition]
    if lead and not date:
        claims = all_led(claims, subject, lead)
    yield from claims


# Quantified subjects (the predicate need not hold for each) and words that are not subjects
_QUANTIFIED = regex(
    r"(?i)(?:All|Most|Some|Many|Several|Half|Both|Each|Few|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten"
    r"|\d{1,3}(?:,\d{3})*)\b(?![ –-]\d)|There\b|(?:North|South|East|West|Next|Close) (?:of|to)\b"
    r"|(?:Among|In|On|At|Under|Between|Behind|Near|Here|Of|From|With)\b"
)
_REPORTING = regex(
    r"(?:\w+ly )?(?:declared|announced|claimed|stated|wrote|said|argued|reported|revealed|told"
    r"|noted|explained)\b"
)


def _other_verb(words: list[str]) -> bool:
    """Whether `words`, the text after a verb, have another finite verb in the same clause."""
    for i, word in enumerate(words):
        if word in ("that", "which", "who", "whom", "whose", "where", "when"):
            return False
        further = 0 < i < len(words) - 1 and words[i - 1] in CONJOINING
        if word in AUXILIARIES or (further and _is_action(words, i)):
            return True
    return False


def _is_action(words: list[str], i: int) -> bool:
    """Whether a further predicate begins at `i`: "flows through", "and empties into"."""
    word, after = words[i], words[i + 1]
    named = after[0].isupper() and words[i - 1] != ","  # "and stars Ana Bo"
    inflected = re.fullmatch(r"[a-z]{2,}[^s]s", word) and (after in _BEHIND_VERBS or named)
    bare = words[i - 1] != "," and word.isalpha() and word.islower() and after in _OBJECTS
    infinitive = bare and word not in _NO_VERBS and not word.endswith(("s", "ly", "ing"))
    return bool(inflected or infinitive or (is_verb(words, i) and word not in NOUNS))


_NO_VERBS = DETERMINERS.union(PREPOSITIONS, ADVERBS, NUMBERS, "not more most all".split())
_OBJECTS = frozenset("them him us it you the a an his its their your".split())  # "and inspire them"
_BEHIND_VERBS = frozenset("into through to from the a an his her its their them him".split())


_DENIED = regex(
    r"\b(?:not|never|no|nor|neither|nobody|nothing|none|cannot|without|hardly|barely|rarely|seldom"
    r"|only|except|unless|rather than|instead of|either|if|whether)\b|n['’]t\b"
)


def _apposed_name(rest: str, copula: str) -> tuple[str, list[str]]:
    """Return `rest` without the apposition at its end, and the claims that the apposition makes.

    "met Ana Bo, a painter and poet" → "Ana Bo is a painter", "Ana Bo is a poet".
    """
    match = re.fullmatch(r"(.*?)((?<!\S)[A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*)*), (an? .+)", rest)
    if (
        not match
        or re.search(r"(?:,| and|[A-Z][\w'’.-]* (?:of|at|in|for|de|von)) $", match[1])
        or re.search(r"\b(?:and|including|such as)\b", match[1])
    ):
        return rest, []
    nouns = items(match[3])
    if any(
        "," in noun or " and " in noun or (len(nouns) > 1 and not AGENTS.search(noun))
        for noun in nouns
    ):
        return rest, []
    return f"{match[1]}{match[2]}", [
        claim for noun in nouns for claim in _being(match[2], copula, article(noun))
    ]


def _verb_group(words: list[str]) -> int:
    """Return how many words at the start of a predicate form its verb: 3 for "has since won it"."""
    i = 0
    while i < len(words) and (i == 0 or _continues(words, i)):
        i += 1
    while words[i : i + 1] in (["and"], ["or"], [","]) and i + 1 < len(words):
        if not _PARTICIPLE.search(words[i + 1]):
            break
        i += 2  # "was arrested and charged with": the object belongs to both verbs
    return i


def _continues(words: list[str], i: int) -> bool:
    """Whether word `i` continues the verb group before it."""
    word, before = words[i], words[i - 1]
    helped = before in _HELPING
    if word in _HELPING or is_verb(words, i) or (helped and word.endswith(_PARTICIPLES)):
        return True
    if word in ("since", "be", "been"):
        return helped
    if i > 1 and words[i - 2] in AUXILIARIES and _PARTICIPLE.search(word):
        return True  # "has since written"
    return word.endswith("ly") and bool(_PARTICIPLE.search(word_at(words, i + 1)))


_PARTICIPLES = ("ed", "en", "wn", "rn", "done", "gone", "made", "held", "built")


_HELPING = AUXILIARIES | ADVERBS
_PARTICIPLE = regex(r"(?:ed|en|wn|rn|ung|ote|ade|old|ught)$")


_MODIFIER = regex(
    r",? (?<!most )(?<!best )(?<!well )(?<!widely )(?=(?:known for|born (?:in|on|to)|based"
    r" (?:in|on|at)|(?:most "
    r")?(?:best|most|well|widely)[- ]known (?:for|as)|(?:most |best |widely |well )?(?:famous|noted"
    rf"|renowned) for|(?<!ed )(?<!ly )from(?= [A-Z])(?! {MONTH}))\b)"
)
_BOUND = regex(r"\b(?:that|which|who|whose|because|where|when|to [a-z]+)\b")
_PREPOSITION = regex(rf"{PREPOSITION}\b ")
_FIRST_PART = regex(r"(?=\s(?:of|in|for|at|with|to|on|by|that|as)\b)")


def _complements(subject: str, copula: str, rest: str) -> Iterator[str]:
    """Yield the claims of "is …": one for each list item, and one for each modifier after the list.

    The modifiers are phrases such as "known for …" and "born in …".
    """
    if alternatives(rest):
        yield f"{subject} {copula} {rest}"
        return
    what, *modifiers = (
        [rest] if _UNIQUE.search(rest) or _BOUND.search(rest) else _MODIFIER.split(rest)
    )
    first = _FIRST_PART.split(what, maxsplit=1)[0]
    of = what[len(first) :]
    parts = items(first)
    together = re.fullmatch(r"[a-z-]+ [a-z-]+", parts[-1]) and not AGENTS.search(parts[-1])
    if len(parts) > 1 and (together or _PARTED.search(parts[0])):
        parts = [first]  # "a snail having a shell, a head, and legs"
    plain = not _PREPOSITION.match(what) and re.match(r"(?:an?|the|one) ", first)
    if plain and len(parts) > 1 and (len(parts) > 2 or AGENTS.search(parts[0].split(",")[0])):
        # "the founder and director of a bank"
        shared = of if first.startswith("the ") or _OFFICES.search(parts[0]) else ""
        for item in parts[:-1]:
            yield from _being(subject, copula, f"{_articled(first, item)}{shared}")
        yield from _being(subject, copula, f"{_articled(first, parts[-1])}{of}")
    elif plain:
        yield from _plain(subject, copula, what)
    elif what:
        yield from (f"{subject} {copula} {piece}" for piece in listed(what))
    for modifier in modifiers:
        verb = "was" if modifier.startswith("born") else copula.split()[0]
        yield from predicate(subject, f"{verb} {modifier}")


_PARTED = regex(
    r" \w+ing (?:an?|the|\w+s)\b| (?:starr|featur|depict|portray|involv|compris|follow|show)ing"
    r" [A-Z]"
)
_UNIQUE = regex(r"the (?:first|only|last|\w+est|most|best)\b")
_OFFICES = regex(
    r"(?i)\b(?:(?:co-)?founder|president|chair\w*|director|head|leader|owner|editor|creator|author|host"
    r"|member|ceo|secretary|captain|manager)s?$"
)


def _articled(first: str, item: str) -> str:
    return (
        f"the {item}"
        if first.startswith("the ") and not item.startswith(("the ", "a ", "an "))
        else article(item)
    )


def _plain(subject: str, copula: str, what: str) -> Iterator[str]:
    """Yield the claims of "is …" with a complement that is not a list: "is a painter of ships"."""
    if pieces := examples("", what):
        yield from (f"{subject} {copula} {piece}" for piece in pieces)
        return
    whole = re.search(r"\b(?:that|which|who|whose|where|,)", what) or _UNIQUE.match(what)
    if whole or not re.search(
        r" (?:of|for|to) [^,]*,? and (?:the )?[A-Z]| (?:of|for|to) (?:[A-Z]|the [A-Z])", what
    ):
        yield from _being(subject, copula, what)
    else:
        for piece in listed(what):
            yield from _being(subject, copula, piece)


def _being(subject: str, copula: str, what: str) -> Iterator[str]:
    """Yield the claim "`subject` `copula` `what`", or two claims if it states a nationality.

    "is a Brazilian footballer" → "is Brazilian", "is a footballer".
    """
    # not for "It is an Italian bestseller"
    people = None if subject in ("It", "it", "This", "That") else people_of(what)
    for complement in people or (what,):
        yield f"{subject} {copula} {complement}"


_JOINING = regex(
    r"(?:blend|mix|combin|merg|unit|fus|alternat|balanc|connect|compar|separat|divid|link)(?:e?d|e?s|ing)$"
)
_MEETING = frozenset("met married taught knew befriended coached defeated beat fought".split())


def _objects(group: str, verb: list[str], rest: str, lead: str) -> Iterator[str]:
    """Yield the texts that can follow the verb in a claim: one for each example, item or adjunct.

    Args:
        group: the verb with its auxiliaries and adverbs.
        verb: the last word of `group`, in a list; [] without a verb.
        rest: the text after the verb.
        lead: a date from the introduction of the sentence, or "".
    """
    last = verb[0] if verb else ""
    # "blended jazz and rock"
    if any(map(_JOINING.match, group.split())) or alternatives(rest):
        yield f"{rest} {lead}".strip()
        return
    if pieces := examples(last, rest):
        yield from _objects(group, verb, pieces[0], lead)
        yield from pieces[1:]
        return
    core, phrases = (rest, []) if last in JUDGED else adjuncts(last, rest)
    for piece in spread(last, rest, core, phrases, lead):
        yield from listed(piece, people=last in _MEETING and not phrases)
