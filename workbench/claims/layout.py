"""Convert headings, list items, fields ("Birthplace: Osk") and table rows to sentences.

Such lines often lack a subject. It is taken from a heading, from the first cell of a table row, or
from the question.
"""

import re
from functools import partial

from workbench.claims.english import PREPOSITIONS, VERBS, first_verb, words_in, words_of
from workbench.text.markup import plain
from workbench.util.patterns import regex

_words = partial(words_in, "layout")
_SECTIONS = _words("sections")  # words of headings that name no subject
_LABELS = _words("labels")  # fields that say nothing about the subject: "Answer: …"
_COLUMNS = _words("columns")  # heads of columns that name no field: "Detail"
_PASSIVE = _words("passive")  # participles that begin an item without "was": "Born in Osk"
_DATED = _words("dated")  # participles that are fields with a time or place: "Founded: 1950"
_PARTICLES = PREPOSITIONS | _words("particles")

_ITEM = regex(r"\s*(?:(?:[-*+•‣◦▪–—·]|\(?\d{1,2}[.)]|\(?[a-z]\))\s+|\d{1,2}\.(?=[A-Z]))")
_HEADING = regex(r"\s*(?:#{1,6}\s|(?:\*\*|__)[^*\n]+(?:\*\*|__)[:.]?\s*$)")
_FIELD = regex(
    r"(?s)(\d{4}s?|[^\W\d_a-z][\w'’/ -]{0,40}?)(?: \([^()]*\))?(?P<sign>:| [–—-])\s+(\S.*)"
)
_RULER = regex(r"[\s|:-]*-[\s|:-]*")  # the line below the head of a table
_CELLS = regex(r"\t|</t[dh]>\s*<t[dh]\b[^<>]{0,200}>")
_DAY = regex(r"\d{1,2} [A-Z]|[A-Z]\w+ \d{1,2}\b(?!\d)")


def is_name(text: str) -> bool:
    """Return whether a text is a name or a title: only capitalised words, and no verb."""
    words = re.findall(r"[\w'’.&-]+", text)
    # in lower case, so that "Ana Bo Was Born In Osk" has a verb
    if len(words) > 8 or first_verb(words_of(text.lower())):
        return False
    own = [word for word in words if word not in _PARTICLES]
    return bool(own) and all(word[0].isupper() or word[0].isdigit() for word in own)


class Layout:
    """A converter from the lines of a response, in order, to sentences.

    A heading that is a name becomes the subject of the lines below it. Any other heading is a
    label, and so is a sentence that ends in a colon. List items without a subject or verb are
    completed by the label: below "Awards", "Osk Prize" → "Ana Bo's awards include Osk Prize".

    Args:
        topic: the subject of the lines before the first heading that is a name.
    """

    def __init__(self, topic: str) -> None:
        self.subject, self.label = topic, ""
        self.columns: list[str] | None = None  # head of the current table; [] if it has no head

    def read(self, line: str, following: str) -> list[str] | None:
        """Return the sentences that a line states; None for prose, which needs no conversion.

        The result is [] for a heading and for the head of a table.

        Args:
            line: the line, with its heading or list marks.
            following: the next line of the response.
        """
        cells = _CELLS.sub(" | ", line.strip())
        if cells.startswith("|") or " | " in cells:
            return self._row(cells, following)
        self.columns = None
        item = _ITEM.match(line)
        text = plain(line[item.end() :] if item else line).strip()
        verb = first_verb(words_of(text))
        field = _FIELD.fullmatch(text)
        # not "Dune: Part Two is a film" outside a list
        if field and (item or (field["sign"] == ":" and (not verb or _is_label(field[1])))):
            return self._field(self.subject, field[1], field[3])
        bare = is_name(text.rstrip(".:"))
        if not verb and not item and (_HEADING.match(line) or text.endswith(":") or bare):
            self._head(text.strip(" .:"))
            return []
        if text.endswith(":"):
            self.label = re.sub(r"(?:,? as follows|(?: these| the following)?):$", "", text)
            return None
        return self._item(text, verb) if item else None

    def _head(self, heading: str) -> None:
        if is_name(heading) and _SECTIONS.isdisjoint(heading.casefold().split()):
            self.subject, self.label = heading, ""
        else:
            self.label = "" if heading.casefold() in _LABELS else heading

    def _item(self, text: str, verb: int) -> list[str] | None:
        """Return the sentences of a list item; None if it is prose.

        "a painter" → ["Ana Bo is a painter"]. `verb` is the index of its first verb, or 0.
        """
        if (predicate := self._predicate(text, verb)) or verb:
            return predicate
        if first_verb(words := words_of(self.label)):
            link = "" if words[-1] in VERBS else ":"
            return [f"{self.label}{link} {text}"]
        if self.subject and re.match(r"(?i)an? ", text):
            return [f"{self.subject} is {_lower(text)}"]
        if self.label and self.subject:
            return [f"{self.subject}'s {_lower(self.label)} include {text}"]
        return [] if is_name(text.rstrip(".")) else None

    def _predicate(self, text: str, verb: int) -> list[str] | None:
        """Return the sentence that "Born in Osk" or "Won a prize" states.

        Returns None if the text does not begin with a verb, or if the subject is unknown.
        """
        word, *before = words_of(text)[: max(verb, 1)] or [""]
        word = word.lower()
        starts = word in VERBS | _PASSIVE or (word.endswith("ed") and len(word) > 4)
        if not starts or not self.subject or is_name(" ".join(before)):  # "Led Zeppelin is"
            return None
        return [f"{self.subject} {'was ' if word in _PASSIVE else ''}{_lower(text)}"]

    def _field(self, subject: str, field: str, value: str, when: str = "") -> list[str] | None:
        """Return the sentences that a field states; None if there is no subject.

        "Birthplace: Osk" → ["Ana Bo's birthplace is Osk"]. `when` is added at the end.
        """
        words, name = words_of(value), _lower(field)
        verb, first = first_verb(words), name.split()[0]
        clause = [value] if verb and (words[0][0].isupper() or words[0] == "the") else None
        if field[0].isdigit():  # "1950: Won the prize"
            said = self._predicate(value, verb) or clause or [f"{subject}: {value}"]
            return [f"{one.rstrip('. ')} in {field}" for one in said]
        if clause or _is_label(field):
            return [] if is_name(value.rstrip(".")) else [value]  # "Life: She was born in Osk"
        if not subject:
            return None
        if first in _DATED and name == first:
            link = "on " if _DAY.match(value) else "" if value[:1].islower() else "in "
            return [f"{subject} {'' if first == 'died' else 'was '}{name} {link}{value}{when}"]
        if first in _DATED | _PASSIVE:
            return [f"{subject} was {name} {value}{when}"]  # "Known for: painting"
        are = "are" if re.search(r"[^su]s$", name) else "is"
        return [f"{subject}'s {name} {are} {value}{when}"]

    def _row(self, line: str, following: str) -> list[str]:
        """Return the sentences of a table row, one for each cell after the first; [] for a head."""
        first, *values = (plain(cell).strip() for cell in line.strip().strip("|").split("|"))
        if _RULER.fullmatch(line):
            return []
        if self.columns is None:
            # "Born | Osk" is not a head
            head = _RULER.fullmatch(following) and _lower(first) not in _DATED
            self.columns = values if head else []
            if self.columns:
                return []
        if not self.columns and len(values) > 1:
            return [f"{first}: {', '.join(values)}"]
        columns = self.columns or [""]
        dated = first[:1].isdigit() and self.subject
        subject, when = (self.subject, f" in {first}") if dated else (first, "")
        said: list[str] = []
        for column, value in zip(columns, values, strict=False):
            if not value or not first:
                continue
            if column.casefold() in _COLUMNS | {""}:
                subject, column, when = self.subject, first, ""
            said += self._field(subject, column, value, when) or [f"{column}: {value}"]
        return said


def _is_label(field: str) -> bool:
    return field.casefold() in _LABELS or _SECTIONS.issuperset(field.casefold().split())


def _lower(text: str) -> str:
    """Write the first letter in lower case, unless the text starts with an abbreviation."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"
