"""Combine the parts of a sentence with their subjects (see `workbench.claims.rules`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.claims import english
from workbench.claims.antecedents import NAME, which, who
from workbench.claims.leads import is_free
from workbench.claims.parts import Part, parts
from workbench.claims.predicates import predicate

_INSERTED = re.compile(  # "Ana, who sings, won", "The bridge, built in 1934, fell"
    rf"(?P<name>{NAME}|(?:The|His|Her|Its|Their|A|An) [^,]{{1,60}}), (?P<link>who |whose |which"
    r" |)(?P<said>[^,]+), "
    rf"(?!and |but )(?=[a-z])"
)
_PARTICIPLE = re.compile(
    r"(?:called|named|titled|nicknamed|dubbed)"
    r" |(?:built|written|made|held|known|born|led|won|set|sung|\w+ed) "
    r"(?:in|on|at|by|for|as|from|to|with)\b"
)
_DONE_TO = (  # followed by a preposition: to somebody, by somebody
    r"sold|built|rebuilt|made|spread|sent|taken|given|written|drawn|shown|bought|held|read|kept|shot|brought"
)
_IRREGULAR = _DONE_TO + r"|set|taught|led|found|won|put|cut|caught|paid|last_predicate"


_INSIDE = re.compile(
    r"\b(?:which|who|whom), "
    r"|(?:\b(?:that|which|who|whom|whose|where|when)|^(?i:the|an?|these|those|some|other|this)"
    r" \w+(?:ary|al|ic|ive)) $"
)


_OFTEN = 4  # ambiguous clauses in a row


class Reader:
    """Reads the parts of one sentence in order. A part without a subject inherits the subject of
    the previous part.
    """

    def __init__(self) -> None:
        self.last_predicate = ""  # the last part that has a verb,
        self.related = False  # whether the part before is a relative clause
        self.subject = self.latest = ""  # the sentence's, and the last relative clause's,
        # or that clause with the words before it, where it is not plain what it is about,
        self.whole = ""
        self.grown = 0  # and how often words were added to it

    def read(self, text: str, lead: str) -> Iterator[str]:
        previous = ""
        inserted = _INSERTED.match(text)
        if (
            inserted
            and not _verb(inserted["name"])
            and (inserted["link"] or _PARTICIPLE.match(inserted["said"]))
        ):
            name, link, said = inserted["name"], inserted["link"].strip(), inserted["said"]
            yield from (
                [f"{name}'s {said}"]
                if link == "whose"
                else predicate(name, said if link else f"was {said}")
            )
            text = f"{name} {text[inserted.end() :]}"
        found = parts(text)
        if not found:
            return
        before = found[0].text[: _verb(found[0].text)]
        if re.search(r" (?:and|or|but) $", before) or _INSIDE.search(before) or _is_torn(found):
            # before it stands a verb that is not known, or that of a relative clause
            yield f"{lead}, {text}" if lead else text
            return
        for number, part in enumerate(found):
            if self.grown > _OFTEN:  # every further claim would repeat the words of all before it
                yield f"{lead}, {text}" if lead else text
                return
            under = number == 0 or (
                part.kind == "same" and not is_free(lead) and not _turns(lead, part.text)
            )
            if part.kind in ("who", "which") and self.related and not self.latest:
                # the antecedent of a second relative clause is ambiguous
                yield text
                return
            yield from self._read(part, previous, lead if under else "")
            self.related = part.kind in ("who", "which")
            self.last_predicate = part.text if part.kind != "ing" else self.last_predicate
            said = part.text.strip(" ,;")
            opening = (
                f"{self.subject} " if part.kind == "ing" and not self.whole.endswith(said) else ""
            )
            previous = f"{opening}{part.text}"

    def _read(self, part: Part, previous: str, lead: str) -> Iterator[str]:
        text = part.text.strip(" ,;")
        words = english.TOKEN.findall(text)
        if not words:
            return
        # "which he wrote"
        own = words[0] in english.PRONOUNS | english.DETERMINERS or words[0][0].isupper()
        if part.kind == "ing":
            yield from self._doing(text, words, previous)
        elif part.kind in ("same", "more"):
            yield from self._same(part.kind, text, previous, lead)
        elif part.kind == "who":
            own = words[0] in english.PREPOSITIONS
            yield from self._about(
                "" if own else who(self.subject, previous, part.link),
                text,
                previous,
                part,
            )
        elif part.kind == "which":
            yield from self._about("" if own else which(previous, words[0]), text, previous, part)
        elif part.kind == "where":
            yield from self._where(text, words, previous, part.link)
        else:
            yield from self._clause(text, lead)

    def _doing(self, text: str, words: list[str], previous: str) -> Iterator[str]:
        """Handle "-ing" parts: an action of the subject, or a consequence, which stays with its
        sentence ("making it the longest").
        """
        # "is a member, joining in 1990"
        present = re.search(r"\b(?:is|are|am)\b", self.last_predicate)
        if present or _follows(self.subject, text):
            yield self._grow(f"{self._whole(previous)}, {text}")
        else:
            yield from predicate(self.subject, _in_past(text, words))

    def _same(self, kind: str, text: str, previous: str, under: str) -> Iterator[str]:
        """Handle a further predicate of the sentence's subject, or ("more") of the previous
        relative clause.
        """
        if kind == "more" and not self.latest:
            yield self._grow(f"{self.whole} and {text}")
            return
        lead, text = _intro(text)
        lead = under or lead
        said = _with_auxiliary(text, english.TOKEN.findall(text), previous)
        yield from predicate(self.latest if kind == "more" else self.subject, said, lead)

    def _about(self, subject: str, said: str, previous: str, part: Part) -> Iterator[str]:
        """Yield the claims of a relative clause. If its subject is ambiguous, keep it with the
        words before it.
        """
        self.latest = subject
        if subject:
            yield from predicate(subject, said)
        else:
            yield self._grow(f"{self._whole(previous)}{part.link or ','} {part.text.strip(' ,;')}")

    def _grow(self, whole: str) -> str:
        self.whole, self.grown = whole, self.grown + 1
        return whole

    def _whole(self, previous: str) -> str:
        previous = previous.strip(" ,;")
        if self.whole.endswith(previous):
            return self.whole
        return (
            previous
            if re.search(rf"(?<!\w){re.escape(self.subject)}(?!\w)", previous)
            else f"{self.subject} {previous}"
        )

    def _where(self, text: str, words: list[str], previous: str, link: str) -> Iterator[str]:
        """Handle a clause of place or time. If it has another subject, it keeps the place."""
        subject, own = self.subject, words[0] in english.PRONOUNS
        named = _is_somebody(subject)
        when = link.endswith("when") and (not named or not own or words[1:2] == ["was"])
        if when or (own and not named):
            yield f"{self._whole(previous)}{link} {text}"
            return
        place = re.search(r"\b(in|at) ((?:the )?[A-Z][^,]*)$", previous.strip(" ,"))
        claims = list(self._clause(text, ""))
        self.subject = subject
        if place and not own:
            claims[0] = f"{claims[0]} {place[0]}"
        elif not own:
            claims = [f"{self._whole(previous)}{link} {text}"]
        if link.endswith("whose"):
            claims = [f"{self._whole(previous)}, whose {text}"]
        yield from claims

    def _clause(self, text: str, lead: str) -> Iterator[str]:
        if not lead:
            lead, text = _intro(text)
        words = english.TOKEN.findall(english.blank(text))
        verb = next((i for i in range(1, len(words)) if english.is_verb(words, i)), None)
        if verb is None:
            yield f"{lead}, {text}" if lead else text
            return
        while verb > 1 and (
            words[verb - 1] in english.ADVERBS
            or (words[verb - 1].endswith("ly") and words[verb - 1].islower())
        ):
            verb -= 1
        start = list(english.TOKEN.finditer(english.blank(text)))[verb].start()
        if text[:start].count(",") == 1 and text[:start].endswith(", "):
            # "The river rises in Osk, flows …": before the comma stands a verb
            yield f"{lead}, {text}" if lead else text
            return
        self.subject, aside = _apposition(text[:start].strip(" ,"))
        self.latest = self.subject
        # of what is called so
        if aside and not re.match(r"(?:the|a) (?:name|term|title|word)\b", aside):
            about = re.search(
                rf" [a-z][\w-]* (?:of|for|in|from|by|with|between) (?:the )?({NAME})$", self.subject
            )
            past = aside.startswith("born") or not _PRESENT.search(text[start:])
            yield (
                f"{about[1] if about else self.subject}"
                f" {_being(about[1] if about else self.subject, past)} {aside}"
            )
        yield from predicate(self.subject, text[start:], lead)


_BEGUN = re.compile(
    r"\b(?:because|although|though|while|whereas|unless|that) (?!of\b)(?=[A-Za-z])(.*)$"
)
_SUBORDINATE = re.compile(
    r"\b(?:after|before|until|while|because|although|since|as|once) (?=[A-Za-z])([^,]*)$"
)
_TAIL = re.compile(r", and ((?:its|his|her|their|the|an?) [^,]+)$")
_OTHER = re.compile(rf"(?<!,), and (?:{NAME})$")
_COLON = re.compile(r"\b[a-z]+: ([^:]*)$")  # and not that of a title
_APPOSED = re.compile(
    r"\b(?:after|before|until|while|because|although|since|once|when|where) ([^,]+), (?:an? |the"
    r" |[A-Z])[^,]+$"
)
_ANEW = re.compile(
    r"(?:, and|, but| and| but) ((?:his|her|its|their|the|an?|this|that|some|others) [^,]*)$"
)


def _is_torn(found: list[Part]) -> bool:
    """Whether a subject continues after a relative clause: "Rain, which won a prize, and its sequel
    …".
    """
    texts = [part.text.strip(" ,") for part in found]
    if any(
        _breaks_off(text, part.kind, after.kind)
        for text, part, after in zip(texts, found, found[1:], strict=False)
    ):
        return True
    if any(
        part.kind in ("who", "which") and (tail := _TAIL.search(text)) and not _verb(f"x {tail[1]}")
        for part, text in zip(found, texts, strict=True)
    ):
        return True  # "Rain, which won a prize, and its sequel"
    for text, other in zip(texts, found[1:], strict=False):
        related = other.kind in ("who", "which", "where")
        clause, anew, opening = _BEGUN.search(text), _ANEW.search(text), _SUBORDINATE.search(text)
        if clause and other.kind not in ("clause", "main") and not _verb(f"x {clause[1]}"):
            return True  # "rose because several of them, including Bo, were left"
        if anew and related:
            return True  # "left, but his house, which stood in Osk, fell"
        if opening and related and not _verb(f"x {opening[1]}") and found[-1].kind == "same":
            return True
    return False


def _breaks_off(text: str, kind: str, after: str) -> bool:
    """Whether a part ends in a subject whose verb comes after the next comma: "left after her
    father, a baker, | was sent".
    """
    if kind in ("who", "which") and after in ("who", "which") and _OTHER.search(text):
        return True  # "led by Ana, who won, and Bo, | who lost"
    apposed, anew = _APPOSED.search(text), _COLON.search(english.blank(text))
    if apposed and after == "same":
        return True
    # "was famous: Ana, | who"
    return anew is not None


def _turns(lead: str, text: str) -> bool:
    """Whether a present-tense predicate does not hold after the introduction: "After it, he left
    and is a cook".
    """
    past = re.match(r"(?:after|before|following|upon|until)\b", lead, re.I)
    return bool(past and re.match(r"(?:\w+ly )?(?:is|are)\b", text))


def _verb(text: str) -> int:
    """Return the character position of the first verb, or 0 if there is no known verb."""
    tokens = list(english.TOKEN.finditer(english.blank(text)))
    words = [token[0] for token in tokens]
    return next((tokens[i].start() for i in range(1, len(words)) if english.is_verb(words, i)), 0)


_FOLLOWING = re.compile(
    r"(?:allow|enabl|caus|ensur|forc|prompt|mean|result|pav|signal)ing\b"
    r"|(?:mak|giv|leav|lead|bring|earn|help|mark)ing (?:it|him|them|us|people|her"
    r" (?:an?|the|one|\d+))\b"
)
_ACTING = re.compile(  # what only somebody does, and not the thing named last, or all that was said
    r"(?:\w+ly )?(?:becom|serv|work|play|win+|earn|receiv|graduat|study|teach|leav|mov|join|writ"
    r"|direct|produc|publish|appear"
    r"|perform|lead|found|retir|return|compet|captur|coach|manag|defeat|scor|sign|specializ|specialis|act|sing|tour|releas"
    r"|co-found|paint|edit|obtain|complet|attend|marry|help|secur|supervis|pitch|bat+|advocat|promot|collect|train|fight|us|host|develop|represent|compos|record|invent|discover|design|creat|replac|succeed)ing\b"
)


def _follows(subject: str, text: str) -> bool:
    """Whether an "-ing" part may describe the last named thing or the whole event instead of the
    subject.
    """
    return bool(_FOLLOWING.match(text)) or not _ACTING.match(text) or not _is_somebody(subject)


_PRESENT = re.compile(rf"\b(?:is|are|has|have|{'|'.join(sorted(english.PRESENT))})\b")


def _being(subject: str, past: bool) -> str:
    many = re.match(r"(?:Their|These|Those|The|His|Her|Its) .*[a-z](?<![sui])s$", subject)
    return ("were" if many else "was") if past else "are" if many else "is"


def _is_somebody(subject: str) -> bool:
    return subject in ("He", "She", "he", "she") or bool(re.fullmatch(NAME, subject))


def _in_past(text: str, words: list[str]) -> str:
    """ "eventually becoming a judge" → "eventually became a judge"."""
    first = next((i for i, word in enumerate(words) if english.past(word)), 0)
    token = list(english.TOKEN.finditer(text))[first]
    return f"{text[: token.start()]}{english.past(token[0])}{text[token.end() :]}"


def _intro(text: str) -> tuple[str, str]:
    """Split off the introduction of a later clause, as in "during his career, he threw …"."""
    intro = re.match(
        r"((?:in|on|at|during|after|before|since|by|from|until|when|while) [^,]{2,50}), (?=\S)",
        text,
    )
    # "and in 1904 he won"
    intro = intro or re.match(r"((?:in|on|since|by) \d{4}) (?=(?:he|she|it|they)\b)", text)
    return (intro[1], text[intro.end() :]) if intro else ("", text)


def _with_auxiliary(text: str, words: list[str], previous: str) -> str:
    """ "was tried for treason and executed in Vetra": "was executed"; "was born in Osk and moved
    to Vetra" stays.
    """
    passive = re.search(
        rf"\b(is|was|are|were|been) (?:(?:\w+ly|{'|'.join(english.ADVERBS)})"
        rf" )*(\w+(?:ed|en|wn|rn)|{_IRREGULAR})\b",
        previous,
    )
    verb = next(
        (
            i
            for i, word in enumerate(words)
            if not word.endswith("ly") and word not in english.ADVERBS
        ),
        0,
    )
    behind = (word for word in words[verb + 1 :] if not word.endswith("ly"))
    after = next(behind, "")
    bare = (words[verb].endswith("ed") or re.fullmatch(_DONE_TO, words[verb])) and words[
        verb
    ] not in english.STAYING
    if passive and passive[2] != "born" and bare and after in english.PREPOSITIONS | {"due", ""}:
        return f"{'was' if passive[1] == 'been' else passive[1]} {text}"
    raised = words[verb] in ("raised", "educated", "baptized", "baptised", "buried", "schooled")
    return f"was {text}" if passive and raised else text


def _apposition(subject: str) -> tuple[str, str]:
    """ "Toma, a painter" → ("Toma", "a painter"); "His father, Bo" and "His father Bo" → ("His
    father", "Bo").
    """
    match = re.fullmatch(
        rf"({NAME}|(?:The|An?|His|Her|Its|Their|My|Our|This|That|One|{NAME}['’]s) [^,]*),"
        r" ((?:an?|the|one of|(?:also"
        rf"|better|best|commonly|popularly|formerly) known (?:as|by)|known as|born)\b.*)",
        subject,
    )
    if match and (
        ", and " in match[2] or (match[2].startswith("the ") and re.match("An? ", subject))
    ):
        # "Ana, the mayor, and Bo, the judge, were", "A gift of the town, the statue is"
        return subject, ""
    return (match[1], match[2]) if match else (subject, "")
