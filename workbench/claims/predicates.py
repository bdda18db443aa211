"""Turn one subject and one predicate into claims: lists, examples, appositions and adjuncts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.claims import english
from workbench.claims.adjuncts import TEMPORAL, adjuncts
from workbench.claims.examples import examples
from workbench.claims.leads import all_led, is_free, led
from workbench.claims.lists import alternatives, items, listed
from workbench.claims.parts import speaks
from workbench.claims.places import people_of
from workbench.claims.shorter import head, spread


def predicate(subject: str, said: str, lead: str = "") -> Iterator[str]:
    """Yield the claims of one subject and one predicate.

    The introduction `lead` goes with the first claim, or with all claims that need it. Denied
    or restricted predicates ("never won A and B", "only in films") are not split.
    """
    said = said.strip(" ,")
    tokens = list(english.TOKEN.finditer(english.blank(said)))
    words = [token[0] for token in tokens]
    reported = any(speaks(words, i) for i in range(min(len(words), 6))) or (
        _REPORTING.match(said) and " that " in said
    )
    if (
        _DENIED.search(english.blank(said))
        or reported
        or "; " in said
        or (_MANY.match(subject) and not said.startswith("include"))
    ):
        yield led(f"{subject} {said}", subject, lead)
        return
    head = _verb_group(words)
    group = said[: tokens[head - 1].end()]
    if _other_verb(words[head:]):
        yield led(f"{subject} {said}", subject, lead)
        return
    rest, aside = _named(
        said[len(group) :].strip(),
        "is" if re.match(r"(?:is|are|has|have|(?!was)\w+s)\b", said) else "was",
    )
    apart = re.search(
        r",(?! [A-Z])|\b(?:that|which|who|to [a-z]+|because|when|while|earlier|later)\b", rest
    )
    dated = (
        f"{lead[0].lower()}{lead[1:]}"
        if TEMPORAL.fullmatch(lead) and is_free(lead) and not apart
        else ""
    )
    copular = words[0] in english.COPULAS or {"be", "been"} & set(words[:head])
    if copular and words[head - 1] in english.COPULAS | english.ADVERBS | {"be", "been"}:
        claims, dated = list(_complements(subject, group, rest)) + aside, ""
    else:
        claims = [
            f"{subject} {group} {piece}"
            for piece in _objects(group, words[head - 1 : head], rest, dated)
        ] + aside
    if lead and not dated:
        claims = all_led(claims, subject, lead)
    yield from claims


# Quantified subjects (the predicate need not hold for each) and words that are not subjects
_MANY = re.compile(
    r"(?:All|Most|Some|Many|Several|Half|Both|Each|Few|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten"
    r"|\d{1,3}(?:,\d{3})*)\b(?![ –-]\d)"
    r"|There\b|(?:North|South|East|West|Next|Close) (?:of|to)\b"
    r"|(?:Among|In|On|At|Under|Between|Behind|Near|Here|Of|From|With)\b",
    re.I,
)
_REPORTING = re.compile(
    r"(?:\w+ly )?(?:declared|announced|claimed|stated|wrote|said|argued|reported|revealed|told"
    r"|noted|explained)\b"
)


def _other_verb(words: list[str]) -> bool:
    """Whether a second finite verb follows outside a subordinate clause: the split missed a
    statement.
    """
    until = next(
        (
            i
            for i, word in enumerate(words)
            if word in ("that", "which", "who", "whom", "whose", "where", "when")
        ),
        None,
    )
    return any(
        word in english.AUXILIARIES
        or (0 < i < len(words) - 1 and words[i - 1] in ("and", "but", ",") and _is_action(words, i))
        for i, word in enumerate(words[:until])
    )


def _is_action(words: list[str], i: int) -> bool:
    """Whether a further predicate begins at `i`: "flows through", "and empties into"."""
    word, after = words[i], words[i + 1]
    named = after[0].isupper() and words[i - 1] != ","  # "and stars Ana Bo"
    inflected = re.fullmatch(r"[a-z]{2,}[^s]s", word) and (after in _BEHIND_VERBS or named)
    bare = (
        words[i - 1] != ","
        and word.isalpha()
        and word.islower()
        and word not in _NO_BARE
        and after in _OBJECTS
    )
    return bool(
        inflected
        or (bare and not word.endswith(("s", "ly", "ing")))
        or (english.is_verb(words, i) and word not in english.NOUNS)
    )


_NO_BARE = (
    english.DETERMINERS
    | english.PREPOSITIONS
    | english.ADVERBS
    | english.NUMBERS
    | {"not", "more", "most", "all"}
)
_OBJECTS = frozenset("them him us it you the a an his its their your".split())  # "and inspire them"
_BEHIND_VERBS = frozenset("into through to from the a an his her its their them him".split())


_DENIED = re.compile(
    r"\b(?:not|never|no|nor|neither|nobody|nothing|none|cannot|without|hardly|barely|rarely|seldom|only|except|unless"
    r"|rather than"
    r"|instead of|either|if|whether)\b|n['’]t\b"
)


def _named(rest: str, copula: str) -> tuple[str, list[str]]:
    """Split off the apposition to a name at the end, as claims: "Ana Bo, a painter and poet"."""
    match = re.fullmatch(r"(.*?)((?<!\S)[A-Z][\w'’.-]*(?: [A-Z][\w'’.-]*)*), (an? .+)", rest)
    if (
        not match
        or re.search(r"(?:,| and|[A-Z][\w'’.-]* (?:of|at|in|for|de|von)) $", match[1])
        or re.search(r"\b(?:and|including|such as)\b", match[1])
    ):
        return rest, []
    said = items(match[3])
    if any(
        "," in one or " and " in one or (len(said) > 1 and not english.AGENTS.search(one))
        for one in said
    ):
        return rest, []
    return f"{match[1]}{match[2]}", [
        claim for one in said for claim in _being(match[2], copula, english.article(one))
    ]


def _verb_group(words: list[str]) -> int:
    """Return the number of verbs and adverbs at the start of a predicate."""
    i = 0
    while i < len(words) and (i == 0 or _goes_on(words, i)):
        i += 1
    while words[i : i + 1] in (["and"], ["or"], [","]) and i + 1 < len(words):
        if not _PARTICIPLE.search(words[i + 1]):
            break
        i += 2  # "was arrested and charged with": both, with what follows
    return i


def _goes_on(words: list[str], i: int) -> bool:
    """Whether word `i` continues the verb group before it."""
    word, before = words[i], words[i - 1]
    if word in english.ADVERBS | english.AUXILIARIES or english.is_verb(words, i):
        return True
    if before in english.MODALS | {"did", "does", "do"}:
        return True
    if before in _HELPING and word.endswith(_PARTICIPLES):
        return True
    if word in ("since", "be", "been"):
        return before in english.AUXILIARIES | english.ADVERBS
    if i > 1 and words[i - 2] in english.AUXILIARIES and _PARTICIPLE.search(word):
        return True  # "has since written"
    after = words[i + 1] if i + 1 < len(words) else ""
    return word.endswith("ly") and bool(_PARTICIPLE.search(after))


_PARTICIPLES = ("ed", "en", "wn", "rn", "done", "gone", "made", "held", "built")


_HELPING = english.AUXILIARIES | english.ADVERBS | {"be", "been", "being"}
_PARTICIPLE = re.compile(r"(?:ed|en|wn|rn|ung|ote|ade|old|ught)$")


_MODIFIER = re.compile(
    r",? (?<!most )(?<!best )(?<!well )(?<!widely )(?=(?:known for|born (?:in|on|to)|based"
    r" (?:in|on|at)|(?:most "
    r")?(?:best|most|well|widely)[- ]known (?:for|as)|(?:most |best |widely |well )?(?:famous|noted"
    rf"|renowned) for|(?<!ed )(?<!ly )from(?= [A-Z])(?! {english.MONTH}))\b)"
)
_BOUND = re.compile(r"\b(?:that|which|who|whose|because|where|when|to [a-z]+)\b")
_PREPOSITION = re.compile(rf"(?:{'|'.join(english.PREPOSITIONS)})\b ")
_FIRST_PART = re.compile(r"(?=\s(?:of|in|for|at|with|to|on|by|that|as)\b)")


def _complements(subject: str, copula: str, rest: str) -> Iterator[str]:
    """Yield the claims of "is …": each list item, and each modifier after it."""
    if alternatives(rest):
        yield f"{subject} {copula} {rest}"
        return
    what, *modifiers = (
        [rest] if _UNIQUE.search(rest) or _BOUND.search(rest) else _MODIFIER.split(rest)
    )
    first = _FIRST_PART.split(what, maxsplit=1)[0]
    of = what[len(first) :]
    parts = items(first)
    compound = re.fullmatch(r"[a-z-]+ [a-z-]+", parts[-1])
    together = compound and not english.AGENTS.search(parts[-1])
    if len(parts) > 1 and (together or _PARTED.search(parts[0])):
        parts = [first]  # "a snail having a shell, a head, and legs"
    plain = not _PREPOSITION.match(what) and re.match(r"(?:an?|the|one) ", first)
    if (
        plain
        and len(parts) > 1
        and (len(parts) > 2 or english.AGENTS.search(parts[0].split(",")[0]))
    ):
        # "the founder and director of a bank"
        shared = of if first.startswith("the ") or _OFFICES.search(parts[0]) else ""
        for item in parts[:-1]:
            yield from _being(subject, copula, f"{_articled(first, item)}{shared}")
        yield from _being(subject, copula, f"{_articled(first, parts[-1])}{of}")
    elif plain:
        yield from _plain(subject, copula, what)
    elif what:
        where = _PREPOSITION.match(what)  # "is in Oslo since May": "is since May" would say nothing
        yield from (
            f"{subject} {copula} {piece}"
            for piece in (listed(what) if where else _objects(copula, [], what))
        )
    for modifier in modifiers:
        verb = "was" if modifier.startswith("born") else copula.split()[0]
        yield from predicate(subject, f"{verb} {modifier}")


_PARTED = re.compile(
    r" \w+ing (?:an?|the|\w+s)\b| (?:starr|featur|depict|portray|involv|compris|follow|show)ing"
    r" [A-Z]"
)
_UNIQUE = re.compile(r"the (?:first|only|last|\w+est|most|best)\b")
_OFFICES = re.compile(
    r"\b(?:(?:co-)?founder|president|chair\w*|director|head|leader|owner|editor|creator|author|host|member|ceo"
    r"|secretary|captain"
    r"|manager)s?$",
    re.I,
)


def _articled(first: str, item: str) -> str:
    return (
        f"the {item}"
        if first.startswith("the ") and not item.startswith(("the ", "a ", "an "))
        else english.article(item)
    )


def _plain(subject: str, copula: str, what: str) -> Iterator[str]:
    """Yield the claims of a complement without a list of nouns: "a painter of ships"."""
    if pieces := examples("", what):
        yield from (f"{subject} {copula} {piece}" for piece in pieces)
        return
    whole = re.search(r"\b(?:that|which|who|whose|where|,)", what) or _UNIQUE.match(what)
    if whole or not re.search(
        r" (?:of|for|to) [^,]*,? and (?:the )?[A-Z]| (?:of|for|to) (?:[A-Z]|the [A-Z])", what
    ):
        yield from _being(subject, copula, what)
    else:
        pieces = listed(what)
        for piece in pieces:
            yield from _being(subject, copula, piece)


def _being(subject: str, copula: str, what: str) -> Iterator[str]:
    """ "is a Brazilian footballer" says two things."""
    # "It is an Italian bestseller"
    named = None if subject in ("It", "it", "This", "That") else people_of(what)
    if named:
        yield f"{subject} {copula} {named[0]}"
    yield f"{subject} {copula} {named[1] if named else what}"


_JOINING = re.compile(
    r"(?:blend|mix|combin|merg|unit|fus|alternat|balanc|connect|compar|separat|divid|link)(?:e?d|e?s|ing)$"
)
_MOSTLY = re.compile(r"^(?:\w+ )?(?:mostly|mainly|chiefly|largely|primarily|especially)\b")
_MEETING = frozenset("met married taught knew befriended coached defeated beat fought".split())


def _objects(group: str, verb: list[str], rest: str, lead: str = "") -> Iterator[str]:
    """Split what follows a verb into parts that can follow it: examples, lists and adjuncts."""
    last = verb[0] if verb else ""
    if any(map(_JOINING.match, group.split())) or _MOSTLY.search(f"{last} {rest}"):
        yield f"{rest} {lead}".strip()  # "blended jazz and rock"
        return
    if alternatives(rest):
        yield f"{rest} {lead}".strip()
        return
    if pieces := examples(last, rest):
        yield from _objects(group, verb, pieces[0], lead)
        yield from pieces[1:]
        return
    if re.search(r"\b(?:including|namely)\b", rest):
        yield f"{rest} {lead}".strip()
        return
    core, behind = (rest, []) if last in english.JUDGED else adjuncts(last, rest)
    if first := head(rest):
        yield first
    for piece in spread(last, rest, core, behind, lead):
        yield from listed(piece, people=last in _MEETING and not behind)
