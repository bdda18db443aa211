"""Turn the parts of a sentence into claims by adding their subjects.

The rule-based extractor (`workbench.claims.rules`) uses this module.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from workbench.claims.adjuncts import is_free
from workbench.claims.antecedents import NAME, which, who
from workbench.claims.english import (
    ADVERBS,
    DETERMINERS,
    PREPOSITIONS,
    PRESENT,
    PRONOUNS,
    STAYING,
    TOKEN,
    blank,
    first_verb,
    past,
    tokens_of,
)
from workbench.claims.parts import Part, parts
from workbench.claims.predicates import predicate
from workbench.util.patterns import regex

_INSERTED = regex(  # "Ana, who sings, won", "The bridge, built in 1934, fell"
    rf"(?P<name>{NAME}|(?:The|His|Her|Its|Their|A|An) [^,]{{1,60}}), (?P<link>who |whose |which"
    r" |)(?P<clause>[^,]+), "
    rf"(?!and |but )(?=[a-z])"
)
_PARTICIPLE = regex(
    r"(?:called|named|titled|nicknamed|dubbed) |(?:built|written|made|held|known|born|led|won|set"
    r"|sung|\w+ed) (?:in|on|at|by|for|as|from|to|with)\b"
)
_DONE_TO = (  # participles that need no object before a preposition
    r"sold|built|rebuilt|made|spread|sent|taken|given|written|drawn|shown|bought|held|read|kept|shot|brought"
)
_IRREGULAR = _DONE_TO + r"|set|taught|led|found|won|put|cut|caught|paid|told"


_INSIDE = regex(
    r"\b(?:which|who|whom), |(?:\b(?:that|which|who|whom|whose|where|when)|^(?i:the|an?|these|those"
    r"|some|other|this) \w+(?:ary|al|ic|ive)) $"
)


_OFTEN = 4  # a sentence with more ambiguous clauses is not split


class Reader:
    """A converter from one sentence to claims.

    It splits the sentence into parts with one predicate each (`Part`). A part without a subject,
    such as "and won a prize", gets the subject of an earlier part. `Part.kind` tells which part.
    """

    def __init__(self) -> None:
        self.subject = ""  # the subject of the sentence
        self.latest = ""  # the subject of the last relative clause; "" if it is ambiguous
        self.whole = ""  # the last claim that `_grow` returned
        self.extensions = 0  # how often `whole` was set

    def read(self, text: str, lead: str) -> Iterator[str]:
        """Yield the claims of a sentence.

        Args:
            text: the sentence without its introduction.
            lead: the introduction, which is the phrase before the subject ("In 1998"), or "".
        """
        previous = ""
        unsplit = f"{lead}, {text}" if lead else text
        inserted = _INSERTED.match(text)
        if (
            inserted
            and not _verb(inserted["name"])
            and (inserted["link"] or _PARTICIPLE.match(inserted["clause"]))
        ):
            name, link, clause = inserted["name"], inserted["link"].strip(), inserted["clause"]
            yield from predicate(name, clause if link else f"was {clause}")
            text = f"{name} {text[inserted.end() :]}"
            unsplit = f"{lead}, {text}" if lead else text
        pieces = parts(text)
        if not pieces:
            return
        before = pieces[0].text[: _verb(pieces[0].text)]
        if re.search(r" (?:and|or|but) $", before) or _INSIDE.search(before) or _is_torn(pieces):
            # an unknown verb or the verb of a relative clause comes before the first verb
            yield unsplit
            return
        for number, part in enumerate(pieces):
            if self.extensions > _OFTEN:  # every further claim would repeat all words before it
                yield unsplit
                return
            # not in "After it, he left and is a cook"
            turns = _AFTER.match(lead) and re.match(r"(?:\w+ly )?(?:is|are)\b", part.text)
            under = number == 0 or (part.kind == "same" and not is_free(lead) and not turns)
            yield from self._read(part, previous, lead if under else "")
            own = part.kind != "ing" or self.whole.endswith(part.text.strip(" ,;"))
            previous = part.text if own else f"{self.subject} {part.text}"

    def _read(self, part: Part, previous: str, lead: str) -> Iterator[str]:
        """Yield the claims of one part.

        Args:
            previous: the text of the previous part.
            lead: the introduction of the sentence if it applies to this part, else "".
        """
        text = part.text.strip(" ,;")
        words = TOKEN.findall(text)
        if not words:
            return
        # "which he wrote"
        own = words[0] in PRONOUNS | DETERMINERS or words[0][0].isupper()
        if part.kind == "ing":
            yield from self._doing(text, words, previous)
        elif part.kind in ("same", "more"):
            yield from self._same(part.kind, text, previous, lead)
        elif part.kind == "who":
            yield from self._about(who(self.subject, previous, part.link), text, previous, part)
        elif part.kind == "which":
            yield from self._about("" if own else which(previous, words[0]), text, previous, part)
        elif part.kind == "where" and words[0] in PRONOUNS and _is_somebody(self.subject):
            subject = self.subject
            yield from self._clause(text, "")  # after a person, "where he …" stands alone
            self.subject = subject
        elif part.kind == "where":
            yield f"{self._whole(previous)}{part.link} {text}"
        else:
            yield from self._clause(text, lead)

    def _doing(self, text: str, words: list[str], previous: str) -> Iterator[str]:
        """Yield the claims of an "-ing" part, such as ", becoming a judge in 1950".

        An action of the subject becomes a separate claim. A consequence stays with its sentence:
        ", making it the longest bridge".
        """
        # "is a member, joining in 1990"
        present = re.search(r"\b(?:is|are|am)\b", previous)
        acting = _ACTING.match(text) and _is_somebody(self.subject)
        if present or _FOLLOWING.match(text) or not acting:
            yield self._grow(f"{self._whole(previous)}, {text}")
        else:
            yield from predicate(self.subject, _in_past(text, words))

    def _same(self, kind: str, text: str, previous: str, under: str) -> Iterator[str]:
        """Yield the claims of a further predicate.

        Its subject is the subject of the sentence. For the kind "more", it is the subject of the
        previous relative clause.
        """
        if kind == "more" and not self.latest:
            yield self._grow(f"{self.whole} and {text}")
            return
        text = _with_auxiliary(text, TOKEN.findall(text), previous)
        yield from predicate(self.latest if kind == "more" else self.subject, text, under)

    def _about(self, subject: str, text: str, previous: str, part: Part) -> Iterator[str]:
        """Yield the claims of a relative clause about `subject`.

        If the subject is "" (ambiguous), the claim also has the words before the clause.
        """
        self.latest = subject
        if subject:
            yield from predicate(subject, text)
        else:
            yield self._grow(f"{self._whole(previous)}{part.link or ','} {text}")

    def _grow(self, whole: str) -> str:
        """Return the claim `whole` and store it, because a later ambiguous clause may extend it."""
        self.whole, self.extensions = whole, self.extensions + 1
        return whole

    def _whole(self, previous: str) -> str:
        """Return the claim that an ambiguous clause extends.

        It is the claim that `_grow` stored, if this ends in `previous`. Otherwise, it is `previous`
        with its subject.
        """
        previous = previous.strip(" ,;")
        if self.whole.endswith(previous):
            return self.whole
        named = re.search(rf"(?<!\w){re.escape(self.subject)}(?!\w)", previous)
        return previous if named else f"{self.subject} {previous}"

    def _clause(self, text: str, lead: str) -> Iterator[str]:
        """Yield the claims of a part with its own subject, which becomes the sentence's subject."""
        unsplit = f"{lead}, {text}" if lead else text
        tokens = tokens_of(text)
        words = [token[0] for token in tokens]
        verb = first_verb(words)
        if not verb:
            yield unsplit
            return
        while verb > 1 and (
            words[verb - 1] in ADVERBS
            or (words[verb - 1].endswith("ly") and words[verb - 1].islower())
        ):
            verb -= 1
        start = tokens[verb].start()
        if text[:start].count(",") == 1 and text[:start].endswith(", "):
            # "The river rises in Osk, flows …": there is an unknown verb before the comma
            yield unsplit
            return
        self.subject, aside = _apposition(text[:start].strip(" ,"))
        self.latest = self.subject
        # not for a subject such as "the name" or "the term"
        if aside and not re.match(r"(?:the|a) (?:name|term|title|word)\b", aside):
            about = re.search(
                rf" [a-z][\w-]* (?:of|for|in|from|by|with|between) (?:the )?({NAME})$", self.subject
            )
            in_past = aside.startswith("born") or not _PRESENT.search(text[start:])
            noun = about[1] if about else self.subject
            many = re.match(r"(?:Their|These|Those|The|His|Her|Its) .*[a-z](?<![sui])s$", noun)
            being = ("is", "are", "was", "were")[2 * in_past + bool(many)]
            yield f"{noun} {being} {aside}"
        yield from predicate(self.subject, text[start:], lead)


_SUBORDINATE = regex(
    r"\b(?:after|before|until|while|because|although|since|as|once) (?=[A-Za-z])([^,]*)$"
)
_OTHER = regex(rf"(?<!,), and (?:{NAME})$")
_COLON = regex(r"\b[a-z]+: ([^:]*)$")  # not the colon of a title
_APPOSED = regex(
    r"\b(?:after|before|until|while|because|although|since|once|when|where) ([^,]+), (?:an? |the"
    r" |[A-Z])[^,]+$"
)
_CLAUSE_START = regex(
    r"\b(?:because|although|though|while|whereas|unless|that) (?!of\b)(?=[A-Za-z])(.*)$"
)
_NEW_SUBJECT = regex(
    r"(?:, and|, but| and| but) ((?:his|her|its|their|the|an?|this|that|some|others) [^,]*)$"
)


def _is_torn(pieces: list[Part]) -> bool:
    """Whether a subject and its verb are in different parts.

    In "but his house, which stood in Osk, fell", a clause is inserted between them.
    """
    for part, after in pairwise(pieces):
        text, related = part.text.strip(" ,"), after.kind in ("who", "which", "where")
        clause, opening = _CLAUSE_START.search(text), _SUBORDINATE.search(text)
        if (
            # "led by Ana, who won, and Bo, | who lost"
            ({part.kind, after.kind} <= {"who", "which"} and _OTHER.search(text))
            # "She left after her father, a cook, | was ill"
            or (after.kind == "same" and _APPOSED.search(text))
            or _COLON.search(blank(text))  # "was famous: Ana, | who"
            # "rose because several of them, including Bo, | were left"
            or (clause and after.kind not in ("clause", "main") and not _verb(f"x {clause[1]}"))
            # "left, but his house, | which stood in Osk, fell"
            or (related and _NEW_SUBJECT.search(text))
            or (opening and related and not _verb(f"x {opening[1]}") and pieces[-1].kind == "same")
        ):
            return True
    return False


_AFTER = regex(r"(?i)(?:after|before|following|upon|until)\b")


def _verb(text: str) -> int:
    """Return the character position of the first known finite verb; 0 if there is none."""
    tokens = tokens_of(text)
    verb = first_verb([token[0] for token in tokens])
    return tokens[verb].start() if verb else 0


_FOLLOWING = regex(
    r"(?:allow|enabl|caus|ensur|forc|prompt|mean|result|pav|signal)ing\b|(?:mak|giv|leav|lead|bring"
    r"|earn|help|mark)ing (?:it|him|them|us|people|her (?:an?|the|one|\d+))\b"
)
_ACTING = regex(  # actions of people: not of the thing named last or of the whole event
    r"(?:\w+ly )?(?:becom|serv|work|play|win+|earn|receiv|graduat|study|teach|leav|mov|join|writ"
    r"|direct|produc|publish|appear"
    r"|perform|lead|found|retir|return|compet|captur|coach|manag|defeat|scor|sign|specializ|specialis|act|sing|tour|releas"
    r"|co-found|paint|edit|obtain|complet|attend|marry|help|secur|supervis|pitch|bat+|advocat|promot|collect|train|fight|us|host|develop|represent|compos|record|invent|discover|design|creat|replac|succeed)ing\b"
)


_PRESENT = regex(rf"\b(?:is|are|has|have|{'|'.join(sorted(PRESENT))})\b")


def _is_somebody(subject: str) -> bool:
    return subject in ("He", "She", "he", "she") or bool(re.fullmatch(NAME, subject))


def _in_past(text: str, words: list[str]) -> str:
    """Put an "-ing" verb into the past: "eventually becoming" → "eventually became"."""
    first = next((i for i, word in enumerate(words) if past(word)), 0)
    token = list(TOKEN.finditer(text))[first]
    return f"{text[: token.start()]}{past(token[0])}{text[token.end() :]}"


def _with_auxiliary(text: str, words: list[str], previous: str) -> str:
    """Add the auxiliary of the previous predicate to a participle without one.

    In "was tried for treason and executed in Vetra", the second predicate becomes "was executed in
    Vetra". An active verb is not changed: "was born in Osk and moved to Vetra".
    """
    passive = re.search(
        rf"\b(is|was|are|were|been) (?:(?:\w+ly|{'|'.join(ADVERBS)})"
        rf" )*(\w+(?:ed|en|wn|rn)|{_IRREGULAR})\b",
        previous,
    )
    plain = [i for i, word in enumerate(words) if not word.endswith("ly")]
    at = next((i for i in plain if words[i] not in ADVERBS), 0)
    verb, after = words[at], next((words[i] for i in plain if i > at), "")
    bare = (verb.endswith("ed") or re.fullmatch(_DONE_TO, verb)) and verb not in STAYING
    if passive and passive[2] != "born" and bare and after in PREPOSITIONS | {"due", ""}:
        return f"{'was' if passive[1] == 'been' else passive[1]} {text}"
    raised = verb in "raised educated baptized baptised buried schooled".split()
    return f"was {text}" if passive and raised else text


def _apposition(subject: str) -> tuple[str, str]:
    """Split a subject from its apposition: "Toma, a painter" → ("Toma", "a painter")."""
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
