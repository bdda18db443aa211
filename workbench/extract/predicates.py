"""One subject and one predicate into claims, by rules: lists, examples, appositions and adjuncts each on their own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.extract import english


def predicate(subject: str, said: str, lead: str = "") -> Iterator[str]:
    """The claims of one subject and one predicate; what led the sentence in is kept with the first."""
    said = said.strip(" ,")
    tokens = list(english.TOKEN.finditer(said))
    words = [token[0] for token in tokens]
    head = _verb_group(words)
    group = said[: tokens[head - 1].end()] if head else ""
    rest, aside = _named(said[len(group) :].strip())
    copular = head and (words[0] in english.COPULAS or {"be", "been"} & set(words[:head]))
    if copular and words[head - 1] in english.COPULAS | english.ADVERBS | {"be", "been"}:
        claims = list(_complements(subject, group, rest)) + aside
    else:
        claims = [f"{subject} {group} {piece}" for piece in _objects(words[head - 1 : head], rest)] + aside
    if lead and claims:
        claims[0] = f"{claims[0]} {lead[0].lower()}{lead[1:]}"
    yield from claims


def _named(rest: str) -> tuple[str, list[str]]:
    """What follows a verb without the apposition to a name at its end, and that as a claim: "Ana Bo, a painter"."""
    match = re.fullmatch(r"(.*?)((?<!\S)[A-Z][\w'.-]*(?: [A-Z][\w'.-]*)*), (an? [^,]+)", rest)
    if not match or re.search(r"(?:,| and) $", match[1]):
        return rest, []
    return f"{match[1]}{match[2]}", [f"{match[2]} is {match[3]}"]


def _verb_group(words: list[str]) -> int:
    """How many words at the start of a predicate are verbs and adverbs."""
    i = 0
    while i < len(words) and (
        words[i] in english.ADVERBS or words[i] in english.AUXILIARIES or i == 0 or english.is_verb(words, i)
        or (words[i - 1] in english.AUXILIARIES | english.ADVERBS and words[i].endswith(("ed", "en", "wn", "rn", "ne")))
    ):  # fmt: skip
        i += 1
    return i


_MODIFIER = re.compile(r",? (?=(?:known for|born|based|best known|famous|noted|renowned|from(?! \d))\b)")
_PREPOSITION = re.compile(rf"(?:{'|'.join(english.PREPOSITIONS)})\b ")


def _complements(subject: str, copula: str, rest: str) -> Iterator[str]:
    """What somebody is: each item of a list, and what follows it on its own."""
    what, *modifiers = _MODIFIER.split(rest)
    first = re.split(r"(?=\s(?:of|in|for|at|with|to|on|by|that|as)\b)", what, maxsplit=1)[0]
    items = _items(first)
    plain = what and not _PREPOSITION.match(what) and re.match(r"(?:an?|the) ", first)
    if plain and len(items) > 1 and (len(items) > 2 or english.AGENTS.search(items[0])):
        yield from (f"{subject} {copula} {english.article(item)}" for item in items[:-1])
        yield f"{subject} {copula} {english.article(items[-1])}{what[len(first) :]}"
    elif plain:
        examples = _EXAMPLES.search(what)
        yield f"{subject} {copula} {what[: examples.start()] if examples else what}"
        opening = re.match(r".*? (?:of|for|with|in) ", what)
        if examples and opening and opening.end() <= examples.start():
            yield from (f"{subject} {copula} {opening[0]}{item}" for item in _items(what[examples.end() :]))
    elif what:
        where = _PREPOSITION.match(what)  # "is in Oslo since May": "is since May" would say nothing
        yield from (f"{subject} {copula} {piece}" for piece in (_listed(what) if where else _objects([], what)))
    for modifier in modifiers:
        verb = "was" if modifier.startswith("born") else copula.split()[0]
        yield from predicate(subject, f"{verb} {modifier}")


_EXAMPLES = re.compile(r",? (?:including|such as|like|namely) (?=[A-Z\"“]|(?:a|an|the|both) |\w+,|\w+ and )")


_MAKING = frozenset("wrote written published directed composed painted recorded released titled called starred".split())
_TITLE = re.compile(r"[A-Z][\w'’-]+ and [A-Z][\w'’-]+(?=$|,? (?:in|for|with|by|at|on)\b)")  # of one word each


def _objects(verb: list[str], rest: str) -> Iterator[str]:
    """What follows a verb, cut into what can follow it on its own: the examples, the lists and the adjuncts."""
    if verb and verb[0] in _MAKING and _TITLE.match(rest):
        yield rest  # "wrote Pride and Prejudice"
        return
    if examples := _EXAMPLES.search(rest):
        before, after = rest[: examples.start()], rest[examples.end() :]
        yield from _objects(verb, before)
        if verb and verb[0] in english.ADVERBS:
            return  # "has since gone on to manage clubs, including …": what they are examples for is not known
        preposition = _PREPOSITION.match(before)
        yield from (f"{preposition[0] if preposition else ''}{item}" for item in _items(after))
        return
    core, adjuncts = (rest, []) if english.JUDGED.intersection(verb) else _adjuncts(rest)
    if len(adjuncts) > 1 or (adjuncts and not core):
        yield from (piece for adjunct in adjuncts for piece in _listed(f"{core} {adjunct}".strip()))
    else:
        yield from (f"{piece} {' '.join(adjuncts)}" for piece in _listed(core))


def _listed(text: str) -> list[str]:
    """A phrase that ends in a list, once for each item: "as an actor and singer" → "as an actor", "as a singer"."""
    text = _mask(text)
    separator = re.search(r", | and | or | as well as ", text)
    if not separator:
        return [_unmask(text)]
    words = list(english.TOKEN.finditer(text, 0, separator.start()))
    start = next((words[i + 1].start() for i in range(len(words) - 2, -1, -1) if words[i][0] in english.PREPOSITIONS), 0)
    if text[:start].endswith("between "):
        return [_unmask(text)]  # two years, or two sides, are one statement
    opening = re.compile(r"both ").match(text, start)
    first, *others = _items(text[opening.end() if opening else start :])
    shared = re.match(r"(?:an?|the|his|her|its|their)\s+", first)
    article = shared[0] if shared else ""
    bare = first[len(article) :]
    adjective = len(others) == 1 and " " not in bare and " " in others[0] and bare.islower() and not english.AGENTS.search(bare)
    if not others or (first[0].isdigit() and not all(item[0].isdigit() for item in others)):
        return [_unmask(text)]
    if adjective and not bare.endswith("s"):
        return [_unmask(text)]  # "a long and distinguished career"
    indefinite = article.strip() in ("a", "an")
    shared_by = [english.article(item) if indefinite else item if _OWN.match(item) else article + item for item in others]
    return [_unmask(text[:start] + item) for item in (first, *shared_by)]


_OWN = re.compile(r"[A-Z\"“]|(?:an?|the|his|her|its|their|several|many|one)\b")


def _mask(text: str) -> str:
    """The text with no separators of a list inside its quotations."""
    return re.sub(r"[\"“][^\"“”]*[\"”]", lambda quoted: quoted[0].replace(" and ", "\0").replace(", ", "\1"), text)


def _unmask(text: str) -> str:
    return text.replace("\0", " and ").replace("\1", ", ")


def _adjuncts(rest: str) -> tuple[str, list[str]]:
    """The core of a predicate, and the phrases of time, place and manner behind it."""
    tokens = list(english.TOKEN.finditer(rest))
    cuts = []
    for i, token in enumerate(tokens):
        if token[0] in english.ADJUNCTS and i + 1 < len(tokens):
            after = rest[tokens[i + 1].start() :]
            named = after[0].isupper() or after[0].isdigit() or re.match(r"(?:the|his|her|age|an?|early|late)\b", after)
            if named and not (i and tokens[i - 1][0] in english.PREPOSITIONS | english.ADVERBS):
                cuts.append(token.start())
    if not cuts:
        return rest, []
    pieces = [rest[a:b].strip(" ,") for a, b in zip(cuts, [*cuts[1:], len(rest)], strict=True)]
    return rest[: cuts[0]].strip(" ,"), pieces


def _items(text: str) -> list[str]:
    """The items of a list such as "A, B, and C"; the text itself if it is no plain list. A quotation is not divided, and an
    apposition ("OnTruck, a platform,") stays with its name."""
    text = _mask(text.strip(" ,"))
    pieces: list[str] = []
    for piece in re.split(r",? (?:and|as well as|or) |, ", text):
        if pieces and pieces[-1][:1].isupper() and re.match(r"an? ", piece):
            pieces[-1] += f", {piece}"
        elif piece.strip():
            pieces.append(piece.strip(" ,"))
    joined = re.search(r" (?:and|as well as|or) ", text)
    if len(pieces) < 2 or not joined or any(len(piece.split()) > 7 for piece in pieces) or " between " in f" {text}":
        pieces = [text]
    return [_unmask(piece) for piece in pieces]
